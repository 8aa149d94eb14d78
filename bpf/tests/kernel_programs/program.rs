//! A congestion control program of `bpf/src/c`, compiled for this machine together with
//! `host/kernel.c`, which emulates the kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Answer of the program to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Window in packets.
    pub(crate) cwnd: u64,
    /// Threshold in packets.
    pub(crate) ssthresh: u64,
    /// Bytes per second, 0 if the program sets none.
    pub(crate) pacing: u64,
}

/// A compiled program.
pub(crate) struct Program {
    folder: tempfile::TempDir,
    source: String,
}

/// The folder of the C files.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/c")
}

/// The C file of `name`.
pub(crate) fn source(name: &str) -> String {
    fs::read_to_string(folder().join(format!("{name}.bpf.c"))).expect("the program's file")
}

/// Names of all programs.
pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder())
        .expect("the folder of the programs")
        .filter_map(|entry| {
            let name = entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name");
            name.strip_suffix(".bpf.c").map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

/// Runs the C compiler with the settings of programs for this harness, and `more`.
fn cc(more: impl FnOnce(&mut Command) -> &mut Command) {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(compiler);
    command
        .args([
            "-std=gnu11",
            "-O1",
            "-Wall",
            "-Werror",
            "-DNARROWS_HOST",
            "-rdynamic",
        ])
        // As in the kernel, where conversions and shifts have their obvious meaning.
        .args([
            "-fwrapv",
            "-fsanitize=undefined",
            "-fno-sanitize-recover=undefined",
        ])
        .arg("-I")
        .arg(folder());
    let done = more(&mut command).output().expect("a C compiler");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// The compiled part of the kernel, which is the same for all programs.
fn kernel() -> &'static Path {
    static KERNEL: LazyLock<PathBuf> = LazyLock::new(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/host/kernel.c");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let new = folder.join(format!("kernel-{}.o", std::process::id()));
        cc(|command| command.arg("-c").arg(source).arg("-o").arg(&new));
        let object = folder.join("kernel.o");
        fs::rename(new, &object).expect("the object file");
        object
    });
    &KERNEL
}

impl Program {
    /// Compiles `source`.
    pub(crate) fn compile(source: &str) -> Program {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("program.c");
        fs::write(&file, source).expect("the source");
        cc(|command| {
            command
                .arg(&file)
                .arg(kernel())
                .args(["-ldl", "-o"])
                .arg(folder.path().join("program"))
        });
        Program {
            folder,
            source: source.to_owned(),
        }
    }

    /// Names of its parameters.
    pub(crate) fn params(&self) -> Vec<String> {
        let lines = self
            .source
            .lines()
            .filter_map(|line| line.strip_prefix("PARAM("));
        lines
            .map(|line| line.split(',').next().expect("a name").trim().to_owned())
            .collect()
    }

    /// Plays events; one answer for each line.
    pub(crate) fn play(&self, events: &str) -> Vec<Answer> {
        let input = self.folder.path().join("events");
        fs::write(&input, events).expect("the events");
        let done = Command::new(self.folder.path().join("program"))
            .stdin(Stdio::from(fs::File::open(&input).expect("the events")))
            .output()
            .expect("the program runs");
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        let text = String::from_utf8(done.stdout).expect("text");
        text.lines().map(Answer::parse).collect()
    }
}

impl Answer {
    fn parse(line: &str) -> Answer {
        let mut numbers = line.split(' ').map(|word| word.parse().expect("a number"));
        let mut next = || numbers.next().expect("four numbers");
        Answer {
            cwnd: next(),
            ssthresh: next(),
            pacing: next(),
        }
    }
}
