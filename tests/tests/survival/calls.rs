//! Real-time schemes in places that no scheme likes.

use super::{
    Outcome, SECOND, Trial, at_least, at_most, blackout, fast, lossy, no_flood, path, reordering,
    slow, try_all,
};
use serde_json::{Value, json};

/// Real-time schemes have clocks of their own, and what they send they make themselves.
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

/// Real-time schemes carry what their encoder makes: they need not be fast, but never stop.
fn calls_back(outcome: &Outcome) -> Result<(), String> {
    at_least("rate afterwards", outcome.rate(35..45), 3e4)
}

fn goes_on(outcome: &Outcome) -> Result<(), String> {
    let third = outcome.arrived.len() / 3;
    for part in 0..3 {
        at_least("rate", outcome.rate(part * third..(part + 1) * third), 5e3)?;
    }
    keeps_to_its_target(outcome)?;
    no_flood(outcome)
}

/// No more is sent than the encoder is told: repairs, whatever becomes of them, are part of it. The 28 bytes of IP and UDP
/// are not, a ninth of the smallest frames of 250 bytes, nor is a tenth for noise and key frames. (Sprout has no target.)
fn keeps_to_its_target(outcome: &Outcome) -> Result<(), String> {
    let target = outcome.measured.get("1", "media_target_bps");
    let sent = outcome.sent.iter().sum::<f64>() / outcome.sent.len() as f64;
    if target.is_nan() {
        return Ok(());
    }
    at_most("sent in targets", sent / target, 1.25)
}

/// One packet of five is lost. Of what the encoder was told half comes of use at least: four fifths arrive, and headers
/// are a sixth of the smallest target. Most frames are one packet at such rates, so that a fifth of them is lost where
/// nothing is repeated, and hardly any where it is; those of the start are larger.
fn bears_losses(outcome: &Outcome) -> Result<(), String> {
    goes_on(outcome)?;
    let get = |metric| outcome.measured.get("1", metric);
    let target = get("media_target_bps");
    if target.is_nan() {
        return Ok(());
    }
    at_most("frames lost", get("frame_loss_ratio"), 0.3)?;
    let share = get("goodput_bps") / target;
    at_least("goodput in percent of the target", 100.0 * share, 50.0)
}

/// The least that any of them makes of a good path is the start rate of an encoder.
fn talks(outcome: &Outcome) -> Result<(), String> {
    is_heard(outcome)?;
    at_most("share lost", outcome.loss(), 0.05)
}

/// Sprout sends what its forecast allows at once, more than the small queue of a short path holds: a third is lost with
/// any clock.
fn is_heard(outcome: &Outcome) -> Result<(), String> {
    let (half, end) = (outcome.arrived.len() / 2, outcome.arrived.len());
    at_least("rate", outcome.rate(half..end), 3e5)?;
    no_flood(outcome)
}

/// While nothing is said nothing is sent but what keeps a flow alive: at most an empty packet of 78 bytes every 50 ms.
/// Then the call goes on at half of what it had at least.
fn pauses(outcome: &Outcome) -> Result<(), String> {
    let loudest = outcome.sent[5..23].iter().copied().fold(0.0, f64::max);
    at_most("sent in silence", loudest, 21.0 * 78.0 * 8.0)?;
    let before = outcome.rate(1..3);
    at_least("rate before", before, 1e5)?;
    at_least("rate afterwards", outcome.rate(24..34), before / 2.0)?;
    no_flood(outcome)
}

/// 100 kbit/s with headers: 30 packets/s with 44 bytes each, or nine with 78 and an empty one every 50 ms. A window that could
/// grow all the time would have become a megabyte.
fn says_little(outcome: &Outcome) -> Result<(), String> {
    let rate = outcome.rate(20..60);
    at_least("rate", rate, 0.95e5)?;
    at_most("rate", rate, 1.25e5)?;
    at_most("window", outcome.largest_window() as f64, 1e6)
}

const CALLS: &[Trial] = &[
    ("a blackout of 10 s", blackout, calls_back),
    ("20 % loss", lossy, bears_losses),
    ("reordering", reordering, goes_on),
    ("10 kbit/s", slow, goes_on),
    ("1 Gbit/s, 1 ms", fast, goes_on),
    ("a clock of 1 ms", coarse_call, talks),
    (
        "a clock of 1 ms on a path of 0.5 ms",
        coarse_call_near,
        is_heard,
    ),
    ("an encoder that falls silent", mute_call, pauses),
    ("pictures that need little", little_to_say, says_little),
];

#[test]
fn every_real_time_scheme_survives_or_its_defect_is_known() {
    let schemes: Vec<&str> = narrows_media::schemes::ALL
        .iter()
        .map(|scheme| scheme.name)
        .collect();
    try_all(&schemes, CALLS);
}
