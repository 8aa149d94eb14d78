//! Real-time schemes under adverse conditions.

use super::kit::{
    Check, Extent, Outcome, SECOND, Subject, Trial, at_least, at_most, no_flood, try_all,
};
use super::known::KNOWN;
use super::{blackout, fast, lossy, path, reordering, slow};
use serde_json::{Value, json};

/// Real-time schemes have separate clocks, and generate their data themselves.
fn call(scheme: &'static str, params: Value, (mbps, rtt_ms, seconds): (f64, f64, f64)) -> Value {
    let mut cell = path(scheme, mbps, rtt_ms, seconds).json();
    cell["flows"][0]["params"] = params;
    cell
}

fn coarse_call(scheme: &'static str) -> Value {
    call(scheme, json!({"clock": 1_000_000}), (12.0, 40.0, 30.0))
}

/// With the queue of the trial of bulk schemes.
fn coarse_call_near(scheme: &'static str) -> Value {
    let mut cell = call(scheme, json!({"clock": 1_000_000}), (100.0, 0.5, 10.0));
    cell["network"]["forward"][0]["queue"] = json!({"kind": "droptail", "bytes": 60_000});
    cell
}

fn mute_call(scheme: &'static str) -> Value {
    let pause = json!({"pause_at": 3 * SECOND, "pause_for": 20 * SECOND});
    call(scheme, pause, (12.0, 40.0, 45.0))
}

fn little_to_say(scheme: &'static str) -> Value {
    call(scheme, json!({"content_rate": 100_000}), (12.0, 40.0, 60.0))
}

/// Real-time schemes carry the output of their encoder: they need not be fast, but must never stop.
fn calls_back(outcome: &Outcome) -> Vec<Check> {
    vec![at_least("rate afterwards", outcome.rate(35..45), 3e4)]
}

fn goes_on(outcome: &Outcome) -> Vec<Check> {
    let third = outcome.seconds() as usize / 3;
    let mut checks = vec![
        at_least("rate at first", outcome.rate(0..third), 5e3),
        at_least("rate", outcome.rate(third..2 * third), 5e3),
        at_least("rate at last", outcome.rate(2 * third..3 * third), 5e3),
        no_flood(outcome),
    ];
    checks.extend(target(outcome).map(|target| {
        // No more is sent than the encoder's target, including repairs. The 28 bytes of IP and UDP are not, a ninth of
        // the smallest frames of 250 bytes, nor is a tenth for noise and key frames.
        let sent = outcome.sent(0..outcome.seconds() as usize);
        at_most("sent in targets", sent / target, 1.25)
    }));
    checks
}

/// The mean target of the encoder, in bit/s. Sprout has none.
fn target(outcome: &Outcome) -> Option<f64> {
    let target = outcome.metric("media_target_bps");
    target.is_finite().then_some(target)
}

/// One packet of five is lost. At least half of the encoder's target is useful: four fifths arrive, and headers are a
/// sixth of the smallest target. Most frames are one packet at such rates, so that a fifth of them is lost without
/// retransmissions, and hardly any with them; those of the start are larger.
fn bears_losses(outcome: &Outcome) -> Vec<Check> {
    let mut checks = goes_on(outcome);
    if let Some(target) = target(outcome) {
        checks.push(at_most(
            "frames lost",
            outcome.metric("frame_loss_ratio"),
            0.3,
        ));
        let share = outcome.metric("goodput_bps") / target;
        checks.push(at_least("goodput in targets", share, 0.5));
    }
    checks
}

/// The minimum rate of any of them on a good path is the start rate of an encoder.
fn talks(outcome: &Outcome) -> Vec<Check> {
    [
        is_heard(outcome),
        vec![at_most("share lost", outcome.loss(), 0.05)],
    ]
    .concat()
}

/// Sprout sends what its forecast allows at once, more than the small queue of a short path holds: a third is lost with
/// any clock.
fn is_heard(outcome: &Outcome) -> Vec<Check> {
    let end = outcome.seconds() as usize;
    vec![
        at_least("rate", outcome.rate(end / 2..end), 3e5),
        no_flood(outcome),
    ]
}

/// During the pause only keep-alive packets are sent: at most an empty packet of 64 bytes every 50 ms. Then the call
/// resumes at no less than half of its rate.
fn pauses(outcome: &Outcome) -> Vec<Check> {
    let before = outcome.rate(1..3);
    vec![
        at_most("sent in silence", outcome.loudest(5..23), 21.0 * 78.0 * 8.0),
        at_least("rate before", before, 1e5),
        at_least("rate afterwards", outcome.rate(24..34), before / 2.0),
        no_flood(outcome),
    ]
}

/// 100 kbit/s with headers: 30 packets/s with 44 bytes each, or nine with 78 and an empty one every 50 ms. A window
/// that grows all the time would have reached a megabyte.
fn says_little(outcome: &Outcome) -> Vec<Check> {
    vec![
        Check {
            what: "rate",
            actual: outcome.rate(20..60),
            minimum: 0.95e5,
            maximum: 1.25e5,
        },
        at_most("window", outcome.largest_window(), 1e6),
    ]
}

const CALLS: &[Trial] = &[
    ("a blackout of 10 s", blackout, calls_back, false),
    ("20 % loss", lossy, bears_losses, true),
    ("reordering", reordering, goes_on, true),
    ("10 kbit/s", slow, goes_on, false),
    ("1 Gbit/s, 1 ms", fast, goes_on, false),
    ("a clock of 1 ms", coarse_call, talks, false),
    (
        "a clock of 1 ms on a path of 0.5 ms",
        coarse_call_near,
        is_heard,
        false,
    ),
    ("an encoder that falls silent", mute_call, pauses, false),
    (
        "pictures that need little",
        little_to_say,
        says_little,
        false,
    ),
];

#[test]
fn every_real_time_scheme_survives_or_its_defect_is_known() {
    let schemes = narrows_media::schemes::ALL.iter();
    let subjects: Vec<Subject> = schemes
        .map(|scheme| Subject::scheme(scheme.name, false))
        .collect();
    try_all(&subjects, CALLS, KNOWN, Extent::Full);
}
