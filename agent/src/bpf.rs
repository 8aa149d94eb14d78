//! `bpf`: whether BPF congestion controls can be loaded here, tried before a campaign begins.

use narrows_bpf::find;
use narrows_live::LiveError;
use narrows_live::bpf::{Programs, Wish};
use narrows_units::Params;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub(crate) struct BpfArguments {
    /// One of our programs, by its name.
    #[arg(long = "program")]
    programs: Vec<String>,
    /// An object file.
    #[arg(long = "object")]
    objects: Vec<PathBuf>,
}

/// Loads each for a moment; the answers are in the order of the question, programs first.
pub(crate) fn examine(arguments: &BpfArguments) -> Value {
    let programs = arguments.programs.iter();
    let programs = programs.map(|name| answer(name, program(name)));
    let objects = arguments.objects.iter();
    let objects = objects.map(|path| answer(&path.to_string_lossy(), object(path)));
    json!({"results": programs.chain(objects).collect::<Vec<_>>()})
}

fn program(name: &str) -> Result<Wish, LiveError> {
    let Some(program) = find(name) else {
        return Err(LiveError::Input(format!(
            "there is no BPF program '{name}'"
        )));
    };
    Wish::program(program, &Params::default())
}

fn object(path: &Path) -> Result<Wish, LiveError> {
    let content = std::fs::read(path)
        .map_err(|error| LiveError::Input(format!("{} cannot be read: {error}", path.display())))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Wish::object(&name, &content)
}

fn answer(what: &str, wish: Result<Wish, LiveError>) -> Value {
    let error = wish.and_then(|wish| Programs::load(vec![wish])).err();
    let kind = error.as_ref().map(|error| match error {
        LiveError::Unavailable(_) => "unavailable",
        LiveError::Input(_) => "input",
        _ => "internal",
    });
    let message = error.as_ref().map(ToString::to_string);
    json!({"what": what, "ok": error.is_none(), "kind": kind, "message": message})
}
