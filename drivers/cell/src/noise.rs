//! The noise of hosts: measured delays with which a process reacts to the events that it waits for.
//!
//! A distribution is one file in `noise/` and its name in the registry below. Its format is JSON:
//!
//! | member | meaning |
//! | --- | --- |
//! | `format` | `narrows/host-noise/1` |
//! | `source` | who measured it, on which machine, and how |
//! | `batch` | maximum number of datagrams that one read of a socket takes |
//! | `arrivals_ns` | from the arrival of a datagram for a sleeping process until it is read |
//! | `timers_ns` | from the expiry of a timer until the process acts |
//!
//! Both are lists of `[share, ns]` from share 0 to share 1, both non-decreasing: that share of the delays is at most
//! `ns`. Between two points the delay is interpolated linearly in the share.

use narrows_units::{Span, Stream};
use serde::Deserialize;
use std::sync::LazyLock;

macro_rules! noises {
    ($($name:literal),+ $(,)?) => {
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("noise/", $name, ".json")))),+];

        /// Values of a host's setting `noise`: `none`, or the name of a distribution.
        pub const NOISES: &[&str] = &["none", $($name),+];
    };
}

// The registry. To add one: a file in `noise/` and its name here.
noises!("linux-vm");

/// Scheduling delays of the processes of a host.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Noise {
    format: String,
    /// Source: who measured it, on which machine, and how.
    pub source: String,
    /// Maximum number of datagrams that one read of a socket takes.
    pub batch: usize,
    /// From the arrival of a datagram for a sleeping process until it is read.
    #[serde(rename = "arrivals_ns")]
    pub arrivals: Delays,
    /// From the expiry of a timer until the process acts.
    #[serde(rename = "timers_ns")]
    pub timers: Delays,
}

impl Noise {
    /// The distribution called `name`; `None` for `none` and names that do not exist.
    pub fn find(name: &str) -> Option<&'static Noise> {
        static ALL: LazyLock<Vec<(&str, Noise)>> = LazyLock::new(|| {
            let read = |&(name, text)| (name, Noise::read(text).expect("shipped files are tested"));
            FILES.iter().map(read).collect()
        });
        ALL.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, noise)| noise)
    }

    /// Reads a distribution.
    fn read(text: &str) -> Result<Self, String> {
        let noise: Noise = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if noise.format != "narrows/host-noise/1" {
            return Err(format!("the format '{}' is not known", noise.format));
        }
        if noise.batch == 0 {
            return Err("batch must be at least 1".into());
        }
        noise.arrivals.check("arrivals_ns")?;
        noise.timers.check("timers_ns")?;
        Ok(noise)
    }
}

/// A distribution of delays by its quantiles.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Delays {
    points: Vec<(f64, u64)>,
}

impl Delays {
    /// Draws a delay.
    #[inline]
    pub fn sample(&self, stream: &mut Stream) -> Span {
        self.quantile(stream.uniform())
    }

    /// The delay that a share of `share`, in `[0, 1)`, does not exceed.
    pub fn quantile(&self, share: f64) -> Span {
        let next = self.points.partition_point(|point| point.0 <= share);
        let next = next.clamp(1, self.points.len() - 1);
        let [(from, low), (to, high)] = [self.points[next - 1], self.points[next]];
        let part = (share - from) / (to - from);
        Span::from_ns(low + ((high - low) as f64 * part).round() as u64)
    }

    fn check(&self, name: &str) -> Result<(), String> {
        let ends = self.points.first().zip(self.points.last());
        let whole = ends.is_some_and(|(first, last)| first.0 == 0.0 && last.0 == 1.0);
        let rises = |pair: &[(f64, u64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
        if whole && self.points.windows(2).all(rises) {
            return Ok(());
        }
        Err(format!(
            "{name} must go from share 0 to share 1, with increasing shares and non-decreasing delays"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_named_is_there_and_tells_its_source() {
        for (name, text) in FILES {
            let noise = Noise::read(text).unwrap();
            assert!(noise.source.len() > 40, "{name}");
            assert_eq!(Noise::find(name), Some(&noise));
        }
        assert_eq!(Noise::find("none"), None);
    }

    #[test]
    fn draws_follow_the_quantiles() {
        let text = r#"{"format": "narrows/host-noise/1", "source": "", "batch": 1,
            "arrivals_ns": [[0, 100], [0.5, 200], [1, 1000]], "timers_ns": [[0, 0], [1, 0]]}"#;
        let noise = Noise::read(text).unwrap();
        assert_eq!(noise.arrivals.quantile(0.25), Span::from_ns(150));
        assert_eq!(noise.arrivals.quantile(0.75), Span::from_ns(600));
        let mut stream = Stream::new(1, "draws");
        let n = 10_000;
        let low = (0..n).filter(|_| noise.arrivals.sample(&mut stream).ns() < 200);
        // Five standard errors of a share of one half.
        let share = low.count() as f64 / f64::from(n);
        assert!((share - 0.5).abs() < 2.5 / f64::from(n).sqrt(), "{share}");
        assert_eq!(noise.timers.sample(&mut stream), Span::ZERO);
    }

    #[test]
    fn distributions_that_are_none_are_refused() {
        for (arrivals, batch) in [
            ("[[0, 1]]", 1),
            ("[[0, 5], [1, 4]]", 1),
            ("[]", 1),
            ("[[0.1, 1], [1, 2]]", 1),
            ("[[0, 1], [1, 2]]", 0),
        ] {
            let text = format!(
                r#"{{"format": "narrows/host-noise/1", "source": "", "batch": {batch},
                "arrivals_ns": {arrivals}, "timers_ns": [[0, 0], [1, 0]]}}"#
            );
            assert!(Noise::read(&text).is_err(), "{text}");
        }
    }
}
