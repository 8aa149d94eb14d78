//! Every congestion control program for the kernel compared with the native scheme of the same name: both receive the
//! same acknowledgements, losses, marks and timeouts, and must have the same window up to rounding. A wrong constant
//! planted in a program must be found by the same comparison.

mod cases;
mod missed;
mod path;
mod program;

use cases::{CASES, Case, PATHS};
use narrows_cc::{Recovery, Scheme, Setup, schemes};
use narrows_units::{Bytes, Kind, ParamSpec, Params, Stream, Value};
use path::{Connection, Expected, MSS, Path};
use program::{Answer, Program};
use std::fmt::Write;

/// Packets sent on each path.
const PACKETS: u64 = 16_000;
/// Number of random numbers provided to both, more than either uses.
const RANDOMS: usize = 1_000;

fn random() -> Stream {
    Stream::new(1, "scheme")
}

/// A value as the loader writes it into a program.
fn encoded(spec: &ParamSpec, value: &Value) -> u64 {
    match (spec.kind, value) {
        (_, Value::Real(real)) => (real * 65536.0).round() as u64,
        (Kind::Span, Value::Integer(ns)) => ns / 1000,
        (Kind::Rate, Value::Integer(bps)) => bps / 8,
        (_, Value::Integer(integer)) => *integer,
        (_, Value::Flag(flag)) => u64::from(*flag),
        (Kind::Choice(words), Value::Word(word)) => words
            .iter()
            .position(|known| known == word)
            .expect("one of the words") as u64,
        other => panic!("{}: no encoding for {other:?}", spec.name),
    }
}

/// The difference between scheme and program at an event, relative to the tolerance.
fn share(case: &Case, expected: &Expected, answer: &Answer) -> f64 {
    let packets = |native: f64, program: u64| {
        (native - program as f64).abs() / (case.packets + case.share * native)
    };
    let window = packets(expected.window, answer.cwnd);
    let threshold = expected.threshold.map(|it| packets(it, answer.ssthresh));
    let pacing = expected.pacing.map(|native| {
        // Bytes per second: a rate moves in the ratio of the window.
        (native - answer.pacing as f64).abs() / (case.pacing * native + 1.0)
    });
    window
        .max(threshold.unwrap_or(0.0))
        .max(pacing.unwrap_or(0.0))
}

/// The largest difference between scheme and program, relative to the tolerance, and its position; without the share of
/// events at which they may differ.
fn difference(case: &Case, program: &Program, path: Path, given: &[(&str, &str)]) -> (f64, String) {
    let scheme: &Scheme = schemes::find(case.name).expect("a native scheme");
    let spec = |name: &str| {
        scheme
            .params
            .iter()
            .find(|spec| spec.name == name)
            .unwrap_or_else(|| panic!("{}: the native scheme has no parameter '{name}'", case.name))
    };
    let values = given
        .iter()
        .chain(case.native)
        .map(|(name, text)| ((*name).to_owned(), spec(name).parse(text).expect("a value")));
    let params = Params::resolve(scheme.params, values).expect("parameters");
    let mut settings = String::new();
    for (name, text) in given {
        let value = spec(name).parse(text).expect("a value");
        let value = encoded(spec(name), &value);
        writeln!(settings, "p param_{name} {value}").expect("writing to a string cannot fail");
    }
    let setup = Setup {
        mss: Bytes::new(MSS),
        initial_window: 10,
        now: Connection::birth(),
        random: random(),
        ecn: true,
        files: narrows_units::Files::default(),
    };
    let mut numbers = random();
    for _ in 0..RANDOMS {
        // The kernel's have 32 bits.
        writeln!(settings, "r {}", numbers.bits() >> 32).expect("writing to a string cannot fail");
    }
    let mut native = (scheme.build)(&params, setup).expect("a scheme");
    let paced = scheme.recovery == Recovery::Direct;
    let mut connection = Connection::new(path, &mut *native, paced, 7);
    connection.play(PACKETS);
    let events = settings + &connection.lines;
    let answers = program.play(&events);
    let answers = &answers[given.len() + RANDOMS..];
    assert_eq!(
        answers.len(),
        connection.expected.len(),
        "one answer for each event"
    );
    if std::env::var("NARROWS_SHOW")
        .is_ok_and(|name| name == format!("{}/{}", case.name, path.name))
    {
        // For finding the event at which the two diverge.
        let events = connection
            .lines
            .lines()
            .zip(answers)
            .zip(&connection.expected);
        for (index, ((event, answer), native)) in events.enumerate() {
            println!("{given:?} {index} {event}: {answer:?} {native:?}");
        }
    }
    let mut shares = vec![];
    for (index, (answer, expected)) in answers.iter().zip(&connection.expected).enumerate() {
        if let Some(expected) = expected {
            shares.push((share(case, expected, answer), index));
        }
    }
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    let skipped = (case.apart * shares.len() as f64) as usize;
    let (share, index) = shares[skipped];
    let place = format!(
        "{:?} natively, {:?} in the program, event {index}",
        connection.expected[index], answers[index]
    );
    (share, place)
}

/// The largest difference on all paths and with all settings, or the first that is too large.
fn worst(case: &Case, program: &Program) -> (f64, String) {
    let mut worst = (0.0, String::new());
    let settings = std::iter::once::<&[(&str, &str)]>(&[]).chain(case.settings.iter().copied());
    for given in settings {
        for path in PATHS
            .iter()
            .filter(|path| !case.except.contains(&path.name))
        {
            let (share, place) = difference(case, program, *path, given);
            if share > worst.0 {
                worst = (share, format!("{} with {given:?}: {place}", path.name));
            }
            if share > 1.0 {
                return worst;
            }
        }
    }
    worst
}

fn case(name: &str) -> &'static Case {
    CASES
        .iter()
        .find(|case| case.name == name)
        .unwrap_or_else(|| {
            panic!("{name}: say in cases.rs how the program is compared with the native scheme")
        })
}

/// Names of the programs.
fn compared() -> Vec<String> {
    let mut names = program::names();
    assert!(!names.is_empty());
    if let Ok(only) = std::env::var("NARROWS_PROGRAM") {
        // For work on a single program.
        names.retain(|name| *name == only);
    }
    names
}

#[test]
fn programs_and_native_schemes_have_the_same_windows() {
    let mut failures = vec![];
    for name in compared() {
        let case = case(&name);
        let (share, place) = worst(case, &Program::compile(&program::source(&name)));
        println!(
            "{name}: {:.0} % of what is tolerated; {place}",
            share * 100.0
        );
        if share > 1.0 {
            failures.push(format!("{name}: {place}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn parameters_and_defaults_are_those_of_the_native_scheme() {
    for name in compared() {
        let program = Program::compile(&program::source(&name));
        let scheme = schemes::find(&name).expect("a native scheme");
        for param in program.params() {
            let spec = scheme.params.iter().find(|spec| spec.name == param);
            let spec = spec.unwrap_or_else(|| panic!("{name}: no native parameter '{param}'"));
            let default = spec
                .default_value()
                .unwrap_or_else(|| panic!("{name}: no default of '{param}'"));
            let compiled = program.play(&format!("g param_{param}\n"))[0].cwnd;
            assert_eq!(
                compiled,
                encoded(spec, &default),
                "{name}: default of '{param}'"
            );
        }
    }
}

#[test]
fn wrong_constants_are_found() {
    for name in compared() {
        let case = case(&name);
        assert!(
            !case.mutations.is_empty(),
            "{name}: plant at least one wrong constant in cases.rs"
        );
        for (right, wrong) in case.mutations {
            let source = program::source(&name);
            assert!(
                source.contains(right),
                "{name}: '{right}' is not in the program"
            );
            let mutated = Program::compile(&source.replace(right, wrong));
            let (share, _) = worst(case, &mutated);
            println!(
                "{name} with {wrong}: {:.0} % of what is tolerated",
                share * 100.0
            );
            assert!(
                share > 1.0,
                "{name}: '{wrong}' instead of '{right}' was not found"
            );
        }
    }
}
