//! Plans of tunnels and of peers: any content is accepted or rejected with one sentence, and the secret is never
//! disclosed.

use narrows_cell::RunError;
use narrows_realpath::peer;
use narrows_realpath::tunnel::TunnelPlan;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Eight consecutive digits of this are in no message by chance.
const SECRET: &str = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
const KEYS: [&str; 15] = [
    "format",
    "bind",
    "dial",
    "interface",
    "secret",
    "folder",
    "outer_mtu",
    "inner_mtu",
    "patience_ns",
    "silence_ns",
    "clock_gap_ns",
    "clock",
    "command",
    "host",
    "other",
];

fn plan() -> Value {
    json!({
        "format": "narrows/tunnel/1", "bind": "0.0.0.0:7000", "dial": "192.0.2.1:7000", "secret": SECRET,
        "folder": "/tmp/x", "outer_mtu": 1500, "inner_mtu": 1400, "patience_ns": 1_000_000_000,
        "silence_ns": 1_000_000_000, "clock_gap_ns": 100_000_000,
        "clock": {"offset_ns": 5, "drift_ppb": -5}, "command": ["true"],
    })
}

fn side() -> Value {
    json!({
        "format": "narrows/side/1", "host": 1, "folder": "/tmp/x", "cell": {}, "files": {"a": "AA=="},
        "tunnel": {"bind": "0.0.0.0:7000", "dial": "192.0.2.1:7000", "interface": null, "secret": SECRET},
    })
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0u64..10_000).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        Just(json!("[2001:db8::1]:7000")),
        Just(json!("192.0.2.9:0")),
        Just(json!([])),
        Just(json!({"offset_ns": i64::MIN, "drift_ppb": i64::MIN})),
        Just(json!({"offset_ns": 1e300})),
    ]
}

fn check(text: &str) -> Result<(), TestCaseError> {
    match TunnelPlan::parse(text) {
        Ok(plan) => {
            prop_assert!(plan.outer_mtu >= 1280 && plan.outer_mtu <= 9000);
            prop_assert!((576..plan.outer_mtu).contains(&plan.inner_mtu()));
            prop_assert!(
                plan.dial
                    .is_none_or(|dial| dial.is_ipv4() == plan.bind().is_ipv4())
            );
            prop_assert!(plan.clock.drift_ppb.unsigned_abs() <= 1_000_000);
        }
        Err(error) => check_refusal(&error)?,
    }
    Ok(())
}

fn check_refusal(error: &RunError) -> Result<(), TestCaseError> {
    let sentence = error.to_string();
    prop_assert!(
        !sentence.is_empty() && !sentence.contains('\n'),
        "{}",
        sentence
    );
    prop_assert!(!sentence.contains(&SECRET[..8]), "{}", sentence);
    Ok(())
}

fn check_side(text: &str) -> Result<(), TestCaseError> {
    peer::PeerPlan::parse(text).map_or_else(|error| check_refusal(&error), |_| Ok(()))
}

#[test]
fn names_with_line_breaks_are_quoted_in_one_line() {
    let text = plan().to_string().replace("silence_ns", r"sil\nce_ns");
    let error = TunnelPlan::parse(&text).unwrap_err().to_string();
    assert!(error.contains(r"`sil\nce_ns`"), "{error}");
    check(&text).unwrap();
}

#[test]
fn names_that_swallowed_the_secret_are_quoted_without_it() {
    let text = plan().to_string().replace(r#""secret":""#, r#""secret#: "#);
    let error = TunnelPlan::parse(&text).unwrap_err().to_string();
    assert!(error.contains("unknown field `secret#: …`"), "{error}");
    let text = side()
        .to_string()
        .replace(r#""format":""#, &format!(r#""secret#: {SECRET}":""#));
    let error = peer::PeerPlan::parse(&text).unwrap_err().to_string();
    assert!(error.contains("unknown field `secret#: …`"), "{error}");
    // Another value in place of the secret, and the secret in place of another value.
    for key in ["format", "bind", "outer_mtu", "clock"] {
        let mut plan = plan();
        plan[key] = json!(SECRET);
        check(&plan.to_string()).unwrap();
    }
    // Numbers are shown completely.
    let mut plan = plan();
    plan["patience_ns"] = json!(99_999_999_999_999_999u64);
    let error = TunnelPlan::parse(&plan.to_string())
        .unwrap_err()
        .to_string();
    assert!(error.contains("99999999999999999"), "{error}");
}

/// A text with some bytes changed, possibly truncated.
fn damaged(
    text: &str,
    damage: Vec<(prop::sample::Index, u8)>,
    length: Option<prop::sample::Index>,
) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (place, byte) in damage {
        let at = place.index(bytes.len());
        bytes[at] = byte;
    }
    if let Some(length) = length {
        bytes.truncate(length.index(bytes.len()));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn damage() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
}

proptest! {
    #[test]
    fn changed_plans_are_understood_or_refused(changes in prop::collection::vec((0..KEYS.len(), value()), 1..4)) {
        let mut plan = plan();
        for (key, value) in changes {
            plan[KEYS[key]] = value;
        }
        check(&plan.to_string())?;
    }

    #[test]
    fn damaged_texts_are_understood_or_refused(damage in damage(), length: Option<prop::sample::Index>) {
        check(&damaged(&plan().to_string(), damage.clone(), length))?;
        check_side(&damaged(&side().to_string(), damage, length))?;
    }
}
