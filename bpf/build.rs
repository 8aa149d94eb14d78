//! Compiles every `src/c/*.bpf.c` with clang for the BPF machine, strips the debug sections and lists
//! the results in `objects.rs`. The folder is the registry: a file there is a program.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Ending of the names of the C files.
const SUFFIX: &str = ".bpf.c";

fn main() {
    if let Err(problem) = build() {
        // Cargo shows it as the reason of the failure.
        eprintln!("{problem}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let source = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("src/c");
    for tool in ["CLANG", "LLVM_STRIP"] {
        println!("cargo::rerun-if-env-changed={tool}");
    }
    // Cargo watches all files of a folder, including headers.
    println!("cargo::rerun-if-changed={}", source.display());
    let mut list = String::from("&[\n");
    for file in programs(&source)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name = name.trim_end_matches(SUFFIX);
        let object = out.join(format!("{name}.bpf.o"));
        // Other systems than Linux can neither load them nor have the headers.
        if variable("CARGO_CFG_TARGET_OS")? == "linux" {
            compile(&file, &source, &object)?;
        } else {
            fs::write(&object, b"").map_err(|error| format!("{}: {error}", object.display()))?;
        }
        // As a Rust string literal, since the folder's name may contain any characters.
        let object = object.to_string_lossy();
        writeln!(list, "    ({name:?}, include_bytes!({object:?})),")
            .expect("writing to a string cannot fail");
    }
    list.push(']');
    let path = out.join("objects.rs");
    fs::write(&path, list).map_err(|error| format!("{}: {error}", path.display()))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}

/// The C files, in the order of their names.
fn programs(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let refused = |error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(refused)? {
        let path = entry.map_err(refused)?.path();
        if path.to_string_lossy().ends_with(SUFFIX) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn compile(file: &Path, folder: &Path, object: &Path) -> Result<(), String> {
    // From the build script of libbpf-sys: the headers of the linked libbpf.
    let headers = variable("DEP_BPF_INCLUDE")?;
    let machine = variable("CARGO_CFG_TARGET_ARCH")?;
    let mut clang = Command::new(env::var("CLANG").unwrap_or_else(|_| "clang".into()));
    clang.args([
        "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror",
    ]);
    clang.args(["-I", &headers]).arg("-I").arg(folder);
    // Debian keeps <asm/types.h> in a folder of the machine, which clang does not search for BPF; those of another
    // machine come with the compiler for it.
    clang.arg(format!("-I/usr/include/{machine}-linux-gnu"));
    clang.arg(format!("-I/usr/{machine}-linux-gnu/include"));
    clang.arg("-c").arg(file).arg("-o").arg(object);
    run(&mut clang, "clang", file)?;
    let mut strip = Command::new(env::var("LLVM_STRIP").unwrap_or_else(|_| "llvm-strip".into()));
    // The types (.BTF) stay; DWARF would make the object ten times as large and contain names of build folders.
    run(strip.arg("-g").arg(object), "llvm-strip", file)
}

fn run(command: &mut Command, name: &str, file: &Path) -> Result<(), String> {
    let done = command.output().map_err(|error| {
        format!(
            "{name} is needed to compile the BPF programs in bpf/src/c and cannot be started ({error}); \
             install it (Debian: apt-get install clang llvm) or name it with {}=...",
            name.to_uppercase().replace('-', "_")
        )
    })?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(format!("{name} refuses {}:\n{said}", file.display()))
}
