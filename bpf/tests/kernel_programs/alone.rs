//! Programs without native scheme, alone on a simulated path: what their paper says must come out.

use crate::path::MSS;
use crate::program::{self, Program};
use std::collections::VecDeque;

/// Time between two packets at the bottleneck and RTT of the empty path, in us.
const SPACING: u64 = 1000;
const RTT: u64 = 40_000;
/// Length of a run in us; what is measured is its second half.
const LENGTH: u64 = 30_000_000;

/// Share of the bottleneck that is used, and packets in its queue on average.
fn alone(program: &Program) -> (f64, f64) {
    let mut running = program.start();
    let mut now = 1_000_000;
    let mut window = running.tell(&format!("i {now} 10 {MSS} 0")).cwnd;
    // Of each packet in flight: when its acknowledgement arrives, when it was sent, what was delivered.
    let mut flying: VecDeque<(u64, u64, u64)> = VecDeque::new();
    let (mut sent, mut delivered, mut link_free, mut srtt) = (0, 0, 0, RTT);
    let (mut measured, mut queued) = (0, 0);
    while now < LENGTH {
        while (flying.len() as u64) < window {
            link_free = link_free.max(now + RTT / 2) + SPACING;
            flying.push_back((link_free + RTT / 2, now, delivered));
            sent += 1;
        }
        let before = flying.len();
        let (back, sent_at, delivered_before) = flying.pop_front().expect("a packet");
        now = back;
        delivered += 1;
        let rtt = now - sent_at;
        srtt = (7 * srtt + rtt) / 8;
        if now > LENGTH / 2 {
            measured += 1;
            queued += (rtt - RTT - SPACING) / SPACING;
        }
        let answer = running.tell(&format!(
            "k {now} 1 {rtt} 1 {before} {} {srtt} {} {} {delivered} 0 0 {} {rtt} {delivered_before} 0",
            flying.len(),
            delivered * MSS,
            sent * MSS,
            delivered - delivered_before,
        ));
        window = answer.cwnd;
    }
    running.end();
    let possible = LENGTH / 2 / SPACING;
    (
        measured as f64 / possible as f64,
        queued as f64 / measured as f64,
    )
}

/// Arun and Balakrishnan, NSDI 2018, section 2: alone, a flow has 1/delta packets queued on average, between
/// none and 2.5/delta, and uses the link. Here delta is 0.5, so two packets are expected and five are the most;
/// the window moves in whole packets and the target is judged half a round trip late, so that the queue runs empty
/// for a part of each cycle of about five round trips, and holds more in the rest of it: hence the margins.
#[test]
fn copa_keeps_few_packets_queued() {
    let source = program::source("copa");
    let (share, queue) = alone(&Program::compile(&source));
    println!("copa: {share:.3} of the link, {queue:.2} packets queued");
    assert!(share > 0.9, "{share}");
    assert!((1.0..5.0).contains(&queue), "{queue}");
    let wrong = source.replace("Q16(0.5)", "Q16(0.1)");
    assert_ne!(wrong, source);
    let (_, queue) = alone(&Program::compile(&wrong));
    println!("copa with delta 0.1: {queue:.2} packets queued");
    assert!(queue > 5.0, "{queue}");
}
