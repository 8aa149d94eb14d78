//! Imported runs are records that pass the verifier, with Pantheon's numbers in our metrics where the definitions
//! agree; and exporting and importing a record reproduces it.

use crate::common::{record, task};
use narrows_pantheon::{NoRun, Outcome, Reading, Task, export, import, read_merged, write_merged};
use narrows_record::log::Chunk;
use narrows_record::read::{PacketReader, Record};
use narrows_record::{Fate, PacketRow, Verdict, Versions, metrics, verify};
use serde_json::Value;

fn read(events: &str) -> Reading {
    let text = format!("# init timestamp: 1500000000000.000\n{events}");
    read_merged("log", text.as_bytes(), false).unwrap()
}

fn rows(record: &Record) -> Vec<PacketRow> {
    let mut reader = PacketReader::open(record.packets.clone().unwrap()).unwrap();
    let mut chunk = Chunk::default();
    let mut rows = Vec::new();
    while reader.next(&mut chunk).unwrap() {
        rows.extend((0..chunk.len()).map(|row| chunk.row(row)));
    }
    rows
}

fn sound(record: &Record) {
    let report = verify::verify(record);
    let wrong: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| !finding.ok)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn imported(task: &Task, data: &Reading, ack: Option<&Reading>) -> (Outcome, Record) {
    let outcome = import(task, Versions::default(), data, ack).unwrap();
    let record = record(&outcome);
    sound(&record);
    (outcome, record)
}

fn metric(record: &Record, flow: &str, name: &str) -> Option<f64> {
    let measured = metrics::measure(record).unwrap();
    let flows = measured["flows"].as_array().unwrap();
    let flow = flows.iter().find(|row| row["flow"] == flow).unwrap();
    flow["metrics"][name].as_f64()
}

/// Ten packets a millisecond apart; the third is lost, the seventh arrives twice, and the last two are in flight when
/// it ends.
fn ten() -> Reading {
    let mut events: Vec<(u32, String)> = Vec::new();
    for n in 0..10 {
        let sent = 100 + n;
        events.push((sent, format!("{sent}.000 + 1500 1\n")));
        let arrivals = match n {
            2 | 8 | 9 => 0,
            6 => 2,
            _ => 1,
        };
        for copy in 0..arrivals {
            let (at, delay) = (sent + 20 + copy, 20 + copy);
            events.push((at, format!("{at}.000 - 1500 {delay}.000 1\n")));
        }
    }
    events.sort_by_key(|event| event.0);
    read(&events.into_iter().map(|event| event.1).collect::<String>())
}

#[test]
fn what_became_of_packets_is_told_as_far_as_logs_tell_it() {
    let (outcome, record) = imported(&task(), &ten(), None);
    let rows = rows(&record);
    assert_eq!(rows.len(), 11, "ten packets and a copy");
    let fate = |n: u64| {
        let sent = n * 1_000_000;
        let row = rows.iter().find(|row| row.sent_ns == sent).unwrap();
        (row.fate, row.reason.as_deref())
    };
    assert_eq!(fate(0), (Fate::Delivered, None));
    assert_eq!(fate(2), (Fate::Dropped, Some("not_received")));
    assert_eq!(fate(8), (Fate::InFlight, None));
    let copy = rows.iter().find(|row| row.copy_of.is_some()).unwrap();
    assert_eq!((copy.copy_of, copy.arrived_ns), (Some(7), Some(27_000_000)));
    assert_eq!(
        outcome.run.verdict,
        Verdict::Ok,
        "{:?}",
        outcome.run.reasons
    );
    // 7 of 10 packets arrive, one of them twice: one is lost among 8 arrivals, and 8 of 10 packets' bytes arrive.
    assert_eq!(metric(&record, "1", "loss_ratio"), Some(1.0 / 9.0));
    let loss = metric(&record, "1", "loss_pantheon_ratio").unwrap();
    assert!((loss - 0.2).abs() < 1e-12);
    let statistics = outcome.statistics.unwrap();
    assert_eq!(statistics.total.loss_ratio, Some(1.0 - 12_000.0 / 15_000.0));
    let mbps = metric(&record, "all", "throughput_bps").unwrap() / 1e6;
    assert!((mbps - statistics.total.throughput_mbps).abs() < 1e-9);
    assert_eq!(
        metric(&record, "1", "queueing_delay_p95_ns"),
        None,
        "no propagation is known"
    );
}

#[test]
fn packets_of_the_last_burst_are_on_their_way() {
    let burst =
        read("1.000 + 90 1\n2.000 + 90 1\n2.000 + 91 1\n2.000 + 92 1\n9.000 - 91 7.000 1\n");
    let (_, record) = imported(&task(), &burst, None);
    let fates: Vec<_> = rows(&record).iter().map(|row| row.fate).collect();
    use Fate::{Delivered, Dropped, InFlight};
    assert_eq!(fates, [Dropped, Dropped, Delivered, InFlight]);
}

#[test]
fn acknowledgements_travel_backward_and_capacities_are_told() {
    let data = read(
        "5.000 # 1500\n10.000 + 1500 1\n15.000 # 1500\n30.000 - 1500 20.000 1\n31.000 + 1500 1\n\
         51.000 - 1500 20.000 1\n400.000 # 1500\n",
    );
    // The log of the acknowledgements begins 100 ms later.
    let text = "# init timestamp: 1500000000100.000\n30.500 + 88 1\n60.500 - 88 30.000 1\n";
    let ack = read_merged("ack", text.as_bytes(), false).unwrap();
    let (outcome, record) = imported(&task(), &data, Some(&ack));
    let rows = rows(&record);
    let backward: Vec<_> = rows
        .iter()
        .filter(|row| row.direction.word() == "backward")
        .map(|row| (row.sent_ns, row.arrived_ns))
        .collect();
    assert_eq!(backward, [(120_500_000, Some(150_500_000))]);
    assert_eq!(outcome.packets.duration_ns, 150_500_000);
    // One opportunity is within the run, at 5 ms of its 150.5; earlier and later ones are not.
    assert_eq!(outcome.run.elements[0].capacity_bytes, Some(1500));
    assert_eq!(outcome.run.elements[1].capacity_bytes, None);
    let used = metric(&record, "all", "utilization_ratio").unwrap();
    // 2 packets in 21 ms, against 1500 bytes in the 100 ms of the bin.
    let expected = (3000.0 / 0.021) / (1500.0 / 0.1);
    assert!((used / expected - 1.0).abs() < 1e-9, "{used} {expected}");
}

#[test]
fn negative_delays_move_the_receivers_clock() {
    let data = read(
        "0.000 + 1500 1\n1.000 + 1500 1\n3.000 - 1500 -3.000 1\n5.000 - 1500 5.000 1\n6.000 + 1500 1\n",
    );
    // By the receiver's slow clock it answers early, and the answer seems to take 25 ms.
    let text = "# init timestamp: 1500000000000.000\n6.000 + 88 1\n31.000 - 88 25.000 1\n";
    let ack = read_merged("ack", text.as_bytes(), false).unwrap();
    let (outcome, record) = imported(&task(), &data, Some(&ack));
    assert_eq!(outcome.packets.shifts.receiver_ns, 3_000_000);
    assert_eq!(outcome.packets.shifts.zeroed, 0);
    let delays: Vec<u64> = rows(&record)
        .iter()
        .filter_map(|row| Some(row.arrived_ns? - row.sent_ns))
        .collect();
    assert_eq!(delays, [8_000_000, 0, 22_000_000]);
    assert_eq!(outcome.run.verdict, Verdict::Degraded);
    assert!(outcome.run.reasons[0].text.contains("moved by 3.000 ms"));
    assert_eq!(outcome.run.clock.error_ns, 3_000_000);
    assert_eq!(outcome.statistics.unwrap().total.delay_p95_ms, Some(5.0));

    // Drifting clocks cannot be moved so that both directions are consistent.
    let text = "# init timestamp: 1500000000000.000\n6.000 + 88 1\n8.000 - 88 2.000 1\n";
    let ack = read_merged("ack", text.as_bytes(), false).unwrap();
    let (outcome, _) = imported(&task(), &data, Some(&ack));
    assert_eq!(outcome.packets.shifts.zeroed, 1);
    assert!(
        outcome.run.reasons[1]
            .text
            .contains("because the clocks drift")
    );
}

#[test]
fn void_runs_are_no_records_and_short_ones_do_not_count() {
    let void = import(&task(), Versions::default(), &read(""), None);
    assert_eq!(
        void.unwrap_err().to_string(),
        "no packet was logged, so the run is void"
    );
    let silent = read("1.000 + 1500 1\n2.000 + 1500 1\n");
    let (outcome, _) = imported(&task(), &silent, None);
    assert_eq!(outcome.run.verdict, Verdict::Invalid);
    let short = Task {
        runtime_ns: Some(30_000_000_000),
        ..task()
    };
    let (outcome, _) = imported(&short, &ten(), None);
    assert_eq!(outcome.run.verdict, Verdict::Invalid);
    assert!(
        outcome.run.reasons[0]
            .text
            .contains("less than 80 % of the 30 s")
    );
    let far = read("0.000 + 1500 1\n900000000.000 + 1500 1\n");
    let apart = |data: &Reading, ack: Option<&Reading>| {
        let why = import(&task(), Versions::default(), data, ack).unwrap_err();
        (why, why.to_string())
    };
    let (why, text) = apart(&far, None);
    assert!(matches!(why, NoRun::Apart(_)) && text.contains("10 days apart"));
    assert!(matches!(apart(&far, Some(&ten())).0, NoRun::Apart(_)));
    assert!(matches!(apart(&ten(), Some(&far)).0, NoRun::AckApart(_)));
}

#[test]
fn printed_statistics_are_compared_with_the_log() {
    let (outcome, _) = imported(&task(), &ten(), None);
    let right = outcome.statistics.unwrap().text();
    let judged = |printed: String| {
        let task = Task {
            printed: Some(printed),
            ..task()
        };
        let (outcome, _) = imported(&task, &ten(), None);
        let agrees = outcome.run.other["pantheon"]["agrees"].clone();
        (agrees, outcome.run.verdict)
    };
    assert_eq!(
        judged(right.clone() + "\n"),
        (Value::Bool(true), Verdict::Ok)
    );
    let wrong = right.replace("20.00%", "20.01%");
    assert_ne!(wrong, right);
    assert_eq!(judged(wrong), (Value::Bool(false), Verdict::Degraded));
}

#[test]
fn what_is_exported_and_imported_is_the_same_again() {
    let (_, first) = imported(&task(), &ten(), None);
    let out = export(&first, 1_600_000_000_000_000_000).unwrap();
    let text = write_merged(&out.data);
    assert!(text.starts_with(b"# init timestamp: 1500000000000.000\n100.000 + 1500 1\n"));
    let again = read_merged("log", &text, false).unwrap();
    let (outcome, second) = imported(&task(), &again, None);
    assert_eq!(rows(&first), rows(&second));
    assert_eq!(outcome.statistics, out.statistics);
    assert!(out.ack.is_none(), "there was no log of them");
}
