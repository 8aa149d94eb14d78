//! Packets added, taken away, moved or blamed.

use crate::reference::Plan;
use crate::verify::{draft, expect, failed, pick, recount, renumber};
use narrows_record::verify::verify;
use narrows_record::{Direction, Fate};

#[test]
fn a_packet_invented() {
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).nth(5).unwrap();
    let mut copy = d.rows[row].clone();
    copy.sent_ns += 1;
    d.rows.insert(row + 1, copy);
    renumber(&mut d);
    // Careless tampering: all counters are one packet short.
    let report = verify(&d.record());
    assert!(failed(&report).contains(&"conservation") && failed(&report).contains(&"endpoints"));
    // Careful tampering, but two packets cannot leave the bottleneck at once.
    recount(&mut d);
    let report = verify(&d.record());
    assert!(failed(&report).contains(&"rate"), "{:#?}", report.findings);
}

#[test]
fn a_packet_removed() {
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    d.rows.remove(row);
    let report = verify(&d.record());
    assert_eq!(failed(&report)[..3], ["uids", "conservation", "endpoints"]);
    let uids = report.findings.iter().find(|f| f.name == "uids").unwrap();
    assert_eq!(
        uids.detail,
        format!(
            "packet {} is in row {}, where {} belongs.",
            row + 2,
            row + 1,
            row + 1
        )
    );
    // Renumbered and recounted, but the queue samples still include it.
    renumber(&mut d);
    recount(&mut d);
    let report = verify(&d.record());
    assert!(
        failed(&report).contains(&"queue_samples"),
        "{:#?}",
        report.findings
    );
}

#[test]
fn a_packet_twice() {
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    d.rows.insert(row + 1, d.rows[row].clone());
    let report = verify(&d.record());
    let uids = report.findings.iter().find(|f| f.name == "uids").unwrap();
    let (first, second) = (row + 1, row + 2);
    assert_eq!(
        uids.detail,
        format!("packet {first} is there twice, in rows {first} and {second}.")
    );
}

#[test]
fn a_packet_early() {
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    d.rows[row].arrived_ns = Some(d.rows[row].sent_ns + 19_999_999);
    assert!(failed(&verify(&d.record())).contains(&"propagation"));
    // An acknowledgement, whose path has only delay, one nanosecond early.
    let mut d = draft();
    let ack = d
        .rows
        .iter()
        .position(|r| r.direction == Direction::Backward)
        .unwrap();
    d.rows[ack].arrived_ns = d.rows[ack].arrived_ns.map(|t| t - 1);
    expect(&d, &["propagation"]);
    // A packet that waited, one microsecond early: it violates the rate first.
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    d.rows[row].arrived_ns = d.rows[row].arrived_ns.map(|t| t - 1000);
    assert!(failed(&verify(&d.record())).contains(&"rate"));
}

#[test]
fn over_the_rate_by_little() {
    // All departures are compressed by one part in a thousand.
    let mut d = draft();
    let begin = d.rows[d.rows.len() / 2].arrived_ns.unwrap_or(1_000_000_000);
    for row in &mut d.rows {
        if row.direction == Direction::Forward
            && let Some(t) = row.arrived_ns.filter(|&t| t > begin)
        {
            row.arrived_ns = Some(t - (t - begin) / 1000);
        }
    }
    assert!(failed(&verify(&d.record())).contains(&"rate"));
}

#[test]
fn a_faster_link_than_the_cell_says() {
    let mut d = draft();
    d.run.cell["network"]["forward"][1]["rate"]["rate"] = 11_990_000.into();
    let report = verify(&d.record());
    assert!(failed(&report).contains(&"rate"), "{:#?}", report.findings);
}

#[test]
fn over_the_queue() {
    let mut d = draft();
    d.run.cell["network"]["forward"][1]["queue"]["bytes"] = 28_000.into();
    let report = verify(&d.record());
    assert!(
        failed(&report).contains(&"queue_limit"),
        "{:#?}",
        report.findings
    );
    assert!(failed(&report).contains(&"queue_samples"));
    // And by packets.
    let mut d = Plan {
        queue_packets: Some(15),
        queue_bytes: None,
        ..Plan::default()
    }
    .draft();
    d.run.cell["network"]["forward"][1]["queue"]["packets"] = 14.into();
    assert!(failed(&verify(&d.record())).contains(&"queue_limit"));
}

#[test]
fn a_smaller_queue_than_the_cell_says() {
    let mut d = draft();
    d.run.cell["network"]["forward"][1]["queue"]["bytes"] = 40_000.into();
    expect(&d, &["queue_drops"]);
}

#[test]
fn packets_out_of_order() {
    let mut d = draft();
    let rows: Vec<usize> = pick(&d, Fate::Delivered).take(2).collect();
    let first = d.rows[rows[0]].arrived_ns;
    d.rows[rows[0]].arrived_ns = d.rows[rows[1]].arrived_ns;
    d.rows[rows[1]].arrived_ns = first;
    assert!(failed(&verify(&d.record())).contains(&"order"));
    // Acknowledgements, where only the order is wrong.
    let mut d = draft();
    let acks: Vec<usize> = (0..d.rows.len())
        .filter(|&i| d.rows[i].direction == Direction::Backward)
        .take(2)
        .collect();
    d.rows[acks[0]].arrived_ns = d.rows[acks[1]].arrived_ns.map(|t| t + 10);
    assert!(failed(&verify(&d.record())).contains(&"order"));
    assert!(failed(&verify(&d.record())).contains(&"stay"));
}

#[test]
fn a_packet_late() {
    let mut d = draft();
    let ack = d
        .rows
        .iter()
        .position(|r| r.direction == Direction::Backward)
        .unwrap();
    d.rows[ack].arrived_ns = d.rows[ack].arrived_ns.map(|t| t + 1);
    expect(&d, &["stay"]);
    // Data: the bottleneck would have been idle with a packet to serve.
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    d.rows[row].arrived_ns = d.rows[row].arrived_ns.map(|t| t + 2);
    assert!(failed(&verify(&d.record())).contains(&"stay"));
}

#[test]
fn a_drop_invented() {
    let mut d = draft();
    let calm = pick(&d, Fate::Delivered).find(|&i| {
        let r = &d.rows[i];
        r.arrived_ns.unwrap() - r.sent_ns < 23_000_000
    });
    let row = &mut d.rows[calm.unwrap()];
    row.fate = Fate::Dropped;
    row.arrived_ns = None;
    row.late_ns = None;
    row.element = Some("forward.1".into());
    row.reason = Some("queue_full".into());
    assert!(failed(&verify(&d.record())).contains(&"conservation"));
    recount(&mut d);
    assert!(failed(&verify(&d.record())).contains(&"queue_drops"));
}

#[test]
fn a_drop_hidden() {
    let mut d = draft();
    let row = pick(&d, Fate::Dropped)
        .find(|&i| d.rows[i].reason.as_deref() == Some("queue_full"))
        .unwrap();
    d.rows[row].fate = Fate::Delivered;
    d.rows[row].element = None;
    d.rows[row].reason = None;
    // It arrives right behind its predecessor.
    let before = d.rows[..row]
        .iter()
        .filter_map(|r| r.arrived_ns.filter(|_| r.direction == Direction::Forward))
        .max();
    d.rows[row].arrived_ns = before.map(|t| t + 1_000_000);
    d.rows[row].late_ns = Some(0);
    assert!(failed(&verify(&d.record())).contains(&"conservation"));
    recount(&mut d);
    assert!(failed(&verify(&d.record())).contains(&"queue_limit"));
}

#[test]
fn a_drop_blamed_on_another() {
    let mut d = draft();
    let row = pick(&d, Fate::Dropped).next().unwrap();
    d.rows[row].element = Some("forward.0".into());
    recount(&mut d);
    assert!(failed(&verify(&d.record())).contains(&"fates"));
    d.rows[row].element = Some("nobody".into());
    assert!(failed(&verify(&d.record())).contains(&"fates"));
}
