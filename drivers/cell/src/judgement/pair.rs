//! The judgement of a run between two hosts: reasons against it from their machines, their tunnel and their clocks.

use super::{EndpointMeasurements, MS, US, judge_endpoints, judge_missed, judge_stolen};
use narrows_record::{Direction, RunDocument, Severity};

/// Measurements of a run between two hosts, without its endpoints.
#[derive(Clone, Debug)]
pub struct PairMeasurements {
    /// Length of the run.
    pub duration_ns: u64,
    /// True if packets went through a tunnel.
    pub tunnel: bool,
    /// Maximum error bound of the relation of the clocks.
    pub error_ns: u64,
    /// Number of lines of which this relation consists.
    pub lines: usize,
    /// Number of parts of the run in which no line fits.
    pub jumps: u32,
    /// Time between the starts of the two hosts.
    pub starts_apart_ns: u64,
    /// The sum of the minimum delays of both directions.
    pub base_rtt_ns: u64,
    /// Calls that kernels omitted, by the name of the scheme whose program detected it.
    pub missed_calls: Vec<(String, u64)>,
    /// Hosts 0 and 1.
    pub hosts: [HostMeasurements; 2],
    /// Packets of host 0, and those of host 1.
    pub ways: [DirectionMeasurements; 2],
}

/// One host and its end of the tunnel.
#[derive(Clone, Debug)]
pub struct HostMeasurements {
    /// Its name.
    pub name: &'static str,
    /// Share of all processor time that the hypervisor took.
    pub stolen_ratio: f64,
    /// Step of its wall clock during the run.
    pub clock_step_ns: i64,
    /// Share of one processor that moving packets took.
    pub engine_ratio: f64,
    /// Packets that its end of the tunnel sent.
    pub sent: u64,
    /// Packets that its end took from the path.
    pub arrived: u64,
    /// Packets for which the ring in front of the tunnel had no room.
    pub ring: u64,
    /// Packets that the kernel failed to send.
    pub unsent: u64,
    /// Datagrams for which the socket had no room.
    pub socket: u64,
    /// Packets that the namespace did not accept.
    pub undelivered: u64,
    /// Duplicate datagrams, which its end of the tunnel discarded.
    pub repeated: u64,
    /// Sessions of the tunnel.
    pub sessions: u64,
    /// The reason for which its end of the tunnel ended.
    pub reason: String,
    /// Largest datagram that is known to reach the other host.
    pub path_bytes: Option<u64>,
    /// Size of the datagrams that carry full packets.
    pub needed_bytes: u64,
    /// Time for which packets waited for its end of the tunnel, from leaving the namespace to their stamp: 99th
    /// percentile.
    pub waited_ns: u64,
    /// Gaps of its logs.
    pub remarks: Vec<String>,
    /// Events at its end of the tunnel that no path causes, as a clause without full stop.
    pub doubt: Option<String>,
}

/// One direction.
#[derive(Clone, Debug)]
pub struct DirectionMeasurements {
    /// Its direction.
    pub direction: Direction,
    /// Variation of delays: their 95th percentile less the minimum; `None` if no packet arrived.
    pub spread_ns: Option<u64>,
    /// True if the spread exceeds the error of the clocks.
    pub resolved: bool,
    /// Arrivals that the sender's log does not have.
    pub unknown: u64,
    /// Arrivals that contradict the sender's log.
    pub contradicting: u64,
    /// Delays that were negative by more than the precision of stamps.
    pub negative: u64,
    /// Time before the end of the run in which packets were sent but none arrived.
    pub dead_ns: u64,
}

/// Losses at a host up to this share of its packets do not affect printed numbers; above it, the run depends on the
/// machine.
const LOST_SHARE: f64 = 1e-4;
/// A start that is late by more than this shows in the shares of flows of short runs.
const APART_NS: u64 = 100 * MS;
/// Above this share of a processor, moving packets is the limit of the path.
const SATURATED: f64 = 0.97;
/// A path that carries no packet for this long before the end has failed; overflowing queues drop only some packets.
const DEAD_NS: u64 = 1_000 * MS;
/// Copies above this share of the arrivals are a property of the path, not an incident.
const COPIES: f64 = 1e-3;
/// Maximum time for which a line for the relation of two clocks holds.
const LINE_NS: u64 = 1_000_000 * MS;

/// Adds all reasons to `run` and sets its verdict.
pub fn judge_pair(
    run: &mut RunDocument,
    measured: &PairMeasurements,
    endpoints: &[EndpointMeasurements],
) {
    judge_clocks(run, measured);
    if !measured.tunnel {
        let text = format!(
            "There was no tunnel: only the reports of the ends of flows are known. The clocks of the hosts were compared once before the run, so times at one host may be off by {:.3} ms relative to those at the other.",
            ms(measured.error_ns)
        );
        run.judge(Severity::Note, "ends_only", text);
    }
    for (scheme, count) in &measured.missed_calls {
        judge_missed(run, scheme, *count);
    }
    for host in &measured.hosts {
        judge_host(run, host);
        judge_tunnel(run, host);
        judge_waited(run, host, measured.base_rtt_ns);
    }
    for way in &measured.ways {
        judge_way(run, measured, way);
    }
    judge_endpoints(run, endpoints);
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn judge_clocks(run: &mut RunDocument, measured: &PairMeasurements) {
    if measured.jumps > 0 {
        let text = format!(
            "The clock of a host stood still or was set {} times during the run; one-way delays around these times are meaningless.",
            measured.jumps
        );
        run.judge(Severity::Invalid, "clock", text);
    } else if measured.lines as u64 > 1 + measured.duration_ns / LINE_NS {
        let text = format!(
            "The clocks of the hosts did not run at constant rates: {} lines were needed for their relation.",
            measured.lines
        );
        run.judge(Severity::Degraded, "clock", text);
    }
    if measured.starts_apart_ns > APART_NS {
        let text = format!(
            "One host started {:.0} ms after the other.",
            ms(measured.starts_apart_ns)
        );
        run.judge(Severity::Degraded, "starts", text);
    }
}

fn judge_way(run: &mut RunDocument, measured: &PairMeasurements, way: &DirectionMeasurements) {
    let direction = way.direction;
    if way.unknown > 0 {
        let text = format!(
            "{} packets arrived {direction} that are not in the sender's log, and not in the record either.",
            way.unknown
        );
        run.judge(Severity::Invalid, "strangers", text);
    }
    if way.contradicting > 0 {
        let text = format!(
            "{} packets have other times or sizes at the two ends of the {direction} path: the logs are not of one run.",
            way.contradicting
        );
        run.judge(Severity::Invalid, "strangers", text);
    }
    if way.negative > 0 {
        let text = format!(
            "{} packets would have arrived {direction} before they were sent, because a clock was disturbed; their \
             delays are zero in the record.",
            way.negative
        );
        run.judge(Severity::Degraded, "negative_delays", text);
    }
    if way.dead_ns > DEAD_NS {
        let text = format!(
            "No packet that was sent {direction} in the last {:.1} s arrived: the path was dead at the end, and packets sent during that time count as lost.",
            way.dead_ns as f64 / 1e9
        );
        run.judge(Severity::Degraded, "path_dead", text);
    }
    if let (Some(spread), false) = (way.spread_ns, way.resolved) {
        let text = format!(
            "One-way delays {direction} may be off by up to {:.3} ms, all by about the same amount, because the clocks of the hosts are not known more exactly; they vary by {:.3} ms. Differences between them, such as queueing delays, are not affected.",
            ms(measured.error_ns),
            ms(spread)
        );
        run.judge(Severity::Note, "clock_bound", text);
    }
}

fn judge_host(run: &mut RunDocument, host: &HostMeasurements) {
    let name = host.name;
    judge_stolen(run, host.stolen_ratio, &format!(" of the {name}"));
    if host.clock_step_ns.unsigned_abs() > 100 * US {
        let text = format!(
            "The wall clock of the {name} was set by {:.3} ms during the run, and the stamps of a few arrivals with it.",
            host.clock_step_ns as f64 / 1e6
        );
        run.judge(Severity::Degraded, "clock_step", text);
    }
    if host.engine_ratio > SATURATED {
        let text = format!(
            "Moving packets kept a processor of the {name} busy {:.0} % of the time and was itself the limit of the path.",
            host.engine_ratio * 100.0
        );
        run.judge(Severity::Degraded, "tunnel_saturated", text);
    }
    let losses = [
        (
            host.ring,
            host.sent,
            "from its namespace before they were sent",
        ),
        (
            host.unsent,
            host.sent,
            "that its kernel failed to send, although they count as sent",
        ),
        (
            host.socket,
            host.arrived,
            "from the path, for which its socket had no room",
        ),
        (
            host.undelivered,
            host.arrived,
            "from the path, which its namespace did not accept, although they count as arrived",
        ),
    ];
    for (lost, of, which) in losses.into_iter().filter(|loss| loss.0 > 0) {
        let share = lost as f64 / (lost + of) as f64;
        let severity = Severity::invalid_if(share > LOST_SHARE);
        let text = format!("The {name} itself lost {lost} packets {which}.");
        run.judge(severity, "lost_here", text);
    }
}

fn judge_tunnel(run: &mut RunDocument, host: &HostMeasurements) {
    let name = host.name;
    for remark in &host.remarks {
        let text = format!("A log of the {name} is not complete ({remark}).");
        run.judge(Severity::Invalid, "log", text);
    }
    match host.reason.as_str() {
        "silence" => {
            let text = format!(
                "The {name} gave up the tunnel, because nothing arrived from the other host."
            );
            run.judge(Severity::Invalid, "tunnel_broke", text);
        }
        "logs_failed" => {
            let text = format!("The {name} could not write its logs completely.");
            run.judge(Severity::Invalid, "log", text);
        }
        _ => {}
    }
    if host.sessions > 1 {
        let text = format!(
            "The {name} received nothing for so long that the tunnel was opened {} times.",
            host.sessions
        );
        run.judge(Severity::Degraded, "tunnel_broke", text);
    }
    if host.repeated as f64 > COPIES * host.arrived as f64 {
        let text = format!(
            "The path delivered {} datagrams to the {name} more than once; the tunnel passed on one of each, so that flows saw fewer copies than the path makes.",
            host.repeated
        );
        run.judge(Severity::Note, "path_copies", text);
    }
    if let Some(doubt) = &host.doubt {
        run.judge(Severity::Note, "copies", format!("At the {name}, {doubt}."));
    }
    if let Some(bytes) = host.path_bytes.filter(|&bytes| bytes < host.needed_bytes) {
        let text = format!(
            "The largest datagram that is known to pass from the {name} to the other host has {bytes} bytes, and a full packet needs {}: choose a smaller MTU if large packets are lost.",
            host.needed_bytes
        );
        run.judge(Severity::Note, "path_mtu", text);
    }
}

/// Waits for the tunnel at its sender are not included in the delays of the record, which count from the stamp, but in
/// the round trips that schemes measure. The limits are those of an emulator's lateness; above the larger one schemes
/// react to the machine.
fn judge_waited(run: &mut RunDocument, host: &HostMeasurements, base_rtt_ns: u64) {
    let (severity, code) = if host.waited_ns > (2 * MS).max(base_rtt_ns / 10) {
        (Severity::Degraded, "tunnel_late")
    } else if host.waited_ns > (200 * US).max(base_rtt_ns / 100) {
        (Severity::Note, "tunnel_waits")
    } else {
        return;
    };
    let text = format!(
        "1 % of the packets that the {} sent waited more than {:.2} ms for its end of the tunnel, which is part of the \
         round-trip times that schemes see and not of the one-way delays here.",
        host.name,
        ms(host.waited_ns)
    );
    run.judge(severity, code, text);
}

#[cfg(test)]
mod tests;
