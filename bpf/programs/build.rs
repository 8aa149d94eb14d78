//! Lists every `../src/c/*.bpf.c` with its text in `programs.rs`. The folder is the registry: a file there is a
//! program.

use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Ending of the names of the C files.
const SUFFIX: &str = ".bpf.c";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../src/c");
    let folder = fs::canonicalize(folder)?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut list = String::from("&[\n");
    for file in programs(&folder)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name = name.trim_end_matches(SUFFIX);
        // As a Rust string literal, since the folder's name may contain any characters.
        let file = file.to_string_lossy();
        writeln!(
            list,
            "    Program {{ name: {name:?}, text: include_str!({file:?}) }},"
        )?;
    }
    list.push(']');
    let out = PathBuf::from(env::var("OUT_DIR")?);
    Ok(fs::write(out.join("programs.rs"), list)?)
}

/// The C files, in the order of their names.
fn programs(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(SUFFIX) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
