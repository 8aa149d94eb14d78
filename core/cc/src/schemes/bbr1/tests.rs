use super::*;
use crate::parts::bbr::{bdp, rate};
use narrows_units::{Params, Rate};
use crate::testing::setup;

/// Payload of a packet of 1500 bytes with TCP's timestamps.
const PAYLOAD: u64 = 1448;

fn scheme(mss: u64) -> Bbr1 {
    let params = Params::resolve(SCHEME.params, []).unwrap();
    Bbr1::new(
        Bbr1Params::read(&params),
        Setup {
            mss: Bytes::new(mss),
            ..setup()
        },
        Probing::linux(Probing::LINUX_GAIN),
    )
}

/// Simulates rounds of acknowledgements, one packet each, at `bps` payload bits per second.
struct Path {
    scheme: Bbr1,
    now: Time,
    delivered: u64,
    lost: u64,
    rtt: Span,
}

impl Path {
    fn new(scheme: Bbr1) -> Self {
        Path {
            scheme,
            now: Time::ZERO,
            delivered: 0,
            lost: 0,
            rtt: Span::from_ms(40),
        }
    }

    /// One acknowledgement, `step` after the last, of one packet of a sample of `bps`, with `in_flight`
    /// packets left and `lost` packets found lost.
    fn ack(&mut self, step: Span, bps: f64, in_flight: u64, lost: u64, phase: CaState, new_round: bool) {
        let mss = self.scheme.mss;
        self.now += step;
        let before = self.delivered;
        self.delivered += mss;
        self.lost += lost * mss;
        let mut ack = AckEvent::new(self.now);
        ack.bytes = Bytes::new(mss);
        ack.lost = Bytes::new(lost * mss);
        ack.lost_total = Bytes::new(self.lost);
        ack.delivered = Bytes::new(self.delivered);
        ack.latest_rtt = Some(self.rtt);
        ack.smoothed_rtt = self.rtt;
        ack.min_rtt = self.rtt;
        ack.in_flight_before = Bytes::new((in_flight + 1 + lost) * mss);
        ack.in_flight = Bytes::new(in_flight * mss);
        ack.phase = phase;
        ack.rate = Some(RateSample {
            rate: Rate::from_bps(bps as u64),
            delivered: Bytes::new((bps / 8.0 * self.rtt.secs()).round() as u64),
            interval: self.rtt,
            app_limited: false,
            // A packet sent just now starts a round, one sent long ago does not.
            prior_delivered: Bytes::new(if new_round { before } else { 0 }),
            in_flight_at_send: ack.in_flight_before,
            lost: Bytes::ZERO,
        });
        self.scheme.on_ack(&ack);
    }

    /// A round at `bps`, with `in_flight` packets left at its end.
    fn round(&mut self, bps: f64, in_flight: u64) {
        self.ack(self.rtt, bps, in_flight, 0, CaState::Open, true);
    }

    /// STARTUP and DRAIN until PROBE_BW at `bps`.
    fn settle(&mut self, bps: f64) {
        while self.scheme.mode != Mode::ProbeBw {
            self.round(bps, 0);
        }
    }

    fn packets(&self) -> u64 {
        self.scheme.flow.cwnd as u64 / self.scheme.mss
    }
}

/// Window and quantum at `mbps` and `ms`, as in Linux tcp_bbr.c with MSS 1448: (bandwidth-delay product in
/// packets, quantum in packets, window in packets at gain 2, window in the phase that probes).
fn targets(mbps: f64, ms: u64, limit: u64) -> (f64, u64, u64, u64) {
    let bandwidth = mbps * 1e6 / 8.0;
    let product = bdp(bandwidth, Span::from_ms(ms));
    let quantum = quantum(rate(bandwidth * 0.99), PAYLOAD, limit);
    let window = |probing| with_budget(2.0 * product, quantum, PAYLOAD, probing) / PAYLOAD;
    let packets = product / PAYLOAD as f64;
    (packets, quantum / PAYLOAD, window(false), window(true))
}

#[test]
fn windows_of_linux_at_three_paths() {
    let (product, quantum, window, probing) = targets(100.0, 40, MAX_BURST);
    assert!((product - 345.30).abs() < 0.01, "{product}");
    assert_eq!((quantum, window, probing), (8, 716, 718));
    let (product, quantum, window, _) = targets(10.0, 100, MAX_BURST);
    assert!((product - 86.33).abs() < 0.01, "{product}");
    assert_eq!((quantum, window), (2, 180));
    // The rule of 2^-10 s alone would allow bursts of 83 packets at 1 Gbit/s; since Linux 5.18 a burst is no larger
    // than the largest segment of old network cards.
    let (product, quantum, window, _) = targets(1000.0, 10, u64::MAX);
    assert!((product - 863.3).abs() < 0.1, "{product}");
    assert_eq!((quantum, window), (83, 1976));
    let (_, quantum, window, _) = targets(1000.0, 10, MAX_BURST);
    assert_eq!((quantum, window), (45, 1727 + 3 * 45));
    // Slow paths send packet by packet.
    assert_eq!(targets(1.0, 100, MAX_BURST).1, 1);
}

#[test]
fn the_pacing_rates_of_the_phases() {
    let mut path = Path::new(scheme(PAYLOAD));
    path.settle(100e6);
    for (phase, mbps) in [(0, 123.75), (1, 74.25), (2, 99.0), (7, 99.0)] {
        path.scheme.phase = phase;
        path.scheme.set_pacing(path.scheme.pacing_gain());
        let paced = path.scheme.flow.pacing.bps() as f64 / 1e6;
        assert!((paced / mbps - 1.0).abs() < 1e-5, "phase {phase}: {paced}");
    }
    assert_eq!(Probing::linux(1.5).gains.iter().sum::<f64>(), 8.0);
}

#[test]
fn the_first_pacing_rate() {
    let mut path = Path::new(scheme(PAYLOAD));
    // No RTT yet: that of 1 ms.
    let first = path.scheme.flow.pacing.bps() as f64 / 1e6;
    assert!((first - 331.0).abs() < 0.1, "{first}");
    // The first acknowledgement provides one, here with a sample too low to matter.
    path.scheme.flow.cwnd = (10 * PAYLOAD) as f64;
    path.scheme.flow.pacing = path.scheme.flow.first_pacing(Span::from_ms(40));
    let first = path.scheme.flow.pacing.bps() as f64 / 1e6;
    assert!((first - 8.276).abs() < 0.001, "{first}");
    path.round(1e6, 9);
    let first = path.scheme.flow.pacing.bps() as f64 / 1e6;
    assert!((first - 8.276).abs() < 0.001, "{first}");
}

#[test]
fn startup_ends_with_the_third_flat_round() {
    let mut path = Path::new(scheme(PAYLOAD));
    for (mbps, mode) in [
        (10.0, Mode::Startup),
        (20.0, Mode::Startup),
        (40.0, Mode::Startup),
        (40.0, Mode::Startup),
        (40.0, Mode::Startup),
        (40.0, Mode::Drain),
    ] {
        path.round(mbps * 1e6, 500);
        assert_eq!(path.scheme.mode, mode, "{mbps}");
    }
    // The queue is drained when a bandwidth-delay product and the budget for bursts are in flight.
    let product = bdp(40e6 / 8.0, path.rtt) / PAYLOAD as f64;
    path.round(40e6, product as u64 + 20);
    assert_eq!(path.scheme.mode, Mode::Drain);
    path.round(40e6, product as u64);
    assert_eq!(path.scheme.mode, Mode::ProbeBw);
}

#[test]
fn the_first_phase_is_any_but_the_one_that_sends_less() {
    let mut seen = [0; 8];
    let mut scheme = scheme(PAYLOAD);
    for _ in 0..700 {
        scheme.enter_probe_bw(Time::ZERO);
        seen[scheme.phase] += 1;
    }
    assert_eq!(seen[1], 0);
    // Seven phases, 100 times each on average; 6 standard deviations are 55.
    for phase in [0, 2, 3, 4, 5, 6, 7] {
        assert!((45..155).contains(&seen[phase]), "{seen:?}");
    }
}

#[test]
fn phases_last_one_rtt_and_the_probe_until_it_has_filled_the_path() {
    let mut path = Path::new(scheme(PAYLOAD));
    path.settle(10e6);
    let product = (bdp(10e6 / 8.0, path.rtt) / PAYLOAD as f64) as u64;
    let step = Span::from_ms(10);
    path.scheme.phase = 7;
    path.scheme.phase_start = path.now;
    for _ in 0..4 {
        path.ack(step, 10e6, product, 0, CaState::Open, false);
        assert_eq!(path.scheme.phase, 7);
    }
    path.ack(step, 10e6, product, 0, CaState::Open, false);
    assert_eq!(path.scheme.phase, 0);
    // The probe: an RTT is not enough while the path is not full ...
    for _ in 0..8 {
        path.ack(step, 10e6, product, 0, CaState::Open, false);
        assert_eq!(path.scheme.phase, 0);
    }
    // ... unless something is lost.
    path.ack(step, 10e6, product, 1, CaState::Open, false);
    assert_eq!(path.scheme.phase, 1);
    // Sending less ends early, once the queue is empty.
    path.ack(Span::from_us(10), 10e6, product + 40, 0, CaState::Open, false);
    assert_eq!(path.scheme.phase, 1);
    path.ack(Span::from_us(10), 10e6, product, 0, CaState::Open, false);
    assert_eq!(path.scheme.phase, 2);
    path.scheme.phase = 0;
    path.scheme.phase_start = path.now;
    path.ack(path.rtt + step, 10e6, product * 5 / 4 + 12, 0, CaState::Open, false);
    assert_eq!(path.scheme.phase, 1);
}

#[test]
fn probe_rtt_comes_after_ten_seconds_and_lasts_two_hundred_milliseconds() {
    let mut path = Path::new(scheme(PAYLOAD));
    path.settle(10e6);
    let stamp = path.scheme.rtt.stamp();
    path.rtt = Span::from_ms(50);
    while path.scheme.mode == Mode::ProbeBw {
        path.ack(Span::from_ms(10), 10e6, 35, 0, CaState::Open, false);
    }
    let waited = path.now.since(stamp);
    assert!(waited > Span::from_ms(10_000) && waited <= Span::from_ms(10_010), "{waited:?}");
    assert_eq!(path.scheme.mode, Mode::ProbeRtt);
    // The larger sample is taken, and the window is four packets.
    assert_eq!(path.scheme.rtt.get(), Some(Span::from_ms(50)));
    assert_eq!(path.packets(), 4);
    assert!(path.scheme.holds_back());
    // The 200 ms begin when only four packets are in flight, and last at least one round.
    path.ack(Span::from_ms(100), 10e6, 20, 0, CaState::Open, true);
    path.rtt = Span::from_ms(40);
    path.ack(Span::from_ms(10), 10e6, 4, 0, CaState::Open, false);
    let begun = path.now;
    path.ack(Span::from_ms(201), 10e6, 4, 0, CaState::Open, false);
    assert_eq!(path.scheme.mode, Mode::ProbeRtt, "no round has passed");
    path.ack(Span::from_us(1), 10e6, 4, 0, CaState::Open, true);
    assert_eq!(path.scheme.mode, Mode::ProbeBw);
    assert!(path.now.since(begun) > Span::from_ms(200));
    assert_eq!(path.scheme.rtt.stamp(), path.now);
    assert!(path.packets() > 35, "the window is back: {}", path.packets());
    assert!(!path.scheme.holds_back());
}

#[test]
fn after_silence_the_rate_is_the_bandwidth_and_the_rtt_is_not_probed() {
    let mut path = Path::new(scheme(PAYLOAD));
    path.settle(10e6);
    path.scheme.phase = 0;
    path.now += Span::from_ms(11_000);
    let mut send = SendEvent::new(path.now, 1, Bytes::new(PAYLOAD));
    send.idle = Some(Span::from_ms(11_000));
    send.app_limited = true;
    path.scheme.on_send(&send);
    let paced = path.scheme.flow.pacing.bps() as f64;
    assert!((paced / 9.9e6 - 1.0).abs() < 1e-4, "{paced}");
    path.round(10e6, 0);
    assert_eq!(path.scheme.mode, Mode::ProbeBw);
}

#[test]
fn a_recovery_conserves_packets_for_a_round_and_restores_the_window() {
    let mut path = Path::new(scheme(PAYLOAD));
    path.settle(10e6);
    for _ in 0..100 {
        path.ack(Span::from_us(10), 10e6, 60, 0, CaState::Open, false);
    }
    let before = path.packets();
    let mut loss = LossEvent::new(path.now, LossCause::Reordering, Bytes::new(PAYLOAD));
    loss.in_flight = Bytes::new(60 * PAYLOAD);
    path.scheme.on_loss(&loss);
    path.ack(Span::from_us(10), 10e6, 50, 9, CaState::Recovery, false);
    assert_eq!(path.packets(), 51);
    // One more may leave for each that arrives.
    path.ack(Span::from_us(10), 10e6, 49, 1, CaState::Recovery, false);
    assert_eq!(path.packets(), 50);
    // From the next round on the window grows to its target again.
    path.ack(path.rtt, 10e6, 49, 0, CaState::Recovery, true);
    path.ack(Span::from_us(10), 10e6, 49, 0, CaState::Recovery, false);
    assert_eq!(path.packets(), 52);
    path.ack(Span::from_us(10), 10e6, 49, 0, CaState::Open, false);
    // And continues to grow, as the target includes the aggregated bytes.
    assert_eq!(path.packets(), before + 1);
}

#[test]
fn without_selective_acknowledgements_each_duplicate_lets_one_packet_go() {
    let mut path = Path::new(scheme(PAYLOAD));
    path.settle(10e6);
    let loss = LossEvent::new(path.now, LossCause::Reordering, Bytes::new(PAYLOAD));
    path.scheme.on_loss(&loss);
    let bandwidth = path.scheme.bandwidth();
    let mut duplicate = AckEvent::new(path.now);
    duplicate.phase = CaState::Recovery;
    duplicate.bytes = Bytes::new(PAYLOAD);
    for in_flight in [50, 50, 48] {
        duplicate.delivered = Bytes::new(path.delivered + PAYLOAD);
        duplicate.in_flight = Bytes::new(in_flight * PAYLOAD);
        path.scheme.on_duplicate(&duplicate);
        // The data in flight is kept constant, and nothing is learned about the bandwidth.
        assert_eq!(path.packets(), 51);
    }
    assert!((path.scheme.bandwidth() - bandwidth).abs() < 1.0);
}

#[test]
fn a_timeout_begins_with_one_packet_more_than_in_flight_and_ends_with_the_old_window() {
    let mut path = Path::new(scheme(PAYLOAD));
    path.settle(10e6);
    for _ in 0..100 {
        path.ack(Span::from_us(10), 10e6, 60, 0, CaState::Open, false);
    }
    let before = path.packets();
    let mut loss = LossEvent::new(path.now, LossCause::Timeout, Bytes::new(20 * PAYLOAD));
    loss.in_flight = Bytes::new(20 * PAYLOAD);
    path.scheme.on_loss(&loss);
    assert_eq!(path.packets(), 1);
    path.ack(Span::from_us(10), 10e6, 0, 0, CaState::Loss, false);
    // At least four packets, regardless of losses.
    assert_eq!(path.packets(), 4);
    path.ack(Span::from_us(10), 10e6, 4, 0, CaState::Open, false);
    // And continues to grow, as the target includes the aggregated bytes.
    assert_eq!(path.packets(), before + 1);
}

#[test]
fn a_policer_is_kept_to() {
    let mut path = Path::new(scheme(PAYLOAD));
    path.settle(10e6);
    let mut rounds = 0;
    while path.scheme.policer.rate().is_none() {
        rounds += 1;
        assert!(rounds < 40, "no policer found");
        for packet in 0..8 {
            // One packet in five is lost: 8 packets of 1448 bytes in 40 ms are 2.3 Mbit/s.
            let lost = if packet == 7 { 2 } else { 0 };
            path.ack(Span::from_ms(5), 10e6, 40, lost, CaState::Open, packet == 7);
        }
    }
    let rate = path.scheme.policer.rate().unwrap() * 8.0;
    assert!((rate / 2.3168e6 - 1.0).abs() < 0.05, "{rate}");
    assert_eq!(path.scheme.pacing_gain(), 1.0);
    let paced = path.scheme.flow.pacing.bps() as f64;
    assert!((paced / (0.99 * rate) - 1.0).abs() < 1e-3, "{paced}");
}
