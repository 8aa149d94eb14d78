//! A 30-second run of three flows at 900 Mbit/s, recorded packet by packet: bytes per row, time to
//! encode, measure and verify it.
#![allow(missing_docs)]

#[path = "../core/record/tests/all/reference/mod.rs"]
mod reference;

use criterion::{Criterion, criterion_group, criterion_main};
use narrows_record::log::Chunk;
use narrows_record::metrics::measure;
use narrows_record::read::PacketReader;
use narrows_record::verify::verify;
use narrows_record::{Entered, Fate, Log, PacketFile, PacketLog, PacketRow};
use reference::Plan;
use std::hint::black_box;

fn plan() -> Plan {
    Plan {
        rate_bps: 900_000_000,
        queue_bytes: Some(1_125_000),
        before_ns: 0,
        after_ns: 10_000_000,
        loss: 0.0,
        back_ns: 10_000_000,
        extra_rtt_ns: vec![0, 0, 0],
        duration_ns: 30_000_000_000,
        late: true,
        ..Plan::default()
    }
}

/// Does a driver's work per packet, and settles fates at once when due.
fn log_all(rows: &[PacketRow], log: &mut Log, mut full: impl FnMut(&mut PacketLog)) {
    for (i, row) in rows.iter().enumerate() {
        log.enter(row.flow, row.direction, row.size_bytes, row.sent_ns);
        // Packets leave the network a few thousand packets after they entered.
        if let Some(old) = i.checked_sub(2000) {
            settle(&rows[old], log);
        }
        if let Log::Packets(log) = log
            && log.has_chunk()
        {
            full(log);
        }
    }
    rows[rows.len().saturating_sub(2000)..]
        .iter()
        .for_each(|row| settle(row, log));
    log.finish();
    if let Log::Packets(log) = log {
        full(log);
    }
}

fn settle(row: &PacketRow, log: &mut Log) {
    let packet = Entered {
        key: row.uid,
        flow: row.flow,
        direction: row.direction,
        size: row.size_bytes,
    };
    match row.fate {
        Fate::Delivered => {
            log.arrive(
                packet,
                row.arrived_ns.unwrap_or(0),
                row.late_ns.unwrap_or(0),
            );
        }
        Fate::Dropped => log.drop(packet, 1, "queue_full"),
        Fate::InFlight => log.hold(packet, 2),
    }
}

fn record(c: &mut Criterion) {
    let draft = plan().draft();
    let rows = draft.rows.len();
    let names: Vec<String> = draft.run.elements.iter().map(|e| e.name.clone()).collect();
    let bytes = draft.packets_as_is();
    #[allow(clippy::disallowed_macros)] // a benchmark prints what it measures
    let () = eprintln!(
        "{rows} rows in {:.1} MB: {:.2} bytes per row",
        bytes.len() as f64 / 1e6,
        bytes.len() as f64 / rows as f64
    );
    let mut group = c.benchmark_group("record");
    group.sample_size(10);
    group.bench_function("log", |b| {
        b.iter(|| {
            let mut log = Log::Packets(PacketLog::new(names.clone()));
            log_all(&draft.rows, &mut log, |log| {
                while let Some(chunk) = log.take() {
                    log.recycle(black_box(chunk));
                }
            });
        });
    });
    group.bench_function("log and encode", |b| {
        b.iter(|| {
            let mut log = Log::Packets(PacketLog::new(names.clone()));
            let mut file = PacketFile::create(Vec::new()).expect("memory takes everything");
            log_all(&draft.rows, &mut log, |log| {
                file.drain(log).expect("memory takes everything");
            });
            file.finish().expect("memory takes everything").len()
        });
    });
    let bytes = bytes::Bytes::from(bytes);
    group.bench_function("read", |b| {
        b.iter(|| {
            let mut reader = PacketReader::open(bytes.clone()).expect("a sound file");
            let mut chunk = Chunk::default();
            let mut rows = 0;
            while reader.next(&mut chunk).expect("a sound file") {
                rows += black_box(&chunk).len();
            }
            rows
        });
    });
    let record = draft.record();
    drop(draft);
    group.bench_function("measure", |b| {
        b.iter(|| measure(&record).expect("a sound record"));
    });
    group.bench_function("verify", |b| {
        b.iter(|| assert!(verify(&record).ok()));
    });
    group.finish();
}

criterion_group!(benches, record);
criterion_main!(benches);
