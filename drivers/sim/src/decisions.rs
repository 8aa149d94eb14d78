//! Decisions of schemes that the caller makes: the world pauses at each.
//!
//! A world pauses within an event: an endpoint has received a packet or its timer has expired, and before it reacts, the
//! scheme waits for a decision. With the decision the event is completed from where it was interrupted, so that a run is
//! the same whether the scheme or the caller decides.

use crate::World;
use narrows_cell::{Cell, CellError, Machine};
use narrows_units::Time;

/// The event in which a world has paused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    at: Time,
    endpoint: usize,
    interrupted: Interrupted,
    /// The part whose turn it is; `None` while the network delivers packets.
    part: Option<usize>,
}

/// The action that was interrupted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Interrupted {
    /// An endpoint sends what it may.
    Act,
    /// An endpoint reacts to received packets.
    Response,
    /// A process that runs late reads a batch and lets its endpoints react.
    Process(usize),
}

/// A scheme waits for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Now.
    pub at: Time,
    /// Index of the flow in its cell.
    pub flow: usize,
}

/// Makes a decision: receives it with its inputs, and writes its action.
pub type Decide<'a> = dyn FnMut(Decision, &[f32], &mut Vec<f32>) + 'a;

impl World {
    /// Builds the world of `cell` at time zero; decisions of schemes that can be left to the caller are.
    ///
    /// # Errors
    /// As [`World::new`].
    pub fn with_decisions_outside(cell: &Cell) -> Result<Self, CellError> {
        World::build(cell, |_| true, true)
    }

    /// Builds the world of `cell` at time zero, without a record; decisions of the flows with these indices are left to
    /// the caller.
    ///
    /// # Errors
    /// As [`World::new`], and flows whose scheme makes no decisions that can be left to the caller.
    pub fn with_agents(cell: &Cell, agents: &[usize]) -> Result<Self, CellError> {
        let world = World::build(cell, |flow| agents.contains(&flow), false)?;
        for &agent in agents {
            let decides = world.data_sender(agent);
            if !decides.is_some_and(narrows_transport::Sender::is_decided_outside) {
                let flow = &cell.flows[agent];
                return Err(CellError::Conflict(format!(
                    "flow {}: {} makes no decisions that can be left to the caller from the start of the run",
                    flow.flow, flow.name
                )));
            }
        }
        Ok(world)
    }

    /// The sender of the data of the flow with this index; `None` unless it has one connection.
    pub fn data_sender(&self, flow: usize) -> Option<&narrows_transport::Sender> {
        let flow = self.applications.flows.all.get(flow)?;
        self.sender(self.applications.data_senders(flow).next()?)
    }

    /// Processes all events up to the next decision; `None` if `until` comes first. A decision that waits already is
    /// returned at once.
    pub fn run_to_decision(&mut self, until: Time) -> Option<Decision> {
        if self.paused.is_none() && !self.run::<true>(until) {
            return None;
        }
        self.decision()
    }

    /// The decision for which the world waits.
    pub fn decision(&self) -> Option<Decision> {
        let pause = self.paused?;
        let packet = self.exchange.endpoints[pause.endpoint].packet;
        Some(Decision {
            at: pause.at,
            flow: self.applications.flows.index(packet),
        })
    }

    /// The inputs of the decision for which the world waits; empty if it waits for none.
    pub fn observation(&self) -> &[f32] {
        let sender = self.paused.and_then(|pause| self.sender(pause.endpoint));
        sender
            .and_then(narrows_transport::Sender::observation)
            .unwrap_or_default()
    }

    /// Packets inside the element called `element` at the decision for which the world waits; 0 if no such element exists.
    pub fn held_packets(&mut self, element: &str) -> u32 {
        let network = &mut self.exchange.transit.network;
        if let Some(pause) = self.paused {
            network.catch_up(pause.at);
        }
        let stage = network.stages().find(|stage| stage.name == element);
        stage.map_or(0, |stage| stage.element.held().packets)
    }

    /// Makes the decision for which the world waits and processes all events up to the next one, as
    /// [`World::run_to_decision`] does.
    pub fn step(&mut self, action: &[f32], until: Time) -> Option<Decision> {
        let Some(pause) = self.paused.take() else {
            return self.run_to_decision(until);
        };
        if let Machine::Sender(sender) = &mut self.exchange.endpoints[pause.endpoint].machine {
            sender.take_action(action);
        }
        if self.complete(pause) {
            return self.decision();
        }
        self.run_to_decision(until)
    }

    /// Processes all events due at or before `until`; `decide` makes the decisions: it receives each with its inputs, and
    /// writes its action.
    pub fn run_deciding(&mut self, until: Time, decide: &mut Decide<'_>) {
        let mut action = Vec::new();
        let mut next = self.run_to_decision(until);
        while let Some(decision) = next {
            action.clear();
            decide(decision, self.observation(), &mut action);
            next = self.step(&action, until);
        }
    }

    /// Processes all events up to the next instant at which decisions are due, and gathers all of that instant; `None` if
    /// `until` comes first. [`World::observation_of`] and [`World::decide`] are for each of them,
    /// [`World::complete_gathered`] then completes the instant.
    ///
    /// Hosts must react at once: with processes that run late, decisions of one instant depend on each other.
    pub fn run_to_instant(&mut self, until: Time) -> Option<Time> {
        if self.gathered.is_empty() && !self.gather(until) {
            return None;
        }
        let at = self.gathered[0].at;
        while self.gather(at) {}
        Some(at)
    }

    /// Gathers the next decision due at or before `until`.
    fn gather(&mut self, until: Time) -> bool {
        if self.paused.is_none() && !self.run::<true>(until) {
            return false;
        }
        let Some(pause) = self.paused.take() else {
            return false;
        };
        // It acts when the instant is completed.
        let clock = &mut self.exchange.clock;
        clock.wake_endpoint(pause.endpoint, Time::FAR);
        self.gathered.push(pause);
        true
    }

    /// The inputs of the decision for which the flow with this index waits.
    pub fn observation_of(&self, flow: usize) -> Option<&[f32]> {
        self.data_sender(flow)?.observation()
    }

    /// Makes the decision for which the flow with this index waits.
    pub fn decide(&mut self, flow: usize, action: &[f32]) {
        let state = &self.applications.flows.all[flow];
        let sender = self.applications.data_senders(state).next();
        if let Some(sender) = sender
            && let Machine::Sender(sender) = &mut self.exchange.endpoints[sender].machine
        {
            sender.take_action(action);
        }
    }

    /// Completes the events of the gathered decisions, which have been made.
    pub fn complete_gathered(&mut self) {
        for pause in std::mem::take(&mut self.gathered) {
            if self.complete(pause)
                && let Some(next) = self.paused.take()
            {
                self.gathered.push(next);
            }
        }
    }

    /// Completes the interrupted event and all others at its instant that come first; returns true if the world has
    /// paused again.
    fn complete(&mut self, pause: Pause) -> bool {
        let Pause { at, endpoint, .. } = pause;
        let paused = match pause.interrupted {
            Interrupted::Act => self.act::<true>(at, endpoint),
            Interrupted::Response => self.respond::<true>(at, endpoint),
            Interrupted::Process(process) => self.run_process::<true>(at, process),
        };
        match pause.part {
            Some(part) if paused => {
                self.remember_part(part);
                true
            }
            Some(part) => self.run_hosts::<true>(at, part),
            None if paused => true,
            None => {
                let arrival = self.exchange.transit.pop();
                self.run_arrivals::<true>(arrival)
            }
        }
    }

    pub(crate) fn pause(&mut self, at: Time, endpoint: usize, interrupted: Interrupted) {
        self.paused = Some(Pause {
            at,
            endpoint,
            interrupted,
            part: None,
        });
    }

    /// Records the part during whose turn the world has paused.
    pub(crate) fn remember_part(&mut self, part: usize) {
        if let Some(pause) = &mut self.paused {
            pause.part = Some(part);
        }
    }

    fn sender(&self, endpoint: usize) -> Option<&narrows_transport::Sender> {
        match &self.exchange.endpoints[endpoint].machine {
            Machine::Sender(sender) => Some(sender),
            _ => None,
        }
    }
}
