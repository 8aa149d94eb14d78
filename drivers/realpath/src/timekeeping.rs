//! Synchronisation of the machine's clock: the reports of the kernel and of the time service. Facts
//! for records; they are not used to relate two clocks, which the tunnel does independently.

use narrows_netns::host_info;
use narrows_sys::clock::{self, Discipline};
use serde_json::{Value, json};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Format of the document.
const FORMAT: &str = "narrows/clock/1";
/// Programs answer within milliseconds, or not at all.
const PATIENCE: Duration = Duration::from_secs(3);
/// Maximum length of an answer.
const MAX_ANSWER: u64 = 1 << 14;
const NS_PER_S: f64 = 1e9;

/// The current state of the machine's clock, as JSON. Members with unknown values are null.
///
/// - `real_ns`, `raw_ns`: `CLOCK_REALTIME` and `CLOCK_MONOTONIC_RAW` at the same time. Two such
///   documents show whether the clock was set or corrected in between.
/// - `max_error_ns`, `estimated_error_ns`, `correction_ppb`: from the kernel, adjtimex(2). The
///   correction is the rate by which the clock runs faster than the oscillator.
/// - `keeper`: the report of the time service.
/// - `synchronized`: whether either of them reports that the clock is synchronised. (chrony informs
///   the kernel only if `rtcsync` is configured.)
/// - `bound_ns`: the error bound according to the time service, else to the kernel.
pub fn examine() -> Value {
    let kept = clock::discipline().ok();
    let keeper = chrony().or_else(timesyncd);
    let raw_ns = clock::raw_ns();
    let real_ns = clock::real_minus_raw_ns().checked_add_unsigned(raw_ns);
    let bound_ns = bound_ns(kept, keeper.as_ref());
    json!({
        "format": FORMAT,
        "real_ns": real_ns,
        "raw_ns": raw_ns,
        "source": host_info::clocksource(),
        "synchronized": bound_ns.is_some(),
        "max_error_ns": kept.map(|kept| kept.max_error_ns),
        "estimated_error_ns": kept.map(|kept| kept.estimated_error_ns),
        "correction_ppb": kept.map(|kept| kept.correction_ppb),
        "bound_ns": bound_ns,
        "keeper": keeper,
    })
}

fn bound_ns(kept: Option<Discipline>, keeper: Option<&Value>) -> Option<u64> {
    let of_keeper = keeper.and_then(|keeper| keeper["bound_ns"].as_u64());
    let of_kernel = kept.filter(|kept| kept.synchronized);
    of_keeper.or_else(|| Some(of_kernel?.max_error_ns))
}

fn chrony() -> Option<Value> {
    read_chrony(&ask(&["chronyc", "-c", "-n", "tracking"])?)
}

/// The line of `chronyc -c tracking`: the values of its report without their names, separated by
/// commas (print_report in chrony's client.c; chronyc(1) describes them).
fn read_chrony(text: &str) -> Option<Value> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let [
        _id,
        reference,
        stratum,
        updated,
        behind,
        _last,
        _rms,
        frequency,
        _residual,
        skew,
        delay,
        dispersion,
        _interval,
        leap,
    ] = fields[..]
    else {
        return None;
    };
    let seconds = |text: &str| Some((number(text)? * NS_PER_S).round() as i64);
    let behind_ns = seconds(behind)?;
    let (delay_ns, dispersion_ns) = (seconds(delay)?, seconds(dispersion)?);
    // chronyc(1): the error is at most the sum of offset, dispersion and half of the delay.
    let bound_ns =
        behind_ns.unsigned_abs() + dispersion_ns.unsigned_abs() + delay_ns.unsigned_abs() / 2;
    let is_kept = leap != "Not synchronised";
    Some(json!({
        "program": "chrony",
        "reference": (!reference.is_empty()).then_some(reference),
        "stratum": stratum.parse::<u32>().ok()?,
        // It reports by how much the clock is slow.
        "offset_ns": -behind_ns,
        "bound_ns": is_kept.then_some(bound_ns),
        "root_delay_ns": delay_ns,
        "root_dispersion_ns": dispersion_ns,
        // By how much the oscillator alone would be fast, and its uncertainty.
        "frequency_ppb": (number(frequency)? * 1e3).round() as i64,
        "skew_ppb": (number(skew)? * 1e3).round() as i64,
        "updated_s": number(updated)?,
        "leap": leap,
    }))
}

fn timesyncd() -> Option<Value> {
    read_timesyncd(&ask(&["timedatectl", "show-timesync", "--no-pager"])?)
}

/// The lines `NAME=VALUE` of `timedatectl show-timesync` (timedatectl(1)): a running service
/// without a server names none.
fn read_timesyncd(text: &str) -> Option<Value> {
    let find = |name: &str| {
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        (!value.is_empty()).then_some(value)
    };
    let server = find("ServerName").or_else(|| find("ServerAddress"))?;
    let message = find("NTPMessage").unwrap_or_default();
    let inside = message.trim_matches(['{', '}', ' ']).split(',');
    let stratum = inside
        .filter_map(|part| part.trim().split_once('='))
        .find(|(name, _)| *name == "Stratum");
    Some(json!({
        "program": "systemd-timesyncd",
        "reference": server,
        "stratum": stratum.and_then(|(_, value)| value.parse::<u32>().ok()),
    }))
}

/// A finite number.
fn number(text: &str) -> Option<f64> {
    // A year is 3e16 ns: far from the limits of integer conversions.
    text.parse().ok().filter(|value: &f64| value.abs() < 1e10)
}

/// Output of a program, if it exists and ends successfully in time.
fn ask(words: &[&str]) -> Option<String> {
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let limit = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < limit => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let mut text = String::new();
    child
        .stdout?
        .take(MAX_ANSWER)
        .read_to_string(&mut text)
        .ok()?;
    status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_chrony_is_understood() {
        let line = "C0000207,192.0.2.7,2,1795256100.123456789,0.000250000,-0.000012,0.000034,-12.345,\
                    0.001,0.056,0.004000000,0.001000000,64.5,Normal\n";
        let found = read_chrony(line).unwrap();
        assert_eq!(
            (&found["reference"], &found["stratum"]),
            (&json!("192.0.2.7"), &json!(2))
        );
        // 0.25 ms slow, with an error of at most 0.25 + 1 + 4 / 2 ms.
        assert_eq!(found["offset_ns"], -250_000);
        assert_eq!(found["bound_ns"], 3_250_000);
        assert_eq!(
            (&found["frequency_ppb"], &found["skew_ppb"]),
            (&json!(-12_345), &json!(56))
        );
        let nobody = "7F7F0101,,0,0.000000000,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised";
        let found = read_chrony(nobody).unwrap();
        assert_eq!(
            (&found["reference"], &found["bound_ns"]),
            (&Value::Null, &Value::Null)
        );
        let (word, endless) = (
            line.replace("-12.345", "x"),
            line.replace("0.004000000", "inf"),
        );
        for wrong in ["", "506 Cannot talk to daemon", &word, &endless] {
            assert_eq!(read_chrony(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_properties_of_timesyncd_are_understood() {
        let text = "FallbackNTPServers=ntp.example.org\nServerName=ntp.example.net\nServerAddress=192.0.2.9\n\
                    NTPMessage={ Leap=0, Version=4, Mode=4, Stratum=3, RootDelay=1.2ms }\nFrequency=-1\n";
        assert_eq!(
            read_timesyncd(text).unwrap(),
            json!({"program": "systemd-timesyncd", "reference": "ntp.example.net", "stratum": 3})
        );
        let text = text.replace("ServerName=ntp.example.net\n", "");
        assert_eq!(read_timesyncd(&text).unwrap()["reference"], "192.0.2.9");
        assert_eq!(
            read_timesyncd("FallbackNTPServers=ntp.example.org\nServerName=\n"),
            None
        );
    }

    #[test]
    fn the_clock_of_this_machine_is_described() {
        let (before, found, after) = (clock::raw_ns(), examine(), clock::raw_ns());
        assert_eq!(found["format"], FORMAT);
        let raw = found["raw_ns"].as_u64().unwrap();
        assert!((before..=after).contains(&raw));
        assert!(found["real_ns"].as_u64().unwrap() > 1_600_000_000_000_000_000);
    }

    #[test]
    fn the_account_of_the_keeper_is_preferred_to_that_of_the_kernel() {
        let kernel = |synchronized| {
            Some(Discipline {
                synchronized,
                max_error_ns: 9_000,
                estimated_error_ns: 1,
                correction_ppb: 0,
            })
        };
        let keeper = |bound: Option<u64>| Some(json!({"program": "any", "bound_ns": bound}));
        for (kept, keeper, expected) in [
            (kernel(true), keeper(Some(70)), Some(70)),
            (kernel(false), keeper(Some(70)), Some(70)),
            (kernel(true), keeper(None), Some(9_000)),
            (kernel(true), None, Some(9_000)),
            (kernel(false), keeper(None), None),
            (None, None, None),
        ] {
            assert_eq!(
                bound_ns(kept, keeper.as_ref()),
                expected,
                "{kept:?} {keeper:?}"
            );
        }
    }

    #[test]
    fn a_program_that_hangs_or_is_not_there_says_nothing() {
        assert_eq!(ask(&["narrows-has-no-such-program"]), None);
        assert_eq!(ask(&["false"]), None);
        assert_eq!(ask(&["echo", "a", "b"]).as_deref(), Some("a b\n"));
    }
}
