//! Small trainings: reproducible to the last bit, whatever the number of threads and interruptions.

use narrows_learn::{Saved, Training};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A network of 8 units, trained in a few seconds on two listed paths and a few random ones.
fn network_recipe(rounds: u32) -> Value {
    json!({
        "scheme": "indigo", "units": 8, "rounds": rounds,
        "law": {"rate_bps": [2e6, 2e7], "one_way_ms": [10, 40], "poisson": {"share": 0.2, "range": [1e6, 5e6]},
            "queue_bdp": {"share": 0.5, "range": [0.5, 2]}, "loss": {"share": 0.3, "range": [0.001, 0.02]}},
        "pool": 4,
        "paths": [{"rate_bps": 5e6, "one_way_ms": 20}, {"rate_bps": 12e6, "one_way_ms": 20, "queue_packets": 60}],
        "rollouts": 4, "listed_rollouts": 1, "late_hosts": 0.5, "decisions": 200, "updates": 60, "first_updates": 60,
        "batch": 8, "learning_rate": [0.02, 0.002], "decay": 1e-4, "tolerance": 0.05, "replay": 5, "validate_every": 4,
        "validation": 2,
    })
}

fn table_recipe() -> Value {
    let objective = json!({"links": 2, "packets_per_ms": [0.3, 2.0], "seconds": 4, "senders": 2, "active_s": 1,
        "pause_s": 1});
    let short = json!({"links": 1, "packets_per_ms": [0.5, 0.5], "one_way_ms": 20, "seconds": 4, "senders": 3,
        "active_s": 2, "pause_s": 1});
    json!({"scheme": "remy", "rounds": 12, "max_rules": 20, "objective": [objective, short]})
}

/// A policy of 8 units for paths of one kind, trained by rewards.
fn policy_recipe(rounds: u32) -> Value {
    json!({
        "scheme": "aurora", "units": [8], "rounds": rounds,
        "law": {"rate_bps": [2e6, 4e6], "one_way_ms": [20, 40], "queue_packets": {"share": 0.5, "range": [10, 100]},
            "loss": {"share": 0.3, "range": [0.001, 0.02]}},
        "initial_bdp": {"share": 0.5, "range": [0.3, 1.5]}, "reward": "aurora", "episodes": 16, "decisions": 100,
        "discount": 0.95, "trace": 0.95, "clip": 0.2, "epochs": 4, "batch": 400, "learning_rate": [0.005, 0.001],
        "deviation": 0.5, "entropy": 0.0, "validate_every": 5, "validation": 6,
    })
}

fn train(recipe: &Value, threads: usize) -> Vec<u8> {
    let mut training = Training::new(&recipe.to_string(), 1, threads, None).unwrap();
    while !training.is_complete() {
        training.round(threads);
    }
    training.model(&[])
}

fn hash(content: &[u8]) -> String {
    format!("{:x}", Sha256::digest(content))
}

#[test]
fn a_network_is_the_same_with_one_and_two_threads_and_on_every_machine() {
    let recipe = network_recipe(12);
    let model = train(&recipe, 1);
    assert_eq!(hash(&train(&recipe, 2)), hash(&model));
    // Written down once; another value means that simulator or trainer compute something else.
    assert_eq!(hash(&model), NETWORK);
}

#[test]
fn a_rule_table_is_the_same_with_one_and_two_threads_and_on_every_machine() {
    let model = train(&table_recipe(), 1);
    assert_eq!(hash(&train(&table_recipe(), 2)), hash(&model));
    assert_eq!(hash(&model), TABLE);
}

#[test]
fn a_policy_is_the_same_with_one_and_two_threads_and_on_every_machine() {
    let model = train(&policy_recipe(8), 1);
    assert_eq!(hash(&train(&policy_recipe(8), 2)), hash(&model));
    assert_eq!(hash(&model), POLICY);
}

const POLICY: &str = "26aef1d77578f2857a79ffcdaa026d115a1f06e3e1ac5bf8defaa1529a2db3fa";
const NETWORK: &str = "1bba28872ee4bb1ea411cb453faa699c163dc2344da0b58f52ca57bd1dcaf375";
const TABLE: &str = "4744be7f42a4b0d20b0f69ba35d3d28598c5c4298e08626d963807ff2ecc232f";

#[test]
fn a_resumed_training_makes_the_model_of_an_uninterrupted_one() {
    let recipe = network_recipe(9).to_string();
    let whole = train(&network_recipe(9), 1);
    let mut saved = Saved::default();
    let mut training = Training::new(&recipe, 1, 1, None).unwrap();
    for round in 1..=7 {
        training.round(1);
        saved.rows.push((round, training.latest_rows()));
        saved.state = training.to_state();
    }
    // Rows of a round without a state, as a killed training leaves them, are not used.
    saved.rows.push((8, saved.rows[0].1.clone()));
    let mut training = Training::new(&recipe, 1, 2, Some(&saved)).unwrap();
    while !training.is_complete() {
        training.round(2);
    }
    assert_eq!(training.model(&[]), whole);
}

#[test]
fn a_training_doubles_the_power_of_its_network() {
    let mut recipe = network_recipe(12);
    recipe["validate_every"] = 1.into();
    let mut training = Training::new(&recipe.to_string(), 2, 2, None).unwrap();
    training.round(2);
    let first = training.score().unwrap();
    while !training.is_complete() {
        training.round(2);
    }
    let best = training.score().unwrap();
    assert!(best > first + 1.0, "{first} {best}");
}

#[test]
fn a_policy_earns_more_the_longer_it_is_trained() {
    // A policy that changes no rates stays at the 10 packets per round trip with which it begins.
    let mut training = Training::new(&policy_recipe(40).to_string(), 1, 2, None).unwrap();
    let mut earned = Vec::new();
    while !training.is_complete() {
        let row = training.round(2);
        earned.extend(row["validation"].as_f64());
    }
    let best = training.score().unwrap();
    assert_eq!(best, earned.iter().copied().fold(f64::MIN, f64::max));
    assert!(best > 0.8 && best > earned[0] + 0.1, "{earned:?}");
}

#[test]
fn a_policy_resumed_after_each_round_is_that_of_an_uninterrupted_training() {
    let recipe = policy_recipe(8).to_string();
    let mut training = Training::new(&recipe, 1, 1, None).unwrap();
    let mut rows = Vec::new();
    for threads in [1, 2].into_iter().cycle() {
        if training.is_complete() {
            break;
        }
        rows.push(training.round(threads));
        let saved = Saved {
            state: training.to_state(),
            rows: vec![],
        };
        training = Training::new(&recipe, 1, 1, Some(&saved)).unwrap();
    }
    assert_eq!(hash(&training.model(&[])), POLICY);
    assert_eq!(rows.last().unwrap()["round"], 8);
}

#[test]
fn a_rule_table_scores_better_with_every_round_and_is_split() {
    let mut training = Training::new(&table_recipe().to_string(), 1, 2, None).unwrap();
    let mut scores = Vec::new();
    let mut rules = 0;
    while !training.is_complete() {
        let row = training.round(2);
        scores.push(row["score_log2"].as_f64().unwrap());
        rules = rules.max(row["rules"].as_u64().unwrap());
    }
    // Seven rules of thumb: for the start, and for three octaves with a short queue and a long one.
    assert!(rules > 7, "{rules}");
    assert!(
        scores.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9),
        "{scores:?}"
    );
}

#[test]
fn a_rule_table_resumed_after_each_round_is_that_of_an_uninterrupted_training() {
    let recipe = table_recipe().to_string();
    let mut training = Training::new(&recipe, 1, 1, None).unwrap();
    for threads in [1, 2].into_iter().cycle() {
        if training.is_complete() {
            break;
        }
        training.round(threads);
        let saved = Saved {
            state: training.to_state(),
            rows: vec![],
        };
        training = Training::new(&recipe, 1, 1, Some(&saved)).unwrap();
    }
    assert_eq!(hash(&training.model(&[])), TABLE);
}

#[test]
fn damaged_states_and_wrong_recipes_are_refused_in_one_sentence() {
    let good = network_recipe(9);
    let refusal = |recipe: &Value, saved: Option<&Saved>| {
        Training::new(&recipe.to_string(), 1, 1, saved)
            .unwrap_err()
            .to_string()
    };
    let saved = Saved {
        state: b"narrows/learn/1\n\0\0".to_vec(),
        rows: vec![],
    };
    assert!(refusal(&good, Some(&saved)).contains("damaged"));
    for (key, value, word) in [
        ("scheme", json!("reno"), "imitation trains indigo and muses"),
        ("units", json!(0), "units is 0; use 1 to 1024"),
        ("tolerance", json!(-1.0), "tolerance is -1"),
        ("learning_rate", json!([0.01, 5.0]), "learning_rate[1] is 5"),
        ("pool", json!(0), "pool is 0"),
        ("unitz", json!(3), "unitz"),
        (
            "paths",
            json!([{"rate_bps": 1.0, "one_way_ms": 20}]),
            "paths[0]: rate_bps is 1",
        ),
    ] {
        let mut recipe = good.clone();
        recipe[key] = value;
        let text = refusal(&recipe, None);
        assert!(text.contains(word) && !text.contains('\n'), "{key}: {text}");
    }
    let policy = policy_recipe(8);
    assert!(refusal(&policy, Some(&saved)).contains("damaged"));
    for (key, value, word) in [
        ("units", json!([8, 0]), "units is 0; use 1 to 1024"),
        ("units", json!([]), "units has 0 layers; use 1 to 4"),
        (
            "reward",
            json!("orca"),
            "reward is \"orca\"; use aurora or power",
        ),
        ("discount", json!(1.0), "discount is 1; use 0 to 0.9999"),
        ("trace", json!(-0.5), "trace is -0.5"),
        ("episodes", json!(0), "episodes is 0"),
        ("learning_rate", json!([0.01, 5.0]), "learning_rate[1] is 5"),
        (
            "initial_bdp",
            json!({"share": 1, "range": [2, 1]}),
            "initial_bdp.range[1] is 1; use 2 to 100",
        ),
        (
            "law",
            json!({"rate_bps": [1e6, 2e6], "one_way_ms": [9, 3]}),
            "one_way_ms is [9, 3]",
        ),
        ("decisionz", json!(3), "decisionz"),
    ] {
        let mut recipe = policy.clone();
        recipe[key] = value;
        let text = refusal(&recipe, None);
        assert!(text.contains(word) && !text.contains('\n'), "{key}: {text}");
    }
    let mut recipe = good.clone();
    recipe["law"]["loss"]["range"] = json!([0.5, 0.1]);
    assert!(refusal(&recipe, None).contains("loss.range is [0.5, 0.1]"));
    let mut recipe = table_recipe();
    recipe["objective"][0]["links"] = 0.into();
    assert!(refusal(&recipe, None).contains("links is 0"));
    recipe["objective"] = json!([]);
    assert!(refusal(&recipe, None).contains("objective has no networks"));
}
