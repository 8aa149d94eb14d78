//! Dividing a run among several threads.

use super::handle::Handle;
use narrows_cell::Cell;
use narrows_net::Network;

/// Cost of a data packet relative to an acknowledgement.
const DATA: u64 = 2;

/// The number of a thread, from 0, for each port: those of the network's hosts, then those of private hosts. There are
/// at most `maximum` threads, and at most one per [group](Network::groups) of hosts that send; all have about the same
/// number of flows.
pub fn split(cell: &Cell, network: &Network<Handle>, maximum: usize) -> Vec<usize> {
    let groups = network.groups();
    let mut load = vec![0; groups.len()];
    for flow in &cell.flows {
        load[usize::from(groups[usize::from(flow.from)])] += DATA;
        load[usize::from(groups[usize::from(flow.to)])] += 1;
    }
    let busy = load.iter().filter(|&&load| load > 0).count();
    let mut carries = vec![0; maximum.min(busy).max(1)];
    // The heaviest first, each to the thread with the smallest load so far.
    let mut order: Vec<usize> = (0..load.len()).collect();
    order.sort_by_key(|&group| std::cmp::Reverse(load[group]));
    let mut thread_of = vec![0; load.len()];
    for group in order {
        let minimum = (0..carries.len()).min_by_key(|&thread| carries[thread]);
        thread_of[group] = minimum.unwrap_or(0);
        carries[thread_of[group]] += load[group];
    }
    let place = |host: u16| thread_of[usize::from(groups[usize::from(host)])];
    let mut threads: Vec<usize> = (0..network.hosts().len() as u16).map(place).collect();
    let own = cell.flows.iter().filter_map(|flow| {
        let ports = cell.own_hosts(flow.flow)?;
        Some(ports.into_iter().zip([flow.from, flow.to]))
    });
    let mut together = false;
    for (port, host) in own.flatten() {
        let port = usize::from(port);
        if port >= threads.len() {
            threads.resize(port + 1, place(host));
        }
        // A program on several hosts joins their groups.
        together |= threads[port] != place(host);
    }
    if together {
        threads.fill(0);
    }
    threads
}
