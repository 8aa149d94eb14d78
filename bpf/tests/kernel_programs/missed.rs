//! A kernel that does not run `ssthresh` when a loss is detected, and uses stale data on the stack as its result.

use crate::path::MSS;
use crate::program::{self, Program};
use std::fmt::Write;

/// Packets in flight, and the RTT in us.
const WINDOW: u64 = 100;
const RTT: u64 = 50_000;

/// Windows and threshold around a loss that is not reported to the program: the window before it, the threshold after
/// the next acknowledgement, the window after the recovery.
fn loss(program: &Program) -> (u64, u64, u64) {
    let mut now = 1_000_000;
    let mut delivered = 0;
    let mut events = format!("i {now} {WINDOW} {MSS} 0\n");
    let mut ack = |now: u64| {
        delivered += 1;
        let (una, nxt) = (delivered * MSS, (delivered + WINDOW) * MSS);
        let flight = WINDOW - 1;
        format!(
            "k {now} 1 {RTT} 1 {WINDOW} {flight} {RTT} {una} {nxt} {delivered} 0 0 {WINDOW} {RTT} 0 0 0\n"
        )
    };
    for _ in 0..3 * WINDOW {
        now += RTT / WINDOW;
        events += &ack(now);
    }
    writeln!(events, "m\nl {now} {WINDOW}").expect("writing to a string cannot fail");
    now += RTT;
    events += &ack(now);
    writeln!(events, "x {now}").expect("writing to a string cannot fail");
    let answers = program.play(&events);
    let [.., before, _, _, repaired, after] = &answers[..] else {
        panic!("an answer for each event")
    };
    (before.cwnd, repaired.ssthresh, after.cwnd)
}

#[test]
fn the_next_acknowledgement_makes_up_for_a_call_that_was_missed() {
    let mut tried = 0;
    for known in narrows_bpf::ALL {
        let source = program::source(known.name);
        if !source.contains("REDUCED_BY_SSTHRESH") {
            continue;
        }
        tried += 1;
        let (before, threshold, after) = loss(&Program::compile(&source));
        let name = known.name;
        assert!(
            (2..=before).contains(&threshold),
            "{name}: {threshold} after {before}"
        );
        assert!(
            (2..=before).contains(&after),
            "{name}: {after} after {before}"
        );
        // Without the repair the threshold is beyond every window, unless the scheme sets it again when it is notified
        // of the state, as DCTCP does.
        let without = source.replace("REDUCED_BY_SSTHRESH", ".ssthresh = (void *)ssthresh");
        let (_, threshold, _) = loss(&Program::compile(&without));
        assert!(
            threshold > 1 << 31 || name == "dctcp",
            "{name}: {threshold}"
        );
    }
    assert!(tried >= 16, "{tried} programs reduce by ssthresh");
}
