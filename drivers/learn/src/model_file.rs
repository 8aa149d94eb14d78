//! Model files, as the schemes read them, and cells that have one.

use narrows_cell::Cell;
use narrows_units::Files;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};

/// Identifies the model in a cell, where others have a digest.
const MODEL: &str = "model";

/// The model of a cell for [`parse_cell`], as the parameter of a scheme.
pub(crate) fn reference() -> Value {
    json!({"name": "model.safetensors", "sha256": MODEL})
}

/// The cell in `json`, whose only file is the model in `content`.
pub(crate) fn parse_cell(json: &Value, content: &[u8]) -> Cell {
    let files = |_: &Value| {
        let mut files = Files::default();
        files.insert(MODEL, content.to_vec());
        Ok(files)
    };
    Cell::parse_with(&json.to_string(), files).expect("checked numbers make a valid cell")
}

/// The content of a model file of `kind`, with `notes` in its metadata in their order: equal models are equal files.
pub(crate) fn encode<'a>(
    views: impl Iterator<Item = (&'a str, TensorView<'a>)>,
    kind: &str,
    notes: &[(String, String)],
) -> Vec<u8> {
    // The library keeps metadata in a hash map, whose order differs from run to run: only the kind is written by it.
    let kind = ("kind".to_owned(), kind.to_owned());
    let plain = safetensors::serialize(views, Some([kind].into_iter().collect()))
        .expect("arrays that have been checked");
    if notes.is_empty() {
        return plain;
    }
    let (length, rest) = plain.split_at(8);
    let length = u64::from_le_bytes(length.try_into().expect("eight bytes")) as usize;
    let mut header: serde_json::Map<String, Value> =
        serde_json::from_slice(&rest[..length]).expect("a header written by the library");
    for (name, text) in notes {
        header["__metadata__"][name] = text.as_str().into();
    }
    let mut header = serde_json::to_vec(&header).expect("text keys");
    // Data begin at a multiple of eight bytes.
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.extend(&rest[length..]);
    file
}
