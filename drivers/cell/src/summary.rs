//! Converts the core's counters and snapshots into rows and members of records.

use crate::{Cell, Flow, GIT, SchemeRef, VERSION};
use narrows_net::{Network, Packet};
use narrows_record::{
    CapacityRow, ElementCounters, Fingerprint, FlowSummary, ReceiverCounters, SenderCounters,
    StateRow, TraceRow,
};
use narrows_traffic::{DatagramReport, Offered};
use narrows_transport::SenderSnapshot;
use narrows_units::{Bytes, Params, Rate, Span, Time};
use serde_json::Value;

/// Names of all elements, in the order of their indices, by which a packet log refers to them.
pub fn element_names<P: Packet + 'static>(network: &Network<P>) -> Vec<String> {
    network
        .stages()
        .map(|stage| stage.name.to_owned())
        .collect()
}

/// Counters of every element until `end`. Servers that the timeline replaced (`replaced`, see
/// [`crate::Cell::replaced_rates`]) do not report their total capacity.
pub fn element_counters<P: Packet + 'static>(
    network: &Network<P>,
    end: Time,
    replaced: &[String],
) -> Vec<ElementCounters> {
    let counters = network.stages().map(|stage| {
        let whole = !replaced.iter().any(|name| name == stage.name);
        let server = stage.element.server().filter(|_| whole);
        let (counters, held) = (stage.counters, stage.element.held());
        ElementCounters {
            name: stage.name.to_owned(),
            kind: stage.kind.to_owned(),
            link: Some(stage.link.to_owned()),
            direction: stage.direction,
            in_packets: counters.in_packets,
            in_bytes: counters.in_bytes,
            out_packets: counters.out_packets,
            out_bytes: counters.out_bytes,
            dropped_packets: counters.dropped_packets,
            dropped_bytes: counters.dropped_bytes,
            marked_packets: counters.marked_packets,
            copied_packets: counters.copied_packets,
            copied_bytes: counters.copied_bytes,
            capacity_bytes: server.map(|server| server.capacity(Time::ZERO, end).get()),
            held_packets: u64::from(held.packets),
            held_bytes: held.bytes,
        }
    });
    counters.collect()
}

/// Capacity of the servers of `wanted` (see [`crate::Cell::unknown_rates`]) in each bin
/// until `end`.
pub fn capacity_rows<P: Packet + 'static>(
    network: &Network<P>,
    end: Time,
    bin: Span,
    wanted: &[String],
) -> Vec<CapacityRow> {
    let stages = network.stages();
    let stages = stages.filter(|stage| wanted.iter().any(|name| name == stage.name));
    let rows = stages.flat_map(|stage| {
        let server = stage.element.server();
        let bins = end.ns().div_ceil(bin.ns().max(1));
        (0..bins).filter_map(move |index| {
            let from = Time::from_ns(index * bin.ns());
            let to = (from + bin).min(end);
            Some(CapacityRow {
                element: stage.name.to_owned(),
                time_ns: from.ns(),
                bytes: server?.capacity(from, to).get(),
            })
        })
    });
    rows.collect()
}

/// The counters of a native sender, or their sum over several, in the form of records.
pub fn sender_counters(counters: &narrows_transport::SenderCounters) -> SenderCounters {
    SenderCounters {
        sent_packets: Some(counters.sent_packets),
        sent_bytes: Some(counters.sent_bytes),
        retransmitted_packets: Some(counters.retransmitted_packets),
        retransmitted_bytes: Some(counters.retransmitted_bytes),
        timeouts: Some(counters.timeouts),
        tail_probes: Some(counters.tail_probes),
        spurious_losses: Some(counters.spurious_losses),
    }
}

/// The counters of a native receiver, or their sum over several, in the form of records.
pub fn receiver_counters(counters: &narrows_transport::ReceiverCounters) -> ReceiverCounters {
    ReceiverCounters {
        received_packets: Some(counters.received_packets),
        received_bytes: Some(counters.received_bytes),
        goodput_bytes: Some(counters.goodput_bytes),
        ..ReceiverCounters::default()
    }
}

/// The report of a sink of datagrams in the form of records.
pub fn sink_counters(report: &DatagramReport) -> ReceiverCounters {
    ReceiverCounters {
        received_packets: Some(report.arrived),
        received_bytes: Some(report.arrived_bytes),
        goodput_bytes: Some(
            report
                .received_bytes
                .saturating_sub(report.received * u64::from(narrows_traffic::IP_UDP)),
        ),
        lost_datagrams: Some(report.lost),
        out_of_order_datagrams: Some(report.out_of_order),
        duplicate_datagrams: Some(report.duplicates),
        jitter_ns: Some(report.jitter_ns.round() as u64),
    }
}

/// Load that the application of `flow` offered while the flow ran, if it chooses that itself.
pub fn offered(cell: &Cell, flow: &Flow, offered: &Offered) -> Option<narrows_record::Offered> {
    let seconds = flow.stop.min(cell.duration).since(flow.start).secs();
    let (bytes, mean_bps) = offered.load(seconds)?;
    Some(narrows_record::Offered { bytes, mean_bps })
}

/// The summary of a flow without its counters.
pub fn described(flow: &Flow) -> FlowSummary {
    let ours = |name: &str, params: &Params| Fingerprint {
        kind: "native".into(),
        name: name.into(),
        version: Some(VERSION.into()),
        git: GIT.map(str::to_owned),
        kernel: None,
        read_back: Some(name.into()),
        params: match params.to_json() {
            Value::Object(object) => object,
            _ => serde_json::Map::new(),
        },
        bpf: None,
    };
    let fingerprint = match &flow.scheme {
        SchemeRef::Native(scheme, params) => ours(scheme.name, params),
        SchemeRef::Media(scheme, params) => ours(scheme.name, params),
        SchemeRef::Kernel(name) => Fingerprint {
            kind: "linux".into(),
            name: name.clone(),
            ..Fingerprint::default()
        },
        // The loaded program and its parameters are only known to the driver that loads it.
        SchemeRef::Bpf(_) => Fingerprint {
            kind: "bpf".into(),
            name: flow.name.trim_start_matches("bpf:").into(),
            ..Fingerprint::default()
        },
        // Its endpoints report its version and files.
        SchemeRef::Program(_) => Fingerprint {
            kind: "program".into(),
            name: flow.name.clone(),
            ..Fingerprint::default()
        },
        SchemeRef::Datagrams => Fingerprint {
            kind: "native".into(),
            name: flow.name.clone(),
            version: Some(VERSION.into()),
            git: GIT.map(str::to_owned),
            ..Fingerprint::default()
        },
    };
    FlowSummary {
        flow: flow.flow,
        scheme: flow.name.clone(),
        fingerprint,
        ..FlowSummary::default()
    }
}

/// A sample of a native sender.
// A new column is absent until a line here fills it.
#[allow(clippy::needless_update)]
pub fn state_row(flow: u16, time_ns: u64, snapshot: &SenderSnapshot) -> StateRow {
    StateRow {
        flow,
        time_ns,
        cwnd_bytes: snapshot.cwnd.map(Bytes::get),
        ssthresh_bytes: snapshot.scheme.ssthresh.map(Bytes::get),
        pacing_bps: snapshot.pacing.map(Rate::bps),
        rtt_ns: snapshot.latest_rtt.map(Span::ns),
        srtt_ns: snapshot.smoothed_rtt.map(Span::ns),
        min_rtt_ns: snapshot.min_rtt.map(Span::ns),
        inflight_bytes: Some(snapshot.in_flight.get()),
        delivered_bytes: Some(snapshot.delivered.get()),
        delivery_rate_bps: snapshot.delivery_rate.map(Rate::bps),
        retransmitted_bytes: Some(snapshot.retransmitted.get()),
        lost_packets: Some(snapshot.lost_packets),
        mode: (!snapshot.scheme.mode.is_empty()).then(|| snapshot.scheme.mode.to_owned()),
        ..StateRow::default()
    }
}

/// Values that a scheme publishes beyond the common state.
pub fn trace_rows(
    flow: u16,
    time_ns: u64,
    snapshot: &SenderSnapshot,
) -> impl Iterator<Item = TraceRow> {
    snapshot
        .scheme
        .values
        .iter()
        .map(move |(name, value)| TraceRow {
            flow,
            time_ns,
            name: (*name).to_owned(),
            value: *value,
        })
}
