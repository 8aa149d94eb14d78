//! Observation sets: the inputs of policies, computed from the events of a flow.
//!
//! To add a set, write an [`Observer`] in `observations/`, its name in [`ObservationName`] and its entry in
//! [`OBSERVATION_SETS`], at the same place.

mod aurora;
mod indigo;
mod muses;
mod orca;
mod raw;
mod remy;
mod step_totals;

pub use indigo::IndigoObserver;
pub use muses::MusesObserver;
pub use remy::RemyObserver;

use crate::parts::actions::Controlled;
use crate::{AckEvent, AckedPacket, Fields, LossEvent, SendEvent};
use narrows_units::{Time, choice};

choice! {
    /// Names of the sets.
    pub enum ObservationName {
        /// See [`OBSERVATION_SETS`].
        Indigo = "indigo",
        /// See [`OBSERVATION_SETS`].
        Muses = "muses",
        /// See [`OBSERVATION_SETS`].
        Aurora = "aurora",
        /// See [`OBSERVATION_SETS`].
        Orca = "orca",
        /// See [`OBSERVATION_SETS`].
        Remy = "remy",
        /// See [`OBSERVATION_SETS`].
        Raw = "raw",
    }
}

/// One number of an observation.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Its unit: the quantity that is 1; empty for ratios.
    pub unit: &'static str,
    /// Its meaning.
    pub doc: &'static str,
}

const fn member(name: &'static str, unit: &'static str, doc: &'static str) -> Member {
    Member { name, unit, doc }
}

/// The last action of a set of five as five numbers.
const LAST_ACTION: [Member; 5] = [
    member("halved", "", "1 if the last action was to halve the window"),
    member("less", "", "1 if it was to remove 10 packets"),
    member("held", "", "1 if it was to keep the window"),
    member("more", "", "1 if it was to add 10 packets"),
    member(
        "doubled",
        "",
        "1 if it was to double the window, or if there was none; 0 where actions are numbers",
    ),
];

/// An observation set, for registries.
#[derive(Clone, Copy)]
pub struct ObservationInfo {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, one sentence.
    pub doc: &'static str,
    /// Its members, in order.
    pub members: &'static [Member],
    /// The number of steps for which the members are repeated, the oldest first.
    pub steps: usize,
    /// Bytes counted per packet beyond its payload.
    pub header: u64,
    build: fn(header: u64, now: Time) -> Box<dyn Observer>,
}

impl ObservationInfo {
    /// The number of inputs.
    pub const fn size(&self) -> usize {
        self.members.len() * self.steps
    }

    /// An observer of a flow that begins at `now`.
    pub fn observer(&self, now: Time) -> Box<dyn Observer> {
        (self.build)(self.header, now)
    }
}

/// All sets.
pub const OBSERVATION_SETS: &[ObservationInfo] = &[
    ObservationInfo {
        name: "indigo",
        doc: "Averages over the step, the window and the last action (Yan et al., USENIX ATC 2018).",
        members: indigo::MEMBERS,
        steps: 1,
        header: 24,
        build: |header, now| Box::new(IndigoObserver::new(header, now)),
    },
    ObservationInfo {
        name: "muses",
        doc: "Those of Indigo in other units, with the RTT and the losses (StanfordSNR/indigo, branch muses).",
        members: muses::MEMBERS,
        steps: 1,
        header: 52,
        build: |header, now| Box::new(MusesObserver::new(header, now)),
    },
    ObservationInfo {
        name: "aurora",
        doc: "Three ratios of each of the last ten steps (Jay et al., ICML 2019; PCCproject/PCC-RL).",
        members: aurora::MEMBERS,
        steps: aurora::HISTORY,
        header: 0,
        build: |_, now| Box::new(aurora::AuroraObserver::new(now)),
    },
    ObservationInfo {
        name: "orca",
        doc: "Ratios to the best of the flow so far (Abbasloo et al., SIGCOMM 2020; Soheil-ab/Orca).",
        members: orca::MEMBERS,
        steps: 1,
        header: 0,
        build: |_, now| Box::new(orca::OrcaObserver::new(now)),
    },
    ObservationInfo {
        name: "remy",
        doc: "The four signals of rule tables (Winstein and Balakrishnan, SIGCOMM 2013).",
        members: remy::MEMBERS,
        steps: 1,
        header: 0,
        build: |_, _| Box::new(RemyObserver::default()),
    },
    ObservationInfo {
        name: "raw",
        doc: "Counters of the step and of the flow in base units, for inputs of your own.",
        members: raw::MEMBERS,
        steps: 1,
        header: 0,
        build: |_, now| Box::new(raw::RawObserver::new(now)),
    },
];

impl ObservationName {
    /// The entry of [`OBSERVATION_SETS`].
    pub fn info(self) -> &'static ObservationInfo {
        &OBSERVATION_SETS[self as usize]
    }
}

/// Computes the inputs of decisions. Times are those of the scheme's clock.
pub trait Observer: Send {
    /// A packet was sent.
    fn on_send(&mut self, _send: &SendEvent) {}

    /// Packets were lost.
    fn on_loss(&mut self, _loss: &LossEvent<'_>) {}

    /// An acknowledgement arrived; its packets follow.
    fn on_ack(&mut self, _ack: &AckEvent<'_>) {}

    /// A packet was acknowledged; returns false if the application limited the sender, so that the packet says nothing
    /// about the path: the step then begins anew.
    fn on_packet(&mut self, ack: &AckEvent<'_>, packet: &AckedPacket) -> bool;

    /// The step begins anew at `now`.
    fn restart(&mut self, _now: Time) {}

    /// Writes the inputs of a decision at `now` into `inputs`, which are zero, and begins the next step.
    fn write(&mut self, now: Time, controlled: &Controlled, inputs: &mut [f32]);

    /// Values for plots and audits.
    fn trace(&self, _fields: &mut Fields) {}
}

/// Writes `features`, and then the last action.
fn write_with_action(features: &[f64], controlled: &Controlled, inputs: &mut [f32]) {
    write(features, inputs);
    if let Some(action) = controlled.action {
        inputs[features.len() + action] = 1.0;
    }
}

fn write(features: &[f64], inputs: &mut [f32]) {
    for (input, feature) in inputs.iter_mut().zip(features) {
        *input = *feature as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_names_of_the_sets_in_their_order_and_their_sizes() {
        let sets: Vec<_> = OBSERVATION_SETS
            .iter()
            .map(|set| (set.name, set.size()))
            .collect();
        let sizes = [9, 11, 30, 7, 4, 16];
        let names = ObservationName::WORDS.iter().copied();
        assert_eq!(sets, names.zip(sizes).collect::<Vec<_>>());
        for set in OBSERVATION_SETS {
            let mut names: Vec<_> = set.members.iter().map(|member| member.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), set.members.len(), "{}", set.name);
        }
    }
}
