//! Logs that are imported and exported repeatedly have the same numbers each time.

use crate::common::{record, task};
use narrows_pantheon::{
    Exported, Reading, Statistics, Task, export, import, read_merged, write_merged,
};
use narrows_record::Versions;
use proptest::prelude::*;
use std::fmt::Write;

/// A packet: flow, sending time (us), size, and delays (us) of its arrivals by the clocks of both ends.
type Packet = (u16, i64, u32, Vec<i64>);

/// The logs of both directions, and whether the one of the acknowledgements exists.
#[derive(Clone, Debug)]
struct Run {
    data: Vec<Packet>,
    ack: Option<Vec<Packet>>,
    /// Times in ms at which the emulated link could have carried 1500 bytes.
    offered: Vec<i64>,
    /// Rounding differences between parts of the log of a tunnel, as Pantheon rounds twice.
    blur: Vec<i64>,
    /// Whether all times are whole milliseconds.
    whole: bool,
    two_hosts: bool,
}

const BASE: &str = "1500000000123.456";
const LATER: &str = "1500000000130.001";

fn ms(us: i64) -> String {
    let sign = if us < 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", us.abs() / 1000, us.abs() % 1000)
}

/// The merged log: times in us, with rounding of up to one that delays do not include.
fn log(base: &str, packets: &[Packet], offered: &[i64], blur: &[i64], step: i64) -> String {
    let mut rows: Vec<(i64, u8, String)> = Vec::new();
    let mut blur = blur.iter().copied().cycle();
    for (flow, sent, size, delays) in packets {
        let sent = sent * step;
        rows.push((sent, 1, format!("{} + {size} {flow}", ms(sent))));
        for delay in delays {
            let at = sent
                + delay * step
                + if step == 1 {
                    blur.next().unwrap_or(0)
                } else {
                    0
                };
            let delay = ms(delay * step);
            rows.push((at, 2, format!("{} - {size} {delay} {flow}", ms(at))));
        }
    }
    for at in offered {
        // Pantheon's opportunities are half a millisecond off whole ones.
        rows.push((at * 1000 + 544, 0, format!("{at}.544 # 1500")));
    }
    rows.sort_by_key(|row| (row.0, row.1));
    let rows: String = rows.into_iter().map(|row| row.2 + "\n").collect();
    format!("# init timestamp: {base}\n{rows}")
}

fn packets(minimum: i64) -> impl Strategy<Value = Vec<Packet>> {
    let arrivals = prop_oneof![
        6 => prop::collection::vec(minimum..minimum + 90_000, 1..2),
        2 => Just(Vec::new()),
        1 => prop::collection::vec(minimum..minimum + 90_000, 2..4),
    ];
    let one = (
        1_u16..4,
        8_i64..4_000,
        prop::sample::select(vec![88_u32, 700, 1500]),
        arrivals,
    );
    prop::collection::vec(one, 1..80).prop_map(|gaps| {
        let mut time = 0;
        let step = |(flow, gap, size, delays)| {
            time += gap;
            (flow, time, size, delays)
        };
        gaps.into_iter().map(step).collect()
    })
}

fn runs() -> impl Strategy<Value = Run> {
    // Clocks of two hosts may make all delays of one direction negative.
    let parts = (any::<bool>(), -50_000_i64..50_000);
    parts.prop_flat_map(|(two_hosts, off)| {
        let off = if two_hosts { off } else { 0 };
        let offered = prop_oneof![
            Just(Vec::new()),
            prop::collection::vec(0_i64..400, 1..60),
            (0_i64..50, 1_i64..9)
                .prop_map(|(from, step)| { (from..400).step_by(step as usize).collect() }),
        ];
        let blur = prop::collection::vec(-1_i64..2, 7);
        let ack = prop::option::of(packets(-off));
        (packets(off), ack, offered, blur, any::<bool>()).prop_map(
            move |(data, ack, mut offered, blur, whole)| {
                offered.sort_unstable();
                Run {
                    data,
                    ack,
                    offered,
                    blur,
                    whole,
                    two_hosts,
                }
            },
        )
    })
}

fn read(text: &str) -> Reading {
    read_merged("log", text.as_bytes(), false).unwrap()
}

/// Imports and exports once.
fn trip(task: &Task, data: &Reading, ack: Option<&Reading>) -> (Option<String>, Exported) {
    let outcome = import(task, Versions::default(), data, ack).unwrap();
    let block = outcome.statistics.as_ref().map(Statistics::text);
    // The requested base only applies to records without their own.
    (block, export(&record(&outcome), 7).unwrap())
}

proptest! {
    #[test]
    fn numbers_are_the_same_after_any_number_of_trips(run in runs()) {
        let step = if run.whole { 1000 } else { 1 };
        let text = log(BASE, &run.data, &run.offered, &run.blur, step);
        let back = run.ack.as_ref().map(|ack| log(LATER, ack, &[], &run.blur, step));
        let task = Task { two_hosts: run.two_hosts, ..task() };
        let (data, ack) = (read(&text), back.as_deref().map(read));
        let (first, out) = trip(&task, &data, ack.as_ref());
        prop_assert_eq!(&first, &out.statistics.as_ref().map(Statistics::text));

        let texts = [Some(write_merged(&out.data)), out.ack.as_ref().map(write_merged)];
        prop_assert_eq!(texts[1].is_some(), back.is_some());
        let [data, ack] = texts.clone().map(|text| {
            text.map(|text| read_merged("log", &text, false).unwrap())
        });
        let (second, again) = trip(&task, &data.unwrap(), ack.as_ref());
        prop_assert_eq!(&first, &second);
        prop_assert_eq!(&first, &again.statistics.as_ref().map(Statistics::text));
        // From the second time not a byte changes; the first changes only the rounding of sending times and
        // opportunities within a bin.
        let later = [Some(write_merged(&again.data)), again.ack.as_ref().map(write_merged)];
        prop_assert_eq!(&later, &texts);
        let exact = run.whole || run.blur.iter().all(|&us| us == 0);
        if exact && run.offered.is_empty() {
            let out = String::from_utf8(texts[0].clone().unwrap()).unwrap();
            prop_assert_eq!(sorted(&out), sorted(&text));
        }
    }
}

/// Sorted lines of a log, since the order of simultaneous events is arbitrary.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_steady_links_opportunities_come_when_they_came() {
    // One per millisecond, from before the first packet until after the last.
    let mut text = format!("# init timestamp: {BASE}\n");
    for at in 0..900 {
        writeln!(text, "{at}.544 # 1500").unwrap();
        if at == 250 {
            text += "250.600 + 1500 1\n";
        } else if at == 651 {
            text += "651.600 - 1500 401.000 1\n";
        }
    }
    let (block, out) = trip(&task(), &read(&text), None);
    assert!(
        block.unwrap().contains("Average capacity: 12.01 Mbit/s"),
        "900 in 899 ms"
    );
    assert_eq!(String::from_utf8(write_merged(&out.data)).unwrap(), text);
}

#[test]
fn clocks_that_were_moved_are_moved_back() {
    // The acknowledgement's delay stays negative for any correction of the clocks.
    let text = format!(
        "# init timestamp: {BASE}\n10.000 + 1500 1\n12.000 + 1500 1\n\
         7.000 - 1500 -3.000 1\n13.000 - 1500 1.000 1\n"
    );
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1..].sort_by_key(|line| line.split('.').next().unwrap().parse::<i64>().unwrap());
    let text = lines.join("\n") + "\n";
    let back = format!("# init timestamp: {BASE}\n16.000 + 88 1\n18.000 - 88 2.000 1\n");
    let outcome = import(
        &task(),
        Versions::default(),
        &read(&text),
        Some(&read(&back)),
    )
    .unwrap();
    assert_eq!(outcome.packets.shifts.receiver_ns, 3_000_000);
    assert_eq!(outcome.packets.shifts.zeroed, 1);
    let out = export(&record(&outcome), 0).unwrap();
    assert_eq!(String::from_utf8(write_merged(&out.data)).unwrap(), text);
    assert_eq!(
        String::from_utf8(write_merged(&out.ack.unwrap())).unwrap(),
        back
    );
}
