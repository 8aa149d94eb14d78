//! Fairness and steadiness over windows of time.
//!
//! Windows follow each other from the last start of a flow under test, as many as fit before the first stop. All flows
//! use the same windows, so that simultaneous throughputs are compared.

use super::bytes_per_second::SECOND;
use super::{Better, Group, Measured, Metric, Scope, Subject};

/// Fairness in windows of this many seconds.
const fn jain(
    name: &'static str,
    label: &'static str,
    compute: fn(&Subject<'_>) -> Measured,
) -> Metric {
    Metric {
        name,
        label,
        better: Some(Better::Higher),
        scope: Scope::All,
        group: Some(Group::Sharing),
        definition: "Mean of Jain's index over successive windows of the time during which all flows run, each over the bits that arrived in the window; windows in which nothing arrived are excluded.",
        source: "Jain, Chiu and Hawe, DEC-TR-301, 1984; time scales as in Ha et al., PFLDnet 2006",
        compute,
        ..Metric::NUMBER
    }
}

/// Steadiness in windows of this many seconds.
const fn cov(
    name: &'static str,
    label: &'static str,
    compute: fn(&Subject<'_>) -> Measured,
) -> Metric {
    Metric {
        name,
        label,
        better: Some(Better::Lower),
        scope: Scope::Any,
        definition: "Standard deviation divided by mean of the throughput in successive windows \
                     of the time during which all flows run. For all flows together: of the sum of those, background included, whose data pass the slowest bottleneck of a flow under test. For a link: of the traffic that passed it, in bytes on its wire.",
        source: "RFC 5166, section 2.1.4 (oscillation); Ha et al., PFLDnet 2006",
        ..jain(name, label, compute)
    }
}

macro_rules! over_windows {
    ($($seconds:literal)*) => {
        /// Registry entries.
        pub(super) const METRICS: &[Metric] = &[
            $(jain(
                concat!("jain_", $seconds, "s"),
                concat!("fairness in windows of ", $seconds, " s"),
                jain_over::<$seconds>,
            ),)*
            $(cov(
                concat!("cov_", $seconds, "s"),
                concat!("CoV of throughput, ", $seconds, " s"),
                cov_over::<$seconds>,
            ),)*
        ];
    };
}
over_windows!(1 5 10 20 40 80 160);

/// Sums of `seconds` over whole windows of `width` seconds, of which at least `minimum` must exist.
pub(super) fn windows(
    subject: &Subject<'_>,
    seconds: &[u64],
    width: usize,
    minimum: usize,
) -> Result<Vec<f64>, String> {
    let span = subject.shared_span_ns;
    let (from, to) = span.ok_or("the flows never run all at the same time")?;
    let count = ((to - from) / SECOND) as usize / width;
    if count < minimum {
        let too_few = match minimum {
            1 => "no window".to_owned(),
            _ => format!("fewer than {minimum} windows"),
        };
        return Err(format!(
            "the time during which all flows run has {too_few} of {width} s"
        ));
    }
    let second = |index: usize| seconds.get(index).copied().unwrap_or(0);
    let window = |n: usize| (n * width..(n + 1) * width).map(second).sum::<u64>() as f64;
    Ok((0..count).map(window).collect())
}

fn jain_over<const WIDTH: usize>(subject: &Subject<'_>) -> Measured {
    let flows: Vec<Vec<f64>> = subject
        .traffic()
        .map(|flow| windows(subject, &flow.seconds, WIDTH, 1))
        .collect::<Result<_, _>>()?;
    if flows.len() < 2 {
        return Err("there is only one flow".into());
    }
    let indices = (0..flows[0].len()).filter_map(|window| {
        let shares = || flows.iter().map(|flow| flow[window]);
        let (sum, squares) = (shares().sum::<f64>(), shares().map(|x| x * x).sum::<f64>());
        (sum > 0.0).then(|| sum * sum / (flows.len() as f64 * squares))
    });
    let indices: Vec<f64> = indices.collect();
    if indices.is_empty() {
        return Err(subject.nothing("arrived while all flows ran"));
    }
    Ok(indices.iter().sum::<f64>() / indices.len() as f64)
}

fn cov_over<const WIDTH: usize>(subject: &Subject<'_>) -> Measured {
    let mut seconds: Vec<u64> = Vec::new();
    match subject.link {
        Some(link) => seconds.extend(&link.seconds),
        None => {
            for flow in subject.with_company() {
                seconds.resize(seconds.len().max(flow.seconds.len()), 0);
                let sums = seconds.iter_mut().zip(&flow.seconds);
                sums.for_each(|(sum, bytes)| *sum += bytes);
            }
        }
    }
    let windows = windows(subject, &seconds, WIDTH, 2)?;
    let mean = windows.iter().sum::<f64>() / windows.len() as f64;
    if mean <= 0.0 {
        return Err(subject.nothing("arrived while all flows ran"));
    }
    let squares: f64 = windows.iter().map(|x| (x - mean) * (x - mean)).sum();
    Ok((squares / windows.len() as f64).sqrt() / mean)
}
