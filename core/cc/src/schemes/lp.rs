//! TCP-LP: a background transfer that backs off as soon as the one-way delay indicates other traffic.
//!
//! Provenance: A. Kuzmanovic and E. W. Knightly, "TCP-LP: A Distributed Algorithm for Low Priority Data Transfer",
//! INFOCOM 2003; constants as in Linux `net/ipv4/tcp_lp.c`. The one-way delay of the newest packet is smoothed by an
//! eighth. When it exceeds the minimum by more than 15 % of the range seen, the window is halved and an inference
//! period of three round trips without growth begins. A second excess within that period reduces the window to one
//! packet. Otherwise it is Reno.
//!
//! Deviations: delays come from arrival times by the receiver's clock, whose offset cancels (Linux estimates them from
//! timestamps); after a reduction packets sent before it are ignored, and the smoothing restarts with the first one
//! sent after it; the first slow start is Reno's, since the maximum delay is known only after a queue has been filled;
//! the range is that of the whole connection (Linux narrows it after each reaction); after a reaction growth is
//! additive.
//!
//! Alone it fills the link if 15 % of the buffer equals a bandwidth-delay product, and most of it otherwise: its window
//! oscillates between half and all of the window that causes a queue of 15 % of the buffer. In competition with a
//! loss-based flow, which keeps a longer queue, it gets little. With a buffer of a few packets its own pairs of packets
//! look like other traffic; permanently so if timeouts ended slow start before a queue was filled (4 % of 12 Mbit/s
//! after a blackout at the start). A route that becomes longer, or a jump of the receiver's clock, looks like permanent
//! other traffic.

use crate::parts::{LossBased, CongestionEvent, WindowRules, CongestionWindow};
use crate::{AckEvent, Fields, Scheme};
use narrows_units::{Params, Span, Time, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "lp",
    summary: "Low priority: gives way as soon as the one-way delay rises (TCP-LP)",
    source: "Kuzmanovic and Knightly 2003",
    params: LpParams::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), LowPriority::new(params))),
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct LpParams {
        /// Fraction of the range of one-way delays that indicates congestion.
        threshold: Ratio(0.001..=0.999) = 0.15, "Kuzmanovic and Knightly 2003; Linux tcp_lp";
        /// Round trips after a reaction in which a second one reduces the window to one packet.
        inference: Number(1.0..=100.0, "round trips") = 3, "Linux tcp_lp";
    }
}

/// One-way delays in ns, relative to the first one: all include the offset between the clocks.
#[derive(Clone, Copy, Debug)]
struct LpDelays {
    first: i128,
    min: f64,
    max: f64,
    smoothed: f64,
}

#[derive(Clone)]
struct LowPriority {
    params: LpParams,
    delays: Option<LpDelays>,
    /// Time of the last reduction, until a packet sent after it has been acknowledged.
    reduced_at: Option<Time>,
    /// End of the inference period.
    inference_until: Time,
}

impl LowPriority {
    fn new(params: &Params) -> Self {
        LowPriority {
            params: LpParams::read(params),
            delays: None,
            reduced_at: None,
            inference_until: Time::ZERO,
        }
    }

    /// Adds the delay of the newest packet; returns whether it reflects the current window.
    fn sample(&mut self, ack: &AckEvent<'_>) -> bool {
        let mut newest = ack.packets.iter().rev();
        let Some((sent, arrived)) = newest.find_map(|p| Some((p.sent, p.arrived?))) else {
            return false;
        };
        let delay = i128::from(arrived.ns()) - i128::from(sent.ns());
        let delays = self.delays.get_or_insert(LpDelays {
            first: delay,
            min: 0.0,
            max: 0.0,
            smoothed: 0.0,
        });
        let delay = (delay - delays.first) as f64;
        delays.min = delays.min.min(delay);
        delays.max = delays.max.max(delay);
        delays.smoothed += (delay - delays.smoothed) / 8.0;
        match self.reduced_at {
            Some(reduced_at) if sent < reduced_at => false,
            Some(_) => {
                // The smoothed delay stems from a larger window.
                delays.smoothed = delay;
                self.reduced_at = None;
                true
            }
            None => true,
        }
    }

    /// True if the smoothed delay is beyond the threshold.
    fn is_early(&self) -> bool {
        self.delays
            .is_some_and(|d| d.smoothed > d.min + self.params.threshold * (d.max - d.min))
    }

    fn react(&mut self, now: Time, rtt: Span, window: &mut CongestionWindow) {
        if now < self.inference_until {
            window.set_packets(1.0);
        } else {
            window.set_packets(window.packets() / 2.0);
        }
        window.exit_slow_start();
        self.reduced_at = Some(now);
        self.inference_until = now + Span::from_secs(rtt.secs() * self.params.inference);
    }
}

impl WindowRules for LowPriority {
    fn observe(&mut self, ack: &AckEvent<'_>, window: &mut CongestionWindow) {
        let telling = self.sample(ack);
        let first_slow_start = window.ssthresh().is_none();
        if telling && !first_slow_start && !ack.in_recovery && self.is_early() {
            self.react(ack.now, ack.smoothed_rtt, window);
        }
    }

    fn slow_start(&mut self, window: &mut CongestionWindow, ack: &AckEvent<'_>, bytes: u64) -> u64 {
        if ack.now < self.inference_until { 0 } else { window.slow_start(bytes) }
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, ack: &AckEvent<'_>, bytes: u64) {
        if ack.now >= self.inference_until {
            window.additive_increase(bytes, window.cwnd().get());
        }
    }

    fn ssthresh(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        self.reduced_at = Some(congestion.now);
        window.packets() / 2.0
    }

    fn trace(&self, fields: &mut Fields) {
        if let Some(delays) = self.delays {
            let above = |delay: f64| (delay - delays.min) / 1e9;
            fields.values.push(("queueing_delay_s", above(delays.smoothed)));
            fields.values.push(("largest_queueing_delay_s", above(delays.max)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AckedPacket;
    use crate::testing::{MSS, setup};
    use narrows_units::Bytes;

    const RTT: Span = Span::from_ms(100);
    /// The receiver's clock is behind the sender's.
    const OFFSET: Span = Span::from_ms(5_000);

    fn rules() -> LowPriority {
        LowPriority::new(&Params::resolve(SCHEME.params, []).unwrap())
    }

    /// At `now_ms` a packet is acknowledged whose one-way delay was `delay_ms`.
    fn hear(rules: &mut LowPriority, window: &mut CongestionWindow, now_ms: u64, delay_ms: u64) {
        let now = Time::ZERO + Span::from_ms(10_000 + now_ms);
        let sent = now - RTT;
        let packets = [AckedPacket {
            number: 1,
            bytes: MSS as u32,
            sent,
            arrived: Some(sent + Span::from_ms(delay_ms) - OFFSET),
        }];
        let mut ack = AckEvent::new(now);
        ack.packets = &packets;
        ack.bytes = Bytes::new(MSS);
        ack.smoothed_rtt = RTT;
        rules.observe(&ack, window);
        if !window.in_slow_start() {
            rules.congestion_avoidance(window, &ack, MSS);
        }
    }

    /// Rules that know delays from 20 to 120 ms and now smooth `smoothed_ms`; 40 packets in avoidance.
    fn known(smoothed_ms: f64) -> (LowPriority, CongestionWindow) {
        let (mut rules, mut window) = (rules(), CongestionWindow::new(&setup()));
        for delay in [20, 120] {
            hear(&mut rules, &mut window, 0, delay);
        }
        window.set_packets(40.0);
        window.exit_slow_start();
        let delays = rules.delays.as_mut().unwrap();
        assert_eq!((delays.min, delays.max), (0.0, 100e6));
        delays.smoothed = (smoothed_ms - 20.0) * 1e6;
        (rules, window)
    }

    #[test]
    fn two_excesses_within_three_round_trips_leave_one_packet() {
        // Range 20 to 120 ms: the threshold is 35 ms (Linux tcp_lp.c).
        let (mut rules, mut window) = known(35.0);
        hear(&mut rules, &mut window, 0, 35);
        assert!(window.packets() >= 40.0, "35 ms are not more than the threshold");
        let (mut rules, mut window) = known(36.0);
        hear(&mut rules, &mut window, 0, 36);
        assert_eq!(window.packets(), 20.0);
        // Packets sent before the reaction arrive for a round trip.
        hear(&mut rules, &mut window, 99, 36);
        assert_eq!(window.packets(), 20.0);
        hear(&mut rules, &mut window, 100, 36);
        assert_eq!((window.packets(), window.in_slow_start()), (1.0, false));
    }

    #[test]
    fn later_excesses_halve_again() {
        let (mut rules, mut window) = known(36.0);
        hear(&mut rules, &mut window, 0, 36);
        hear(&mut rules, &mut window, 300, 36);
        assert_eq!(window.packets(), 10.0);
    }

    #[test]
    fn growth_waits_for_the_end_of_the_inference() {
        let (mut rules, mut window) = known(36.0);
        hear(&mut rules, &mut window, 0, 36);
        rules.delays.as_mut().unwrap().smoothed = 0.0;
        for ms in 101..=150 {
            hear(&mut rules, &mut window, ms, 20);
        }
        assert_eq!(window.packets(), 20.0);
        for ms in 301..=321 {
            hear(&mut rules, &mut window, ms, 20);
        }
        assert_eq!(window.packets(), 21.0);
    }

    #[test]
    fn the_delay_is_smoothed_by_an_eighth() {
        let (mut rules, mut window) = (rules(), CongestionWindow::new(&setup()));
        hear(&mut rules, &mut window, 0, 20);
        hear(&mut rules, &mut window, 1, 100);
        assert_eq!(rules.delays.unwrap().smoothed, 10e6);
        hear(&mut rules, &mut window, 2, 20);
        assert_eq!(rules.delays.unwrap().smoothed, 8.75e6);
    }

    #[test]
    fn the_first_slow_start_only_learns() {
        let (mut rules, mut window) = (rules(), CongestionWindow::new(&setup()));
        for ms in 0..50 {
            hear(&mut rules, &mut window, ms, 20 + ms);
        }
        assert!(rules.is_early());
        assert_eq!(window.packets(), 10.0);
    }

    #[test]
    fn without_arrival_times_it_is_reno() {
        let (mut rules, mut window) = (rules(), CongestionWindow::new(&setup()));
        window.exit_slow_start();
        let mut ack = AckEvent::new(Time::ZERO + RTT);
        for _ in 0..10 {
            ack.bytes = Bytes::new(MSS);
            rules.observe(&ack, &mut window);
            rules.congestion_avoidance(&mut window, &ack, MSS);
        }
        assert_eq!(window.packets(), 11.0);
    }
}
