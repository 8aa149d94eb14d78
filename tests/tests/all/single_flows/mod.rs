//! Results of one or two flows of a scheme on simple paths, compared with a packet simulation of the published rules:
//! golden tables, with the reason of every difference. `make golden` rewrites them.

mod copa;
mod koho;
mod learned;
mod media;
mod pcc;
mod sprout;
mod verus;

use narrows_tests::comparison::{Cases, Expected, Row, Table, compare};
use narrows_tests::models::content;
use narrows_tests::single_flow::Setup;
use narrows_tests::{golden, golden_folder};

/// Starts of a second flow, 3 to 5 s after the first, and never by a multiple of a round trip or a clock apart.
const TWO_STARTS: Cases = Cases::Starts(&[3.0, 3.23, 3.46, 3.69, 3.92, 4.15, 4.38, 4.61, 4.84]);

/// Buffers of a row are infinite by default.
fn on(setup: &Setup, mbps: f64, rtt_ms: f64) -> Setup {
    Setup {
        mbps,
        rtt_ms,
        ..setup.clone()
    }
}

fn tables() -> Vec<Table> {
    let mut tables = vec![
        ("copa", copa::rows()),
        ("koho", koho::rows()),
        ("sprout", sprout::rows()),
        ("verus", verus::rows()),
        ("pcc-allegro", pcc::allegro()),
        ("vivace", pcc::vivace()),
        ("pcc-expr", pcc::expr()),
        ("media", media::rows()),
    ];
    tables.extend(learned::tables());
    tables
}

#[test]
fn golden_tables_of_single_flows() {
    let mut tables = tables();
    let mut all: Vec<String> = tables
        .iter()
        .map(|(name, _)| format!("{name}.txt"))
        .collect();
    tables.retain(|(name, rows)| {
        let model = rows[0].setup.model;
        let installed = model.is_none_or(|model| content(model).is_some());
        if !installed {
            println!("not compared: {name}, whose model is not installed");
        }
        installed
    });
    let folder = golden_folder().join("single-flows");
    let mut complaints = Vec::new();
    let mut differing = Vec::new();
    for ((name, _), (text, wrong)) in tables.iter().zip(compare(&tables)) {
        complaints.extend(wrong);
        let file = format!("single-flows/{name}.txt");
        differing.extend(
            std::panic::catch_unwind(|| golden(&file, &text))
                .err()
                .map(|_| file),
        );
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(
        differing.is_empty(),
        "{differing:?} differ: run `make golden` and look at the diff"
    );
    let files = std::fs::read_dir(folder).expect("the folder of the tables");
    let names = files.map(|file| file.expect("an entry").file_name());
    let mut found: Vec<String> = names
        .map(|name| name.into_string().expect("a name"))
        .collect();
    found.sort();
    all.sort();
    assert_eq!(found, all, "files and tables");
}

/// A row with a single case.
fn row(name: &'static str, setup: Setup, expected: &[Expected]) -> Row {
    Row {
        name,
        setup,
        cases: Cases::One,
        expected: expected.to_vec(),
    }
}
