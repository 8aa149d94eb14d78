//! Simulates one flow over a path made of entries of the registries, and prints the results as one line of JSON: `cargo
//! run --release -p narrows-tests --example try_entries -- SCHEME QUEUE LINK RATE`.

use narrows_cell::Cell;
use narrows_record::{StateRow, read, verify};
use narrows_tests::{Dumbbell, measured};
use serde_json::{Value, json};
use std::process::ExitCode;

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [scheme, queue, link, rate] = &names[..] else {
        eprintln!("usage: try_entries SCHEME QUEUE LINK RATE");
        return ExitCode::FAILURE;
    };
    let registry = narrows_cell::registry();
    let entry = |family: &str, name: &str| {
        let listed = registry[family].as_array().into_iter().flatten();
        let mut listed = listed.filter(|entry| entry["name"] == name);
        listed.next().cloned().unwrap_or(Value::Null)
    };
    let mut cell = Dumbbell {
        seconds: 10.0,
        ..Dumbbell::default()
    }
    .json();
    cell["flows"][0]["scheme"] = json!(scheme);
    let forward = &mut cell["network"]["forward"];
    forward[0]["queue"]["kind"] = json!(queue);
    forward[0]["rate"]["kind"] = json!(rate);
    let link = json!({"name": "forward.2", "kind": link, "p": 0.001, "r": 0.5});
    forward.as_array_mut().expect("a list").push(link.clone());
    let (measured, record) = measured(&cell);
    cell["network"]["forward"] = json!([link]);
    let unlimited = Cell::parse(&cell.to_string()).expect("the cell is valid");
    let states = record.states.clone().expect("states are sampled");
    let states = read::read_states(states).expect("states can be read");
    let columns = StateRow::optional_numbers().map(|(name, _)| name);
    println!(
        "{}",
        json!({
            "schemes": entry("schemes", scheme),
            "queues": entry("queues", queue),
            "links": entry("links", link["kind"].as_str().unwrap_or_default()),
            "rates": entry("rates", rate),
            "bound": unlimited.bounds()[0].by,
            "metrics": measured.json["flows"][0]["metrics"],
            "findings": verify::verify(&record).to_json(),
            "states": states.len(),
            "columns": columns.collect::<Vec<_>>(),
        })
    );
    ExitCode::SUCCESS
}
