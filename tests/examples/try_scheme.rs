//! Simulates one flow of a scheme and tells what the registry says of it, as one line of JSON:
//! `cargo run --release -p narrows-tests --example try_scheme -- NAME`.

use narrows_tests::Dumbbell;
use serde_json::json;
use std::process::ExitCode;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let registry = narrows_cell::registry();
    let listed = registry["schemes"].as_array();
    let entry = listed.and_then(|all| all.iter().find(|entry| entry["name"] == name.as_str()));
    let (Some(entry), Some(scheme)) = (entry, narrows_cc::schemes::find(&name)) else {
        eprintln!("there is no scheme '{name}'");
        return ExitCode::FAILURE;
    };
    let measured = Dumbbell {
        schemes: vec![scheme.name],
        seconds: 10.0,
        ..Dumbbell::default()
    }
    .measure();
    println!(
        "{}",
        json!({"registry": entry, "metrics": measured.json["flows"][0]["metrics"]})
    );
    ExitCode::SUCCESS
}
