//! Published models, if they are installed. The project ships none.
//!
//! They are searched in the folder that `NARROWS_MODELS` names, otherwise where `narrows models add` stores them, under
//! the names of `docs/guide/models.md`. A test skips missing models and reports that (`narrows_skips`); if
//! `NARROWS_MODELS` is set, a missing one is a failure.

use narrows_skips::skip;
use narrows_units::Files;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;

/// Value of a flow's parameter `model` for the model in [`files`].
pub fn reference() -> Value {
    json!({"name": "a.safetensors", "sha256": "a"})
}

/// The files of a cell whose flows follow this model.
pub fn files(content: &[u8]) -> Files {
    let mut files = Files::default();
    files.insert("a", content.to_vec());
    files
}

/// The folder, and whether it was set explicitly.
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> (PathBuf, bool) {
    let folder = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    if let Some(folder) = folder("NARROWS_MODELS") {
        return (folder, true);
    }
    let home = || folder("HOME").unwrap_or_default().join(".local/share");
    let data = folder("XDG_DATA_HOME").unwrap_or_else(home);
    (data.join("narrows/models"), false)
}

/// The content of the model called `name`; without it, the running test, or its part about this model, is skipped.
///
/// # Panics
/// When it is missing in a folder that was set explicitly.
pub fn content(name: &str) -> Option<Vec<u8>> {
    let content = content_with(name, |name| std::env::var_os(name));
    if content.is_none() {
        skip(format!(
            "the model {name} is not installed: narrows models add {name} PATH"
        ));
    }
    content
}

fn content_with(name: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<Vec<u8>> {
    let (folder, asked) = folder(variable);
    let path = folder.join(format!("{name}.safetensors"));
    let content = std::fs::read(&path).ok();
    if content.is_none() {
        let path = path.display();
        assert!(
            !asked,
            "there is no {path}; narrows models add {name} PATH puts it there, from where docs/guide/models.md says"
        );
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(folder: &std::path::Path, variable: &'static str) -> Option<Vec<u8>> {
        let path = folder.as_os_str().to_owned();
        content_with("tiny", |name| (name == variable).then(|| path.clone()))
    }

    #[test]
    fn a_model_that_is_not_installed_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(among(folder.path(), "XDG_DATA_HOME"), None);
        assert_eq!(among(folder.path(), "HOME"), None);
        // A relative folder is ignored, as by the command.
        assert_eq!(among("somewhere".as_ref(), "NARROWS_MODELS"), None);
    }

    #[test]
    #[should_panic(expected = "tiny.safetensors; narrows models add tiny PATH puts it there")]
    fn one_that_was_asked_for_is_not() {
        let folder = tempfile::tempdir().unwrap();
        among(folder.path(), "NARROWS_MODELS");
    }

    #[test]
    fn what_is_there_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::write(path.join("tiny.safetensors"), "a").unwrap();
        assert_eq!(among(path, "NARROWS_MODELS").unwrap(), b"a");
        let models = path.join(".local/share/narrows/models");
        std::fs::create_dir_all(&models).unwrap();
        std::fs::write(models.join("tiny.safetensors"), "b").unwrap();
        assert_eq!(among(path, "HOME").unwrap(), b"b");
    }
}
