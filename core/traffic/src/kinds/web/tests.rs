//! Goodness of fit of each component, and the calibration. Significance level 1 % throughout, fixed seeds.

use super::*;
use crate::Offered;

const TAIL: f64 = 0.07;

fn setup(seed: u64) -> TrafficSetup {
    TrafficSetup {
        seed,
        flow: 1,
        connections: 1,
    }
}

fn build(json: &serde_json::Value, seed: u64) -> Box<dyn Application> {
    let params = Params::from_json(TRAFFIC.entry.params, json.as_object().unwrap()).unwrap();
    TRAFFIC.build(&params, &setup(seed)).unwrap()
}

/// The largest distance between the empirical distribution of the samples and a distribution.
fn kolmogorov(mut samples: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let n = samples.len() as f64;
    let distance = |(index, &x): (usize, &f64)| {
        let value = cdf(x);
        (value - index as f64 / n).abs().max((value - (index + 1) as f64 / n).abs())
    };
    samples.iter().enumerate().map(distance).fold(0.0, f64::max)
}

/// Runs an application as if the network took `object` for each answer; returns all its requests with their times.
fn without_network(
    source: &mut dyn Application,
    seconds: f64,
    object: Span,
    mut see: impl FnMut(Time, &TrafficAction),
) {
    let end = Time::ZERO + Span::from_secs(seconds);
    let mut answers = std::collections::VecDeque::new();
    let mut actions = Vec::new();
    let (mut now, mut event) = (Time::ZERO, TrafficEvent::Start);
    loop {
        source.on(now, event, &mut actions);
        for action in actions.drain(..) {
            see(now, &action);
            if let TrafficAction::Transfer(transfer) = action {
                answers.push_back((now + object, transfer));
            }
        }
        let answer = answers.front().map_or(Time::FAR, |(at, _)| *at);
        now = answer.min(source.next_wakeup());
        if now >= end {
            return;
        }
        event = TrafficEvent::Wakeup;
        if answer <= now
            && let Some((_, transfer)) = answers.pop_front()
        {
            event = TrafficEvent::Completed {
                connection: transfer.connection,
                transfer: transfer.transfer,
            };
        }
    }
}

#[test]
fn file_sizes_follow_their_law() {
    let files = WebFiles::new(2000, TAIL);
    let samples: Vec<f64> = files.sizes.iter().map(|&size| size as f64).collect();
    // 1.63 / sqrt(2000) would pass; a constructed set must be within half a step and rounding.
    let distance = kolmogorov(samples, |x| files::cdf(x, TAIL));
    assert!(distance < 0.000_6, "{distance}");
    let largest = *files.sizes.last().unwrap() as f64;
    assert!((2.0e7..2.5e7).contains(&largest), "{largest}");
    let in_tail = files.sizes.iter().filter(|&&size| size > 133_000).count();
    assert_eq!(in_tail, 140);
    // A sample of the distribution itself, by its quantiles.
    let mut stream = Stream::new(1, "files");
    let samples: Vec<f64> = (0..20_000).map(|_| files::size(stream.uniform(), TAIL)).collect();
    let distance = kolmogorov(samples, |x| files::cdf(x, TAIL));
    assert!(distance < 1.63 / 20_000f64.sqrt(), "{distance}");
}

#[test]
fn request_sizes_come_close_to_their_law() {
    let files = WebFiles::new(2000, TAIL);
    let total: f64 = files.requests.iter().copied().map(f64::from).sum();
    let law = Distribution::Pareto {
        scale: 1000.0,
        shape: 1.0,
    };
    let (mut below, mut worst) = (0.0, 0.0f64);
    for (&size, &times) in files.sizes.iter().zip(&files.requests) {
        let value = law.cdf(size as f64);
        worst = worst.max((value - below / total).abs());
        below += f64::from(times);
        worst = worst.max((value - below / total).abs());
    }
    // The most popular file alone accounts for 12 %.
    assert!(worst < 0.10, "{worst}");
    // The tail, where the load is: requests for more than 100 kB are 1 % by the distribution.
    let large: f64 = files
        .sizes
        .iter()
        .zip(&files.requests)
        .filter(|(size, _)| **size > 100_000)
        .map(|(_, &times)| f64::from(times))
        .sum();
    assert!((0.008..0.016).contains(&(large / total)), "{}", large / total);
}

#[test]
fn popularity_is_zipfs() {
    let files = WebFiles::new(2000, TAIL);
    let mut sequence = Sequence::new(&files, Stream::new(1, "sequence"));
    let mut counts = vec![0u32; 2000];
    let n = 300_000;
    for _ in 0..n {
        counts[sequence.next()] += 1;
    }
    let zipf = narrows_units::Zipf::new(2000, 1.0);
    counts.sort_unstable_by_key(|&count| Reverse(count));
    // The first 100 ranks, and the others together: chi-square with 100 degrees of freedom at the 1 % level is 135.8.
    // Sorting flatters the fit only where counts are equal, and those of the first ranks are not.
    let mut chi = 0.0;
    let mut rest = (0.0, 0.0);
    for (index, &count) in counts.iter().enumerate() {
        let wanted = zipf.share(index + 1) * f64::from(n);
        if index < 100 {
            chi += (f64::from(count) - wanted).powi(2) / wanted;
        } else {
            rest = (rest.0 + f64::from(count), rest.1 + wanted);
        }
    }
    chi += (rest.0 - rest.1).powi(2) / rest.1;
    assert!(chi < 135.8, "{chi}");
}

#[test]
fn requests_are_local_in_time() {
    let files = WebFiles::new(2000, TAIL);
    let distances = |mut next: Box<dyn FnMut() -> usize>| {
        let mut stack: Vec<usize> = (0..2000).collect();
        let mut all = Vec::new();
        for _ in 0..20_000 {
            let file = next();
            let depth = stack.iter().position(|&used| used == file).unwrap();
            stack[..=depth].rotate_right(1);
            all.push(depth as f64);
        }
        all.sort_by(f64::total_cmp);
        all
    };
    let mut sequence = Sequence::new(&files, Stream::new(1, "sequence"));
    let local = distances(Box::new(move || sequence.next()));
    let mut stream = Stream::new(1, "independent");
    let zipf = narrows_units::Zipf::new(2000, 1.0);
    let independent = distances(Box::new(move || zipf.sample(&mut stream) - 1));
    let median = |list: &[f64]| list[list.len() / 2];
    // e^1.5 = 4.5 is the median of the distribution; popularity alone would yield far more.
    assert!(median(&local) < 12.0, "{}", median(&local));
    assert!(median(&independent) > 5.0 * median(&local), "{}", median(&independent));
}

#[test]
fn off_times_and_pages_follow_their_laws() {
    let object = Span::from_ms(10);
    let mut source = build(&serde_json::json!({"users": 200, "persistent": true}), 5);
    // With a connection per page, the times between its requests are the active OFF times; the number of
    // requests is that of the page's objects.
    let (mut pages, mut active) = (BTreeMap::new(), Vec::new());
    without_network(&mut *source, 600.0, object, |now, action| {
        if let TrafficAction::Transfer(transfer) = action {
            let page = pages.entry(transfer.connection).or_insert((0u32, now));
            // Only pages that began early enough to be complete: otherwise long times would be missing.
            if page.0 > 0 && transfer.connection < 5000 {
                active.push((now - page.1).secs() - object.secs());
            }
            *page = (page.0 + 1, now);
        }
    });
    let n = active.len() as f64;
    assert!(n > 4000.0, "{n}");
    let distance = kolmogorov(active, |x| ACTIVE_OFF.cdf(x));
    assert!(distance < 1.63 / n.sqrt(), "active OFF {distance}");

    // P(embedded >= j) = j^-2.43, chi-square over 1, 2, 3, 4
    // and more references, 3 degrees of freedom: 11.34.
    // The first pages are met half-way.
    let whole = pages.range(400..5000).map(|(_, page)| page.0 - 1);
    let complete: Vec<u32> = whole.collect();
    let share = |j: u32| 1.0 - EMBEDDED.cdf(f64::from(j));
    let mut chi = 0.0;
    for (low, high) in [(1, 2), (2, 3), (3, 4), (4, u32::MAX)] {
        let found = complete.iter().filter(|&&n| n >= low && n < high).count() as f64;
        let upper = if high == u32::MAX { 0.0 } else { share(high) };
        let wanted = (share(low) - upper) * complete.len() as f64;
        chi += (found - wanted).powi(2) / wanted;
    }
    assert!(chi < 11.34, "embedded references {chi}");

    // One user: the time from the end of a page to the next one is the inactive OFF time.
    let mut source = build(&serde_json::json!({"users": 1, "persistent": true}), 6);
    let (mut last, mut inactive) = (None, Vec::new());
    without_network(&mut *source, 60_000.0, object, |now, action| {
        if let TrafficAction::Close { .. } = action {
            last = Some(now);
        }
        if let (TrafficAction::Open { .. }, Some(closed)) = (action, last) {
            inactive.push((now - closed).secs());
        }
    });
    let n = inactive.len() as f64;
    assert!(n > 3000.0, "{n}");
    let distance = kolmogorov(inactive, |x| INACTIVE_OFF.cdf(x));
    assert!(distance < 1.63 / n.sqrt(), "inactive OFF {distance}");
}

#[test]
fn the_calibrated_load_is_offered() {
    // 20 seeds of 1200 s at 38 Mbit/s.
    let loads: Vec<f64> = (1..=20)
        .map(|seed| {
            let mut source = build(&serde_json::json!({"load": 38_000_000}), seed);
            let mut offered = Offered::default();
            without_network(&mut *source, 1200.0, Span::ZERO, |_, action| {
                offered.note(action);
            });
            offered.load(1200.0).unwrap().1
        })
        .collect();
    let mean = loads.iter().sum::<f64>() / 20.0;
    assert!((mean / 38e6 - 1.0).abs() < 0.05, "{mean} {loads:?}");
    // No single run is far off either.
    assert!(loads.iter().all(|load| (load / 38e6 - 1.0).abs() < 0.10), "{loads:?}");
}

#[test]
fn short_runs_offer_the_same_load() {
    // Five seconds, in which users that all began a page would request half as much again.
    let loads = (1..=30).map(|seed| {
        let mut source = build(&serde_json::json!({"load": 100_000_000}), seed);
        let mut offered = Offered::default();
        without_network(&mut *source, 5.0, Span::ZERO, |_, action| offered.note(action));
        // Count objects, as sizes would need far longer to converge.
        offered.transfers as f64 / 5.0
    });
    let mean = loads.sum::<f64>() / 30.0;
    let files = WebFiles::new(2000, TAIL);
    let wanted = 100e6 / 8.0 / files.mean_request();
    assert!((mean / wanted - 1.0).abs() < 0.03, "{mean} {wanted}");
}

#[test]
fn the_time_of_objects_enters_the_calibration() {
    let json = serde_json::json!({"load": 20_000_000, "object_time": 500_000_000u64});
    let mut source = build(&json, 1);
    let mut offered = Offered::default();
    without_network(&mut *source, 600.0, Span::from_ms(500), |_, action| {
        offered.note(action);
    });
    let load = offered.load(600.0).unwrap().1;
    assert!((load / 20e6 - 1.0).abs() < 0.08, "{load}");
}

#[test]
fn load_and_users_exclude_each_other() {
    for json in [
        serde_json::json!({}),
        serde_json::json!({"users": 3, "load": 1_000_000}),
    ] {
        let params = Params::from_json(TRAFFIC.entry.params, json.as_object().unwrap()).unwrap();
        assert!(TRAFFIC.build(&params, &setup(1)).is_err());
    }
}
