//! Records of imported runs, without files.

use bytes::Bytes;
use narrows_pantheon::{Outcome, Task};
use narrows_record::read::Record;
use narrows_record::{PacketFile, RowFile};

/// Facts about a run in addition to its logs.
pub(crate) fn task() -> Task {
    Task {
        id: "cubic-r1".into(),
        scheme: "pantheon:cubic".into(),
        run: 1,
        flows: 1,
        ..Task::default()
    }
}

/// The record of an imported run, written and read.
pub(crate) fn record(outcome: &Outcome) -> Record {
    let mut file = PacketFile::create(Vec::new()).unwrap();
    outcome.packets.chunks(|chunk| file.write(chunk)).unwrap();
    let packets = Bytes::from(file.finish().unwrap());
    let mut file = RowFile::create(Vec::new()).unwrap();
    for row in &outcome.capacity {
        file.push(row.clone()).unwrap();
    }
    let capacity = Bytes::from(file.finish().unwrap());
    let told = !outcome.capacity.is_empty();
    let run = outcome.run.to_text();
    Record::load::<narrows_record::RecordError>(|name| {
        Ok(match name {
            "run.json" => Some(Bytes::from(run.clone())),
            "packets.parquet" => Some(packets.clone()),
            "capacity.parquet" if told => Some(capacity.clone()),
            _ => None,
        })
    })
    .unwrap()
}
