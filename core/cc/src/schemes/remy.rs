//! Remy: a computer-generated rule table determines the action after each acknowledgement.
//!
//! Provenance: Winstein and Balakrishnan, TCP ex Machina, SIGCOMM 2013; Sivaraman et al., An experimental study of the
//! learnability of congestion control, SIGCOMM 2014, whose table for a hundredfold range of link rates Pantheon ran as
//! TaoVA-100x. The sender is that of genericCC (github.com/venkatarun95/genericCC, class RemyCC), which Pantheon ran.
//! Deviations: signals outside the table are clamped to its edge, where the original stops; without arrival times from
//! the peer the two receive averages are constant; the normalisation by link rate, inactive in the original, is
//! omitted.
//!
//! The parameter `model` names the table. That of Narrows was optimised by `narrows learn`; `narrows models add` reads
//! the files that Remy writes (`docs/guide/models.md`). After each acknowledgement four signals, averages of the
//! spacing of packets when sent and when received, the ratio of the last round trip to the minimum, and a slower
//! average of the spacing when received, select a rule: a factor and an increment of the window, and a minimum spacing
//! of packets.
//!
//! Pitfalls: a table is good only for the conditions of its training. The published 100x table expects a round trip of
//! 150 ms, stops growing near 150 Mbit/s, and ignores losses: buffers smaller than its target queue lose packets for
//! ever. Nothing is retransmitted. After two seconds without an acknowledgement all state is reset, and the data in
//! flight is written off.

use crate::parts::actions::ActionSpace;
use crate::parts::datagrams::{DATAGRAMS, GAPS_ARE_LOSSES, settings, timeout};
use crate::parts::model_file;
use crate::parts::neural_policy::ms;
use crate::parts::observations::{Observer, RemyObserver};
use crate::parts::rule_table::{RuleAction, RuleTable, SIGNALS};
use crate::{
    AckEvent, Allowance, CongestionControl, EcnUse, Fields, LossEvent, Profile,
    Recovery, Scheme, SendEvent, Setup,
};
use narrows_units::{Bytes, ParamError, Params, Rate, Span, Time, choice, params};

/// Kind of its models.
const KIND: &str = "remy";

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "remy",
    summary: "A rule table made by computer says window and spacing after each acknowledgement",
    source: "Winstein and Balakrishnan, SIGCOMM 2013; genericCC, RemyCC",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    loss_based: false,
    // The sender's own timeout is the only one.
    transport: &settings::<8>(&[&DATAGRAMS, &GAPS_ARE_LOSSES, &timeout("60000000000")]),
    profiles: &[
        Profile {
            name: "pantheon",
            doc: "Datagrams of 1440 bytes, as Pantheon's reports of 2018-08 ran it.",
            params: &[],
            transport: &[("packet_size", "1468")],
        },
        Profile {
            name: "pantheon-2018-01",
            doc: "Datagrams of 1500 bytes, which Ethernet cuts in two, as in Pantheon's reports of 2018-01.",
            params: &[],
            transport: &[("packet_size", "1528")],
        },
    ],
    params: RemyParams::PARAMS,
    build,
};

choice! {
    /// Initial window.
    enum FirstWindow { Two = "two", Rule = "rule" }
}

params! {
    /// Parameters.
    struct RemyParams {
        /// The rule table, by its name among the installed models, or a file.
        model: File = "tao", "a rule table: `narrows models list`";
        /// Packets that may be in flight beyond the window.
        slack: Count(0.0..=100.0) = 1, "genericCC: packets in flight beyond the window; 0 in Remy's own simulator";
        /// Initial window: two packets, or the result of the rule for zero signals, with its spacing.
        first_window: FirstWindow = "two", "genericCC; `rule` in Remy's own simulator";
    }
}

/// Largest window in packets (Remy: rat.cc).
const MAX_WINDOW: f64 = 1_000_000.0;
/// Window before the first acknowledgement (genericCC).
const FIRST_WINDOW: f64 = 2.0;
/// Silence after which all state is reset (genericCC).
const SILENCE: Span = Span::from_ms(2_000);

/// Factor and increment of the window, and spacing, of a rule (Winstein and Balakrishnan 2013, section 4.2).
const RULE: [ActionSpace; 3] = [
    ActionSpace::Interval {
        unit: "",
        low: 0.0,
        high: 1.0,
    },
    ActionSpace::Interval {
        unit: "packets",
        low: 0.0,
        high: 256.0,
    },
    ActionSpace::Interval {
        unit: "ms",
        low: 0.002,
        high: 3.0,
    },
];

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let params = RemyParams::read(params);
    let table = model_file::load(&params.model, &setup.files, |model| {
        model.expect_kind(KIND)?;
        RuleTable::new(model)
    })?;
    let mut remy = Remy {
        mss: setup.mss.get(),
        slack: params.slack as f64,
        first_by_rule: params.first_window == FirstWindow::Rule,
        table,
        seen: RemyObserver::default(),
        window: 0.0,
        spacing: Span::ZERO,
        heard: setup.now,
        next: 0,
        in_flight: 0,
        given_up: 0,
        given_up_below: 0,
        outside: None,
    };
    remy.start();
    Ok(Box::new(remy))
}

struct Remy {
    mss: u64,
    slack: f64,
    first_by_rule: bool,
    table: RuleTable,
    seen: RemyObserver,
    /// In packets.
    window: f64,
    /// Minimum time between packets.
    spacing: Span,
    /// Time of the last acknowledgement or reset.
    heard: Time,
    /// Number of the next packet.
    next: u64,
    in_flight: u64,
    /// Bytes still in flight for the transport that are written off: those of packets below that number.
    given_up: u64,
    given_up_below: u64,
    /// Rules after acknowledgements are left to the caller; one for each acknowledgement, whatever the number of its packets.
    outside: Option<Outside>,
}

/// A decision left to the caller.
#[derive(Clone, Copy, Debug, Default)]
struct Outside {
    due: bool,
    observation: [f32; SIGNALS],
}

impl Remy {
    /// Initial signals.
    fn start(&mut self) {
        self.seen = RemyObserver::default();
        (self.window, self.spacing) = (0.0, Span::ZERO);
        if self.first_by_rule {
            let action = self.table.action(self.seen.signals());
            self.apply(action);
        }
    }

    fn apply(&mut self, action: RuleAction) {
        self.window = (self.window * action.multiple + action.increment)
            .trunc()
            .clamp(0.0, MAX_WINDOW);
        self.spacing = Span::from_ns((action.spacing_ms * 1e6) as u64);
    }

    /// This many of the bytes written off have left the flight.
    fn settle(&mut self, bytes: u64) {
        self.given_up = self.given_up.saturating_sub(bytes).min(self.in_flight);
    }
}

impl CongestionControl for Remy {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.heard = ack.now;
        self.in_flight = ack.in_flight.get();
        for packet in ack.packets {
            self.seen.on_packet(ack, packet);
            if let Some(outside) = &mut self.outside {
                *outside = Outside {
                    due: true,
                    observation: self.seen.signals().map(|signal| signal as f32),
                };
            } else {
                let action = self.table.action(self.seen.signals());
                self.apply(action);
            }
            if packet.number >= self.given_up_below {
                self.given_up = 0;
            }
            self.settle(u64::from(packet.bytes));
        }
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.in_flight = loss.in_flight.get().saturating_sub(loss.bytes.get());
        let below = self.given_up_below;
        for packet in loss.lost.iter().filter(|it| it.number < below) {
            self.settle(u64::from(packet.bytes));
        }
    }

    fn on_send(&mut self, send: &SendEvent) {
        self.next = send.number + 1;
        self.in_flight = send.in_flight.get();
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.heard + SILENCE)
    }

    fn on_timer(&mut self, now: Time) {
        if now < self.heard + SILENCE {
            return;
        }
        self.heard = now;
        self.start();
        (self.given_up, self.given_up_below) = (self.in_flight, self.next);
    }

    fn allowance(&self) -> Allowance {
        let packets = if self.first_by_rule || !self.seen.is_new() {
            self.window + self.slack
        } else {
            FIRST_WINDOW
        };
        let window = packets.max(1.0) as u64 * self.mss;
        let mss = Bytes::new(self.mss);
        // Spacings below a nanosecond per packet count as zero.
        let paced = !self.spacing.is_zero();
        Allowance {
            cwnd: Some(Bytes::new(window + self.given_up)),
            pacing: paced.then(|| Rate::of(mss, self.spacing)),
            quantum: paced.then_some(mss),
            // The current rule determines the spacing of the next packet from the last one.
            reschedule_pacing: true,
            restart_pacing_when_open: false,
        }
    }

    fn decide_outside(&mut self) -> bool {
        self.outside = Some(Outside::default());
        true
    }

    fn observation(&self) -> Option<&[f32]> {
        let outside = self.outside.as_ref().filter(|outside| outside.due)?;
        Some(&outside.observation)
    }

    /// The factor of the window, the packets to add to it, and the time between packets in ms.
    fn take_action(&mut self, action: &[f32]) {
        let (Some(outside), [multiple, increment, spacing_ms]) = (&mut self.outside, action) else {
            return;
        };
        if std::mem::take(&mut outside.due) {
            self.apply(RuleAction {
                multiple: f64::from(*multiple),
                increment: f64::from(*increment),
                spacing_ms: f64::from(*spacing_ms),
            });
        }
    }

    fn action_space(&self) -> Vec<ActionSpace> {
        RULE.to_vec()
    }

    fn choose_action(&mut self, inputs: &[f32], action: &mut Vec<f32>) {
        if self.outside.is_none()
            && let Ok(signals) = <[f32; SIGNALS]>::try_from(inputs)
        {
            let rule = self.table.action(&signals.map(f64::from));
            action.extend(
                [rule.multiple, rule.increment, rule.spacing_ms].map(|number| number as f32),
            );
        }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.mode = if self.seen.is_new() { "start" } else { "rules" };
        fields.values.extend([
            ("window_packets", self.window),
            ("spacing_ms", ms(self.spacing)),
        ]);
        self.seen.trace(fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AckedPacket;
    use crate::testing::{MSS, example_params, example_setup};

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn packet(number: u64, sent: u64) -> AckedPacket {
        // The peer's clock, and half the round trip of 150 ms.
        AckedPacket {
            number,
            bytes: MSS as u32,
            sent: at(sent),
            arrived: Some(at(sent + 75 + 9_000)),
        }
    }

    fn ack(
        remy: &mut dyn CongestionControl,
        now: u64,
        packet: AckedPacket,
        in_flight: u64,
    ) -> Fields {
        let mut event = AckEvent::new(at(now));
        let packets = [packet];
        event.packets = &packets;
        event.in_flight = Bytes::new(in_flight);
        remy.on_ack(&event);
        let mut fields = Fields::default();
        remy.trace(&mut fields);
        fields
    }

    fn remy() -> Box<dyn CongestionControl> {
        build(&example_params(&SCHEME), example_setup()).unwrap()
    }

    fn value(fields: &Fields, name: &str) -> f64 {
        fields
            .values
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap()
            .1
    }

    fn window(remy: &dyn CongestionControl) -> u64 {
        remy.allowance().cwnd.unwrap().get() / MSS
    }

    #[test]
    fn a_packet_per_millisecond_meets_these_signals_and_rules() {
        // The example table at a steady round trip: below a spacing of 0.5 ms x0.95 + 10, from there x0.9 + 12.
        let mut remy = remy();
        assert_eq!(window(&*remy), 2);
        let mut windows = vec![];
        for number in 0..9u64 {
            let fields = ack(&mut *remy, 151 + number, packet(number, 1 + number), 0);
            // 1 - (7/8)^n and 1 - (255/256)^n; the first acknowledgement has no predecessor.
            let wanted = 1.0 - 0.875f64.powi(number as i32);
            let slow = 1.0 - (255.0f64 / 256.0).powi(number as i32);
            for (name, wanted) in [
                ("send_spacing_ms", wanted),
                ("receive_spacing_ms", wanted),
                ("slow_receive_spacing_ms", slow),
                ("rtt_ratio", if number == 0 { 0.0 } else { 1.0 }),
            ] {
                assert!(
                    (value(&fields, name) - wanted).abs() < 1e-12,
                    "{number} {name}"
                );
            }
            windows.push(value(&fields, "window_packets"));
        }
        // 10, 19.5, 28.05, 36.6, 44.2, 51.8, truncated to whole packets; the spacing passes 0.5 with the sixth packet
        // after the first: 57.9, 63.3, 68.7.
        assert_eq!(
            windows,
            [10.0, 19.0, 28.0, 36.0, 44.0, 51.0, 57.0, 63.0, 68.0]
        );
        assert_eq!(window(&*remy), 69, "a packet of slack");
        let allowance = remy.allowance();
        // 0.3 ms between packets of 1000 bytes, and no bursts.
        assert_eq!(
            allowance.pacing,
            Some(Rate::of(Bytes::new(MSS), Span::from_us(300)))
        );
        assert_eq!(allowance.quantum, Some(Bytes::new(MSS)));
    }

    #[test]
    fn the_first_window_may_be_that_of_the_rule_for_nothing_seen() {
        let params = example_params(&SCHEME).with_defaults(SCHEME.params, &[("first_window", "rule")]);
        let mut remy = build(&params, example_setup()).unwrap();
        // 0 x 0.95 + 10, and a packet of slack; the rule's 0.05 ms between packets.
        assert_eq!(window(&*remy), 11);
        let spaced = Rate::of(Bytes::new(MSS), Span::from_us(50));
        assert_eq!(remy.allowance().pacing, Some(spaced));
        // The first acknowledgement meets the same rule again.
        let fields = ack(&mut *remy, 151, packet(0, 1), 0);
        assert_eq!(value(&fields, "window_packets"), 19.0);
        // So does a reset.
        remy.on_timer(at(2_151));
        assert_eq!(window(&*remy), 11);
    }

    #[test]
    fn a_gap_counts_with_the_first_packet_in_order_after_it() {
        let mut remy = remy();
        ack(&mut *remy, 151, packet(0, 1), 0);
        // Packet 1 is lost: 2 is not the next in order, 3 is, and its spacing is that to packet 0.
        let fields = ack(&mut *remy, 153, packet(2, 3), 0);
        assert_eq!(value(&fields, "send_spacing_ms"), 0.0);
        let fields = ack(&mut *remy, 154, packet(3, 4), 0);
        assert_eq!(value(&fields, "send_spacing_ms"), 3.0 / 8.0);
        assert_eq!(value(&fields, "receive_spacing_ms"), 3.0 / 8.0);
    }

    #[test]
    fn a_longer_round_trip_meets_other_rules() {
        let mut remy = remy();
        ack(&mut *remy, 151, packet(0, 1), 0);
        ack(&mut *remy, 152, packet(1, 2), 0);
        // 195 ms are 1.3 times 150 ms: x0.9 + 4 from 19, as 0.23 ms are a short spacing.
        let fields = ack(&mut *remy, 198, packet(2, 3), 0);
        assert_eq!(value(&fields, "rtt_ratio"), 1.3);
        assert_eq!(value(&fields, "window_packets"), 21.0);
    }

    #[test]
    fn two_silent_seconds_start_everything_afresh() {
        let mut remy = remy();
        for number in 0..20 {
            let mut send = SendEvent::new(at(1 + number), number, Bytes::new(MSS));
            send.in_flight = Bytes::new((number + 1) * MSS);
            remy.on_send(&send);
        }
        ack(&mut *remy, 151, packet(0, 1), 19 * MSS);
        assert_eq!(remy.next_timer(), Some(at(2_151)));
        remy.on_timer(at(2_151));
        // Two packets as initially, in addition to the 19 written off.
        assert_eq!((window(&*remy), remy.allowance().pacing), (21, None));
        assert_eq!(remy.next_timer(), Some(at(4_151)));
        // One of the old ones arrives: its rule is that of the origin, and 18 are still written off.
        let fields = ack(&mut *remy, 2_200, packet(5, 6), 18 * MSS);
        assert_eq!(value(&fields, "window_packets"), 10.0);
        assert_eq!(window(&*remy), 11 + 18);
        // A new one is acknowledged: the transport has declared all earlier ones lost.
        ack(&mut *remy, 2_300, packet(20, 2_151), MSS);
        assert_eq!(window(&*remy), 20);
    }
}
