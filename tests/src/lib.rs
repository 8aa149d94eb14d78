//! Helpers for tests across crates: a builder of cells, and a run with its measurements.

pub mod captures;
pub mod comparison;
pub mod fuzz;
pub mod media;
pub mod models;
pub mod part;
pub mod single_flow;
pub mod worlds;

use narrows_cc::testing::{example_files, example_params};
use narrows_cell::Cell;
use narrows_record::{Record, RunDocument, TransferRow, metrics, read};
use narrows_sim::Limits;
use narrows_units::{Files, Kind};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A dumbbell in the units of people.
#[derive(Clone, Debug)]
pub struct Dumbbell {
    /// Bottleneck rate in Mbit/s.
    pub mbps: f64,
    /// Base round-trip time in ms, split evenly over both directions.
    pub rtt_ms: f64,
    /// Buffer in bandwidth-delay products.
    pub buffer_bdp: f64,
    /// Random loss in the forward direction.
    pub loss: f64,
    /// Schemes, one flow each, started `interval_s` apart.
    pub schemes: Vec<&'static str>,
    /// Time between starts in seconds.
    pub interval_s: f64,
    /// Extra RTT in ms of each flow (missing ones have none).
    pub extra_rtt_ms: Vec<f64>,
    /// Length in seconds.
    pub seconds: f64,
    /// Seed.
    pub seed: u64,
    /// `packets` or `bins`.
    pub record: &'static str,
}

impl Default for Dumbbell {
    fn default() -> Self {
        Dumbbell {
            mbps: 12.0,
            rtt_ms: 40.0,
            buffer_bdp: 1.0,
            loss: 0.0,
            schemes: vec!["reno"],
            interval_s: 0.0,
            extra_rtt_ms: vec![],
            seconds: 30.0,
            seed: 1,
            record: "packets",
        }
    }
}

/// A cell from its JSON; schemes that need a model find the examples.
///
/// # Panics
/// When it is rejected.
pub fn cell(json: &Value) -> Cell {
    cell_with(json, example_files())
}

fn cell_with(json: &Value, files: Files) -> Cell {
    Cell::parse_with(&json.to_string(), |_| Ok(files)).expect("the cell is valid")
}

/// The example models of schemes, by the names under which cells find them.
fn schemes_files() -> Vec<(String, Vec<u8>)> {
    let files = example_files();
    let named = narrows_cc::schemes::ALL.iter();
    let named = named.map(|scheme| narrows_cc::testing::example_file(scheme.name));
    let with_content = |file: narrows_units::FileRef| {
        let content = files.get(&file)?.to_vec();
        Some((file.sha256, content))
    };
    named.filter_map(with_content).collect()
}

/// Parameters without which `scheme` cannot be built, in base units: mostly none.
pub fn needed(scheme: &str) -> Value {
    match narrows_cc::schemes::find(scheme) {
        Some(scheme)
            if scheme
                .params
                .iter()
                .any(|spec| spec.required || spec.kind == Kind::File) =>
        {
            example_params(scheme).to_json()
        }
        _ => json!({}),
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

impl Dumbbell {
    /// The cell as JSON.
    pub fn json(&self) -> Value {
        let bdp = self.mbps * 1e6 * self.rtt_ms * 1e-3 / 8.0;
        let mut forward = vec![
            json!({"name": "forward.0", "kind": "bottleneck",
                "rate": {"kind": "constant", "rate": (self.mbps * 1e6) as u64},
                "queue": {"kind": "droptail", "bytes": (self.buffer_bdp * bdp).round() as u64}}),
            json!({"name": "forward.1", "kind": "delay", "delay": ns(self.rtt_ms * 0.5e-3)}),
        ];
        if self.loss > 0.0 {
            forward.push(json!({"name": "forward.2", "kind": "loss", "ratio": self.loss}));
        }
        let flows: Vec<Value> = (self.schemes.iter().zip(1u16..))
            .map(|(scheme, flow)| {
                let extra = self
                    .extra_rtt_ms
                    .get(usize::from(flow) - 1)
                    .copied()
                    .unwrap_or(0.0);
                json!({"flow": flow, "scheme": scheme, "params": needed(scheme),
                    "start_ns": ns(f64::from(flow - 1) * self.interval_s),
                    "stop_ns": ns(self.seconds), "direction": "forward",
                    "extra_rtt_ns": ns(extra * 1e-3)})
            })
            .collect();
        json!({
            "format": "narrows/cell/1", "id": "test-r1", "scheme": self.schemes.join("+"),
            "run": 1, "where": "simulate", "seed": self.seed, "duration_ns": ns(self.seconds),
            "record": self.record, "bin_ns": 100_000_000, "sample_ns": 10_000_000,
            "network": {"kind": "dumbbell", "forward": forward, "backward": [
                {"name": "backward.0", "kind": "delay", "delay": ns(self.rtt_ms * 0.5e-3)}]},
            "flows": flows, "transport": {},
        })
    }

    /// The cell.
    ///
    /// # Panics
    /// When it is rejected.
    pub fn cell(&self) -> Cell {
        cell(&self.json())
    }

    /// Simulates it into `out`.
    ///
    /// # Panics
    /// When it cannot run.
    pub fn simulate(&self, out: &Path) -> RunDocument {
        narrows_sim::run(&self.cell(), out, &mut |_| true).expect("the cell runs")
    }

    /// Simulates and measures it in memory.
    ///
    /// # Panics
    /// When it cannot run or be measured.
    pub fn measure(&self) -> Measured {
        measure(&self.json())
    }
}

/// Simulates a cell and measures its record, in memory: the rows are verified and measured by the code that does it
/// with files, without writing, compressing and reading these. `batch` compares both ways.
///
/// # Panics
/// When it cannot run or be measured.
pub fn measure(cell: &Value) -> Measured {
    measured(cell).0
}

/// As [`measure`], with the record itself.
///
/// # Panics
/// When it cannot run or be measured.
pub fn measured(cell: &Value) -> (Measured, Record) {
    measured_with(cell, example_files())
}

/// As [`measured`], with the files that the cell names.
///
/// # Panics
/// When it cannot run or be measured.
pub fn measured_with(cell: &Value, files: Files) -> (Measured, Record) {
    let record = recorded_with(cell, files);
    (Measured::new(&record), record)
}

/// As [`measured`], through a record on the disk.
///
/// # Panics
/// When it cannot run or be measured.
pub fn measured_on_disk(cell: &Value) -> (Measured, Record) {
    let cell = cell_with(cell, example_files());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("cell");
    let run = narrows_sim::run(&cell, &out, &mut |_| true).expect("the cell runs");
    let record = narrows_cell::open_record(&out).expect("the record can be read");
    let measured = Measured {
        run,
        ..Measured::new(&record)
    };
    (measured, record)
}

/// Simulates a cell in memory, with the files that it names.
///
/// # Panics
/// When it cannot run.
pub fn recorded_with(json: &Value, files: Files) -> Record {
    recorded(&cell_with(json, files))
}

/// Simulates a cell in memory.
///
/// # Panics
/// When it cannot run.
pub fn recorded(cell: &Cell) -> Record {
    let limits = Limits {
        memory: u64::MAX,
        stop: &|| false,
    };
    narrows_sim::run_to_record(cell, &limits).expect("the cell runs")
}

/// Measurements of a run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// `run.json`.
    pub run: RunDocument,
    /// Metrics of each flow and of all.
    pub json: Value,
    /// Transfers of applications.
    pub transfers: Vec<TransferRow>,
}

impl Measured {
    /// The measurements of a record.
    ///
    /// # Panics
    /// When it cannot be measured.
    pub fn new(record: &Record) -> Measured {
        let transfers = record
            .transfers
            .clone()
            .map(|content| read::read_transfers(content).expect("the transfers can be read"));
        Measured {
            run: record.run.clone(),
            json: metrics::measure(record).expect("the record can be measured"),
            transfers: transfers.unwrap_or_default(),
        }
    }

    /// A metric of `flow` (`"1"`, `"2"` ... or `"all"`); NaN where it is absent.
    pub fn get(&self, flow: &str, metric: &str) -> f64 {
        let flows = self.json["flows"].as_array().map_or(&[][..], Vec::as_slice);
        let row = flows.iter().find(|row| row["flow"] == flow);
        row.and_then(|row| row["metrics"][metric].as_f64())
            .unwrap_or(f64::NAN)
    }
}

/// Folder of the golden tables.
pub fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// Compares `text` with the golden file `name`, or rewrites the file when `UPDATE_GOLDEN` is set.
///
/// # Panics
/// When they differ.
pub fn golden(name: &str, text: &str) {
    let path = golden_folder().join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("the golden file can be written");
        return;
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    for (line, (known, new)) in known.lines().zip(text.lines()).enumerate() {
        assert_eq!(
            known,
            new,
            "{name}, line {}: run `make golden` and look at the diff",
            line + 1
        );
    }
    assert_eq!(
        known.lines().count(),
        text.lines().count(),
        "{name}: run `make golden`"
    );
}
