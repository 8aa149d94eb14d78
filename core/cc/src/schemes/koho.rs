//! Koho: a quarter of a packet more per acknowledgement while the forward delay is short, a quarter less while it is
//! long.
//!
//! Provenance: github.com/greghill/koho_cc, commit f0f2e69, on the datagram sender of Stanford's "sourdough" exercise,
//! as Pantheon ran it. The forward delay is the one-way delay above its minimum plus half of the minimum RTT; it is
//! long from 1.45 times that half on.
//!
//! Deviations: the window does not grow while the flow is not window-limited; after silence one packet is sent
//! regardless of the window, as in the original, but not before two smoothed RTTs have passed (`patient`), without
//! which a path of 10 kbit/s is flooded; times are exact, whereas the original (and the profile) uses whole
//! milliseconds; lost acknowledgements are compensated by the next; a packet is lost when three later ones have
//! arrived, or by time (the profile: as soon as a later one has). The transport's timeout, which the original lacks, is
//! a minute.
//!
//! Changing by a fraction of a packet per acknowledgement makes the window rise and fall by a quarter per round trip,
//! and the queue oscillate around 45 % of the base one-way delay. Pitfalls: never more than 100 packets in flight;
//! flows do not converge to fairness; a flow that joins a standing queue mistakes it for the path; clock drift looks
//! like a queue; losses have no effect; on paths of a few milliseconds or less any jitter exceeds 45 %.

use crate::parts::LivenessTimer;
use crate::parts::datagrams::{DATAGRAMS, GAPS_ARE_LOSSES, settings, timeout};
use crate::{
    AckEvent, AckedPacket, Allowance, CongestionControl, EcnUse, Fields, LossEvent, Profile,
    Recovery, Scheme, SendEvent, Setup,
};
use narrows_units::{ParamError, Params, Span, Time, params};
use std::collections::VecDeque;

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "koho",
    summary: "A quarter of a packet up or down per acknowledgement, by one-way delay",
    source: "greghill/koho_cc f0f2e69",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    loss_based: false,
    transport: &settings::<4>(&[&DATAGRAMS, &timeout("60000000000")]),
    profiles: &[Profile {
        name: "pantheon",
        doc: "Pantheon's set-up: whole milliseconds, 1388 bytes of UDP payload, one packet after each 50 ms of silence.",
        params: &[("patient", "false")],
        transport: &settings::<6>(&[&[("clock", "1000000"), ("packet_size", "1416")], &GAPS_ARE_LOSSES]),
    }],
    params: KohoParams::PARAMS,
    build,
};

params! {
    /// Parameters.
    struct KohoParams {
        /// One-way delays above this many times half the RTT are long.
        threshold: Number(1.0..=100.0) = 1.45, "koho_cc f0f2e69: controller.cc";
        /// Packets by which an acknowledgement changes the window.
        step: Number(0.001..=1.0, "packets") = 0.25, "koho_cc f0f2e69: controller.cc";
        /// Maximum window.
        largest: Packets(2.0..=1e6) = 100, "koho_cc f0f2e69: controller.cc";
        /// Time without acknowledgements after which one packet is sent regardless of the window.
        silence: Span(1e6..=6e10) = "50 ms", "koho_cc f0f2e69: controller.cc, timeout_ms";
        /// That time is at least two smoothed RTTs.
        patient: Flag = true, "false: koho_cc; true keeps slow paths from being flooded";
    }
}

/// Initial and minimum window, in packets.
const INITIAL: f64 = 16.0;
const MIN_WINDOW: f64 = 2.0;

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let KohoParams { threshold, step, largest, silence, patient } = KohoParams::read(params);
    let rules = KohoRules { long: Long::Times(threshold), step, largest, late: None, silence, patient };
    Ok(Box::new(Koho::new(rules, &setup)))
}

/// The one-way delay from which the window shrinks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Long {
    /// From this many times half the minimum RTT.
    Times(f64),
    /// From half the minimum RTT plus this, in ns.
    Plus(f64),
}

/// Fate of packets that were not acknowledged before later ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late {
    /// A packet sent this long before an acknowledged one is lost.
    pub(super) after: Span,
    /// Packets by which it reduces the window.
    pub(super) step: f64,
}

/// Differences of the two versions.
#[derive(Clone, Copy, Debug)]
pub(super) struct KohoRules {
    pub(super) long: Long,
    pub(super) step: f64,
    pub(super) largest: f64,
    pub(super) late: Option<Late>,
    /// Time without acknowledgements after which one packet is sent, and whether it is at least two smoothed RTTs.
    pub(super) silence: Span,
    pub(super) patient: bool,
}

/// A sent packet.
#[derive(Clone, Copy, Debug)]
struct KohoFlight {
    sent: Time,
    acked: bool,
}

/// Maximum number of remembered packets; older ones are forgotten without a loss.
const MAX_FLIGHTS: usize = 1 << 16;

/// Packets since the oldest one that is neither acknowledged nor lost.
#[derive(Clone, Debug, Default)]
struct KohoFlights {
    first: u64,
    flights: VecDeque<KohoFlight>,
}

impl KohoFlights {
    fn push(&mut self, number: u64, sent: Time) {
        if self.flights.is_empty() || number != self.first + self.flights.len() as u64 {
            self.flights.clear();
            self.first = number;
        }
        self.flights.push_back(KohoFlight { sent, acked: false });
        if self.flights.len() > MAX_FLIGHTS {
            self.flights.pop_front();
            self.first += 1;
        }
    }

    /// Removes the oldest packets that were sent more than `after` before `acked` was, and counts them; then `acked`.
    fn take(&mut self, acked: &AckedPacket, after: Span) -> u32 {
        let mut late = 0;
        while let Some(oldest) = self.flights.front() {
            if !oldest.acked && oldest.sent + after >= acked.sent {
                break;
            }
            late += u32::from(!oldest.acked);
            self.flights.pop_front();
            self.first += 1;
        }
        let index = acked.number.checked_sub(self.first);
        if let Some(flight) =
            index.and_then(|index| self.flights.get_mut(usize::try_from(index).ok()?))
        {
            flight.acked = true;
        }
        late
    }
}

/// Both versions. The window is in packets, delays are in ns.
pub(super) struct Koho {
    rules: KohoRules,
    mss: u64,
    window: f64,
    /// Minimum one-way delay, between two clocks.
    least_way: Option<i64>,
    least_rtt: Span,
    flights: KohoFlights,
    silence: LivenessTimer,
}

impl Koho {
    pub(super) fn new(rules: KohoRules, setup: &Setup) -> Self {
        Koho {
            rules,
            mss: setup.mss.get(),
            window: INITIAL.min(rules.largest),
            least_way: None,
            least_rtt: Span::MAX,
            flights: KohoFlights::default(),
            silence: LivenessTimer::new(rules.silence, setup.now),
        }
    }

    fn on_packet(&mut self, now: Time, packet: &AckedPacket, limited: bool) {
        if let Some(late) = self.rules.late {
            let lost = self.flights.take(packet, late.after);
            self.window -= late.step * f64::from(lost);
        }
        self.least_rtt = self.least_rtt.min(now.since(packet.sent));
        if let Some(arrived) = packet.arrived {
            let way = arrived.ns().wrapping_sub(packet.sent.ns()) as i64;
            let least = self.least_way.map_or(way, |least| least.min(way));
            self.least_way = Some(least);
            let half = self.least_rtt.ns() as f64 / 2.0;
            let estimate = way.saturating_sub(least) as f64 + half;
            let threshold = match self.rules.long {
                Long::Times(times) => times * half,
                Long::Plus(ns) => half + ns,
            };
            if estimate > threshold {
                self.window -= self.rules.step;
            } else if limited {
                self.window += self.rules.step;
            }
        }
        self.window = self.window.clamp(MIN_WINDOW, self.rules.largest);
    }
}

impl CongestionControl for Koho {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        let patience = if self.rules.patient {
            ack.smoothed_rtt * 2
        } else {
            Span::ZERO
        };
        self.silence.on_ack(ack, self.rules.silence.max(patience));
        for packet in ack.packets {
            self.on_packet(ack.now, packet, ack.cwnd_limited);
        }
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.silence.on_loss(loss);
    }

    fn on_send(&mut self, send: &SendEvent) {
        self.silence.on_send(send);
        if self.rules.late.is_some() {
            self.flights.push(send.number, send.now);
        }
    }

    fn allowance(&self) -> Allowance {
        let window = self.window as u64 * self.mss;
        Allowance {
            cwnd: Some(self.silence.cwnd(window, self.mss)),
            ..Allowance::default()
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.silence.timer()
    }

    fn on_timer(&mut self, now: Time) {
        self.silence.on_timer(now);
    }

    fn trace(&self, fields: &mut Fields) {
        fields.mode = "by_delay";
        fields.values.push(("window_packets", self.window));
        if self.least_rtt != Span::MAX {
            fields
                .values
                .push(("least_rtt_ms", self.least_rtt.ns() as f64 / 1e6));
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
