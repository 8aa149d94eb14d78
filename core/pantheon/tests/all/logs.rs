//! Raw and merged logs survive writing and reading, and no input makes a reader panic.
use narrows_pantheon::{
    Arrived, Offsets, OneDirection, Opportunity, RawLogSide, Reading, SentLine, Statistics, join,
    merge, read_merged, read_tunnel, write_merged,
};
use proptest::prelude::*;
use std::fmt::Write;

const BASE_MS: u64 = 1_500_000_000_000;

/// A packet of one tunnel: sending time (us), size, and delays (us) of its arrivals.
type Packet = (u64, u32, Vec<u64>);

fn ms(us: u64) -> String {
    format!("{}.{:03}", us / 1000, us % 1000)
}

/// The raw logs of one tunnel, with the clocks of both ends off by `off_us`.
fn raw(packets: &[Packet], start_us: u64, off_us: (u64, u64)) -> (String, String) {
    let at = |off: u64| {
        format!(
            "{}.{:03}",
            BASE_MS + (start_us + off) / 1000,
            (start_us + off) % 1000
        )
    };
    let mut egress = format!(
        "# 'mm-tunnelclient' '1.2.3.4' 'x' egress: {}\n",
        at(off_us.0)
    );
    let mut ingress = format!(
        "# 'mm-tunnelserver' '--ingress-log=a b' ingress: {}\n",
        at(off_us.1)
    );
    let mut arrivals = Vec::new();
    for (uid, (sent, size, delays)) in packets.iter().enumerate() {
        writeln!(egress, "{} - {uid} - {size}", ms(*sent)).unwrap();
        arrivals.extend(delays.iter().map(|delay| (sent + delay, uid, *size)));
    }
    arrivals.sort_unstable();
    for (time, uid, size) in arrivals {
        writeln!(ingress, "{} - {uid} - {size}", ms(time)).unwrap();
    }
    (egress, ingress)
}

fn merged_of(packets: &[Packet], flow: u16, start_us: u64, off_us: (u64, u64)) -> Reading {
    let (egress, ingress) = raw(packets, start_us, off_us);
    let egress = read_tunnel("egress", egress.as_bytes(), RawLogSide::Egress, false).unwrap();
    let ingress = read_tunnel("ingress", ingress.as_bytes(), RawLogSide::Ingress, false).unwrap();
    // The NTP offsets compensate the errors of the clocks.
    let offsets = Offsets {
        sender_ns: -(off_us.0 as i64) * 1000,
        receiver_ns: -(off_us.1 as i64) * 1000,
    };
    merge(&egress, &ingress, offsets, flow, false).unwrap()
}

fn packets() -> impl Strategy<Value = Vec<Packet>> {
    let arrivals = prop_oneof![
        6 => prop::collection::vec(0_u64..90_000, 1..2),
        2 => Just(Vec::new()),
        1 => prop::collection::vec(0_u64..90_000, 2..4),
    ];
    // Packets of a tunnel are at least some microseconds apart, more than the rounding of merged logs.
    let one = (
        4_u64..400,
        prop::sample::select(vec![88_u32, 700, 1500]),
        arrivals,
    );
    prop::collection::vec(one, 1..60).prop_map(|gaps| {
        let mut time = 0;
        let step = |(gap, size, delays)| {
            time += gap;
            (time, size, delays)
        };
        gaps.into_iter().map(step).collect()
    })
}

/// Statistics computed independently and slowly, directly from the packets: throughput in Mbit/s, 95th percentile in
/// ms, loss.
fn slowly(flows: &[&[Packet]]) -> (f64, Option<f64>, Option<f64>) {
    let all = || flows.iter().flat_map(|packets| packets.iter());
    let sent: u64 = all().map(|packet| u64::from(packet.1)).sum();
    let mut times = Vec::new();
    let mut delays = Vec::new();
    let mut arrived = 0;
    for (start, size, each) in all() {
        for delay in each {
            times.push(start + delay);
            delays.push(*delay);
            arrived += u64::from(*size);
        }
    }
    let (Some(&first), Some(&last)) = (times.iter().min(), times.iter().max()) else {
        return (0.0, None, None);
    };
    delays.sort_unstable();
    // Nearest to 95 (n - 1) / 100, ties to even, in integers.
    let (whole, rest) = (95 * (delays.len() - 1) / 100, 95 * (delays.len() - 1) % 100);
    let place = whole + usize::from(rest > 50 || (rest == 50 && whole % 2 == 1));
    let span = (last - first) as f64;
    let rate = if last == first {
        0.0
    } else {
        arrived as f64 * 8.0 / span
    };
    let lost = (sent as f64 - arrived as f64) / sent as f64;
    (rate, Some(delays[place] as f64 / 1000.0), Some(lost))
}

fn later(packets: &[Packet], us: u64) -> Vec<Packet> {
    let moved = packets.iter().cloned();
    moved
        .map(|(time, size, delays)| (time + us, size, delays))
        .collect()
}

fn near(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        // Both are the same fraction, rounded once or twice in different ways.
        (Some(a), Some(b)) => (a - b).abs() <= 1e-12 * a.abs().max(1.0),
        (a, b) => a == b,
    }
}

proptest! {
    #[test]
    fn raw_logs_become_one_merged_log_with_the_same_numbers(
        one in packets(), two in packets(),
        starts in (0_u64..50_000, 0_u64..50_000), off in (0_u64..20_000_000, 0_u64..20_000_000),
    ) {
        let one_link = merged_of(&one, 1, starts.0, off).link;
        let two_link = merged_of(&two, 2, starts.1, off).link;
        let all = join(vec![one_link.clone(), two_link.clone()]);
        prop_assert_eq!(all.base_ns, (BASE_MS * 1000 + starts.0.min(starts.1)) as i64 * 1000);
        prop_assert_eq!(all.sent.len(), one.len() + two.len());
        for arrived in &all.arrived {
            let sent = &all.sent[arrived.sent as usize];
            prop_assert_eq!((sent.flow, sent.size), (arrived.flow, arrived.size));
            prop_assert_eq!(arrived.time_ns - sent.time_ns, arrived.delay_ns);
        }

        let text = write_merged(&all);
        let again = read_merged("merged", &text, false).unwrap();
        prop_assert_eq!(&again.link.sent, &all.sent);
        prop_assert_eq!(again.strangers, 0);
        prop_assert_eq!(write_merged(&again.link), text.clone());
        for (found, known) in again.link.arrived.iter().zip(&all.arrived) {
            prop_assert_eq!(found.sent, known.sent, "each arrival finds its own packet");
        }

        let statistics = Statistics::compute(&all);
        prop_assert_eq!(&statistics, &Statistics::compute(&again.link));
        let Some(statistics) = statistics else {
            prop_assert!(slowly(&[&one, &two]).1.is_none());
            return Ok(());
        };
        for (flow, packets) in [(1, &one), (2, &two)] {
            let found = statistics.flows[&flow];
            let (rate, delay, loss) = slowly(&[packets]);
            prop_assert!(near(Some(found.throughput_mbps), Some(rate)), "{} {rate}", found.throughput_mbps);
            prop_assert!(near(found.delay_p95_ms, delay), "{:?} {delay:?}", found.delay_p95_ms);
            prop_assert!(near(found.loss_ratio, loss), "{:?} {loss:?}", found.loss_ratio);
        }
        let (rate, delay, loss) = slowly(&[&later(&one, starts.0), &later(&two, starts.1)]);
        prop_assert!(near(Some(statistics.total.throughput_mbps), Some(rate)));
        prop_assert!(near(statistics.total.delay_p95_ms, delay));
        prop_assert!(near(statistics.total.loss_ratio, loss));
    }

    #[test]
    fn a_log_cut_off_anywhere_is_refused_or_read_up_to_there(
        one in packets(), cut in 0.0_f64..1.0,
    ) {
        let whole = write_merged(&merged_of(&one, 1, 0, (0, 0)).link);
        let cut = (whole.len() as f64 * cut) as usize;
        let text = &whole[..cut];
        let lines = text.split(|&byte| byte == b'\n').count() as u64 - 1;
        let strict = read_merged("log", text, false);
        let lenient = read_merged("log", text, true);
        if lines == 0 {
            prop_assert!(strict.is_err() && lenient.is_err());
            return Ok(());
        }
        let lenient = lenient.unwrap();
        let events = lenient.link.sent.len() + lenient.link.arrived.len();
        prop_assert_eq!(events as u64, lines - 1);
        // An arrival never precedes its packet here, so no arrival remains unmatched.
        prop_assert_eq!(lenient.strangers, 0);
        if text.ends_with(b"\n") {
            prop_assert_eq!(strict.unwrap(), lenient);
        } else {
            let error = strict.unwrap_err();
            prop_assert_eq!(error.line, lines + 1);
            prop_assert_eq!(lenient.stopped, Some(error));
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        noise in prop::collection::vec(any::<u8>(), 0..400),
        lines in prop::collection::vec("[-+#0-9. x]{0,30}", 0..40),
        lenient in any::<bool>(),
    ) {
        let text = lines.join("\n");
        for head in ["", "# init timestamp: 1500000000000.000\n", "# 'x' egress: 1500000000000.000\n"] {
            for body in [&noise[..], text.as_bytes()] {
                let all = [head.as_bytes(), body].concat();
                if let Ok(reading) = read_merged("log", &all, lenient) {
                    let _ = (Statistics::compute(&reading.link), write_merged(&reading.link));
                }
                let side = if lenient { RawLogSide::Egress } else { RawLogSide::Ingress };
                if let Ok(log) = read_tunnel("log", &all, side, lenient) {
                    let _ = merge(&log, &log, Offsets::default(), 1, lenient);
                }
            }
        }
    }
}

#[test]
fn a_log_of_a_single_tunnel_names_no_flow() {
    let text = "# init timestamp: 1500000000000.000\n1.000 + 100\n3.000 - 100 2.000\n";
    let link = read_merged("log", text.as_bytes(), false).unwrap().link;
    assert_eq!((link.sent[0].flow, link.arrived[0].flow), (1, 1));
    assert_eq!(link.arrived[0].sent, 0);
}

#[test]
fn packets_of_one_instant_do_not_take_the_square_of_their_number() {
    let link = OneDirection {
        base_ns: 0,
        sent: vec![
            SentLine {
                time_ns: 0,
                size: 100,
                flow: 1
            };
            100_000
        ],
        arrived: (0..100_000)
            .map(|_| Arrived {
                time_ns: 1_000_000,
                delay_ns: 1_000_000,
                size: 100,
                flow: 1,
                line: 0,
                sent: u32::MAX,
            })
            .collect(),
        opportunities: vec![Opportunity {
            time_ns: 0,
            bytes: 1500,
        }],
    };
    let again = read_merged("log", &write_merged(&link), false).unwrap();
    let mut seen: Vec<u32> = again
        .link
        .arrived
        .iter()
        .map(|arrived| arrived.sent)
        .collect();
    seen.sort_unstable();
    assert!(seen.iter().zip(0..).all(|(&sent, place)| sent == place));
}
