//! Short flows that arrive as a Poisson process, each over a connection of its own.

use crate::sizes::{self, ALPHA, LAW, MIN_SIZE, MAX_SIZE, SIGMA};
use crate::{TrafficAction, Application, Built, Class, TrafficEvent, TrafficSetup, Traffic, Transfer};
use narrows_units::{Entry, Example, Kind, Distribution, ParamError, ParamSpec, Params, Span, Stream, Time};

/// Registry entry.
pub const TRAFFIC: Traffic = Traffic {
    entry: Entry {
        name: "arrivals",
        summary: "Short flows arrive as a Poisson process, each over a new connection, whatever became of those before",
        source: "open-loop traffic, as in the evaluation of RCP (Dukkipati and McKeown 2006)",
        params: &[
            ParamSpec::new("size", Kind::Bytes, "Mean size of a flow.")
                .required()
                .range(40.0, 1e12),
            ParamSpec::new("rate", Kind::Number, "Mean arrivals per second.").range(1e-6, 1e6),
            ParamSpec::new(
                "load",
                Kind::Rate,
                "Mean payload rate of all flows together, in place of rate.",
            )
            .range(1.0, 1e12),
            LAW,
            SIGMA,
            ALPHA,
            MIN_SIZE,
            MAX_SIZE,
        ],
        shorthand: &["load"],
        example: Example::new(
            "{arrivals: {size: 50 kB, load: 8 Mbit/s}}",
            "What arrives through 20 Mbit/s: flows of 50 kB that come as a Poisson process and offer 8 Mbit/s.",
        )
        .picture(r#"{"seconds": 20, "bin_ms": 200}"#),
    },
    class: Class::Push,
    parallel: false,
    whole: true,
    build,
};

fn build(params: &Params, setup: &TrafficSetup) -> Built {
    let mean = params.integer("size").unwrap_or(1) as f64;
    let per_second = match (params.real("rate"), params.integer("load")) {
        (Some(rate), None) => rate,
        (None, Some(load)) => load as f64 / 8.0 / mean,
        _ => {
            return Err(ParamError::Conflict(
                "give either rate (arrivals per second) or load (their payload rate)".into(),
            ));
        }
    };
    Ok(Box::new(Arrivals {
        size: sizes::law(params, mean)?,
        distance: 1.0 / per_second,
        stream: setup.stream(),
        begun: 0,
        next: Time::FAR,
    }))
}

struct Arrivals {
    size: Distribution,
    /// Mean time between arrivals in seconds.
    distance: f64,
    stream: Stream,
    begun: u32,
    next: Time,
}

impl Application for Arrivals {
    fn on(&mut self, now: Time, event: TrafficEvent, actions: &mut Vec<TrafficAction>) {
        if event == TrafficEvent::Start {
            self.next = now + Span::from_secs(self.stream.exponential(self.distance));
        }
        while self.next <= now {
            let connection = self.begun;
            self.begun += 1;
            actions.push(TrafficAction::Open { connection });
            actions.push(TrafficAction::Transfer(Transfer {
                connection,
                transfer: connection,
                up: sizes::draw(&self.size, &mut self.stream),
                down: 0,
            }));
            actions.push(TrafficAction::Close { connection });
            // Time must go on.
            let distance = Span::from_secs(self.stream.exponential(self.distance));
            self.next += distance.max(Span::from_ns(1));
        }
    }

    fn next_wakeup(&self) -> Time {
        self.next
    }

    fn facts(&self) -> Vec<(&'static str, f64)> {
        vec![("arrivals_per_second", 1.0 / self.distance)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Offered;

    #[test]
    fn the_load_is_that_of_the_arrivals() {
        let json = serde_json::json!({"size": 20_000, "load": 8_000_000, "law": "exponential"});
        let params = Params::from_json(TRAFFIC.entry.params, json.as_object().unwrap()).unwrap();
        let setup = TrafficSetup {
            seed: 3,
            flow: 1,
            connections: 1,
        };
        let mut source = TRAFFIC.build(&params, &setup).unwrap();
        let (mut actions, mut offered) = (Vec::new(), Offered::default());
        source.on(Time::ZERO, TrafficEvent::Start, &mut actions);
        while source.next_wakeup() < Time::from_ns(1_000_000_000_000) {
            source.on(source.next_wakeup(), TrafficEvent::Wakeup, &mut actions);
        }
        for action in &actions {
            offered.note(action);
        }
        // 50 000 exponential sizes: five standard errors are 3.2 % with the chance of the arrivals.
        let (_, bps) = offered.load(1000.0).unwrap();
        assert!((bps / 8e6 - 1.0).abs() < 0.032, "{bps}");
        assert_eq!(offered.connections, offered.transfers);
    }

    #[test]
    fn rate_and_load_exclude_each_other() {
        let setup = TrafficSetup {
            seed: 3,
            flow: 1,
            connections: 1,
        };
        for json in [
            serde_json::json!({"size": 1000}),
            serde_json::json!({"size": 1000, "load": 8000, "rate": 1}),
        ] {
            let params = Params::from_json(TRAFFIC.entry.params, json.as_object().unwrap()).unwrap();
            assert!(TRAFFIC.build(&params, &setup).is_err());
        }
    }
}
