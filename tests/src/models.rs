//! Published models, where they are installed. The project ships none.
//!
//! They are looked for in the folder that `NARROWS_MODELS` names, else where `narrows models add` keeps them, under the
//! names of `docs/guide/models.md`. A test skips what is not there and says so.

use std::path::PathBuf;

fn folder() -> PathBuf {
    let variable = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    if let Some(folder) = variable("NARROWS_MODELS") {
        return folder;
    }
    let home = || variable("HOME").unwrap_or_default().join(".local/share");
    variable("XDG_DATA_HOME")
        .unwrap_or_else(home)
        .join("narrows/models")
}

/// The content of the model called `name`; without it, a word on standard error that something is not tested.
pub fn content(name: &str) -> Option<Vec<u8>> {
    let path = folder().join(format!("{name}.model"));
    let content = std::fs::read(&path).ok();
    if content.is_none() {
        eprintln!("not tested with {name}: there is no {}", path.display());
    }
    content
}
