//! Properties of the elements on the routes of packets, from the cell alone.

use crate::cell::{Cell, CellElement, CellFraming, CellQueueLimit, RateLaw};
use crate::schema::Direction;
use narrows_net::{DelayEffect, PacketOrder, QueueDrops, QueueEffects};
use serde_json::Value;

/// The verifier's knowledge of the time for which an element keeps a packet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StageNature {
    /// Access links: a fixed delay per flow. Keeps the order of each flow.
    Access,
    /// A fixed delay.
    Delay(u64),
    /// Keeps no packet.
    Instant,
    /// A queue before a server.
    Bottleneck(Box<Server>),
    /// An arbitrary time.
    Free,
}

/// A bottleneck, as the cell describes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Server {
    /// The rate over time, or why it is not known.
    pub(super) law: Result<RateLaw, String>,
    pub(super) queue: QueueEffects,
    /// Kind of the queue.
    pub(super) queue_kind: String,
    /// Limits of the queue, each with the time from which it applies; the first applies from 0.
    pub(super) limits: Vec<(u64, CellQueueLimit)>,
    framing: CellFraming,
}

/// One element.
#[derive(Clone, Debug)]
pub(super) struct PathStage {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) nature: StageNature,
    pub(super) in_order: bool,
    /// Reasons for which it may drop packets; `None` for any.
    pub(super) drops: Option<Vec<&'static str>>,
    pub(super) copies: bool,
    pub(super) corrupts: bool,
    /// Index among all elements of the network.
    pub(super) index: usize,
}

/// The elements that packets pass on one route, in order.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Description for people: `forward path`, `path from a to b`.
    pub(super) label: String,
    pub(super) direction: Direction,
    /// Host at which it starts.
    pub(super) host: String,
    pub(super) links: Vec<usize>,
    pub(super) stages: Vec<PathStage>,
}

/// All elements, link by link, in the order in which runs count them.
pub(super) fn all_stages(cell: &Cell) -> Vec<(usize, PathStage)> {
    let wanted = cell.network.dumbbell && cell.flows.iter().any(|flow| flow.extra_rtt_ns > 0);
    let mut all = Vec::new();
    for (link, plan) in cell.network.links.iter().enumerate() {
        if wanted {
            let access = PathStage {
                name: format!("{}.access", plan.name),
                kind: "access".to_owned(),
                nature: StageNature::Access,
                in_order: true,
                drops: Some(Vec::new()),
                copies: false,
                corrupts: false,
                index: all.len(),
            };
            all.push((link, access));
        }
        for element in &plan.elements {
            let index = all.len();
            all.push((link, stage(cell, element, index)));
        }
    }
    all
}

fn stage(cell: &Cell, element: &CellElement, index: usize) -> PathStage {
    let blank = PathStage {
        name: element.label().to_owned(),
        kind: element.kind.clone(),
        nature: StageNature::Free,
        in_order: false,
        drops: None,
        // Elements of an unknown kind may do anything.
        copies: true,
        corrupts: true,
        index,
    };
    if element.is_bottleneck() {
        let server = Server::new(cell, element);
        let limited = server
            .limits
            .iter()
            .any(|(_, l)| *l != CellQueueLimit::default());
        let drops = (server.queue.drops == QueueDrops::NoRoom)
            .then(|| limited.then_some("queue_full").into_iter().collect());
        return PathStage {
            in_order: server.queue.fifo,
            drops,
            copies: false,
            corrupts: false,
            nature: StageNature::Bottleneck(Box::new(server)),
            ..blank
        };
    }
    let Some(effects) = element.effects() else {
        return blank;
    };
    // Later packets wait for those that left before the delay shrank.
    let moved = cell.changes_of(element.label()).next().is_some();
    let limited = cell
        .sets(element)
        .any(|set| set.get("limit").is_some_and(Value::is_u64));
    let reasons = effects.drops.iter().map(|reason| reason.0);
    PathStage {
        nature: match effects.delay {
            DelayEffect::None => StageNature::Instant,
            DelayEffect::Fixed if !moved => StageNature::Delay(element.delay_ns()),
            DelayEffect::HoldIf(..) if !cell.may_hold(&effects, element) => StageNature::Instant,
            _ => StageNature::Free,
        },
        in_order: effects.order == PacketOrder::All
            && !cell.ever(element, "reorder", &Value::Bool(true)),
        drops: Some(reasons.chain(limited.then_some("line_full")).collect()),
        copies: effects.copies,
        corrupts: effects.corrupts,
        ..blank
    }
}

impl Server {
    fn new(cell: &Cell, element: &CellElement) -> Self {
        let mut limits = vec![(0, element.limit())];
        for change in cell.changes_of(element.label()) {
            if let Some(queue) = change.set.get("queue") {
                // Parameters that the change does not name keep their values.
                let (set, before) = (CellQueueLimit::read(queue), limits[limits.len() - 1].1);
                let limit = CellQueueLimit {
                    bytes: set.bytes.or(before.bytes),
                    packets: set.packets.or(before.packets),
                };
                limits.push((change.at_ns, limit));
            }
        }
        Server {
            law: cell.rate_law(element),
            queue: element.queue_effects(),
            queue_kind: element.queue_kind().unwrap_or("unlimited").to_owned(),
            limits,
            framing: element.framing(),
        }
    }

    /// Bits that a packet of `size` bytes takes up on the wire.
    pub(super) fn wire_bits(&self, size: u32) -> i128 {
        i128::from(self.framing.wire_bytes(u64::from(size))) * 8
    }
}

impl Layout {
    /// One layout per route of the cell.
    pub(super) fn all(cell: &Cell, stages: &[(usize, PathStage)]) -> Vec<Self> {
        let routes = cell.network.routes.iter();
        let layouts = routes.map(|route| Layout {
            label: if cell.network.dumbbell {
                format!("{} path", route.direction)
            } else {
                format!("path from {} to {}", route.from, route.to)
            },
            direction: route.direction,
            host: route.from.clone(),
            links: route.links.clone(),
            stages: route
                .links
                .iter()
                .flat_map(|&link| stages.iter().filter(move |(own, _)| *own == link))
                .map(|(_, stage)| stage.clone())
                .collect(),
        });
        layouts.collect()
    }

    /// The position on the route of the element with index `index`.
    pub(super) fn place(&self, index: usize) -> Option<usize> {
        self.stages.iter().position(|stage| stage.index == index)
    }

    /// The position of the only element that copies packets.
    pub(super) fn only_copier(&self) -> Option<usize> {
        let mut places = (0..self.stages.len()).filter(|&place| self.stages[place].copies);
        places.next().filter(|_| places.next().is_none())
    }

    /// The positions of all bottlenecks.
    pub(super) fn bottlenecks(&self) -> impl Iterator<Item = usize> {
        let is = |stage: &PathStage| matches!(stage.nature, StageNature::Bottleneck(_));
        (0..self.stages.len()).filter(move |&place| is(&self.stages[place]))
    }

    /// The sum of the fixed delays of `stages`, which must delay packets by nothing else (the
    /// delays of access links are not included).
    ///
    /// # Errors
    /// The element whose delay is not fixed.
    pub(super) fn fixed_ns(stages: &[PathStage]) -> Result<u64, String> {
        stages
            .iter()
            .try_fold(0_u64, |sum, stage| match stage.nature {
                StageNature::Delay(ns) => Ok(sum.saturating_add(ns)),
                StageNature::Instant | StageNature::Access => Ok(sum),
                StageNature::Bottleneck(_) | StageNature::Free => Err(format!(
                    "the delay of {} ({}) is not fixed",
                    stage.name, stage.kind
                )),
            })
    }

    /// True if every element keeps the order of packets.
    ///
    /// # Errors
    /// The element that may change the order.
    pub(super) fn keeps_order(&self) -> Result<(), String> {
        let stranger = self.stages.iter().find(|stage| !stage.in_order);
        stranger.map_or(Ok(()), |stage| {
            Err(format!(
                "{} ({}) may change the order of packets",
                stage.name, stage.kind
            ))
        })
    }
}
