//! The best window of a path, by trials.

use crate::actions::expert_choice;
use crate::step_counters::Facts;
use narrows_cell::{Cell, CellError};
use narrows_sim::World;
use narrows_units::{Span, Time};

/// Windows that are tried, in bandwidth-delay products.
const TRIED: [f64; 12] = [
    0.35, 0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.6, 2.0, 3.0,
];
/// Duration of a trial, of which the second half counts.
const TRIAL: Span = Span::from_ms(12_000);

/// The window (packets) with the highest ratio of throughput to mean RTT, among multiples of the bandwidth-delay product;
/// the agent holds each as closely as its five actions allow.
pub(crate) fn best_window(cell: &Cell, agent: usize, facts: &Facts) -> Result<f64, CellError> {
    let mut best = (f64::NEG_INFINITY, f64::NAN);
    for factor in TRIED {
        let world = World::with_agents(cell, &[agent])?;
        let packet = world.data_sender(agent).map_or(1, |it| it.packet_sizes().0);
        let bdp = facts.capacity_bps * facts.base_rtt_ns / 8e9 / packet as f64;
        let window = (bdp * factor).round().max(2.0);
        let power = hold(world, agent, window, cell.duration);
        if power > best.0 {
            best = (power, window);
        }
    }
    Ok(best.1)
}

/// Throughput by mean RTT of a flow that holds a window.
fn hold(mut world: World, agent: usize, window: f64, duration: Time) -> f64 {
    let end = duration.min(Time::ZERO + TRIAL);
    let half = Time::from_ns(end.ns() / 2);
    let mut first = None;
    let mut next = world.run_to_decision(end);
    while let Some(decision) = next {
        let Some(sender) = world.data_sender(agent) else {
            break;
        };
        let progress = sender.progress();
        if decision.at >= half && first.is_none() {
            first = Some((decision.at, progress));
        }
        let held = progress.cwnd as f64 / sender.packet_sizes().1 as f64;
        next = world.step(&[expert_choice(held, window) as f32], end);
    }
    let (Some((at, before)), Some(sender)) = (first, world.data_sender(agent)) else {
        return f64::NEG_INFINITY;
    };
    let now = sender.progress();
    let samples = (now.rtt_samples - before.rtt_samples) as f64;
    let rtt = (now.rtt_sum.ns() - before.rtt_sum.ns()) as f64 / samples;
    let delivered = (now.delivered_bytes - before.delivered_bytes) as f64;
    delivered / end.since(at).ns().max(1) as f64 / rtt
}
