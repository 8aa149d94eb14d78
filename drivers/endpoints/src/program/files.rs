//! The files of which a program consists.

use super::file_system::FileSystem;
use narrows_cell::{ProgramFile, read_regular, sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// The files whose code a process has mapped.
pub(super) fn mapped(pid: u32) -> Vec<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    read_maps(&maps)
}

fn read_maps(maps: &str) -> Vec<PathBuf> {
    let code = |line: &str| {
        let mut words = line.splitn(6, ' ');
        let permissions = words.nth(1)?;
        let path = words.last()?.trim_start();
        (permissions.contains('x') && path.starts_with('/')).then(|| PathBuf::from(path))
    };
    let mut found: Vec<PathBuf> = maps.lines().filter_map(code).collect();
    found.sort();
    found.dedup();
    found
}

/// The program, the files that it needs, and the mapped libraries, each once, with the hash of its content; paths are
/// those that the program uses.
pub(super) fn identify(
    program: &Path,
    needed: &[String],
    mapped: &[PathBuf],
    place: FileSystem,
) -> Vec<ProgramFile> {
    let program = place.real(program);
    let parts = std::iter::once(("program", program))
        .chain(needed.iter().map(|path| ("needed", PathBuf::from(path))))
        .chain(mapped.iter().map(|path| ("library", path.clone())));
    let mut found: Vec<ProgramFile> = Vec::new();
    for (part, path) in parts {
        let shown = path.display().to_string();
        if found.iter().any(|file| file.path == shown) {
            continue;
        }
        let content = place
            .outside(&path)
            .and_then(|path| read_regular(&path).ok());
        found.push(ProgramFile {
            part: part.to_owned(),
            sha256: content.map(|content| sha256(&content)),
            path: shown,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_is_mapped_is_told_from_data() {
        let maps = "55-56 r--p 00000000 08:01 12    /bin/x\n\
                    56-57 r-xp 00001000 08:01 12                         /bin/x\n\
                    60-61 r-xp 00000000 08:01 13                         /lib/a b.so\n\
                    70-71 r-xp 00000000 00:00 0                          [vdso]\n\
                    80-81 rw-p 00000000 00:00 0\n";
        assert_eq!(
            read_maps(maps),
            [Path::new("/bin/x"), Path::new("/lib/a b.so")]
        );
        let own = mapped(std::process::id());
        assert!(
            own.iter()
                .any(|path| path.display().to_string().contains("libc")),
            "{own:?}"
        );
    }

    #[test]
    fn each_file_has_its_hash_once() {
        let place = FileSystem::of_machine();
        let shell = place.find("sh", &[]).unwrap();
        let real = fs::canonicalize(&shell).unwrap();
        let files = identify(&shell, &["/no/such/file".into()], &[real], place);
        let parts: Vec<&str> = files.iter().map(|file| &*file.part).collect();
        assert_eq!(parts, ["program", "needed"]);
        assert_eq!(files[0].sha256.as_ref().unwrap().len(), 64);
        assert_eq!(files[1].sha256, None);
    }
}
