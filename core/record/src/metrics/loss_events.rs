//! Loss events, and whether they coincide among flows.
//!
//! Losses of one flow within one round trip are one event: a sender that reacts once per round trip reacts to them
//! once. The round trip is the sender's latest sample before the loss or, without any, the smallest delay in both
//! directions.
//!
//! Loss events of different flows belong to one congestion event if they begin within one round trip of its first loss,
//! of the longest round trip among the flows under test at that time: the slowest flow may take this long to react to
//! the same congestion. Events are compared at the element that dropped, not at the senders.

use super::subject::{Congestion, StatesOfFlow};
use super::{DroppedPacket, FlowTraffic, Group, Measured, Metric, Subject};

/// Registry entries.
pub(super) const METRICS: &[Metric] = &[COUNT, SYNCHRONISATION];

const COUNT: Metric = Metric {
    name: "loss_events",
    label: "loss events",
    definition: "Number of loss events: packets of one flow that were dropped and had been sent \
                 within one round-trip time after the first of them are one event. Summed over flows.",
    source: "RFC 5348, section 5.2",
    compute: count,
    ..Metric::NUMBER
};

const SYNCHRONISATION: Metric = Metric {
    name: "loss_synchronisation",
    label: "loss synchronisation",
    better: None,
    group: Some(Group::Sharing),
    definition: "For a flow: share of the congestion events, while all flows under test run, in which it lost packets. For all: the mean share of flows that lost packets, from 1 / n if losses never coincide to 1 if they always do. A congestion event comprises the loss events that begin within one round trip, that of the flow with the longest, after its first.",
    source: "synchronisation of losses as in Shorten, Wirth and Leith, IEEE/ACM Transactions on \
             Networking 14(3), 2006",
    compute: synchronisation,
    ..COUNT
};

/// The round-trip time of a flow at `time`.
fn rtt_ns(subject: &Subject<'_>, flow: &FlowTraffic, states: &StatesOfFlow, time: u64) -> u64 {
    states.rtts.at(time).unwrap_or_else(|| {
        let one_way = |direction| subject.cell.propagation_ns(flow.flow, direction);
        one_way(flow.direction).saturating_add(one_way(flow.direction.reverse()))
    })
}

/// When each loss event of a flow began.
fn events(
    subject: &Subject<'_>,
    flow: &FlowTraffic,
    states: &StatesOfFlow,
) -> Result<Vec<DroppedPacket>, String> {
    let drops = flow.drops.as_ref().ok_or_else(|| {
        if subject.run.has_only_ends() {
            subject.nothing("was dropped")
        } else {
            "a record of bins does not contain the times at which single packets were dropped".to_owned()
        }
    })?;
    let mut begun: Vec<DroppedPacket> = Vec::new();
    let mut over = 0;
    for drop in drops {
        if begun.is_empty() || drop.sent_ns > over {
            begun.push(*drop);
            over = drop
                .sent_ns
                .saturating_add(rtt_ns(subject, flow, states, drop.sent_ns));
        }
    }
    Ok(begun)
}

fn count(subject: &Subject<'_>) -> Measured {
    if subject.sum(|t| t.sent_packets) == 0 {
        return Err(subject.nothing("was sent"));
    }
    let mut sum = 0;
    for (flow, states) in subject.states() {
        sum += events(subject, flow, states)?.len();
    }
    Ok(sum as f64)
}

/// The congestion events while all flows under test run. They are the same for every subject of a record, and finding
/// them requires all flows.
fn congestion(subject: &Subject<'_>) -> Result<Congestion, String> {
    let tested: Vec<(&FlowTraffic, &StatesOfFlow)> = subject.flows_under_test().collect();
    if tested.len() < 2 {
        return Err("there is only one flow".into());
    }
    let shared = subject.shared_span_ns;
    let (from, to) = shared.ok_or("the flows never run all at the same time")?;
    let mut begun: Vec<(u64, usize)> = Vec::new();
    for (place, (flow, states)) in tested.iter().enumerate() {
        let all = events(subject, flow, states)?.into_iter();
        let within = all.filter(|event| (from..to).contains(&event.at_ns));
        begun.extend(within.map(|event| (event.at_ns, place)));
    }
    begun.sort_unstable();
    let mut statistics = Congestion {
        events: 0,
        hits: vec![0; tested.len()],
    };
    // The last event in which each flow lost packets, counted from 1.
    let mut last = vec![0; tested.len()];
    let mut over = 0;
    for (at, place) in begun {
        if statistics.events == 0 || at > over {
            let rtts = tested.iter();
            let longest = rtts.map(|(flow, states)| rtt_ns(subject, flow, states, at));
            over = at.saturating_add(longest.max().unwrap_or(0));
            statistics.events += 1;
        }
        if last[place] != statistics.events {
            last[place] = statistics.events;
            statistics.hits[place] += 1;
        }
    }
    if statistics.events == 0 {
        return Err("no flow lost packets while all ran".into());
    }
    Ok(statistics)
}

fn synchronisation(subject: &Subject<'_>) -> Measured {
    if subject.is_background() {
        return Err("it is traffic that is not under test".into());
    }
    let statistics = subject.congestion.get_or_init(|| congestion(subject));
    let Congestion { events, hits } = statistics.as_ref().map_err(String::clone)?;
    let sum = match subject.flow {
        Some(number) => {
            let place = subject.flows_under_test().position(|(t, _)| t.flow == number);
            place.map_or(0.0, |place| hits[place] as f64)
        }
        None => hits.iter().sum::<usize>() as f64 / hits.len() as f64,
    };
    Ok(sum / *events as f64)
}
