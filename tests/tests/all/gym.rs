//! Episodes of learning environments: the decisions of a recorded run, on any number of threads, in little memory.

use crate::decisions::{best, cell, networks, parse};
use narrows_cc::testing::example_files;
use narrows_gym::{COUNTERS, Course, Ending, Outputs, Reward, Worlds};
use narrows_sim::{Limits, run_to_record_deciding};

/// The results of `count` episodes of one agent.
struct Results {
    observations: Vec<f32>,
    counters: Vec<f64>,
    rewards: Vec<f64>,
    clipped: Vec<u32>,
    endings: Vec<u8>,
}

impl Results {
    fn new(count: usize, inputs: usize) -> Self {
        Results {
            observations: vec![0.0; count * inputs],
            counters: vec![0.0; count * COUNTERS.len()],
            rewards: vec![0.0; count],
            clipped: vec![0; count],
            endings: vec![0; count],
        }
    }

    fn outputs(&mut self) -> Outputs<'_> {
        Outputs {
            observations: &mut self.observations,
            counters: &mut self.counters,
            rewards: &mut self.rewards,
            clipped: &mut self.clipped,
            endings: &mut self.endings,
        }
    }
}

fn worlds(
    schemes: &[&str],
    late_hosts: bool,
    rate: &str,
    loss: f64,
    count: usize,
    threads: usize,
) -> Worlds {
    let course = Course {
        cell: cell(schemes, late_hosts, rate, loss),
        files: example_files(),
    };
    Worlds::new(
        vec![course],
        vec![0],
        count,
        Reward::Power,
        u32::MAX,
        threads,
    )
    .unwrap()
}

#[test]
fn an_episode_has_the_decisions_of_the_recorded_run_of_its_cell() {
    for (schemes, late_hosts, rate, loss) in [
        (&["indigo"][..], false, "constant", 0.0),
        (&["indigo", "cubic"], true, "poisson", 0.01),
        (&["muses", "indigo"], true, "constant", 0.001),
    ] {
        let mut inside = networks(schemes);
        let mut expected: Vec<(u64, Vec<f32>, f32)> = Vec::new();
        let recorded = parse(&cell(schemes, late_hosts, rate, loss));
        run_to_record_deciding(
            &recorded,
            &Limits::UNLIMITED,
            &mut |decision, inputs, action| {
                let choice = best(inside[decision.flow].step(inputs));
                action.push(choice);
                if decision.flow == 0 {
                    expected.push((decision.at.ns(), inputs.to_vec(), choice));
                }
            },
        )
        .unwrap();
        let mut worlds = worlds(schemes, late_hosts, rate, loss, 1, 1);
        let inputs = worlds.inputs();
        let mut results = Results::new(1, inputs);
        worlds
            .reset(&[Some((0, 7))], &mut results.outputs())
            .unwrap();
        let mut outside = networks(schemes);
        let mut seen = 0;
        while results.endings[0] == Ending::Running as u8 {
            let choice = best(outside[0].step(&results.observations));
            let (at, observation, expected) = &expected[seen];
            assert_eq!(
                (results.counters[0] as u64, &results.observations),
                (*at, observation)
            );
            assert_eq!(choice, *expected);
            seen += 1;
            worlds.step(&[choice], &[false], &mut results.outputs());
        }
        assert_eq!(results.endings[0], Ending::Duration as u8);
        assert!(seen > 200 && seen == expected.len());
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let play = |threads| {
        let mut worlds = worlds(&["indigo"], true, "poisson", 0.01, 9, threads);
        let mut results = Results::new(9, worlds.inputs());
        let starts: Vec<_> = (0..9).map(|seed| Some((0, seed))).collect();
        worlds.reset(&starts, &mut results.outputs()).unwrap();
        for step in 0..200 {
            let actions: Vec<f32> = (0..9).map(|k| ((step + k) % 5) as f32).collect();
            worlds.step(&actions, &[false; 9], &mut results.outputs());
        }
        (results.observations, results.counters, results.rewards)
    };
    let alone = play(1);
    assert!(alone == play(2) && alone == play(9));
}

#[test]
fn flows_that_leave_no_decisions_are_no_agents() {
    let course = Course {
        cell: cell(&["indigo", "cubic"], false, "constant", 0.0),
        files: example_files(),
    };
    let refused = Worlds::new(vec![course], vec![1], 1, Reward::Power, 10, 1);
    let said = refused.err().unwrap().to_string();
    assert!(said.contains("flow 2: cubic makes no decisions"), "{said}");
}
