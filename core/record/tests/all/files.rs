//! Files survive writing and reading, the same rows give the same bytes, and no input makes a
//! reader panic.

use crate::reference::Plan;
use bytes::Bytes;
use narrows_record::log::Chunk;
use narrows_record::read::{
    PacketReader, read_bins, read_delays, read_frames, read_queues, read_states, read_traces,
    read_transfers,
};
use narrows_record::{
    Direction, FrameRow, PacketFile, PacketLog, PacketRow, RecordError, RowFile, RunDocument,
    TraceRow, TransferRow,
};
use proptest::prelude::*;
use std::sync::LazyLock;

fn read_packets(bytes: impl Into<Bytes>) -> Result<Vec<PacketRow>, RecordError> {
    let mut reader = PacketReader::open(bytes.into())?;
    let mut chunk = Chunk::default();
    let mut rows = Vec::new();
    while reader.next(&mut chunk)? {
        rows.extend((0..chunk.len()).map(|i| chunk.row(i)));
    }
    assert_eq!(rows.len() as u64, reader.rows());
    Ok(rows)
}

#[test]
fn packets_survive() {
    let draft = Plan {
        late: true,
        extra_rtt_ns: vec![0, 7],
        ..Plan::default()
    }
    .draft();
    assert!(draft.rows.len() > 2000);
    assert_eq!(read_packets(draft.packets()).unwrap(), draft.rows);
    assert_eq!(read_packets(draft.packets_as_is()).unwrap(), draft.rows);
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let draft = Plan::default().draft();
    assert_eq!(draft.packets(), draft.packets());
    assert_eq!(draft.states(), draft.states());
}

#[test]
fn copies_name_their_original_and_cost_nothing_where_there_are_none() {
    let mut log = PacketLog::new(vec!["forward.0".into()]);
    let first = log.enter(1, Direction::Forward, 1500, 10);
    let copy = log.copy(first, 1, Direction::Forward, 1500, 12);
    log.arrive(first, 20, 0);
    log.arrive_corrupt(copy, 22, 0);
    let mut file = PacketFile::create(Vec::new()).unwrap();
    log.finish();
    file.drain(&mut log).unwrap();
    let rows = read_packets(file.finish().unwrap()).unwrap();
    assert_eq!((rows[0].copy_of, rows[1].copy_of), (None, Some(first)));
    assert_eq!(rows[1].reason.as_deref(), Some("corrupted"));

    let mut log = PacketLog::new(Vec::new());
    let mut file = PacketFile::create(Vec::new()).unwrap();
    for n in 0..200_000 {
        let uid = log.enter(1, Direction::Forward, 1500, n * 1_000_000);
        log.arrive(uid, n * 1_000_000, 0);
    }
    log.finish();
    file.drain(&mut log).unwrap();
    let bytes = file.finish().unwrap();
    assert!(bytes.len() < 20_000, "{} bytes", bytes.len());
    assert!(
        read_packets(bytes)
            .unwrap()
            .iter()
            .all(|row| row.copy_of.is_none())
    );
}

/// A file as the first release wrote it: 105 packets of a simulated flow and its acknowledgements.
static FIRST_RELEASE: &[u8] = include_bytes!("data/packets-first-release.parquet");

#[test]
fn files_of_the_first_release_are_read() {
    let rows = read_packets(FIRST_RELEASE).unwrap();
    assert_eq!(rows.len(), 105);
    assert!(
        rows.iter()
            .all(|row| row.copy_of.is_none() && row.size_bytes > 0)
    );
}

#[test]
fn transfers_survive() {
    let row = |transfer, ended_ns| TransferRow {
        flow: 3,
        connection: 7,
        transfer,
        bytes: 10_000,
        started_ns: 5,
        ended_ns,
    };
    let rows = [row(0, Some(9)), row(1, None)];
    let mut file = RowFile::create(Vec::new()).unwrap();
    for row in &rows {
        file.push(row.clone()).unwrap();
    }
    assert_eq!(read_transfers(file.finish().unwrap()).unwrap(), rows);
}

#[test]
fn frames_survive() {
    let row = |frame, arrived_ns: Option<u64>| FrameRow {
        flow: 3,
        frame,
        captured_ns: 40_000_000 * frame,
        bytes: 1200,
        key: frame == 0,
        discarded: arrived_ns.is_none(),
        arrived_ns,
    };
    let rows = [row(0, Some(9)), row(1, None), row(2, Some(90_000_000))];
    let mut file = RowFile::create(Vec::new()).unwrap();
    for row in &rows {
        file.push(*row).unwrap();
    }
    assert_eq!(read_frames(file.finish().unwrap()).unwrap(), rows);
}

#[test]
fn an_empty_file_is_a_file() {
    let bytes = PacketFile::create(Vec::new()).unwrap().finish().unwrap();
    assert_eq!(read_packets(bytes).unwrap(), []);
}

#[test]
fn states_queues_traces_and_bins_survive() {
    let draft = Plan::default().draft();
    assert_eq!(read_states(draft.states()).unwrap(), draft.states);
    assert_eq!(read_queues(draft.queues()).unwrap(), draft.queues);
    let row = TraceRow {
        flow: 2,
        time_ns: 9,
        name: "delta".into(),
        value: 0.1,
    };
    let mut file = RowFile::create(Vec::new()).unwrap();
    file.push(row.clone()).unwrap();
    assert_eq!(read_traces(file.finish().unwrap()).unwrap(), [row]);
    let record = draft.record_of_bins(100_000_000);
    let bins = read_bins(record.bins.unwrap()).unwrap();
    let sent: u64 = bins.iter().map(|b| b.sent_packets).sum();
    assert_eq!(sent, draft.rows.len() as u64);
    let delays = read_delays(record.delays.unwrap()).unwrap();
    let arrived: u64 = bins.iter().map(|b| b.arrived_packets).sum();
    assert_eq!(delays.iter().map(|d| d.packets).sum::<u64>(), arrived);
}

#[test]
fn one_kind_of_file_is_not_taken_for_another() {
    let draft = Plan::default().draft();
    let error = read_states(draft.queues()).unwrap_err().to_string();
    assert_eq!(error, "states.parquet: the column 'flow' is missing");
}

#[test]
fn damage_is_named() {
    let mut bytes = SMALL.to_vec();
    bytes[SMALL.len() / 3] ^= 4;
    let error = read_packets(bytes).unwrap_err().to_string();
    assert_eq!(
        error,
        "packets.parquet: the file is damaged or not complete (its checksum does not fit its content)"
    );
}

static SMALL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    Plan {
        duration_ns: 500_000_000,
        ..Plan::default()
    }
    .draft()
    .packets()
});

/// The same file with its checksum under another name, so that damage reaches the decoders.
static UNSEALED: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = SMALL.clone();
    let key = b"narrows.body.xxh64";
    let at = bytes
        .windows(key.len())
        .rposition(|w| w == key)
        .expect("the file has a checksum");
    bytes[at] = b'N';
    assert!(read_packets(bytes.clone()).is_ok());
    bytes
});

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn truncated_files_give_errors(keep in 0.0f64..1.0) {
        let keep = (SMALL.len() as f64 * keep) as usize;
        prop_assert!(read_packets(SMALL[..keep].to_vec()).is_err());
    }

    #[test]
    fn corrupted_files_never_panic(
        changes in prop::collection::vec((0.0f64..1.0, any::<u8>()), 1..4),
        sealed: bool,
        tail: bool,
    ) {
        let mut bytes = if sealed { SMALL.clone() } else { UNSEALED.clone() };
        // Half of the cases aim at the footer, which is a small part of the file.
        let (from, len) = if tail { (bytes.len() - 2000, 2000) } else { (0, bytes.len()) };
        for (place, value) in changes {
            let at = from + (len as f64 * place) as usize;
            bytes[at] = value;
        }
        let _ = read_packets(bytes.clone());
        let _ = read_states(bytes);
    }

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(read_packets(bytes.clone()).is_err());
        let _ = RunDocument::parse(&bytes);
    }
}
