//! What is known about the elements of one direction, from the cell alone.

use crate::cell::{Cell, Element, Limit};
use crate::schema::Direction;

/// What the verifier knows about one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// Access links: a fixed delay per flow. Keeps the order of each flow.
    Access,
    /// A fixed delay. Keeps order.
    Delay(u64),
    /// Drops some packets and delays none. Keeps order.
    Loss,
    /// A queue before a server.
    Bottleneck {
        /// Rate in bit/s, if constant.
        rate: Option<u64>,
        /// First in, first out, and drops only what finds no room.
        fifo: bool,
        /// Limits of the queue.
        limit: Limit,
    },
    /// Anything else.
    Unknown,
}

/// One element of a path.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) nature: Nature,
}

/// The elements that packets pass in one direction, in order.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) direction: Direction,
    pub(super) stages: Vec<Stage>,
}

impl Layout {
    pub(super) fn new(cell: &Cell, direction: Direction) -> Self {
        let access = Stage {
            name: format!("{direction}.access"),
            kind: "access".to_owned(),
            nature: Nature::Access,
        };
        let wanted = cell.flows.iter().any(|flow| flow.extra_rtt_ns > 0);
        let path = cell.elements(direction).iter().map(|element| Stage {
            name: element.label().to_owned(),
            kind: element.kind.clone(),
            nature: nature(element),
        });
        let stages = wanted.then_some(access).into_iter().chain(path).collect();
        Layout { direction, stages }
    }

    /// The place of the element called `name`.
    pub(super) fn place(&self, name: &str) -> Option<u16> {
        self.stages
            .iter()
            .position(|stage| stage.name == name)
            .map(|place| place as u16)
    }

    /// The place of the only bottleneck.
    ///
    /// # Errors
    /// Why there is not exactly one.
    pub(super) fn only_bottleneck(&self) -> Result<usize, String> {
        let is = |stage: &Stage| matches!(stage.nature, Nature::Bottleneck { .. });
        let mut places = (0..self.stages.len()).filter(|&place| is(&self.stages[place]));
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            (None, _) => Err(format!("the {} path has no bottleneck", self.direction)),
            (Some(_), Some(_)) => Err(format!(
                "the {} path has several bottlenecks, and what happens between them is not recorded",
                self.direction
            )),
        }
    }

    /// The sum of the fixed delays of `stages`, which must delay packets by nothing else (the
    /// delays of access links are not included).
    ///
    /// # Errors
    /// The element that delays packets by something else.
    pub(super) fn fixed_ns(stages: &[Stage]) -> Result<u64, String> {
        stages
            .iter()
            .try_fold(0_u64, |sum, stage| match stage.nature {
                Nature::Delay(ns) => Ok(sum.saturating_add(ns)),
                Nature::Loss | Nature::Access => Ok(sum),
                Nature::Bottleneck { .. } | Nature::Unknown => Err(format!(
                    "the delay of {} ({}) is not fixed",
                    stage.name, stage.kind
                )),
            })
    }

    /// Whether every element keeps the order of packets.
    ///
    /// # Errors
    /// The element that may not.
    pub(super) fn keeps_order(&self) -> Result<(), String> {
        let stranger = self.stages.iter().find(|stage| {
            matches!(
                stage.nature,
                Nature::Unknown | Nature::Bottleneck { fifo: false, .. }
            )
        });
        stranger.map_or(Ok(()), |stage| {
            Err(format!(
                "{} ({}) may change the order of packets",
                stage.name, stage.kind
            ))
        })
    }
}

fn nature(element: &Element) -> Nature {
    match element.kind.as_str() {
        "delay" => Nature::Delay(element.delay_ns()),
        "loss" => Nature::Loss,
        "bottleneck" => Nature::Bottleneck {
            rate: element.constant_bps().filter(|&rate| rate > 0),
            fifo: matches!(element.queue_kind(), Some("droptail" | "unlimited")),
            limit: element.limit(),
        },
        _ => Nature::Unknown,
    }
}
