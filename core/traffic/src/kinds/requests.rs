//! Requests and answers: each connection asks, waits for the answer, thinks, and asks again.

use super::ten_seconds;
use super::onoff::TimeLaw;
use crate::fetches::Fetches;
use crate::sizes::{self, SizeParams};
use crate::{TrafficAction, Application, Built, Class, TrafficEvent, TrafficSetup, Traffic, TransferHeader};
use narrows_units::{Entry, Distribution, ParamSpec, Params, Span, Stream, Time, params};

/// Registry entry.
pub const TRAFFIC: Traffic = Traffic {
    entry: Entry {
        name: "requests",
        summary: "Asks for data, waits for the answer, thinks, and asks again",
        source: "RFC 8868, section 4.3 (short TCP flows); netperf TCP_RR, TCP_CRR",
        params: &PARAMS,
        shorthand: &["response"],
        example: ten_seconds(
            "{requests: {response: 500 kB, think: 500 ms}}",
            "Arrivals through 20 Mbit/s: answers of 500 kB with times to think between them.",
        ),
    },
    class: Class::Pull,
    parallel: true,
    whole: true,
    build,
};

params! {
    /// Parameters besides those of the size distribution.
    struct RequestParams {
        /// Mean size of an answer.
        response: Bytes(1.0..=1e12);
        /// Size of a request.
        request: Bytes(TransferHeader::LENGTH as f64..=1e9) = 200;
        /// Mean time between the end of an answer and the next request.
        think: Span = 0;
        /// Distribution of that time.
        think_law: TimeLaw = "exponential";
        /// Whether the connection stays open between requests, instead of one connection per request.
        persistent: Flag = true;
    }
}

const PARAMS: [ParamSpec; 10] = {
    let (sizes, rest) = RequestParams::PARAMS.split_at(2);
    ParamSpec::join(&[sizes, SizeParams::PARAMS, rest])
};

fn build(params: &Params, setup: &TrafficSetup) -> Built {
    let set = RequestParams::read(params);
    let think = set.think.secs();
    let source = RequestSource {
        request: set.request.get(),
        response: sizes::law(params, set.response.get() as f64)?,
        think: match set.think_law {
            TimeLaw::Fixed => Distribution::Fixed(think),
            TimeLaw::Exponential => Distribution::Exponential { mean: think },
        },
        persistent: set.persistent,
    };
    let askers = (0..setup.connections).map(|number| Asker {
        // Each client has a separate random stream, so that adding one leaves the others unchanged.
        stream: Stream::new(setup.seed, &format!("traffic/{}/{number}", setup.flow)),
        connection: None,
        next: Time::FAR,
    });
    Ok(Box::new(Requests {
        source,
        askers: askers.collect(),
        fetches: Fetches::default(),
    }))
}

struct RequestSource {
    request: u64,
    response: Distribution,
    think: Distribution,
    persistent: bool,
}

struct Asker {
    stream: Stream,
    connection: Option<u32>,
    /// When it sends the next request.
    next: Time,
}

struct Requests {
    source: RequestSource,
    askers: Vec<Asker>,
    fetches: Fetches,
}

impl Requests {
    fn ask(&mut self, index: usize, actions: &mut Vec<TrafficAction>) {
        let asker = &mut self.askers[index];
        asker.next = Time::FAR;
        let sizes = (self.source.request, sizes::draw(&self.source.response, &mut asker.stream));
        let connection = self.fetches.ask(asker.connection, sizes, self.source.persistent, actions);
        asker.connection = Some(connection);
    }

    fn run(&mut self, now: Time, actions: &mut Vec<TrafficAction>) {
        for index in 0..self.askers.len() {
            if self.askers[index].next <= now {
                self.ask(index, actions);
            }
        }
    }
}

impl Application for Requests {
    fn on(&mut self, now: Time, event: TrafficEvent, actions: &mut Vec<TrafficAction>) {
        match event {
            TrafficEvent::Start => {
                for index in 0..self.askers.len() {
                    self.ask(index, actions);
                }
            }
            TrafficEvent::Completed { connection, .. } | TrafficEvent::Failed { connection } => {
                let failed = matches!(event, TrafficEvent::Failed { .. });
                let found = self
                    .askers
                    .iter_mut()
                    .find(|asker| asker.connection == Some(connection));
                if let Some(asker) = found {
                    let think = self.source.think.sample(&mut asker.stream);
                    asker.next = now + Span::from_secs(think);
                    if failed || !self.source.persistent {
                        asker.connection = None;
                    }
                }
            }
            TrafficEvent::Wakeup => {}
        }
        self.run(now, actions);
    }

    fn next_wakeup(&self) -> Time {
        let next = self.askers.iter().map(|asker| asker.next).min();
        next.unwrap_or(Time::FAR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Transfer;

    fn build(json: &serde_json::Value, connections: u32) -> Box<dyn Application> {
        let params = Params::from_json(TRAFFIC.entry.params, json.as_object().unwrap()).unwrap();
        let setup = TrafficSetup {
            seed: 3,
            flow: 1,
            connections,
        };
        TRAFFIC.build(&params, &setup).unwrap()
    }

    fn transfer(actions: &[TrafficAction]) -> Transfer {
        let found = actions.iter().find_map(|action| match action {
            TrafficAction::Transfer(transfer) => Some(*transfer),
            _ => None,
        });
        found.unwrap()
    }

    #[test]
    fn the_next_request_comes_after_the_answer_and_the_time_to_think() {
        let json = serde_json::json!({"response": 5000, "request": 100, "think": 7_000_000,
                                      "think_law": "fixed"});
        let mut source = build(&json, 1);
        let mut actions = Vec::new();
        source.on(Time::ZERO, TrafficEvent::Start, &mut actions);
        assert_eq!(actions[0], TrafficAction::Open { connection: 0 });
        let first = transfer(&actions);
        assert_eq!((first.up, first.down, first.transfer), (100, 5000, 0));
        assert_eq!(source.next_wakeup(), Time::FAR);
        actions.clear();
        let completed = TrafficEvent::Completed {
            connection: 0,
            transfer: 0,
        };
        source.on(Time::from_ns(50), completed, &mut actions);
        assert!(actions.is_empty());
        let next = source.next_wakeup();
        assert_eq!(next, Time::from_ns(7_000_050));
        source.on(next, TrafficEvent::Wakeup, &mut actions);
        assert_eq!(actions.len(), 1, "the same connection");
        assert_eq!(transfer(&actions).transfer, 1);
    }

    #[test]
    fn without_persistence_each_request_has_a_connection() {
        let mut source = build(&serde_json::json!({"response": 5000, "persistent": false}), 2);
        let mut actions = Vec::new();
        source.on(Time::ZERO, TrafficEvent::Start, &mut actions);
        let completed = TrafficEvent::Completed {
            connection: 1,
            transfer: 1,
        };
        actions.clear();
        source.on(Time::from_ns(9), completed, &mut actions);
        assert_eq!(actions[0], TrafficAction::Open { connection: 2 });
        assert_eq!(actions[2], TrafficAction::Close { connection: 2 });
    }
}
