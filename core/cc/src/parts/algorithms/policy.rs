//! The sender of all learned schemes whose policy is a network: an observation set, a step rule, an action, and the place
//! where decisions are made.

use crate::parts::Network;
use crate::parts::actions::{Action, ActionSpace, Control};
use crate::parts::neural_arithmetic::largest;
use crate::parts::observations::Observer;
use crate::parts::step_rules::Steps;
use crate::{
    AckEvent, Allowance, CongestionControl, EcnEvent, Fields, LossEvent, SendEvent,
    SpuriousLossEvent,
};
use narrows_units::Time;

/// The mode of a flow whose policy returned something that is not a number.
const NOT_A_NUMBER: &str = "stopped: the action is not a number";

/// The place where decisions are made.
enum Decider {
    Network(Network),
    /// Outside of the scheme; `due` while it waits for a decision.
    Caller {
        due: bool,
    },
}

/// A flow that follows a policy.
pub struct Policy {
    observer: Box<dyn Observer>,
    steps: Steps,
    control: Control,
    decider: Decider,
    /// Inputs of the last decision.
    inputs: Vec<f32>,
    /// A scheme whose window the actions multiply.
    below: Option<Box<dyn CongestionControl>>,
    /// Actions that were out of bounds.
    clipped: u64,
    /// True if an action that is not a number ends the decisions; otherwise it counts as the first one.
    stops: bool,
    /// The reason why no more decisions are made.
    stopped: Option<&'static str>,
}

impl Policy {
    /// The policy of `network`; without one the caller makes the decisions.
    pub fn new(
        observer: Box<dyn Observer>,
        inputs: usize,
        steps: Steps,
        control: Control,
        network: Option<Network>,
    ) -> Self {
        Policy {
            observer,
            steps,
            control,
            decider: network.map_or(Decider::Caller { due: false }, Decider::Network),
            inputs: vec![0.0; inputs],
            below: None,
            clipped: 0,
            stops: false,
            stopped: None,
        }
    }

    /// Actions multiply the window of the scheme `below`.
    #[must_use]
    pub fn over(mut self, below: Option<Box<dyn CongestionControl>>) -> Self {
        self.below = below;
        self.follow();
        self
    }

    /// An action that is not a number ends the decisions: window and rate do not change any more.
    #[must_use]
    pub fn stopping(mut self) -> Self {
        self.stops = true;
        self
    }

    fn follow(&mut self) {
        if let Some(window) = self.below.as_ref().and_then(|below| below.allowance().cwnd) {
            self.control.follow(window);
        }
    }

    fn decide(&mut self, now: Time) {
        self.steps.begin(now);
        if self.stopped.is_some() {
            self.observer.restart(now);
            return;
        }
        self.inputs.fill(0.0);
        let state = self.control.state();
        self.observer.write(now, &state, &mut self.inputs);
        let outputs = match &mut self.decider {
            Decider::Caller { due } => {
                *due = true;
                return;
            }
            Decider::Network(network) => network.step(&self.inputs),
        };
        let space = self.control.name().info().space;
        let action = read_action(space, outputs, self.stops);
        self.take(action);
    }

    /// Takes an action; `None` is one that is not a number.
    fn take(&mut self, action: Option<Action>) {
        match action {
            None => self.stopped = Some(NOT_A_NUMBER),
            Some(action) => self.clipped += u64::from(self.control.take(action)),
        }
    }
}

/// The action in the outputs of a network; `None` if it is not a number, or if `stops` and any output is not one.
fn read_action(space: ActionSpace, outputs: &[f32], stops: bool) -> Option<Action> {
    match space {
        _ if stops && outputs.iter().any(|output| output.is_nan()) => None,
        ActionSpace::Choice(_) => Some(Action::Choice(largest(outputs))),
        ActionSpace::Interval { .. } => outputs.first().map(|x| Action::Number(f64::from(*x))),
    }
}

impl CongestionControl for Policy {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.control.on_ack(ack);
        self.steps.set_rtt(ack.smoothed_rtt);
        if let Some(below) = &mut self.below {
            below.on_ack(ack);
        }
        self.follow();
        self.observer.on_ack(ack);
        for packet in ack.packets {
            if !self.observer.on_packet(ack, packet) {
                self.observer.restart(ack.now);
                self.steps.restart();
            } else if self.steps.on_packet(ack.now) {
                self.decide(ack.now);
            }
        }
    }

    fn on_duplicate(&mut self, ack: &AckEvent<'_>) {
        if let Some(below) = &mut self.below {
            below.on_duplicate(ack);
        }
        self.follow();
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.control.on_loss(loss);
        self.observer.on_loss(loss);
        if let Some(below) = &mut self.below {
            below.on_loss(loss);
        }
        self.follow();
    }

    fn on_ecn(&mut self, ecn: &EcnEvent) {
        if let Some(below) = &mut self.below {
            below.on_ecn(ecn);
        }
        self.follow();
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousLossEvent) {
        if let Some(below) = &mut self.below {
            below.on_spurious_loss(spurious);
        }
        self.follow();
    }

    fn on_recovery_exit(&mut self, now: Time) {
        if let Some(below) = &mut self.below {
            below.on_recovery_exit(now);
        }
        self.follow();
    }

    fn on_send(&mut self, send: &SendEvent) {
        self.control.on_send(send);
        self.observer.on_send(send);
        if let Some(below) = &mut self.below {
            below.on_send(send);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        let step = match self.decider {
            Decider::Caller { due: true } => None,
            _ => self.steps.timer(),
        };
        let below = self.below.as_ref().and_then(|below| below.next_timer());
        let timers = [step, self.control.next_timer(), below];
        timers.into_iter().flatten().min()
    }

    fn on_timer(&mut self, now: Time) {
        self.control.on_timer(now);
        if let Some(below) = &mut self.below
            && below.next_timer().is_some_and(|timer| now >= timer)
        {
            below.on_timer(now);
            self.follow();
        }
        let is_due = matches!(self.decider, Decider::Caller { due: true });
        if is_due || self.steps.timer().is_none_or(|timer| now < timer) {
            return;
        }
        if self.control.is_idle() {
            // The application sends nothing: the next step begins with its next packet.
            self.steps.restart();
            self.observer.restart(now);
        } else {
            self.decide(now);
        }
    }

    fn allowance(&self) -> Allowance {
        self.control.allowance()
    }

    fn needs_caller(&self) -> bool {
        matches!(self.decider, Decider::Caller { .. })
    }

    fn decide_outside(&mut self) -> bool {
        self.decider = Decider::Caller { due: false };
        true
    }

    fn observation(&self) -> Option<&[f32]> {
        matches!(self.decider, Decider::Caller { due: true }).then_some(&self.inputs)
    }

    /// The number of an action, of which the whole part counts, or the number that is the action.
    fn take_action(&mut self, action: &[f32]) {
        if self.observation().is_none() {
            return;
        }
        self.decider = Decider::Caller { due: false };
        let number = f64::from(action.first().copied().unwrap_or(f32::NAN));
        let action = match self.control.name().info().space {
            _ if number.is_nan() && self.stops => None,
            ActionSpace::Choice(names) => {
                let most = (names.len() - 1) as f64;
                // Not a number counts as 0.
                self.clipped += u64::from(number.trunc() < 0.0 || number.trunc() > most);
                Some(Action::Choice(number.clamp(0.0, most) as usize))
            }
            ActionSpace::Interval { .. } => Some(Action::Number(number)),
        };
        self.take(action);
    }

    fn action_space(&self) -> Vec<ActionSpace> {
        vec![self.control.name().info().space]
    }

    fn choose_action(&mut self, inputs: &[f32], action: &mut Vec<f32>) {
        let Decider::Network(network) = &mut self.decider else {
            return;
        };
        if inputs.len() != self.inputs.len() {
            return;
        }
        let space = self.control.name().info().space;
        action.push(match read_action(space, network.step(inputs), self.stops) {
            Some(Action::Choice(number)) => number as f32,
            Some(Action::Number(number)) => number as f32,
            None => f32::NAN,
        });
    }

    fn trace(&self, fields: &mut Fields) {
        self.control.trace(fields);
        if let Some(reason) = self.stopped {
            fields.mode = reason;
        }
        self.observer.trace(fields);
        if self.stops {
            fields.values.push(("clipped_actions", self.clipped as f64));
        }
    }
}
