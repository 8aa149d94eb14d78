use super::*;
use narrows_units::Stream;
use proptest::prelude::*;

/// A pair of hosts in true time: the local clock is right, the remote one is a line with one step.
#[derive(Clone, Copy, Debug)]
struct World {
    offset_ns: i64,
    drift_ppb: i64,
    there_ns: u64,
    back_ns: u64,
    /// Mean of an exponential delay in queues.
    queue_ns: f64,
    step_at: u64,
    step_ns: i64,
}

const START: u64 = 1_000_000_000_000;
const SECOND: u64 = 1_000_000_000;

impl World {
    fn offset(&self, at: u64) -> i64 {
        let drift = i128::from(at - START) * i128::from(self.drift_ppb) / 1_000_000_000;
        let step = if at >= self.step_at { self.step_ns } else { 0 };
        self.offset_ns + drift as i64 + step
    }

    fn remote(&self, at: u64) -> Time {
        Time::from_ns(at.wrapping_add_signed(self.offset(at)))
    }

    /// `(sent, arrived_there)` and `(sent_there, arrived)` of packets sent at random times.
    fn samples(&self, seconds: u64, count: u64, seed: u64) -> [Vec<(Time, Time)>; 2] {
        let mut chance = Stream::new(seed, "clock");
        let mut lists = [Vec::new(), Vec::new()];
        for _ in 0..count {
            let sent = START + chance.below(seconds * SECOND);
            let queue = chance.exponential(self.queue_ns) as u64;
            lists[0].push((
                Time::from_ns(sent),
                self.remote(sent + self.there_ns + queue),
            ));
            let sent = START + chance.below(seconds * SECOND);
            let queue = chance.exponential(self.queue_ns) as u64;
            let arrived = sent + self.back_ns + queue;
            lists[1].push((self.remote(sent), Time::from_ns(arrived)));
        }
        lists
    }
}

fn collect(samples: &[Vec<(Time, Time)>; 2]) -> Clocks {
    let mut clocks = Clocks::new(ClockConfig::default());
    for &(sent, arrived_there) in &samples[0] {
        clocks.add_forward(sent, arrived_there);
    }
    for &(sent_there, arrived) in &samples[1] {
        clocks.add_reverse(sent_there, arrived);
    }
    clocks
}

fn world() -> impl Strategy<Value = World> {
    (
        -3_000_000_000i64..3_000_000_000,
        -200_000i64..200_000,
        0u64..60_000_000,
        0u64..60_000_000,
        1_000.0..20_000_000.0,
    )
        .prop_map(
            |(offset_ns, drift_ppb, there_ns, back_ns, queue_ns)| World {
                offset_ns,
                drift_ppb,
                there_ns,
                back_ns,
                queue_ns,
                step_at: u64::MAX,
                step_ns: 0,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_bound_holds_the_truth_and_no_delay_is_negative(world in world(), seed: u64) {
        let samples = world.samples(40, 400, seed);
        let fit = collect(&samples).fit().unwrap();
        prop_assert_eq!((fit.lines(), fit.jumps()), (1, 0));
        for second in 0..=40 {
            let at = START + second * SECOND;
            let error = (fit.offset_ns(Time::from_ns(at)) - world.offset(at)).unsigned_abs();
            // Two nanoseconds of rounding.
            let bound = fit.error(Time::from_ns(at)).ns() + 2;
            prop_assert!(error <= bound, "off by {} at {} s, stated {}", error, second, bound);
        }
        // The assumed precision, 1 us, and rounding: lines may lie that far beyond a limit.
        let least = -1_002;
        for &(sent, arrived_there) in &samples[0] {
            prop_assert!(fit.forward_delay_ns(sent, arrived_there) >= least);
        }
        for &(sent_there, arrived) in &samples[1] {
            prop_assert!(fit.reverse_delay_ns(sent_there, arrived) >= least);
        }
    }
}

#[test]
fn offset_and_drift_are_found_on_a_path_with_queues() {
    let world = World {
        offset_ns: 2_500_000_000,
        drift_ppb: 50_000,
        there_ns: 10_000_000,
        back_ns: 10_000_000,
        queue_ns: 2_000_000.0,
        step_at: u64::MAX,
        step_ns: 0,
    };
    // Ten clock messages per second each way.
    let fit = collect(&world.samples(60, 600, 1)).fit().unwrap();
    for second in [0, 15, 30, 45, 60] {
        let at = START + second * SECOND;
        let error = (fit.offset_ns(Time::from_ns(at)) - world.offset(at)).abs();
        // The minimum queueing delay of 600 packets is 2 ms / 600 = 3 us on average, and the drift leans on a few such
        // packets far apart: ten times that is ample.
        assert!(error < 30_000, "off by {error} ns at {second} s");
        // Half of the round trip, and the queueing delay, mostly at the ends.
        let bound = fit.error(Time::from_ns(at)).ns();
        assert!(
            (10_000_000..12_000_000).contains(&bound),
            "{bound} at {second} s"
        );
    }
    assert!((fit.drift_ppb(Time::from_ns(START)) - 50_000.0).abs() < 1_000.0);
    // To the remote clock and back.
    let at = START + 20 * SECOND;
    let back = fit.local_ns(Time::from_ns(
        at.wrapping_add_signed(fit.offset_ns(Time::from_ns(at))),
    ));
    assert!((back - at as i64).abs() <= 1);
}

#[test]
fn asymmetry_is_inside_the_bound() {
    let world = World {
        offset_ns: -7,
        drift_ppb: 0,
        there_ns: 1_000_000,
        back_ns: 21_000_000,
        queue_ns: 1_000.0,
        step_at: u64::MAX,
        step_ns: 0,
    };
    let fit = collect(&world.samples(20, 500, 2)).fit().unwrap();
    let at = Time::from_ns(START + 10 * SECOND);
    // No measurement can distinguish this from a clock that is 10 ms off.
    assert!((fit.offset_ns(at) + 10_000_000).abs() < 50_000);
    assert!((fit.error(at).ns() as i64 - 11_000_000).abs() < 50_000);
}

#[test]
fn a_clock_that_is_set_begins_another_line() {
    let world = World {
        offset_ns: 1_000,
        drift_ppb: 10_000,
        there_ns: 2_000_000,
        back_ns: 2_000_000,
        queue_ns: 100_000.0,
        // In the middle of a block, which it spoils.
        step_at: START + 45 * SECOND + SECOND / 2,
        step_ns: 500_000_000,
    };
    let fit = collect(&world.samples(90, 3_000, 3)).fit().unwrap();
    assert_eq!((fit.lines(), fit.jumps()), (2, 1));
    for second in [0, 20, 39, 51, 70, 90] {
        let at = START + second * SECOND;
        let error = (fit.offset_ns(Time::from_ns(at)) - world.offset(at)).unsigned_abs();
        let bound = fit.error(Time::from_ns(at)).ns();
        assert!(
            error <= bound && bound < 4_000_000,
            "{error} of {bound} at {second} s"
        );
    }
}

#[test]
fn one_direction_alone_says_nothing() {
    let mut clocks = Clocks::new(ClockConfig::default());
    assert!(clocks.fit().is_none());
    clocks.add_forward(Time::from_ns(1), Time::from_ns(2));
    assert!(clocks.fit().is_none());
    clocks.add_reverse(Time::from_ns(2), Time::from_ns(9));
    let fit = clocks.fit().unwrap();
    assert_eq!(fit.lines(), 1);
    assert!(fit.error(Time::from_ns(5)) >= Span::from_ns(3));
}

/// Load that senders put on the queues of a path in 30 s.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// A loss-based scheme maintains a standing queue on the forward path throughout.
    There,
    /// The same on the return path.
    Back,
    /// Both at once.
    Both,
    /// One after the other.
    InTurn,
    /// The queue grows steadily, at a rate that looks like a drift of 667 in a million.
    Growing,
    /// It fills and runs empty again and again.
    Emptied,
}

impl Load {
    /// Queueing delay in ns, `seconds` after the start, forward and return.
    fn queues(self, seconds: f64) -> [f64; 2] {
        let saw = |period: f64, most_ms: f64| (seconds % period) / period * most_ms * 1e6;
        let (high, low) = (8e6 + saw(3.0, 4.0), 5e6 + saw(2.0, 2.0));
        match self {
            _ if seconds < 0.5 => [0.0, 0.0],
            Load::There => [high, 0.0],
            Load::Back => [0.0, high],
            Load::Both => [high, low],
            Load::InTurn if seconds < 15.0 => [high, 0.0],
            Load::InTurn => [0.0, low],
            Load::Growing => [seconds / 30.0 * 20e6, 0.0],
            Load::Emptied => [saw(4.0, 10.0), 0.0],
        }
    }
}

#[test]
fn queues_that_stand_or_grow_are_not_taken_for_drift() {
    let loads = [
        Load::There,
        Load::Back,
        Load::Both,
        Load::InTurn,
        Load::Growing,
        Load::Emptied,
    ];
    for (load, drift_ppb, seed) in loads
        .into_iter()
        .flat_map(|load| [(load, 50_000, 1), (load, -50_000, 2), (load, 3_000, 3)])
    {
        let world = World {
            offset_ns: 2_500_000_000,
            drift_ppb,
            there_ns: 10_000_000,
            back_ns: 10_000_000,
            queue_ns: 0.0,
            step_at: u64::MAX,
            step_ns: 0,
        };
        let mut chance = Stream::new(seed, "load");
        let mut clocks = Clocks::new(ClockConfig::default());
        // Two hundred packets per second each way, with 30 us of noise of the hosts.
        for _ in 0..6_000 {
            let mut sent = || {
                let seconds = chance.uniform() * 30.0;
                let noise = chance.exponential(30_000.0);
                let queues = load.queues(seconds).map(|ns| (ns + noise) as u64);
                (START + (seconds * 1e9) as u64, queues)
            };
            let (at, [queue, _]) = sent();
            clocks.add_forward(Time::from_ns(at), world.remote(at + world.there_ns + queue));
            let (at, [_, queue]) = sent();
            clocks.add_reverse(world.remote(at), Time::from_ns(at + world.back_ns + queue));
        }
        let fit = clocks.fit().unwrap();
        for second in 0..=30 {
            let at = START + second * SECOND;
            let error = (fit.offset_ns(Time::from_ns(at)) - world.offset(at)).abs();
            // The minimum noise of a second is far below 30 us; a queue mistaken for drift would be several ms.
            assert!(
                error < 30_000,
                "{load:?}: off by {error} ns at {second} s of {drift_ppb}"
            );
        }
    }
}

#[test]
fn the_largest_difference_that_can_be_said_is_implausible() {
    let mut clocks = Clocks::new(ClockConfig::default());
    clocks.add_forward(Time::from_ns(5), Time::from_ns(5));
    // Its magnitude is the only one that a signed 64-bit integer cannot represent.
    clocks.add_reverse(Time::from_ns(1 << 63), Time::ZERO);
    assert_eq!((clocks.implausible(), clocks.fit().is_none()), (1, true));
}

proptest! {
    #[test]
    fn a_liar_causes_nothing_but_nonsense(stamps in prop::collection::vec((any::<[u64; 4]>(), any::<bool>()), 0..40)) {
        let mut clocks = Clocks::new(ClockConfig::default());
        let mut last = 0;
        for ([sent, arrived_there, sent_there, arrived], is_wild) in stamps {
            let ours = |time: u64| Time::from_ns(if is_wild { time } else { time % (1 << 40) });
            clocks.exchange(&ClockExchange {
                sent: ours(sent),
                arrived_there: Time::from_ns(arrived_there),
                sent_there: Time::from_ns(sent_there),
                arrived: ours(arrived),
            });
            last = arrived;
        }
        if let Some(fit) = clocks.fit() {
            for at in [0, last, u64::MAX] {
                let at = Time::from_ns(at);
                let _ = (fit.offset_ns(at), fit.error(at), fit.local_ns(at), fit.forward_delay_ns(at, at));
            }
            let _ = fit.largest_error(Time::ZERO, Time::FAR);
        }
    }
}
