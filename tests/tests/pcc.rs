//! PCC Allegro, Vivace and PCC-Expr in simulated worlds: what their authors' rules make of single paths, how much
//! loss they bear, and where their floors are.

use narrows_record::series;
use narrows_tests::{Dumbbell, measured};
use serde_json::{Value, json};

/// A path with one flow, and the set-up of its scheme.
#[derive(Clone, Copy)]
struct Play {
    scheme: &'static str,
    profile: &'static str,
    /// Parameters besides those of the profile.
    params: &'static [(&'static str, &'static str)],
    mbps: f64,
    rtt_ms: f64,
    /// Buffer in packets; `None` for one without end.
    buffer: Option<u64>,
    loss: f64,
    seconds: f64,
}

/// What a flow did in the second half of its time, but for the loss.
#[derive(Debug)]
struct Seen {
    /// What came through the bottleneck, in Mbit/s of IP bytes.
    mbps: f64,
    /// Waiting time in ms: mean over time, and 95th percentile.
    queueing_ms: f64,
    queueing_p95_ms: f64,
    /// Dropped at the bottleneck over the whole run, in percent.
    dropped: f64,
}

impl Play {
    const fn of(scheme: &'static str, profile: &'static str) -> Play {
        Play {
            scheme,
            profile,
            params: &[],
            mbps: 12.0,
            rtt_ms: 40.0,
            buffer: Some(100),
            loss: 0.0,
            seconds: 30.0,
        }
    }

    fn cell(&self) -> Value {
        let bdp = self.mbps * self.rtt_ms / 12.0;
        let mut cell = Dumbbell {
            mbps: self.mbps,
            rtt_ms: self.rtt_ms,
            buffer_bdp: self.buffer.map_or(1e6, |packets| packets as f64 / bdp),
            loss: self.loss,
            schemes: vec![self.scheme],
            seconds: self.seconds,
            ..Dumbbell::default()
        }
        .json();
        let registry = narrows_cell::registry();
        let schemes = registry["schemes"].as_array().expect("schemes");
        let scheme = schemes
            .iter()
            .find(|one| one["name"] == self.scheme)
            .expect("a scheme");
        let profiles = scheme["profiles"].as_array().expect("profiles");
        let profile = profiles.iter().find(|one| one["name"] == self.profile);
        assert!(
            profile.is_some() || self.profile.is_empty(),
            "{} has no {}",
            self.scheme,
            self.profile
        );
        for flow in cell["flows"].as_array_mut().expect("flows") {
            if let Some(profile) = profile {
                flow["params"] = profile["params"].clone();
                flow["transport"] = profile["transport"].clone();
            }
            for (name, value) in self.params {
                flow["params"][*name] = value
                    .parse::<u64>()
                    .map_or(json!(value), |number| json!(number));
            }
        }
        cell
    }

    fn see(&self) -> Seen {
        let (run, record) = measured(&self.cell());
        let half = self.seconds / 2.0;
        let flows = series::throughput(&record, 1_000_000_000).expect("throughput");
        let rates = flows
            .time_s
            .iter()
            .zip(&flows.flows[&1].1)
            .filter(|(time, _)| **time >= half);
        let rates: Vec<f64> = rates.map(|(_, rate)| *rate).collect();
        let queue = &series::queues(&record).expect("queues")["forward.0"];
        let waits = queue
            .time_s
            .iter()
            .zip(&queue.backlog_bytes)
            .filter(|(time, _)| **time >= half);
        let mut waits: Vec<f64> = waits.map(|(_, bytes)| bytes * 8e-3 / self.mbps).collect();
        waits.sort_by(f64::total_cmp);
        Seen {
            mbps: mean(&rates) / 1e6 / (1.0 - self.loss),
            queueing_ms: mean(&waits),
            queueing_p95_ms: waits[(0.95 * waits.len() as f64) as usize],
            dropped: 100.0 * run.get("all", "bottleneck_drop_ratio"),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// What a row of the table says of the queue.
#[derive(Clone, Copy)]
enum Queue {
    /// Mean wait in ms, to 10 % or two packets of 12 Mbit/s.
    Near(f64),
    /// The same, and the 95th percentile as well.
    Both(f64, f64),
    /// The same as an upper end only.
    Below(f64),
}

use Queue::{Below, Both, Near};

/// A table of one flow on single paths: throughput in Mbit/s and wait.
fn check(scheme: &str, rows: &[(Play, f64, Queue)]) {
    for (play, mbps, queue) in rows {
        let seen = play.see();
        let path = format!(
            "{scheme} at {} Mbit/s, {} ms, {:?} packets, loss {}: {seen:?}",
            play.mbps, play.rtt_ms, play.buffer, play.loss
        );
        assert!(
            (seen.mbps / mbps - 1.0).abs() <= 0.1,
            "{path} instead of {mbps}"
        );
        let room = |ms: f64| (0.1 * ms).max(2.0);
        let (mean, p95) = (seen.queueing_ms, seen.queueing_p95_ms);
        match *queue {
            Near(ms) => assert!((mean - ms).abs() <= room(ms), "{path} instead of {ms}"),
            Both(ms, high) => {
                assert!((mean - ms).abs() <= room(ms), "{path} instead of {ms}");
                assert!((p95 - high).abs() <= room(high), "{path} instead of {high}");
            }
            Below(ms) => assert!(mean <= ms + room(ms), "{path} instead of {ms}"),
        }
    }
}

const SMALL: Play = Play {
    buffer: Some(20),
    ..Play::of("", "")
};
const FAST: Play = Play {
    mbps: 50.0,
    buffer: Some(400),
    ..Play::of("", "")
};
const LOSSY: Play = Play {
    loss: 0.01,
    ..Play::of("", "")
};
const ENDLESS: Play = Play {
    buffer: None,
    ..Play::of("", "")
};
const SLOW: Play = Play {
    mbps: 2.0,
    rtt_ms: 200.0,
    buffer: None,
    ..Play::of("", "")
};

/// `path` with the scheme of `play`.
const fn on(play: Play, path: Play) -> Play {
    Play {
        scheme: play.scheme,
        profile: play.profile,
        params: play.params,
        ..path
    }
}

// Expected values of the tables: simulations of the published rules, packet by packet, of one flow for 30 s,
// second half. Where only an upper end is given, the flow makes a few excursions into the queue in the whole time, and
// how long these last is chance: the same rules with other seeds give a third to three times the value.

#[test]
fn allegro_as_it_ran_keeps_queues_short_but_not_on_slow_links() {
    // The simulation had taken the round-trip time of the interval itself, not the program's slip.
    let play = Play {
        params: &[("rtt_of", "own")],
        ..Play::of("pcc-allegro", "pantheon")
    };
    let rows = [
        (play, 11.7, Both(3.0, 19.0)),
        (on(play, SMALL), 11.8, Below(6.0)),
        (on(play, FAST), 49.1, Below(9.0)),
        (on(play, LOSSY), 11.7, Near(0.5)),
        (on(play, ENDLESS), 11.7, Both(8.0, 30.0)),
        // The start doubles while results are late: 2.5 s of queue.
        (on(play, SLOW), 2.0, Near(2500.0)),
    ];
    check("allegro, latency utility", &rows);
    // With the slip the same but for shorter queues: a newer round-trip time tells of them earlier.
    let slip = Play::of("pcc-allegro", "pantheon");
    check(
        "allegro as it ran",
        &[
            (slip, 11.7, Below(3.0)),
            (on(slip, ENDLESS), 11.7, Below(8.0)),
        ],
    );
}

#[test]
fn allegro_of_the_paper_fills_every_finite_buffer() {
    let play = Play::of("pcc-allegro", "");
    let rows = [
        (play, 12.0, Both(79.0, 99.0)),
        (on(play, SMALL), 12.0, Both(13.0, 19.0)),
        (on(play, FAST), 50.0, Both(83.0, 96.0)),
        (on(play, LOSSY), 12.0, Both(80.0, 99.0)),
    ];
    check("allegro of the paper", &rows);
    // 5 % is where the utility breaks off; probes and the start beyond it lose some more: 8.7 % there.
    let dropped = play.see().dropped;
    assert!((4.0..11.0).contains(&dropped), "{dropped}");
}

#[test]
fn vivace_fills_the_link_with_hardly_a_queue() {
    let pantheon = Play::of("vivace", "pantheon");
    let rows = [
        (pantheon, 11.6, Both(0.5, 2.2)),
        (on(pantheon, SMALL), 11.6, Both(0.5, 2.4)),
        (on(pantheon, FAST), 47.5, Both(0.1, 0.6)),
        (on(pantheon, LOSSY), 11.6, Both(0.5, 2.4)),
        (on(pantheon, ENDLESS), 11.6, Both(0.5, 2.3)),
        // Steps of half a megabit are a quarter of the rate here: the wait swings between nothing and
        // 100 ms, with a mean that depends on which way they fall (22 ms there).
        (on(pantheon, SLOW), 1.76, Below(35.0)),
    ];
    check("vivace 900", &rows);
    // The other weight of latency is as good as the same, since the least slope that counts outweighs the rate in both.
    let published = Play::of("vivace", "published");
    let rows = [
        (published, 11.6, Near(0.5)),
        (on(published, SMALL), 11.6, Near(0.6)),
        (on(published, FAST), 47.5, Near(0.1)),
        // A long excursion into the queue is in this half here.
        (on(published, LOSSY), 11.5, Below(3.0)),
    ];
    check("vivace 11330", &rows);
    // What we changed for slow links changes nothing on these.
    let default = Play::of("vivace", "");
    check(
        "vivace",
        &[
            (default, 11.6, Near(0.5)),
            (on(default, FAST), 47.5, Near(0.1)),
        ],
    );
}

#[test]
fn vivace_without_latency_fills_every_finite_buffer() {
    let play = Play {
        params: &[("latency_coefficient", "0")],
        ..Play::of("vivace", "pantheon")
    };
    let rows = [
        (play, 12.0, Both(86.0, 99.0)),
        (on(play, SMALL), 11.9, Both(15.0, 19.0)),
        (on(play, FAST), 50.0, Both(82.0, 96.0)),
        (on(play, LOSSY), 12.0, Both(77.0, 99.0)),
    ];
    check("vivace, loss only", &rows);
}

#[test]
fn expr_fills_the_link_with_and_without_its_defect() {
    let pantheon = Play::of("pcc-expr", "pantheon");
    let rows = [
        (pantheon, 11.3, Below(10.0)),
        (on(pantheon, SMALL), 11.7, Below(6.0)),
        (on(pantheon, FAST), 48.9, Below(5.0)),
        // 16 ms there, with excursions of seconds to the end of the buffer.
        (on(pantheon, LOSSY), 11.0, Below(20.0)),
        (on(pantheon, ENDLESS), 11.5, Below(7.0)),
    ];
    check("expr as it ran", &rows);
    // One unit of slope outweighs the rate also when it counts once instead of 1400 times.
    let default = Play::of("pcc-expr", "");
    check(
        "expr",
        &[
            (default, 11.3, Below(10.0)),
            (on(default, FAST), 48.9, Below(9.0)),
        ],
    );
}

/// What is dropped over a whole run, in percent. Most of it is the overshoot of the start and excursions by chance: six seeds
/// give 10 to 19 and 5 to 8 % for Vivace without latency (9 and 3 there), 0.8 to 1.7 % for the shipped one with 100
/// packets (0.4), 2.4 to 3 % for Allegro with 20 (5). So the order of magnitude is what can be asked for.
#[test]
fn losses_are_of_the_order_of_the_rules() {
    let loss_only = Play {
        params: &[("latency_coefficient", "0")],
        ..Play::of("vivace", "pantheon")
    };
    let run = Play {
        params: &[("rtt_of", "own")],
        ..Play::of("pcc-allegro", "pantheon")
    };
    let paper = Play::of("pcc-allegro", "");
    let shipped = Play::of("vivace", "pantheon");
    let expr = Play::of("pcc-expr", "pantheon");
    for (play, percent) in [
        (run, 0.1),
        (on(run, SMALL), 0.5),
        (on(run, FAST), 0.0),
        (paper, 8.7),
        (on(paper, SMALL), 5.0),
        (on(paper, FAST), 8.4),
        (shipped, 0.4),
        (on(shipped, SMALL), 2.5),
        (on(shipped, FAST), 0.3),
        (loss_only, 9.0),
        (on(loss_only, SMALL), 5.0),
        (on(loss_only, FAST), 3.0),
        (expr, 0.0),
        (on(expr, SMALL), 0.4),
        (on(expr, FAST), 0.0),
    ] {
        let dropped = play.see().dropped;
        let range = percent / 3.0 - 1.5..3.0 * percent + 1.5;
        assert!(
            range.contains(&dropped),
            "{} {} {:?}, {} Mbit/s, {:?} packets: {dropped} instead of {percent}",
            play.scheme,
            play.profile,
            play.params,
            play.mbps,
            play.buffer
        );
    }
}

/// 100 Mbit/s and a buffer of one bandwidth-delay product: an interval has hundreds of packets, so that its loss
/// ratio is known to less than a percent.
const WIDE: Play = Play {
    mbps: 100.0,
    buffer: Some(333),
    ..Play::of("", "")
};

#[test]
fn loss_is_borne_up_to_the_published_limits_and_not_beyond() {
    let paper = Play {
        params: &[("utility", "paper")],
        ..Play::of("vivace", "")
    };
    for (play, bear, least) in [
        // The cliff is at 5 %: with 4 % a little congestion is too much.
        (
            Play::of("pcc-allegro", ""),
            &[0.01, 0.02, 0.03, 0.04][..],
            0.8,
        ),
        // 0.9 x^-0.1 / 11.35 is 5.0 % at 100 Mbit/s. A probe that is misled by chance costs some time.
        (paper, &[0.01, 0.02, 0.04], 0.8),
        // The shipped form counts 1 up to 3 %, and beyond that the same.
        (Play::of("vivace", ""), &[0.01, 0.02, 0.04], 0.8),
    ] {
        for &loss in bear {
            let seen = Play {
                loss,
                ..on(play, WIDE)
            }
            .see();
            assert!(
                seen.mbps > least * 100.0,
                "{} {:?} {loss}: {seen:?}",
                play.scheme,
                play.params
            );
        }
        // Beyond it the rate falls for as long as the run lasts: the paper has limits of 7.9 % at 1 Mbit/s.
        for loss in [0.06, 0.1] {
            let seen = Play {
                loss,
                ..on(play, WIDE)
            }
            .see();
            assert!(
                seen.mbps < 20.0,
                "{} {:?} {loss}: {seen:?}",
                play.scheme,
                play.params
            );
        }
    }
    // The published claim for Allegro, on the small path: 1 % costs less than 5 % of the throughput.
    for (profile, params) in [("", &[][..]), ("pantheon", &[])] {
        let play = Play {
            params,
            ..Play::of("pcc-allegro", profile)
        };
        let (clean, lossy) = (play.see().mbps, on(play, LOSSY).see().mbps);
        assert!(lossy > 0.95 * clean, "{profile}: {lossy} of {clean}");
    }
}

#[test]
fn ten_percent_of_loss_is_too_much_for_all() {
    // What the second half still has depends on how fast the rate fell: from 1.2 to 5.6 of 12 Mbit/s in
    // the simulations of the rules, that of 15 s alone.
    for (scheme, profile, most) in [
        ("pcc-allegro", "", 4.4),
        ("pcc-allegro", "pantheon", 2.6),
        ("vivace", "pantheon", 4.8),
        ("vivace", "published", 4.8),
        ("pcc-expr", "pantheon", 6.5),
    ] {
        let seen = Play {
            loss: 0.1,
            ..Play::of(scheme, profile)
        }
        .see();
        assert!(seen.mbps < 1.1 * most, "{scheme} {profile}: {seen:?}");
        assert!(seen.mbps > 0.5, "{scheme} {profile}: {seen:?}");
    }
}

#[test]
fn floors_of_the_programs_flood_slow_links_and_ours_do_not() {
    // 2.1 Mbit/s and steps of half a megabit on a link of 2: most of the time the buffer is full (37 % lost in a
    // simulation of the rules).
    let slow = Play {
        mbps: 2.0,
        rtt_ms: 200.0,
        ..Play::of("", "")
    };
    let seen = on(Play::of("pcc-expr", "pantheon"), slow).see();
    assert!(
        (30.0..50.0).contains(&seen.dropped) && seen.queueing_ms > 500.0,
        "{seen:?}"
    );
    let seen = on(Play::of("pcc-expr", ""), slow).see();
    assert!(seen.dropped < 5.0 && seen.mbps > 1.6, "{seen:?}");
    // 1.3 Mbit/s and probes of 1.8 on a link of 0.5: 62 % of 1.3 are too much.
    let slower = Play {
        mbps: 0.5,
        buffer: Some(50),
        ..Play::of("", "")
    };
    let seen = on(Play::of("vivace", "pantheon"), slower).see();
    assert!(
        (50.0..75.0).contains(&seen.dropped) && seen.queueing_ms > 1000.0,
        "{seen:?}"
    );
    let seen = on(Play::of("vivace", ""), slower).see();
    // The starting phase has overshot once.
    assert!(
        seen.dropped < 10.0 && seen.mbps > 0.35 && seen.queueing_ms < 100.0,
        "{seen:?}"
    );
    // A link of 10 kbit/s, on which a packet takes more than a second: something arrives all the time.
    for scheme in ["pcc-allegro", "vivace", "pcc-expr"] {
        let seen = Play {
            mbps: 0.01,
            buffer: Some(10),
            seconds: 120.0,
            ..Play::of(scheme, "")
        }
        .see();
        assert!(seen.mbps > 0.005, "{scheme}: {seen:?}");
    }
}

/// Throughput of two flows of `scheme`, the second 5 s later, over the second half of `seconds`.
fn pair(scheme: &'static str, mbps: f64, interval_s: f64, seconds: f64) -> [f64; 2] {
    let cell = Dumbbell {
        mbps,
        schemes: vec![scheme; 2],
        interval_s,
        seconds,
        record: "bins",
        ..Dumbbell::default()
    };
    let (_, record) = measured(&cell.json());
    let flows = series::throughput(&record, 1_000_000_000).expect("throughput");
    [1, 2].map(|flow| {
        let rates = flows.time_s.iter().zip(&flows.flows[&flow].1);
        let late: Vec<f64> = rates
            .filter(|(time, _)| **time >= seconds / 2.0)
            .map(|(_, rate)| *rate)
            .collect();
        mean(&late) / 1e6
    })
}

#[test]
fn two_flows_find_the_equilibrium_of_their_utilities() {
    for scheme in ["vivace", "pcc-expr"] {
        for mbps in [24.0, 100.0] {
            let [first, second] = pair(scheme, mbps, 5.0, 100.0);
            let jain = (first + second).powi(2) / (2.0 * (first * first + second * second));
            // Equal shares are the only equilibrium; steps of 5 % and more keep both moving around it.
            assert!(jain > 0.95, "{scheme} {mbps}: {first} {second}");
            assert!(
                first + second > 0.85 * mbps,
                "{scheme} {mbps}: {first} {second}"
            );
        }
    }
}

#[test]
fn two_flows_of_allegro_find_theirs_slowly() {
    // Both go up and down by the same shares, and only the little that each one's own rate changes the common
    // loss ratio draws them together.
    let ratio = |seconds| {
        let [first, second] = pair("pcc-allegro", 24.0, 5.0, seconds);
        assert!(first + second > 23.0, "{seconds}: {first} {second}");
        first / second
    };
    let (early, late) = (ratio(100.0), ratio(400.0));
    assert!((1.5..6.0).contains(&early), "{early}");
    assert!(late < 1.3, "{late}");
}
