//! Short flows that arrive as a Poisson process, each over a separate connection.

use crate::sizes::{self, SizeParams};
use crate::{TrafficAction, Application, Built, Class, TrafficEvent, TrafficSetup, Traffic};
use narrows_units::{Entry, Example, Distribution, ParamError, ParamSpec, Params, Span, Stream, Time, params};

/// Registry entry.
pub const TRAFFIC: Traffic = Traffic {
    entry: Entry {
        name: "arrivals",
        summary: "Short flows arrive as a Poisson process, each over a new connection, independent of earlier ones",
        source: "open-loop traffic, as in the evaluation of RCP (Dukkipati and McKeown 2006)",
        params: &PARAMS,
        shorthand: &["load"],
        example: Example::new(
            "{arrivals: {size: 50 kB, load: 8 Mbit/s}}",
            "Arrivals through 20 Mbit/s: flows of 50 kB that come as a Poisson process and offer 8 Mbit/s.",
        )
        .picture(r#"{"seconds": 20, "bin_ms": 200}"#),
    },
    class: Class::Push,
    parallel: false,
    whole: true,
    build,
};

params! {
    /// Parameters besides those of the size distribution.
    struct ArrivalParams {
        /// Mean size of a flow.
        size: Bytes(40.0..=1e12);
        /// Mean arrivals per second.
        rate: Option<Number>(1e-6..=1e6);
        /// Mean payload rate of all flows together, in place of rate.
        load: Option<Rate>(1.0..=1e12);
    }
}

const PARAMS: [ParamSpec; 8] = ParamSpec::join(&[ArrivalParams::PARAMS, SizeParams::PARAMS]);

fn build(params: &Params, setup: &TrafficSetup) -> Built {
    let ArrivalParams { size, rate, load } = ArrivalParams::read(params);
    let mean = size.get() as f64;
    let per_second = match (rate, load) {
        (Some(rate), None) => rate,
        (None, Some(load)) => load.bps() as f64 / 8.0 / mean,
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
            actions.push(TrafficAction::upload(connection, sizes::draw(&self.size, &mut self.stream)));
            actions.push(TrafficAction::Close { connection });
            // Time must advance.
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
        // 50 000 exponential sizes: five standard errors are 3.2 % including the randomness of the arrivals.
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
