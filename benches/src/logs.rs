//! Cost of reading and measuring a log of Pantheon's tunnel.

use crate::repeat;
use narrows_pantheon::{Arrived, OneDirection, SentLine, Statistics, read_merged, write_merged};

/// Lines of the log, as many as three flows leave in 30 s at 200 Mbit/s.
const LINES: usize = 1_000_000;
const FLOWS: usize = 3;
/// One packet in so many is lost.
const LOST: usize = 97;

/// Packets of three flows, whose delays rise and fall.
fn link() -> OneDirection {
    let mut link = OneDirection {
        base_ns: 1_500_000_000_000_000_000,
        ..OneDirection::default()
    };
    let count = (LINES - 1) * LOST / (2 * LOST - 1);
    for packet in 0..count {
        let sent = SentLine {
            time_ns: packet as i64 * 60_000,
            size: 1500,
            flow: (packet % FLOWS) as u16 + 1,
        };
        link.sent.push(sent);
        if packet % LOST == 0 {
            continue;
        }
        // A queue that takes 50 ms to fill, 10 s each.
        let delay_ns = 20_000_000 + (packet % 160_000) as i64 / 3 * 1_000;
        link.arrived.push(Arrived {
            time_ns: sent.time_ns + delay_ns,
            delay_ns,
            size: sent.size,
            flow: sent.flow,
            line: 0,
            sent: packet as u32,
        });
    }
    link
}

/// Prints the time that a log of a million lines takes, from its bytes to Pantheon's numbers, every
/// arrival matched with its packet.
pub fn table(runs: usize) {
    let text = write_merged(&link());
    let lines = text.split(|&byte| byte == b'\n').count() - 1;
    let spread = repeat(
        runs,
        || {
            let reading = read_merged("log", &text, false).expect("the log has no flaw");
            Statistics::compute(&reading.link).expect("packets arrived")
        },
        |_, seconds| seconds * 1e3,
    );
    println!(
        "merged log of Pantheon, {lines} lines, {:.0} MB: read, matched and measured in {} ms\n",
        text.len() as f64 / 1e6,
        spread.show(0)
    );
}
