//! The judgement of flows whose ends are external programs.

use crate::{EndsWith, Program, ProgramReport, Role, Side, in_words};
use narrows_record::{RunDocument, Severity};
use serde::{Deserialize, Serialize};

/// Maximum duration in ns of a connector that counts as not having run at all.
const AT_ONCE_NS: i64 = 1_000_000_000;
/// Time in ns by which a program may end before its flow, as durations are passed in whole seconds.
const ROUNDED_NS: i64 = 500_000_000;
/// Maximum number of conversations that are listed.
const MOST_LISTED: usize = 16;

/// Packets that one host of a program has sent into the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentTraffic {
    /// Packets.
    pub packets: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Bytes behind the headers of TCP and UDP, or of IP.
    pub payload_bytes: u64,
    /// When the first packet with payload was sent, at or after the start of the flow.
    pub first_ns: Option<u64>,
    /// When the last packet with payload was sent.
    pub last_ns: Option<u64>,
}

/// Ports between which a program has exchanged packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Protocol number of IP.
    pub protocol: u8,
    /// Port at the host that sends the data; 0 if the protocol has none.
    pub sender_port: u16,
    /// Port at the other host.
    pub receiver_port: u16,
}

/// All packets that the two hosts of a program have sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramTraffic {
    /// Packets of the host that is to send the data.
    pub sender: SentTraffic,
    /// Packets of the other host.
    pub receiver: SentTraffic,
    /// Ports, in the order in which they were first used, up to a maximum number.
    pub conversations: Vec<Conversation>,
    /// Frames that were not for the other host of the flow, and were discarded.
    pub stray: u64,
}

impl SentTraffic {
    fn merge(&mut self, other: SentTraffic) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.payload_bytes += other.payload_bytes;
        self.first_ns = [self.first_ns, other.first_ns].into_iter().flatten().min();
        self.last_ns = self.last_ns.max(other.last_ns);
    }
}

impl ProgramTraffic {
    /// A packet of one of the hosts enters the network.
    pub fn add(&mut self, from: Role, at_ns: u64, bytes: u64, payload: u64, counts: bool) {
        let sent = match from {
            Role::Sender => &mut self.sender,
            Role::Receiver => &mut self.receiver,
        };
        sent.packets += 1;
        sent.bytes += bytes;
        sent.payload_bytes += payload;
        if payload > 0 && counts {
            sent.first_ns.get_or_insert(at_ns);
            sent.last_ns = Some(at_ns);
        }
    }

    /// Adds the traffic of the same hosts seen by another thread.
    pub fn merge(&mut self, other: ProgramTraffic) {
        self.sender.merge(other.sender);
        self.receiver.merge(other.receiver);
        other.conversations.into_iter().for_each(|it| self.note(it));
        self.stray += other.stray;
    }

    /// Records a packet between these ports.
    pub fn note(&mut self, conversation: Conversation) {
        if self.conversations.len() < MOST_LISTED && !self.conversations.contains(&conversation) {
            self.conversations.push(conversation);
        }
    }
}

/// Facts about a flow whose ends are a program.
#[derive(Debug)]
pub struct ProgramMeasurements<'a> {
    /// The flow.
    pub flow: u16,
    /// Its scheme.
    pub name: &'a str,
    /// The program.
    pub program: &'a Program,
    /// When the flow stops, in ns.
    pub stop_ns: u64,
    /// The report of each end, if there is one.
    pub reports: [(Role, Option<&'a ProgramReport>); 2],
    /// The packets that its hosts have sent.
    pub traffic: &'a ProgramTraffic,
}

/// Adds the reasons about a program.
pub fn judge_program(run: &mut RunDocument, measured: &ProgramMeasurements) {
    for (role, report) in &measured.reports {
        if let Some(report) = report {
            judge_process(run, measured, measured.program.side_at(*role), report);
        }
    }
    judge_traffic(run, measured);
}

fn judge_process(
    run: &mut RunDocument,
    measured: &ProgramMeasurements,
    side: Side,
    report: &ProgramReport,
) {
    let who = format!(
        "The {} of flow {} ({})",
        side.name(),
        measured.flow,
        measured.name
    );
    let last = last_line(report);
    let (started, ended) = (report.started_ns.unwrap_or(0), report.ended_ns);
    if report.out_of_memory {
        let limit = in_words(measured.program.limits.memory_bytes.unwrap_or(0), "B");
        let text = format!("{who} was killed because it used more memory than {limit}, its limit.");
        run.judge(Severity::Invalid, "program_memory", text);
    } else if report.overran {
        let limit = seconds(measured.program.limits.time_ns.unwrap_or(0) as i64);
        let text = format!("{who} was killed after {limit}, its limit of time.");
        run.judge(Severity::Invalid, "program_overran", text);
    } else if let (Some(signal), false) = (report.signal, report.stopped) {
        let after = seconds(ended.unwrap_or(started) - started);
        let text = format!(
            "{who} was ended by signal {signal}{} {after} after its start{last}.",
            signal_name(signal)
        );
        run.judge(Severity::Invalid, "program_crashed", text);
    } else if let (Some(ended), false) = (ended, report.stopped) {
        judge_end(run, measured, &who, report, ended);
    }
    if report.killed {
        let text = format!(
            "{who} did not end within {} of signal {}{} and was killed.",
            seconds(measured.program.end.grace_ns as i64),
            measured.program.end.signal,
            signal_name(measured.program.end.signal)
        );
        run.judge(Severity::Note, "program_killed", text);
    }
    if !report.left.is_empty() {
        let (count, names) = (report.left.len(), list_names(&report.left));
        let what = if count == 1 {
            "a process".to_owned()
        } else {
            format!("{count} processes")
        };
        let text = format!("{who} left {what} behind ({names}), which had to be killed.");
        run.judge(Severity::Degraded, "processes_left", text);
    }
    let (printed, kept) = (report.printed, report.kept);
    if printed[0] > kept[0] || printed[1] > kept[1] {
        let text = format!(
            "{who} printed {}, of which {} were kept.",
            in_words(printed[0] + printed[1], "B"),
            in_words(kept[0] + kept[1], "B")
        );
        run.judge(Severity::Degraded, "output_cut", text);
    }
}

/// Judges a process that ended by itself.
fn judge_end(
    run: &mut RunDocument,
    measured: &ProgramMeasurements,
    who: &str,
    report: &ProgramReport,
    ended: i64,
) {
    let exit = report.exit.unwrap_or(0);
    let (how, last) = (format!("with exit code {exit}"), last_line(report));
    let ran = ended - report.started_ns.unwrap_or(0);
    let early = measured.stop_ns as i64 - ended;
    let (code, text) = match measured.program.end.when {
        EndsWith::Done if exit == 0 => return,
        EndsWith::Done => (
            "program_failed",
            format!("{who} ended {how} after {}{last}.", seconds(ran)),
        ),
        EndsWith::Duration if early <= ROUNDED_NS => return,
        EndsWith::Signal if early <= 0 => return,
        _ if ran < AT_ONCE_NS => (
            "program_exited",
            format!(
                "{who} ended immediately, {how}, {} after its start{last}.",
                seconds(ran)
            ),
        ),
        _ => (
            "program_ended",
            format!(
                "{who} ended {how}, {} before its flow stopped{last}.",
                seconds(early)
            ),
        ),
    };
    run.judge(Severity::Invalid, code, text);
}

fn judge_traffic(run: &mut RunDocument, measured: &ProgramMeasurements) {
    let ProgramTraffic {
        sender,
        receiver,
        stray,
        ..
    } = measured.traffic;
    let (flow, name) = (measured.flow, measured.name);
    let data = measured.program.data;
    if receiver.payload_bytes > sender.payload_bytes {
        let text = format!(
            "Most data of flow {flow} ({name}) went in the wrong direction: the {} sent {}, and the {}, which is to send the \
             data, {}.",
            data.other().name(),
            in_words(receiver.payload_bytes, "B"),
            data.name(),
            in_words(sender.payload_bytes, "B")
        );
        run.judge(Severity::Invalid, "wrong_direction", text);
    } else if sender.first_ns.is_none() {
        let what = match sender.packets + receiver.packets {
            0 => "no packet",
            _ => "no data, only packets without payload",
        };
        let text = format!("The hosts of flow {flow} ({name}) sent {what}.");
        run.judge(Severity::Invalid, "no_data", text);
    }
    if *stray > 0 {
        let text = format!(
            "The program of flow {flow} ({name}) sent {stray} packets that were not for its other end; they were discarded."
        );
        run.judge(Severity::Degraded, "stray_packets", text);
    }
}

fn seconds(ns: i64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// Its last line of output, as part of a sentence.
fn last_line(report: &ProgramReport) -> String {
    report.last_line.as_ref().map_or_else(String::new, |line| {
        format!("; its last line was \"{line}\"")
    })
}

fn list_names(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The name of a signal with which programs are likely to end.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        24 => " (SIGXCPU, its limit of processor time)",
        25 => " (SIGXFSZ, its limit of the size of files)",
        31 => " (SIGSYS)",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
