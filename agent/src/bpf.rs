//! `bpf`: whether BPF congestion controls can be loaded here, tried before a campaign begins.

use narrows_bpf::find;
use narrows_cell::RunError;
use narrows_cell::read_regular;
use narrows_endpoints::bpf::{Programs, Wish};
use narrows_units::Params;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub(crate) struct BpfArguments {
    /// A shipped program, by its name.
    #[arg(long = "program")]
    programs: Vec<String>,
    /// An object file, and its name in messages.
    #[arg(long = "object", value_parser = parse_object, value_name = "NAME=PATH")]
    objects: Vec<(String, PathBuf)>,
}

fn parse_object(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text
        .split_once('=')
        .ok_or("write NAME=PATH, such as mine.o=/tmp/mine.o")?;
    Ok((name.to_owned(), path.into()))
}

/// Loads each briefly; the answers are in the order of the arguments, programs first.
pub(crate) fn examine(arguments: &BpfArguments) -> Value {
    let programs = arguments.programs.iter();
    let programs = programs.map(|name| answer(name, program(name)));
    let objects = arguments.objects.iter();
    let objects = objects.map(|(name, path)| answer(name, object(name, path)));
    json!({"results": programs.chain(objects).collect::<Vec<_>>()})
}

fn program(name: &str) -> Result<Wish, RunError> {
    let Some(program) = find(name) else {
        return Err(RunError::Input(format!(
            "the BPF program '{name}' does not exist"
        )));
    };
    Wish::program(program, &Params::default())
}

fn object(name: &str, path: &Path) -> Result<Wish, RunError> {
    let content = read_regular(path)
        .map_err(|error| RunError::Input(format!("{name} cannot be read: {error}")))?;
    Wish::object(name, &content)
}

fn answer(what: &str, wish: Result<Wish, RunError>) -> Value {
    let error = wish.and_then(|wish| Programs::load(vec![wish])).err();
    let kind = error.as_ref().map(|error| match error {
        RunError::Unavailable(_) => "unavailable",
        RunError::Input(_) => "input",
        _ => "internal",
    });
    let message = error.as_ref().map(ToString::to_string);
    json!({"what": what, "ok": error.is_none(), "kind": kind, "message": message})
}
