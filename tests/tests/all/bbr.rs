//! Behaviour of BBR's versions on simulated paths that follows from their rules.

use narrows_tests::Dumbbell;

fn share(scheme: &'static str, loss: f64) -> f64 {
    let run = Dumbbell {
        mbps: 20.0,
        buffer_bdp: 2.0,
        loss,
        schemes: vec![scheme],
        ..Dumbbell::default()
    }
    .measure();
    // Relative to the rate of the link behind the loss.
    run.get("1", "throughput_bps") / (20e6 * (1.0 - loss))
}

#[test]
fn alone_it_uses_the_link_but_for_margin_and_probe_rtt() {
    for (scheme, low, high) in [
        // 1 % below the bandwidth, and 200 ms of 10 s with four packets: 0.99 x 0.98 = 0.970. The probes use some of
        // the margin.
        ("bbr1", 0.965, 0.99),
        // Half the rate for 200 ms of 5 s costs 2 %.
        ("bbr3", 0.95, 0.99),
        ("bbr-draft", 0.95, 0.99),
    ] {
        let run = Dumbbell {
            mbps: 20.0,
            buffer_bdp: 4.0,
            schemes: vec![scheme],
            seconds: 60.0,
            ..Dumbbell::default()
        }
        .measure();
        let used = run.get("all", "utilization_ratio");
        assert!((low..high).contains(&used), "{scheme}: {used}");
    }
}

#[test]
fn version_1_alone_queues_a_quarter_of_the_product_in_one_phase_of_eight() {
    let run = Dumbbell {
        mbps: 20.0,
        buffer_bdp: 4.0,
        schemes: vec!["bbr1"],
        seconds: 60.0,
        ..Dumbbell::default()
    }
    .measure();
    // A quarter of 40 ms, the bursts that the probe waits for (three of two packets, two more, one for the
    // acknowledgement: 9 x 0.6 ms), and the packet's own time.
    let p99 = run.get("all", "queueing_delay_p99_ns") / 1e6;
    assert!(p99 < 10.0 + 9.0 * 0.6 + 0.6 + 4.0, "{p99}");
    // Most of the time the queue is empty: phases at the bandwidth stay one percent below it.
    let p50 = run.get("all", "queueing_delay_p50_ns") / 1e6;
    assert!(p50 < 5.0, "{p50}");
}

#[test]
fn two_flows_of_version_1_in_a_deep_buffer_are_stopped_by_their_windows() {
    let run = Dumbbell {
        mbps: 20.0,
        buffer_bdp: 16.0,
        schemes: vec!["bbr1", "bbr1"],
        interval_s: 2.0,
        seconds: 60.0,
        ..Dumbbell::default()
    }
    .measure();
    // Each has twice its product in flight, of bandwidths that add up to more than the link: at least one
    // product of 40 ms is queued, and never more than a fraction of the 16 that the buffer holds.
    let p50 = run.get("all", "queueing_delay_p50_ns") / 1e6;
    assert!((30.0..160.0).contains(&p50), "{p50}");
    assert_eq!(run.get("all", "loss_ratio"), 0.0);
}

#[test]
fn random_loss_does_not_matter_to_version_1_below_a_fifth() {
    for (loss, minimum) in [(0.01, 0.95), (0.05, 0.9), (0.1, 0.8)] {
        let used = share("bbr1", loss);
        assert!(used > minimum, "loss {loss}: {used}");
    }
    // The probe's additional quarter can no longer compensate the losses: 1 - 1/1.25 is a fifth.
    let used = share("bbr1", 0.3);
    assert!(used < 0.5, "{used}");
}

#[test]
fn random_loss_matters_to_version_3_beyond_its_threshold_of_two_percent() {
    for scheme in ["bbr3", "bbr-draft"] {
        let (below, beyond) = (share(scheme, 0.002), share(scheme, 0.05));
        assert!(below > 0.85, "{scheme}: {below}");
        assert!(beyond < 0.6, "{scheme}: {beyond}");
    }
}
