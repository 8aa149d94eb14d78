//! Convergence: the time until flows share fairly.
//!
//! The time during which all flows run is divided into successive windows; the flows have converged in the first window
//! in which each flow is within a tenth of its fair share. Runs in which they never converge have no convergence time:
//! it is only known to exceed the observed time. A mean over runs that substitutes the length of the run, as published
//! tables have done, depends on how long the runs were; therefore summaries contain the share of the runs that
//! converged, and the median of their times.

use super::time_scales::windows;
use super::bytes_per_second::SECOND;
use super::{Better, Group, Measured, Metric, Scope, Subject};

/// Maximum deviation of each flow from the mean of all, relative to the mean.
const DELTA: f64 = 0.1;

const fn time(
    name: &'static str,
    label: &'static str,
    happened: &'static str,
    compute: fn(&Subject<'_>) -> Measured,
) -> Metric {
    Metric {
        name,
        label,
        show_unit: "s",
        show_scale: 1e-9,
        scope: Scope::All,
        group: Some(Group::Sharing),
        happened: Some(happened),
        definition: "Time from the last start of a flow to the middle of the first window in which \
                     the throughput of every flow is within 10 % of their mean. Runs in which that never happens have no value: compare it with the share of the runs that converged.",
        source: "delta-fair convergence time with delta = 0.1 (RFC 5166; Bansal et al., SIGCOMM \
                 2001); windows of 10 s as in Ha et al., PFLDnet 2006",
        compute,
        ..Metric::TIME
    }
}

const fn share(
    name: &'static str,
    label: &'static str,
    compute: fn(&Subject<'_>) -> Measured,
) -> Metric {
    Metric {
        unit: "1",
        show_unit: "",
        show_scale: 1.0,
        better: Some(Better::Higher),
        happened: None,
        definition: "1 if there is a window in which the throughput of every flow is within 10 % of \
                     their mean while all flows run, else 0; the mean over runs is the share of the \
                     runs in which the flows converged.",
        ..time(name, label, "", compute)
    }
}

macro_rules! over_windows {
    ($($seconds:literal)*) => {
        /// Registry entries.
        pub(super) const METRICS: &[Metric] = &[$(
            time(
                concat!("convergence_", $seconds, "s_ns"),
                concat!("convergence time, windows of ", $seconds, " s"),
                concat!("converged_", $seconds, "s"),
                time_over::<$seconds>,
            ),
            share(
                concat!("converged_", $seconds, "s"),
                concat!("runs converged, windows of ", $seconds, " s"),
                share_over::<$seconds>,
            ),
        )*];
    };
}
over_windows!(1 10);

/// The first window in which all flows had about the same throughput, and the number of windows.
fn first_fair<const WIDTH: usize>(subject: &Subject<'_>) -> Result<(Option<usize>, usize), String> {
    if subject.traffic().count() < 2 {
        return Err("there is only one flow".into());
    }
    let starts = subject.cell.flows_under_test().map(|flow| flow.start_ns);
    let shared = subject.shared_span_ns;
    if let (Some(began), Some((from, _))) = (starts.max(), shared)
        && began < from
    {
        return Err("the part of the run that is measured begins after the last start".into());
    }
    let flows: Vec<Vec<f64>> = subject
        .traffic()
        .map(|flow| windows(subject, &flow.seconds, WIDTH, 1))
        .collect::<Result<_, _>>()?;
    let count = flows[0].len();
    let fair = |&window: &usize| {
        let mean = flows.iter().map(|flow| flow[window]).sum::<f64>() / flows.len() as f64;
        // The last term only keeps rounding errors from deciding.
        let near = |bytes: f64| (bytes - mean).abs() <= mean * (DELTA + 1e-12);
        mean > 0.0 && flows.iter().all(|flow| near(flow[window]))
    };
    Ok(((0..count).find(fair), count))
}

fn time_over<const WIDTH: usize>(subject: &Subject<'_>) -> Measured {
    let (first, count) = first_fair::<WIDTH>(subject)?;
    let first = first.ok_or_else(|| {
        format!(
            "the flows did not converge in the {} s that were examined",
            count * WIDTH
        )
    })?;
    Ok(((first * 2 + 1) as u64 * WIDTH as u64 * SECOND / 2) as f64)
}

fn share_over<const WIDTH: usize>(subject: &Subject<'_>) -> Measured {
    let (first, _) = first_fair::<WIDTH>(subject)?;
    Ok(f64::from(u8::from(first.is_some())))
}
