//! Datagrams sent as a Poisson process.

use super::ten_seconds;
use super::cbr::DatagramParams;
use crate::{TrafficAction, Application, Built, TrafficEvent, TrafficSetup, Traffic};
use narrows_units::{Entry, Params, Span, Stream, Time};

/// Registry entry.
pub const TRAFFIC: Traffic = Traffic {
    entry: Entry {
        name: "poisson",
        summary: "Sends datagrams of one size at exponentially distributed distances",
        source: "Poisson process",
        example: ten_seconds(
            "{poisson: 2 Mbit/s}",
            "Arrivals through 20 Mbit/s: datagrams with exponential gaps.",
        ),
        ..super::cbr::TRAFFIC.entry
    },
    build,
    ..super::cbr::TRAFFIC
};

fn build(params: &Params, setup: &TrafficSetup) -> Built {
    let DatagramParams { rate, packet } = DatagramParams::read(params);
    Ok(Box::new(Poisson {
        mean: packet.get() as f64 * 8.0 / rate.bps() as f64,
        packet: packet.get() as u32,
        stream: setup.stream(),
        next: Time::FAR,
    }))
}

struct Poisson {
    /// Mean interval in seconds.
    mean: f64,
    packet: u32,
    stream: Stream,
    next: Time,
}

impl Poisson {
    fn draw(&mut self, from: Time) {
        // Two datagrams never leave at the same instant: time must advance.
        let distance = Span::from_secs(self.stream.exponential(self.mean));
        self.next = from + distance.max(Span::from_ns(1));
    }
}

impl Application for Poisson {
    fn on(&mut self, now: Time, event: TrafficEvent, actions: &mut Vec<TrafficAction>) {
        if event == TrafficEvent::Start {
            self.draw(now);
        }
        while self.next <= now {
            actions.push(TrafficAction::Datagram { size: self.packet });
            self.draw(self.next);
        }
    }

    fn next_wakeup(&self) -> Time {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_exponential() {
        let params = serde_json::json!({"rate": 12_000_000});
        let params = Params::from_json(TRAFFIC.entry.params, params.as_object().unwrap()).unwrap();
        let setup = TrafficSetup {
            seed: 1,
            flow: 1,
            connections: 1,
        };
        let mut poisson = TRAFFIC.build(&params, &setup).unwrap();
        let mut actions = Vec::new();
        poisson.on(Time::ZERO, TrafficEvent::Start, &mut actions);
        let (mut distances, mut last) = (Vec::new(), Time::ZERO);
        for _ in 0..100_000 {
            let now = poisson.next_wakeup();
            distances.push((now - last).ns() as f64 / 1e6);
            last = now;
            poisson.on(now, TrafficEvent::Wakeup, &mut actions);
        }
        assert_eq!(actions.len(), 100_000);
        // Kolmogorov-Smirnov at the 1 % level: 1.63 / sqrt(n).
        distances.sort_by(f64::total_cmp);
        let n = distances.len() as f64;
        let distance = distances
            .iter()
            .enumerate()
            .map(|(index, x)| ((1.0 - (-x).exp()) - (index as f64 + 0.5) / n).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.63 / n.sqrt(), "{distance}");
    }
}
