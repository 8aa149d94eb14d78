//! Vectors and rules of draft-ietf-ccwg-bbr and google/bbr, applied to the machine.

use super::model::in_flight_at_loss;
use super::*;
use crate::testing::bbr_profiles::{code, draft};
use crate::testing::setup;
use crate::{CaState, LossCause, LostPacket};
use narrows_units::Rate;

const MSS: f64 = 1000.0;

/// A path that acknowledges packet by packet; the test sets the content of each acknowledgement.
struct Path {
    machine: Machine,
    now: Time,
    rtt: Span,
    delivered: u64,
    lost: u64,
    app_limited: bool,
    cwnd_limited: bool,
    phase: CaState,
    /// Packets in flight after each acknowledgement.
    in_flight: u64,
    /// Packets in flight when the sampled packet was sent, if different.
    sent_in_flight: Option<u64>,
    ce: u64,
    /// Packets found lost by the next acknowledgement, and packets lost since the sampled packet was sent.
    newly_lost: u64,
    lost_since_send: u64,
}

impl Path {
    fn new(profile: BbrProfile) -> Self {
        Path {
            machine: Machine::new(profile, setup()),
            now: Time::ZERO,
            rtt: Span::from_ms(20),
            delivered: 0,
            lost: 0,
            app_limited: false,
            cwnd_limited: false,
            phase: CaState::Open,
            in_flight: 0,
            sent_in_flight: None,
            ce: 0,
            newly_lost: 0,
            lost_since_send: 0,
        }
    }

    /// One packet is acknowledged with a sample of `bandwidth` packets per second.
    fn ack(&mut self, step: Span, bandwidth: f64, new_round: bool) {
        self.now += step;
        let before = self.delivered;
        self.delivered += MSS as u64;
        let mut ack = AckEvent::new(self.now);
        ack.bytes = Bytes::new(MSS as u64);
        ack.ce_bytes = Bytes::new(self.ce);
        ack.delivered = Bytes::new(self.delivered);
        ack.lost_total = Bytes::new(self.lost);
        ack.lost = Bytes::new(std::mem::take(&mut self.newly_lost) * MSS as u64);
        ack.latest_rtt = Some(self.rtt);
        ack.smoothed_rtt = self.rtt;
        ack.min_rtt = self.rtt;
        ack.in_flight = Bytes::new(self.in_flight * MSS as u64);
        ack.in_flight_before = ack.in_flight + ack.bytes;
        ack.phase = self.phase;
        ack.cwnd_limited = self.cwnd_limited;
        ack.rate = Some(RateSample {
            rate: Rate::from_bps((bandwidth * MSS * 8.0) as u64),
            delivered: Bytes::new((bandwidth * MSS * self.rtt.secs()).round() as u64),
            interval: self.rtt,
            app_limited: self.app_limited,
            prior_delivered: Bytes::new(if new_round { before } else { 0 }),
            in_flight_at_send: (self.sent_in_flight).map_or(ack.in_flight_before, |packets| {
                Bytes::new(packets * MSS as u64)
            }),
            lost: Bytes::new(std::mem::take(&mut self.lost_since_send) * MSS as u64),
        });
        self.machine.on_ack(&ack);
    }

    fn round(&mut self, bandwidth: f64) {
        self.ack(self.rtt, bandwidth, true);
    }

    /// `count` packets are lost that were sent with `in_flight` packets in flight, one of each pair.
    fn lose(&mut self, count: u64, in_flight: u64, cause: LossCause) {
        let packet = |index: u64| LostPacket {
            number: 1_000_000 + self.delivered + 2 * index,
            bytes: MSS as u32,
            sent: self.now - self.rtt,
            in_flight_at_send: Bytes::new(in_flight * MSS as u64),
            delivered_before: Bytes::new(self.delivered),
            lost_before: Bytes::new(self.lost),
            app_limited: self.app_limited,
        };
        let lost: Vec<LostPacket> = (0..count).map(packet).collect();
        self.lost += count * MSS as u64;
        let mut loss = LossEvent::new(self.now, cause, Bytes::new(count * MSS as u64));
        loss.packets = count;
        loss.lost = &lost;
        loss.lost_total = Bytes::new(self.lost);
        loss.delivered = Bytes::new(self.delivered);
        loss.in_flight = Bytes::new(in_flight * MSS as u64);
        loss.new_epoch = self.phase == CaState::Open;
        self.machine.on_loss(&loss);
        self.phase = if cause == LossCause::Reordering {
            CaState::Recovery
        } else {
            CaState::Loss
        };
    }

    /// Runs at `bandwidth` until `mode`.
    fn until(&mut self, mode: BbrMode, bandwidth: f64) {
        for _ in 0..10_000 {
            if self.machine.mode == mode {
                return;
            }
            self.round(bandwidth);
        }
        panic!("{mode:?} is never reached, now {:?}", self.machine.mode);
    }

    fn mode(&self) -> BbrMode {
        self.machine.mode
    }
}

#[test]
fn the_part_of_a_burst_that_fits() {
    // 100 packets before the burst, one of them lost: the losses cross 2 % after 1.0204 packets more.
    let at = in_flight_at_loss(0.02, 140.0, 41.0, 40.0);
    assert!((at - 101.0204).abs() < 1e-4, "{at}");
    // They had crossed it before.
    assert_eq!(in_flight_at_loss(0.02, 110.0, 30.0, 10.0), 100.0);
}

#[test]
fn headroom_below_the_long_term_bound() {
    let mut machine = Machine::new(draft(), setup());
    assert!(machine.with_headroom().is_infinite());
    machine.bounds.long_term = 100.0 * MSS;
    assert_eq!(machine.with_headroom(), 85.0 * MSS);
    machine.bounds.long_term = 5.0 * MSS;
    assert_eq!(machine.with_headroom(), 4.0 * MSS);
}

#[test]
fn the_long_term_bound_grows_by_twice_as_much_each_round() {
    for profile in [code(), draft()] {
        let mut path = Path::new(profile);
        path.until(BbrMode::Refill, 3200.0);
        path.machine.bounds.long_term = 64.0 * MSS;
        path.machine.flow.cwnd = 64.0 * MSS;
        path.in_flight = 62;
        path.cwnd_limited = true;
        path.round(3200.0);
        assert_eq!(path.mode(), BbrMode::Up);
        let mut slopes = vec![path.machine.probe.up_per_packet / MSS];
        let mut bounds = vec![path.machine.bounds.long_term / MSS];
        for _ in 0..3 {
            // A window is acknowledged within the round; the next round begins with the last packet.
            let window = (path.machine.flow.cwnd / MSS) as u64;
            for packet in 1..=window {
                path.machine.flow.cwnd = path.machine.bounds.long_term;
                path.ack(Span::from_us(300), 3200.0, packet == window);
            }
            slopes.push(path.machine.probe.up_per_packet / MSS);
            bounds.push(path.machine.bounds.long_term / MSS);
        }
        // Packets acknowledged for each packet of growth, with a window of 64 at first.
        assert_eq!(slopes[0], 64.0);
        assert!((slopes[1] - 32.0).abs() <= 1.0, "{slopes:?}");
        assert!((slopes[2] - 16.0).abs() <= 1.0, "{slopes:?}");
        let grown: Vec<f64> = bounds
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).round())
            .collect();
        assert_eq!(grown, [1.0, 2.0, 4.0], "{bounds:?}");
    }
}

/// Rounds and seconds from the start of `down` to the next `refill`.
fn wait(product: f64, rtt: Span, seed: u64) -> (u64, f64) {
    // Without PROBE_RTT, which restarts the wait.
    let mut profile = draft();
    profile.params.probe_rtt_interval = Span::from_ms(1_000_000);
    let mut path = Path::new(profile);
    path.machine.random = Stream::new(seed, "scheme");
    path.rtt = rtt;
    let bandwidth = product / rtt.secs();
    path.until(BbrMode::Up, bandwidth);
    path.until(BbrMode::Down, bandwidth);
    path.machine.flow.cwnd = 2.0 * product * MSS;
    let (start, first) = (path.now, path.machine.flow.rounds.count());
    path.until(BbrMode::Refill, bandwidth);
    (
        path.machine.flow.rounds.count() - first,
        path.now.since(start).secs(),
    )
}

#[test]
fn the_time_between_probes() {
    let ms = Span::from_ms;
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..20 {
        // As often as a Reno flow of this bandwidth-delay product would lose a packet ...
        let (rounds, seconds) = wait(30.0, ms(20), seed);
        assert!((29..=30).contains(&rounds), "{rounds}");
        assert!((0.575..0.605).contains(&seconds), "{seconds}");
        seen.insert(rounds);
        // ... but at least every 63 rounds ...
        let (rounds, seconds) = wait(500.0, ms(20), seed);
        assert!((62..=63).contains(&rounds), "{rounds}");
        assert!((1.23..1.27).contains(&seconds), "{seconds}");
        // ... or two to three seconds.
        let (rounds, seconds) = wait(500.0, ms(60), seed);
        assert!(
            (2.0..3.07).contains(&seconds),
            "{rounds} rounds, {seconds} s"
        );
    }
    assert_eq!(seen.len(), 2, "both numbers of rounds occur");
}

#[test]
fn drain_ends_by_what_is_in_flight_or_after_three_rounds() {
    for (profile, ends) in [(draft(), true), (code(), false)] {
        let mut path = Path::new(profile);
        path.in_flight = 200;
        path.until(BbrMode::Drain, 1000.0);
        let mut rounds = 0;
        while path.mode() == BbrMode::Drain && rounds < 10 {
            path.round(1000.0);
            rounds += 1;
        }
        assert_eq!(rounds, if ends { 3 } else { 10 });
        path.in_flight = 5;
        path.round(1000.0);
        assert_ne!(path.mode(), BbrMode::Drain);
    }
}

#[test]
fn losses_lower_the_short_term_bounds_once_per_round() {
    for profile in [code(), draft()] {
        let mut path = Path::new(profile);
        path.until(BbrMode::Cruise, 1000.0);
        path.machine.flow.cwnd = 40.0 * MSS;
        let beta = profile.params.beta;
        path.lose(1, 20, LossCause::Reordering);
        path.lose(1, 20, LossCause::Reordering);
        // The round ends with a sample of less than beta: the bounds fall to beta times their old value.
        path.machine.latest.bandwidth = 0.0;
        path.machine.latest.in_flight = 0.0;
        path.round(100.0);
        let bounds = path.machine.bounds;
        assert!((bounds.bandwidth / (beta * 1000.0 * MSS) - 1.0).abs() < 1e-9);
        assert!((bounds.short_term / (beta * 40.0 * MSS) - 1.0).abs() < 1e-9);
        // The next lossy round delivers 0.9 of the bandwidth: the bound is no lower.
        path.lose(1, 20, LossCause::Reordering);
        path.round(900.0);
        assert!((path.machine.bounds.bandwidth / (900.0 * MSS) - 1.0).abs() < 1e-9);
        // A round without losses changes nothing; the next probe resets the bounds.
        path.round(500.0);
        assert!((path.machine.bounds.bandwidth / (900.0 * MSS) - 1.0).abs() < 1e-9);
        path.phase = CaState::Open;
        path.until(BbrMode::Refill, 900.0);
        assert!(path.machine.bounds.bandwidth.is_infinite());
    }
}

#[test]
fn a_probe_that_loses_too_much_sets_the_long_term_bound_once() {
    for profile in [code(), draft()] {
        let mut path = Path::new(profile);
        path.until(BbrMode::Up, 1000.0);
        path.machine.flow.cwnd = 50.0 * MSS;
        path.in_flight = 24;
        // One of 30 packets: more than 2 %, and 0.7 of the product of 20 packets is less than that.
        path.lose(1, 30, LossCause::Reordering);
        assert_eq!(path.mode(), BbrMode::Down);
        // 29 packets and the part of this packet that the threshold allows.
        let bound = path.machine.bounds.long_term / MSS;
        assert!((29.0..30.0).contains(&bound), "{bound}");
        assert!(path.machine.probe.too_high);
        path.lose(1, 20, LossCause::Reordering);
        assert_eq!(path.machine.bounds.long_term / MSS, bound);
        // The next probe stops as soon as that much is in flight.
        path.phase = CaState::Open;
        path.in_flight = 10;
        path.until(BbrMode::Up, 1000.0);
        path.sent_in_flight = Some(10);
        path.in_flight = 30;
        path.ack(Span::from_us(1), 1000.0, false);
        path.sent_in_flight = None;
        assert_eq!(path.mode(), BbrMode::Down);
        assert!(path.machine.probe.precautionary);
        // A round later nothing was lost: it probes again at once.
        path.in_flight = 25;
        path.round(1000.0);
        assert_eq!(path.mode(), BbrMode::Refill);
    }
}

#[test]
fn a_probe_limited_by_the_application_ends_with_losses_but_sets_no_bound() {
    for profile in [code(), draft()] {
        let mut path = Path::new(profile);
        path.until(BbrMode::Up, 1000.0);
        path.app_limited = true;
        for _ in 0..50 {
            path.round(500.0);
            assert_eq!(path.mode(), BbrMode::Up, "without losses it continues");
        }
        path.lose(2, 30, LossCause::Reordering);
        assert_eq!(path.mode(), BbrMode::Down);
        assert!(path.machine.bounds.long_term.is_infinite());
    }
}

#[test]
fn startup_never_ends_while_the_application_limits_and_nothing_is_lost() {
    for profile in [code(), draft()] {
        let mut path = Path::new(profile);
        path.app_limited = true;
        for _ in 0..100 {
            path.round(500.0);
            assert_eq!(path.mode(), BbrMode::Startup);
        }
        // High loss in a recovery round also ends it: six losses of 100 packets.
        path.in_flight = 99;
        for _ in 0..6 {
            path.lose(1, 100, LossCause::Reordering);
            path.newly_lost = 1;
            path.ack(Span::from_ms(1), 500.0, false);
        }
        path.lost_since_send = 6;
        path.round(500.0);
        assert_ne!(path.mode(), BbrMode::Startup);
        assert!(path.machine.bounds.long_term.is_finite());
    }
}

#[test]
fn the_bandwidth_is_remembered_for_two_cycles() {
    for profile in [code(), draft()] {
        let mut path = Path::new(profile);
        path.until(BbrMode::Cruise, 1000.0);
        // The path is slower from now on: the first probe keeps the old maximum, the second forgets it.
        let mut seen = vec![];
        for _ in 0..3 {
            path.until(BbrMode::Up, 100.0);
            path.until(BbrMode::Down, 100.0);
            path.until(BbrMode::Cruise, 100.0);
            seen.push(path.machine.max_bandwidth() / MSS);
        }
        assert_eq!(seen[2], 100.0, "{seen:?}");
        // A cycle without a valid sample discards nothing.
        path.app_limited = true;
        for _ in 0..5 {
            path.machine.advance_bandwidth();
        }
        assert_eq!(path.machine.max_bandwidth() / MSS, 100.0);
    }
}

#[test]
fn probe_rtt_after_five_seconds_with_half_a_product_in_flight() {
    for profile in [code(), draft()] {
        let mut path = Path::new(profile);
        path.until(BbrMode::Cruise, 1000.0);
        path.machine.flow.cwnd = 40.0 * MSS;
        let stamp = path.machine.recent_rtt.stamp();
        path.in_flight = 20;
        while path.mode() != BbrMode::ProbeRtt {
            path.ack(Span::from_ms(5), 1000.0, false);
        }
        let waited = path.now.since(stamp);
        assert!(waited > Span::from_ms(5_000) && waited <= Span::from_ms(5_005));
        assert_eq!(path.machine.flow.cwnd, 10.0 * MSS);
        assert!(path.machine.holds_back());
        path.in_flight = 10;
        path.ack(Span::from_ms(1), 1000.0, false);
        let begun = path.now;
        while path.mode() == BbrMode::ProbeRtt {
            path.ack(Span::from_ms(1), 1000.0, true);
        }
        let lasted = path.now.since(begun);
        assert!(
            lasted > Span::from_ms(200) && lasted <= Span::from_ms(202),
            "{lasted:?}"
        );
        assert_eq!(path.mode(), BbrMode::Cruise);
    }
}

#[test]
fn probe_rtt_leads_back_to_a_startup_that_has_not_ended_and_is_skipped_after_silence() {
    for profile in [code(), draft()] {
        let mut path = Path::new(profile);
        path.app_limited = true;
        while path.mode() == BbrMode::Startup {
            path.ack(Span::from_ms(50), 1000.0, true);
        }
        assert_eq!(path.mode(), BbrMode::ProbeRtt);
        while path.mode() == BbrMode::ProbeRtt {
            path.ack(Span::from_ms(50), 1000.0, true);
        }
        assert_eq!(path.mode(), BbrMode::Startup);
        path.app_limited = false;
        path.until(BbrMode::Cruise, 1000.0);
        path.now += Span::from_ms(20_000);
        let mut send = SendEvent::new(path.now, 1, Bytes::new(1000));
        send.idle = Some(Span::from_ms(20_000));
        send.app_limited = true;
        path.machine.on_send(&send);
        path.round(1000.0);
        assert_ne!(path.mode(), BbrMode::ProbeRtt);
    }
}

#[test]
fn spurious_losses_are_taken_back() {
    for profile in [code(), draft()] {
        for cause in [LossCause::Reordering, LossCause::Timeout] {
            let mut path = Path::new(profile);
            path.until(BbrMode::Up, 1000.0);
            path.machine.flow.cwnd = 40.0 * MSS;
            path.lose(2, 30, cause);
            assert_eq!(path.mode(), BbrMode::Down);
            assert!(path.machine.bounds.long_term.is_finite());
            path.machine
                .on_spurious_loss(&SpuriousLossEvent::new(path.now, cause));
            assert!(path.machine.bounds.long_term.is_infinite());
            assert_eq!(path.machine.flow.cwnd, 40.0 * MSS);
            let back = if profile.resume_probe {
                BbrMode::Refill
            } else {
                BbrMode::Down
            };
            assert_eq!(path.mode(), back);
        }
    }
}

#[test]
fn bursts() {
    let mut machine = Machine::new(draft(), setup());
    for (mbps, bytes) in [(1.0, 2_000.0), (80.0, 10_000.0), (10_000.0, 65_536.0)] {
        machine.flow.pacing = Rate::from_mbps(mbps);
        assert_eq!(machine.quantum(), bytes, "{mbps} Mbit/s");
    }
    let mut machine = Machine::new(code(), setup());
    machine.flow.pacing = Rate::from_mbps(80.0);
    machine.min_rtt.offer(Time::ZERO, Span::from_ms(40), false);
    assert_eq!(machine.quantum(), 9_000.0);
    // On a path of 1 ms the allowance is a quarter of 64 KiB larger.
    machine
        .min_rtt
        .offer(Time::ZERO, Span::from_us(1100), false);
    assert_eq!(machine.quantum(), 26_000.0);
}

#[test]
fn marks_count_on_short_paths_only_and_only_in_the_code() {
    for (profile, rtt, reacts) in [
        (code(), Span::from_ms(4), true),
        (code(), Span::from_ms(20), false),
        (draft(), Span::from_ms(4), false),
    ] {
        let mut path = Path::new(profile);
        path.rtt = rtt;
        path.until(BbrMode::Cruise, 5000.0);
        path.machine.flow.cwnd = 40.0 * MSS;
        path.machine.bounds.reset_short_term();
        path.ce = MSS as u64;
        path.ack(Span::from_us(10), 5000.0, false);
        path.ce = 0;
        path.ack(Span::from_us(10), 5000.0, true);
        path.round(5000.0);
        assert_eq!(
            path.machine.bounds.short_term.is_finite(),
            reacts,
            "{rtt:?}"
        );
    }
}
