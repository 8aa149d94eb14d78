//! The verifier passes correct records and names the fault of tampered ones.
//!
//! Correct records come from the reference calculator, which knows nothing of the simulator or the
//! verifier. Each tampering is as careful as possible: counters that would reveal it are adjusted
//! too, unless the test is about the counters.
mod correct;
mod limits;
mod others;
mod packets;

use crate::reference::{Draft, Plan};
use narrows_record::verify::{VerifierReport, verify};
use narrows_record::{Direction, ElementCounters, Fate, PacketRow};

fn draft() -> Draft {
    Plan::default().draft()
}

fn failed(report: &VerifierReport) -> Vec<&'static str> {
    report
        .findings
        .iter()
        .filter(|f| !f.ok)
        .map(|f| f.name)
        .collect()
}

fn skipped(report: &VerifierReport) -> Vec<&'static str> {
    report
        .findings
        .iter()
        .filter(|f| f.skipped)
        .map(|f| f.name)
        .collect()
}

/// Expects exactly these checks to fail.
fn expect(draft: &Draft, names: &[&str]) {
    let report = verify(&draft.record());
    assert_eq!(failed(&report), names, "{:#?}", report.findings);
    assert!(!report.ok());
}

fn element<'a>(draft: &'a mut Draft, name: &str) -> &'a mut ElementCounters {
    draft
        .run
        .elements
        .iter_mut()
        .find(|e| e.name == name)
        .unwrap()
}

/// Rows of data packets with the given fate, from the middle of the run.
fn pick(draft: &Draft, fate: Fate) -> impl Iterator<Item = usize> + use<> {
    let rows: Vec<usize> = (draft.rows.len() / 2..draft.rows.len())
        .filter(|&i| draft.rows[i].fate == fate && draft.rows[i].direction == Direction::Forward)
        .collect();
    rows.into_iter()
}

fn renumber(draft: &mut Draft) {
    for (uid, row) in (1..).zip(&mut draft.rows) {
        row.uid = uid;
    }
}

/// Makes the counters of elements and endpoints agree with the rows.
fn recount(draft: &mut Draft) {
    for direction in [Direction::Forward, Direction::Backward] {
        let rows: Vec<&PacketRow> = draft
            .rows
            .iter()
            .filter(|r| r.direction == direction)
            .collect();
        let bytes = |rows: &[&PacketRow]| rows.iter().map(|r| u64::from(r.size_bytes)).sum::<u64>();
        let mut coming = (rows.len() as u64, bytes(&rows));
        for counters in draft
            .run
            .elements
            .iter_mut()
            .filter(|e| e.direction == direction)
        {
            let at = |fate| -> Vec<&PacketRow> {
                let here = |r: &&&PacketRow| r.element.as_deref() == Some(&counters.name);
                rows.iter()
                    .filter(here)
                    .filter(|r| r.fate == fate)
                    .copied()
                    .collect()
            };
            let (dropped, held) = (at(Fate::Dropped), at(Fate::InFlight));
            (counters.in_packets, counters.in_bytes) = coming;
            counters.dropped_packets = dropped.len() as u64;
            counters.dropped_bytes = bytes(&dropped);
            counters.held_packets = held.len() as u64;
            counters.held_bytes = bytes(&held);
            counters.out_packets = coming.0 - counters.dropped_packets - counters.held_packets;
            counters.out_bytes = coming.1 - counters.dropped_bytes - counters.held_bytes;
            coming = (counters.out_packets, counters.out_bytes);
        }
    }
    for flow in &mut draft.run.flows {
        let mine = |r: &&PacketRow| r.flow == flow.flow && r.direction == Direction::Forward;
        let sent: Vec<&PacketRow> = draft.rows.iter().filter(mine).collect();
        let bytes = |rows: &[&PacketRow]| rows.iter().map(|r| u64::from(r.size_bytes)).sum();
        let received: Vec<&PacketRow> = sent
            .iter()
            .filter(|r| r.fate == Fate::Delivered)
            .copied()
            .collect();
        flow.sender.sent_packets = Some(sent.len() as u64);
        flow.sender.sent_bytes = Some(bytes(&sent));
        flow.receiver.received_packets = Some(received.len() as u64);
        flow.receiver.received_bytes = Some(bytes(&received));
    }
}
