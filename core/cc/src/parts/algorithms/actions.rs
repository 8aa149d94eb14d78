//! Actions: the effect of a policy's decisions on window and rate.

use crate::parts::exp_log::exp;
use crate::parts::neural_policy::{self, ACTIONS, Ewma, Flight, window_after};
use crate::{AckEvent, Allowance, Fields, LossEvent, SendEvent, Setup};
use narrows_units::{Bytes, Rate, Span, Time, choice};

choice! {
    /// Names of the actions.
    pub enum ActionName {
        /// See [`ACTION_SETS`].
        Indigo = "indigo",
        /// See [`ACTION_SETS`].
        Muses = "muses",
        /// See [`ACTION_SETS`].
        RateFactor = "rate-factor",
        /// See [`ACTION_SETS`].
        WindowFactor = "window-factor",
        /// See [`ACTION_SETS`].
        Window = "window",
        /// See [`ACTION_SETS`].
        Rate = "rate",
        /// See [`ACTION_SETS`].
        CubicFactor = "cubic-factor",
    }
}

/// The possible actions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ActionSpace {
    /// One of several, by number from 0: their names.
    Choice(&'static [&'static str]),
    /// A number between two bounds.
    Interval {
        /// Unit of the number; empty if it has none.
        unit: &'static str,
        /// The least action.
        low: f64,
        /// The greatest action.
        high: f64,
    },
}

impl ActionSpace {
    /// The outputs of a network that chooses an action: a score for each, or the number.
    pub const fn outputs(self) -> usize {
        match self {
            ActionSpace::Choice(names) => names.len(),
            ActionSpace::Interval { .. } => 1,
        }
    }
}

/// A kind of action, for registries.
#[derive(Clone, Copy, Debug)]
pub struct ActionInfo {
    /// Its name.
    pub name: &'static str,
    /// Its effect, one sentence.
    pub doc: &'static str,
    /// The possible actions.
    pub space: ActionSpace,
}

const FIVE: ActionSpace = ActionSpace::Choice(&["halve", "less", "hold", "more", "double"]);
const FACTOR: ActionSpace = ActionSpace::Interval {
    unit: "",
    low: -1.0,
    high: 1.0,
};

/// All kinds of actions.
pub const ACTION_SETS: &[ActionInfo] = &[
    ActionInfo {
        name: "indigo",
        doc: "Half the window, 10 packets less, the same, 10 more, or twice the window, which is not paced.",
        space: FIVE,
    },
    ActionInfo {
        name: "muses",
        doc: "The same five actions on a window of 10 to 12 500 packets, paced over the minimum RTT.",
        space: FIVE,
    },
    ActionInfo {
        name: "rate-factor",
        doc: "The rate times 1 + 0.025 a, or divided by 1 - 0.025 a if a is negative.",
        space: FACTOR,
    },
    ActionInfo {
        name: "window-factor",
        doc: "The window times 2^a.",
        space: FACTOR,
    },
    ActionInfo {
        name: "window",
        doc: "The window itself.",
        space: ActionSpace::Interval {
            unit: "packets",
            low: 2.0,
            high: 100_000.0,
        },
    },
    ActionInfo {
        name: "rate",
        doc: "The rate itself.",
        space: ActionSpace::Interval {
            unit: "bit/s",
            low: MIN_RATE,
            high: MAX_RATE,
        },
    },
    ActionInfo {
        name: "cubic-factor",
        doc: "A window of 2^(2a) times that of CUBIC, which runs below the policy.",
        space: FACTOR,
    },
];

impl ActionName {
    /// The entry of [`ACTION_SETS`].
    pub fn info(self) -> &'static ActionInfo {
        &ACTION_SETS[self as usize]
    }
}

/// The initial window in packets; the minimum and the maximum ones, and those of Muses.
const FIRST_WINDOW: f64 = 10.0;
const MIN_WINDOW: f64 = 2.0;
const MAX_WINDOW: f64 = 100_000.0;
const MUSES_WINDOWS: (f64, f64) = (10.0, 12_500.0);
/// Rates in bit/s.
const MIN_RATE: f64 = 10_000.0;
const MAX_RATE: f64 = 100e9;
/// Before the first RTT is known, the initial window is sent over this time.
const ASSUMED_RTT_MS: f64 = 100.0;
/// Share by which the largest action changes the rate (Aurora).
const RATE_STEP: f64 = 0.025;
/// After this time without events one packet is sent regardless of the window (Indigo).
const SILENCE: Span = Span::from_ms(1_000);
/// Interval at which Muses' original checks what it may send.
const CHECK: Span = Span::from_us(500);
/// Time without sending after which Muses sends one packet regardless, before any RTT is known.
const FIRST_PROBE: Span = Span::from_ms(10);
/// The action that is assumed before the first decision: doubling.
const INITIAL_ACTION: usize = ACTIONS - 1;

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// One of several, by number.
    Choice(usize),
    /// A number, possibly out of bounds.
    Number(f64),
}

/// State that a policy controls, as its inputs may show it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Controlled {
    /// The window in packets; where a rate is controlled, that rate times the smoothed RTT.
    pub window: f64,
    /// The rate in bit/s; where a window is controlled, that window over the smoothed RTT; 0 while no RTT is known.
    pub rate_bps: f64,
    /// The number of the last action, where it is one of several.
    pub action: Option<usize>,
    /// Bytes in flight.
    pub in_flight: u64,
}

/// Window and rate under the control of a policy.
#[derive(Clone, Debug)]
pub struct Control {
    name: ActionName,
    flight: Flight,
    /// In packets, possibly fractional.
    window: f64,
    rate_bps: f64,
    action: usize,
    /// Factor of CUBIC's window, and that window in packets.
    factor: f64,
    below: f64,
    smoothed_rtt_ms: Option<f64>,
    /// Muses' RTTs, which are at least 1 ms.
    min_rtt_ms: Option<f64>,
    rtt: Ewma,
    /// When a packet was last sent or, except by Muses, acknowledged.
    active: Time,
}

impl Control {
    /// The state of a new flow.
    pub fn new(name: ActionName, setup: &Setup) -> Self {
        let first = match name {
            ActionName::Indigo | ActionName::Muses => FIRST_WINDOW,
            _ => setup.initial_window as f64,
        };
        Control {
            name,
            flight: Flight::new(setup.mss.get()),
            window: first.max(MIN_WINDOW),
            rate_bps: first * setup.mss.get() as f64 * 8e3 / ASSUMED_RTT_MS,
            action: INITIAL_ACTION,
            factor: 1.0,
            below: first,
            smoothed_rtt_ms: None,
            min_rtt_ms: None,
            rtt: Ewma::default(),
            active: setup.now,
        }
    }

    /// The kind of its actions.
    pub fn name(&self) -> ActionName {
        self.name
    }

    fn controls_rate(&self) -> bool {
        matches!(self.name, ActionName::Rate | ActionName::RateFactor)
    }

    /// An acknowledgement arrived.
    pub fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.flight.bytes = ack.in_flight.get();
        if self.name != ActionName::Muses {
            self.active = ack.now;
        }
        for packet in ack.packets {
            let rtt_ms = neural_policy::ms(ack.now.since(packet.sent)).max(1.0);
            self.min_rtt_ms = Some(self.min_rtt_ms.map_or(rtt_ms, |least| least.min(rtt_ms)));
            self.rtt.add(rtt_ms);
        }
        if !ack.smoothed_rtt.is_zero() {
            let rtt_ms = neural_policy::ms(ack.smoothed_rtt);
            if self.smoothed_rtt_ms.is_none() && self.name == ActionName::RateFactor {
                // The initial window over the first RTT.
                self.rate_bps = (self.rate_bps * ASSUMED_RTT_MS / rtt_ms).clamp(MIN_RATE, MAX_RATE);
            }
            self.smoothed_rtt_ms = Some(rtt_ms);
        }
    }

    /// A packet was sent.
    pub fn on_send(&mut self, send: &SendEvent) {
        self.active = send.now;
        self.flight.on_send(send);
    }

    /// Packets were lost.
    pub fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.flight.on_loss(loss);
    }

    /// The scheme below has a window of this many bytes.
    pub fn follow(&mut self, window: Bytes) {
        self.below = window.get() as f64 / self.flight.mss as f64;
        self.window = (self.factor * self.below).clamp(MIN_WINDOW, MAX_WINDOW);
    }

    /// When one packet is sent although the window is full.
    pub fn next_timer(&self) -> Option<Time> {
        if self.controls_rate() {
            return None;
        }
        let wait = match (self.name, self.rtt.get()) {
            (ActionName::Muses, None) => FIRST_PROBE,
            (ActionName::Muses, Some(ms)) => Span::from_ns((ms * 1e6) as u64),
            _ => SILENCE,
        };
        Some(self.active + wait)
    }

    /// The time requested by [`Control::next_timer`] may have come.
    pub fn on_timer(&mut self, now: Time) {
        if self.next_timer().is_some_and(|timer| now >= timer) {
            self.active = now;
            self.flight.regardless = true;
        }
    }

    /// Nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.flight.bytes == 0
    }

    /// The state that inputs of policies show.
    pub fn state(&self) -> Controlled {
        let packet_ms = self.flight.mss as f64 * 8e3;
        let (window, rate_bps) = match self.smoothed_rtt_ms {
            Some(ms) if self.controls_rate() => (self.rate_bps * ms / packet_ms, self.rate_bps),
            Some(ms) => (self.window, self.window * packet_ms / ms),
            None if self.controls_rate() => (self.window, self.rate_bps),
            None => (self.window, 0.0),
        };
        let is_choice = matches!(self.name.info().space, ActionSpace::Choice(_));
        Controlled {
            window,
            rate_bps,
            action: is_choice.then_some(self.action),
            in_flight: self.flight.bytes,
        }
    }

    /// Takes an action; one out of bounds counts as the nearest. Returns whether it was out of bounds.
    pub fn take(&mut self, action: Action) -> bool {
        let value = match action {
            Action::Choice(number) => {
                self.action = number.min(ACTIONS - 1);
                let (least, most) = match self.name {
                    ActionName::Muses => MUSES_WINDOWS,
                    _ => (MIN_WINDOW, MAX_WINDOW),
                };
                self.window = window_after(self.action, self.window).clamp(least, most);
                return self.action != number;
            }
            Action::Number(value) => value,
        };
        let ActionSpace::Interval { low, high, .. } = self.name.info().space else {
            return false;
        };
        let kept = value.clamp(low, high);
        match self.name {
            ActionName::RateFactor => {
                let changed = if kept < 0.0 {
                    self.rate_bps / (1.0 - RATE_STEP * kept)
                } else {
                    self.rate_bps * (1.0 + RATE_STEP * kept)
                };
                self.rate_bps = changed.clamp(MIN_RATE, MAX_RATE);
            }
            ActionName::Rate => self.rate_bps = kept,
            ActionName::Window => self.window = kept,
            ActionName::CubicFactor => {
                self.factor = exp(2.0 * kept * std::f64::consts::LN_2);
                self.window = (self.factor * self.below).clamp(MIN_WINDOW, MAX_WINDOW);
            }
            _ => {
                let factor = exp(kept * std::f64::consts::LN_2);
                self.window = (self.window * factor).clamp(MIN_WINDOW, MAX_WINDOW);
            }
        }
        kept != value
    }

    /// Window and rate that may be used now.
    pub fn allowance(&self) -> Allowance {
        let mss = Bytes::new(self.flight.mss);
        if self.controls_rate() {
            return Allowance {
                pacing: Some(Rate::from_bps(self.rate_bps as u64)),
                reschedule_pacing: true,
                ..Allowance::default()
            };
        }
        let cwnd = Some(self.flight.cwnd(self.window));
        if self.name != ActionName::Muses {
            return Allowance {
                cwnd,
                ..Allowance::default()
            };
        }
        // One packet per check until an RTT is known, then the window over the minimum RTT.
        let rate = match self.min_rtt_ms {
            None => Rate::of(mss, CHECK),
            Some(ms) => {
                Rate::from_bps((self.window * self.flight.mss as f64 * 8e3 / ms).ceil() as u64)
            }
        };
        Allowance {
            cwnd,
            pacing: Some(rate),
            quantum: Some(rate.bytes_in(CHECK).max(mss)),
            ..Allowance::default()
        }
    }

    /// Name of the last action, or of its kind, and window or rate, for plots.
    pub fn trace(&self, fields: &mut Fields) {
        fields.mode = match self.name.info().space {
            ActionSpace::Choice(names) => names[self.action],
            ActionSpace::Interval { .. } => self.name.info().name,
        };
        if self.controls_rate() {
            fields.values.push(("rate_mbps", self.rate_bps / 1e6));
        } else {
            fields.values.push(("window_packets", self.window));
        }
        if self.name == ActionName::CubicFactor {
            fields.values.push(("cubic_window_packets", self.below));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, setup};

    fn after(name: ActionName, actions: &[f64]) -> (Control, Vec<bool>) {
        let mut control = Control::new(name, &setup());
        let mut ack = AckEvent::new(Time::ZERO + Span::from_ms(50));
        ack.smoothed_rtt = Span::from_ms(50);
        control.on_ack(&ack);
        let clipped = actions.iter().map(|&a| control.take(Action::Number(a)));
        let clipped = clipped.collect();
        (control, clipped)
    }

    #[test]
    fn the_table_has_the_names_of_the_actions_in_their_order() {
        let names: Vec<_> = ACTION_SETS.iter().map(|set| set.name).collect();
        assert_eq!(names, ActionName::WORDS);
    }

    #[test]
    fn a_rate_changes_by_at_most_a_fortieth() {
        // Ten packets of 1000 bytes in 50 ms.
        let (control, clipped) = after(ActionName::RateFactor, &[]);
        assert_eq!((control.rate_bps, clipped.len()), (1.6e6, 0));
        let (control, clipped) = after(ActionName::RateFactor, &[1.0, -1.0, 0.5, 7.0]);
        assert!((control.rate_bps - 1.6e6 * 1.0125 * 1.025).abs() < 1e-3);
        assert_eq!(clipped, [false, false, false, true]);
        let (control, _) = after(ActionName::RateFactor, &[-1.0; 1_000]);
        assert_eq!(control.rate_bps, MIN_RATE);
        assert_eq!(control.allowance().cwnd, None);
    }

    #[test]
    fn a_window_doubles_and_halves() {
        let (control, _) = after(ActionName::WindowFactor, &[1.0, 1.0, -1.0, 0.0]);
        assert!((control.window - 20.0).abs() < 1e-12);
        let (control, clipped) = after(ActionName::Window, &[17.5, 1.0]);
        assert_eq!((control.window, &clipped[..]), (2.0, &[false, true][..]));
        let (control, _) = after(ActionName::Rate, &[3e6]);
        assert_eq!(control.allowance().pacing, Some(Rate::from_bps(3_000_000)));
        // 3 Mbit/s over 50 ms are 18.75 packets.
        assert_eq!(control.state().window, 18.75);
    }

    #[test]
    fn a_factor_of_cubics_window_is_between_a_quarter_and_four() {
        for (action, packets) in [(-1.0, 5.0), (0.0, 20.0), (0.5, 40.0), (1.0, 80.0)] {
            let (mut control, _) = after(ActionName::CubicFactor, &[action]);
            control.follow(Bytes::new(20 * MSS));
            assert!((control.window - packets).abs() < 1e-9, "{action}");
        }
    }
}
