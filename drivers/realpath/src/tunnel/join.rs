//! Joins the folders of both ends into one table.

use super::folder::EndFolder;
use super::report::clock_json;
use narrows_cell::RunError;
use narrows_tunnel::clock::{ClockConfig, Fit};
use narrows_tunnel::merge::{
    DirectionSummary, LogDirection, MergedLogs, clocks, is_resolved, merge_logs, summarise,
};
use narrows_units::{Span, Time};
use serde_json::{Value, json};
use std::path::Path;

/// Joins the logs of two ends; the clock of the one in `reference` is used for everything. With
/// `lenient`, truncated logs are used up to the truncation, with remarks.
///
/// # Errors
/// [`RunError::Input`] with the file and its problem.
pub fn join(reference: &Path, other: &Path, lenient: bool) -> Result<Value, RunError> {
    let (here, there) = (
        EndFolder::read(reference, lenient)?,
        EndFolder::read(other, lenient)?,
    );
    here.check_pair(&there)?;
    let all = clocks(&here.arrived, &there.arrived, ClockConfig::default());
    let Some(fit) = all.fit() else {
        return Err(here.no_clocks(&there, all.implausible()));
    };
    let forth = direction(LogDirection::Forward, &here, &there, &fit)?;
    let back = direction(LogDirection::Reverse, &there, &here, &fit)?;
    let times = here.sent.iter().map(|row| row.sent);
    let times = times.chain(here.arrived.iter().map(|row| row.arrived));
    let (from, to) = times.fold((Time::FAR, Time::ZERO), |(from, to), time| {
        (from.min(time), to.max(time))
    });
    let error = fit.largest_error(from, to);
    let mut remarks = here.remarks.clone();
    remarks.extend(there.remarks.iter().cloned());
    remarks.extend(here.doubt());
    remarks.extend(there.doubt());
    remarks.extend(doubts(&fit, error, &[("there", &forth), ("back", &back)]));
    Ok(json!({
        "format": "narrows/tunnel-join/1",
        "reference": {"folder": reference.display().to_string(), "role": here.document["role"]},
        "other": {"folder": other.display().to_string(), "role": there.document["role"]},
        "clock": {
            "start": clock_json(&fit, from), "end": clock_json(&fit, to),
            "largest_error_ns": error.ns(), "implausible": all.implausible(),
        },
        "there": direction_json(&forth, error),
        "back": direction_json(&back, error),
        "remarks": remarks,
    }))
}

/// The packets of one direction, from the end that sent them to the other.
///
/// # Errors
/// [`RunError::Input`] with the log that is not in order.
pub(crate) fn direction(
    way: LogDirection,
    from: &EndFolder,
    to: &EndFolder,
    fit: &Fit,
) -> Result<MergedLogs, RunError> {
    merge_logs(way, &from.sent, &to.arrived, fit)
        .map_err(|error| RunError::Input(format!("{}: {error}", from.sent_file().display())))
}

/// Remarks for a careful reader.
fn doubts(fit: &Fit, error: Span, directions: &[(&str, &MergedLogs)]) -> Vec<String> {
    let mut doubts = Vec::new();
    if fit.jumps() > 0 {
        doubts.push(format!(
            "a clock was set {} times; delays around these times are meaningless",
            fit.jumps()
        ));
    } else if fit.lines() > 1 {
        doubts.push(format!(
            "{} lines were needed for the relation of the clocks; one of them was corrected, or the run was long",
            fit.lines()
        ));
    }
    for (name, joined) in directions {
        if joined.unknown > 0 {
            doubts.push(format!(
                "{name}: {} datagrams arrived that are not in the log of sent packets, which is incomplete",
                joined.unknown
            ));
        }
        if joined.contradicting > 0 {
            doubts.push(format!(
                "{name}: {} datagrams have other stamps or sizes at the two ends; the logs are of different runs",
                joined.contradicting
            ));
        }
        let negative = joined
            .packets
            .iter()
            .filter(|packet| packet.delay_ns.is_some_and(|delay| delay < 0));
        let negative = negative.count();
        if negative > 0 {
            doubts.push(format!(
                "{name}: {negative} delays are negative, where a clock was disturbed"
            ));
        }
        let summary = summarise(&joined.packets);
        if summary.arrived > 0 && !is_resolved(&summary, error) {
            doubts.push(format!(
                "{name}: the clocks may be off by {:.3} ms, more than the delays vary; one-way delays are \
                 only known as their sum with those of the other direction",
                error.ns() as f64 / 1e6
            ));
        }
    }
    doubts
}

fn direction_json(joined: &MergedLogs, error: Span) -> Value {
    let summary = summarise(&joined.packets);
    let DirectionSummary {
        sent,
        arrived,
        arrived_bytes,
        lost,
        undecided,
        delay_ns,
        marked,
        dscp_changed,
    } = &summary;
    let delays = delay_ns.map(|[min, p50, p95, p99, max]| {
        json!({"min": min, "p50": p50, "p95": p95, "p99": p99, "max": max})
    });
    json!({
        "sent": sent, "arrived": arrived, "arrived_bytes": arrived_bytes, "lost": lost,
        "undecided": undecided, "delay_ns": delays, "resolved": is_resolved(&summary, error),
        "marked": marked, "dscp_changed": dscp_changed,
        "unknown": joined.unknown, "again": joined.again, "contradicting": joined.contradicting,
    })
}
