//! On-off traffic: periods of sending alternate with periods of silence, over one connection that stays open.

use super::ten_seconds;
use crate::{TrafficAction, Application, Built, TrafficEvent, TrafficSetup, Traffic, Transfer};
use narrows_units::{Bytes, Entry, Params, Span, Stream, Time, choice, params};

/// Registry entry.
pub const TRAFFIC: Traffic = Traffic {
    entry: Entry {
        name: "onoff",
        summary: "Sends without end, or at a rate, in times that alternate with silence",
        source: "on-off background of RFC 8868, section 4.3, with times in place of sizes",
        params: OnOffParams::PARAMS,
        shorthand: &["on"],
        example: ten_seconds(
            "{onoff: {on: 1 s, off: 1 s, law: exponential}}",
            "Arrivals through 20 Mbit/s: times of sending and of silence.",
        ),
    },
    build,
    ..super::bulk::TRAFFIC
};

choice! {
    /// Distributions of the lengths of the periods.
    pub(super) enum TimeLaw { Fixed = "fixed", Exponential = "exponential" }
}

params! {
    /// Parameters.
    struct OnOffParams {
        /// Length, or mean length, of the on periods.
        on: Span(1e3..=1e15);
        /// Length, or mean length, of the off periods.
        off: Span(1e3..=1e15);
        /// Whether the lengths are fixed or exponentially distributed.
        law: TimeLaw = "fixed";
        /// Payload rate of each connection while it is on; without it, as fast as the scheme allows.
        rate: Option<Rate>(1e3..=1e12);
        /// Bytes handed to the transport at once if a rate is set.
        write: Bytes(1.0..=1e9) = 1448, "one full packet";
    }
}

fn build(params: &Params, setup: &TrafficSetup) -> Built {
    let base = setup.stream();
    let connections = (0..setup.connections)
        .map(|connection| OnOffConnection {
            // Each connection has a separate random stream, so that adding one leaves the others unchanged.
            stream: if connection == 0 {
                base.clone()
            } else {
                Stream::new(
                    setup.seed,
                    &format!("traffic/{}/{connection}", setup.flow),
                )
            },
            is_on: false,
            change: Time::FAR,
            write: Time::FAR,
            began: Time::ZERO,
            written: 0,
        })
        .collect();
    Ok(Box::new(OnOff {
        source: OnOffParams::read(params),
        connections,
    }))
}

impl OnOffParams {
    fn draw(&self, mean: Span, stream: &mut Stream) -> Span {
        match self.law {
            TimeLaw::Fixed => mean,
            // Never zero, so that time advances.
            TimeLaw::Exponential => Span::from_secs(stream.exponential(mean.secs())).max(Span::from_ns(1)),
        }
    }
}

struct OnOffConnection {
    stream: Stream,
    is_on: bool,
    /// When it is switched on or off next.
    change: Time,
    /// When it writes next, if a rate is set.
    write: Time,
    /// Start of the on period, and writes since then.
    began: Time,
    written: u64,
}

struct OnOff {
    source: OnOffParams,
    connections: Vec<OnOffConnection>,
}

impl OnOffConnection {
    fn switch_on(&mut self, now: Time, number: u32, source: &OnOffParams, actions: &mut Vec<TrafficAction>) {
        self.is_on = true;
        self.change = now + source.draw(source.on, &mut self.stream);
        if source.rate.is_some() {
            (self.began, self.written, self.write) = (now, 0, now);
        } else {
            actions.push(TrafficAction::Grant {
                connection: number,
                bytes: u64::MAX,
            });
        }
    }

    fn run(&mut self, now: Time, number: u32, source: &OnOffParams, actions: &mut Vec<TrafficAction>) {
        loop {
            if self.change <= now && self.change <= self.write {
                let at = self.change;
                if self.is_on {
                    self.is_on = false;
                    self.write = Time::FAR;
                    self.change = at + source.draw(source.off, &mut self.stream);
                    actions.push(TrafficAction::Hold { connection: number });
                } else {
                    self.switch_on(at, number, source, actions);
                }
            } else if let (Some(rate), true) = (source.rate, self.write <= now) {
                actions.push(TrafficAction::Grant {
                    connection: number,
                    bytes: source.write.get(),
                });
                self.written += 1;
                // Counted from the start of the on period, so that rounding errors do not accumulate.
                let bytes = Bytes::new(source.write.get() * self.written);
                self.write = self.began + rate.time_for(bytes);
            } else {
                return;
            }
        }
    }
}

impl Application for OnOff {
    fn on(&mut self, now: Time, event: TrafficEvent, actions: &mut Vec<TrafficAction>) {
        for (number, connection) in (0u32..).zip(&mut self.connections) {
            match event {
                TrafficEvent::Start => {
                    actions.push(TrafficAction::Open { connection: number });
                    actions.push(TrafficAction::upload(number, Transfer::OPEN));
                    connection.switch_on(now, number, &self.source, actions);
                    connection.run(now, number, &self.source, actions);
                }
                TrafficEvent::Wakeup => connection.run(now, number, &self.source, actions),
                TrafficEvent::Failed { connection: failed } if failed == number => {
                    (connection.change, connection.write) = (Time::FAR, Time::FAR);
                }
                TrafficEvent::Failed { .. } | TrafficEvent::Completed { .. } => {}
            }
        }
    }

    fn next_wakeup(&self) -> Time {
        let each = self
            .connections
            .iter()
            .map(|connection| connection.change.min(connection.write));
        each.min().unwrap_or(Time::FAR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(json: &serde_json::Value, connections: u32) -> Box<dyn Application> {
        let params = Params::from_json(TRAFFIC.entry.params, json.as_object().unwrap()).unwrap();
        let setup = TrafficSetup {
            seed: 3,
            flow: 1,
            connections,
        };
        TRAFFIC.build(&params, &setup).unwrap()
    }

    /// All actions until `until`, with their times.
    fn run(source: &mut dyn Application, until: Time) -> Vec<(u64, TrafficAction)> {
        let (mut now, mut event) = (Time::ZERO, TrafficEvent::Start);
        let (mut actions, mut all) = (Vec::new(), Vec::new());
        while now < until {
            source.on(now, event, &mut actions);
            all.extend(actions.drain(..).map(|action| (now.ns(), action)));
            event = TrafficEvent::Wakeup;
            assert!(source.next_wakeup() > now);
            now = source.next_wakeup();
        }
        all
    }

    #[test]
    fn fixed_times_alternate_exactly() {
        let json = serde_json::json!({"on": 2_000_000, "off": 3_000_000});
        let all = run(&mut *build(&json, 1), Time::from_ns(10_500_000));
        let times = |wanted: fn(&TrafficAction) -> bool| {
            let chosen = all.iter().filter(|(_, action)| wanted(action));
            chosen.map(|(time, _)| *time).collect::<Vec<_>>()
        };
        let on = times(|action| matches!(action, TrafficAction::Grant { bytes: u64::MAX, .. }));
        let off = times(|action| matches!(action, TrafficAction::Hold { .. }));
        assert_eq!(on, [0, 5_000_000, 10_000_000]);
        assert_eq!(off, [2_000_000, 7_000_000]);
    }

    #[test]
    fn a_rate_is_kept_while_on() {
        // 8 Mbit/s for 100 ms of each 200 ms: 100 kB in each on period, first and last write included.
        let json = serde_json::json!({"on": 100_000_000, "off": 100_000_000, "rate": 8_000_000,
                                      "write": 1000});
        let all = run(&mut *build(&json, 1), Time::from_ns(2_000_000_000));
        let bytes: u64 = all
            .iter()
            .map(|(_, action)| match action {
                TrafficAction::Grant { bytes, .. } => *bytes,
                _ => 0,
            })
            .sum();
        assert_eq!(bytes, 10 * 101_000 - 10 * 1000);
        let quiet = |ns: u64| ns % 200_000_000 >= 100_000_000;
        let grants = all.iter().filter(|(_, a)| matches!(a, TrafficAction::Grant { .. }));
        assert!(!grants.clone().any(|(time, _)| quiet(*time)));
    }

    #[test]
    fn exponential_times_have_their_means() {
        let json = serde_json::json!({"on": 10_000_000, "off": 30_000_000, "law": "exponential"});
        let all = run(&mut *build(&json, 1), Time::from_ns(400_000_000_000));
        let changes: Vec<u64> = all[2..].iter().map(|(time, _)| *time).collect();
        let (mut on, mut off) = (Vec::new(), Vec::new());
        for (index, pair) in changes.windows(2).enumerate() {
            let list = if index % 2 == 0 { &mut on } else { &mut off };
            list.push((pair[1] - pair[0]) as f64);
        }
        // Five standard errors of the mean of an exponential law.
        for (list, mean) in [(on, 1e7), (off, 3e7)] {
            let n = list.len() as f64;
            let found = list.iter().sum::<f64>() / n;
            assert!((found / mean - 1.0).abs() < 5.0 / n.sqrt(), "{found}");
        }
    }
}
