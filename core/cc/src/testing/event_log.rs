//! Logs of the events that a transport reports to a scheme, with the scheme's allowance after each, from which a run of
//! any plane can be played to the scheme again.
//!
//! A log is a file of lines, each a list in JSON. The first line holds payload bytes of a packet, initial window in packets
//! and time of construction; the others the kind of an event, its members in the order of its definition, and the
//! allowance.

mod event_reader;
mod event_writer;

use super::decisions::Event;
use crate::{
    AckEvent, Allowance, CongestionControl, EcnEvent, Fields, HeardSends, LossEvent, SendEvent,
    Setup, SpuriousLossEvent,
};
use event_reader::{read_line, read_start};
use event_writer::{write_ack, write_allowance, write_cause, write_loss};
use narrows_units::{Bytes, Span, Time};
use serde_json::{Value, json};
use std::io::Write;
use std::str::FromStr;

/// A scheme whose events are logged.
pub struct LoggedScheme<W> {
    scheme: Box<dyn CongestionControl>,
    log: W,
}

impl<W: Write + Send> LoggedScheme<W> {
    /// Writes the events of `scheme`, which was built with `setup`, to `log`.
    ///
    /// # Panics
    /// Here and later, if the log cannot be written.
    pub fn new(scheme: Box<dyn CongestionControl>, setup: &Setup, log: W) -> Self {
        let mut logged = LoggedScheme { scheme, log };
        logged.write(&json!([
            setup.mss.get(),
            setup.initial_window,
            setup.now.ns()
        ]));
        logged
    }

    fn write(&mut self, line: &Value) {
        writeln!(self.log, "{line}").expect("the log of events is written");
    }

    fn note(&mut self, kind: &str, members: &Value) {
        let allowance = write_allowance(&self.scheme.allowance());
        self.write(&json!([kind, members, allowance]));
    }
}

impl<W: Write + Send> CongestionControl for LoggedScheme<W> {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.scheme.on_ack(ack);
        self.note("ack", &write_ack(ack));
    }

    fn on_duplicate(&mut self, ack: &AckEvent<'_>) {
        self.scheme.on_duplicate(ack);
        self.note("duplicate", &write_ack(ack));
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.scheme.on_loss(loss);
        self.note("loss", &write_loss(loss));
    }

    fn on_send(&mut self, send: &SendEvent) {
        self.scheme.on_send(send);
        let members = json!([
            send.now.ns(),
            send.number,
            send.bytes.get(),
            send.in_flight.get(),
            send.idle.map(Span::ns),
            send.retransmission,
            send.app_limited
        ]);
        self.note("send", &members);
    }

    fn on_ecn(&mut self, ecn: &EcnEvent) {
        self.scheme.on_ecn(ecn);
        let members = json!([
            ecn.now.ns(),
            ecn.packets,
            ecn.in_flight.get(),
            ecn.new_epoch
        ]);
        self.note("ecn", &members);
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousLossEvent) {
        self.scheme.on_spurious_loss(spurious);
        let members = json!([spurious.now.ns(), write_cause(spurious.cause)]);
        self.note("spurious", &members);
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.scheme.on_recovery_exit(now);
        self.note("recovery_exit", &json!([now.ns()]));
    }

    fn on_timer(&mut self, now: Time) {
        self.scheme.on_timer(now);
        self.note("timer", &json!([now.ns()]));
    }

    fn allowance(&self) -> Allowance {
        self.scheme.allowance()
    }

    fn heard_sends(&self) -> HeardSends {
        self.scheme.heard_sends()
    }

    fn next_timer(&self) -> Option<Time> {
        self.scheme.next_timer()
    }

    fn holds_back(&self) -> bool {
        self.scheme.holds_back()
    }

    fn needs_caller(&self) -> bool {
        self.scheme.needs_caller()
    }

    fn trace(&self, fields: &mut Fields) {
        self.scheme.trace(fields);
    }
}

/// A log that was read.
pub struct EventLog {
    /// Payload bytes of a packet, initial window in packets, and time of construction.
    start: (Bytes, u64, Time),
    events: Vec<(Event, String)>,
}

impl FromStr for EventLog {
    type Err = String;

    /// # Errors
    /// The number of a line that is not part of a log.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().enumerate().map(|(index, line)| {
            let value: Option<Value> = serde_json::from_str(line).ok();
            (index + 1, value)
        });
        let refuse = |number: usize| format!("line {number} is not part of a log of events");
        let first = lines.next().and_then(|(_, value)| read_start(&value?).ok());
        let start = first.ok_or_else(|| refuse(1))?;
        let events = lines.map(|(number, value)| {
            value
                .and_then(|value| read_line(&value).ok())
                .ok_or_else(|| refuse(number))
        });
        Ok(EventLog {
            start,
            events: events.collect::<Result<_, _>>()?,
        })
    }
}

impl EventLog {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// True without events.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// `setup` with the packets and the time of the log.
    pub fn setup(&self, setup: Setup) -> Setup {
        let (mss, initial_window, now) = self.start;
        Setup {
            mss,
            initial_window,
            now,
            ..setup
        }
    }

    /// Plays the events to `scheme` and calls `decide` after each, which makes decisions that are left to it.
    ///
    /// # Errors
    /// The number and the allowances of the first event after which the scheme allows something else than in the log.
    pub fn play(
        &self,
        scheme: &mut dyn CongestionControl,
        mut decide: impl FnMut(&mut dyn CongestionControl),
    ) -> Result<(), String> {
        for (number, (event, expected)) in self.events.iter().enumerate() {
            event.play(scheme);
            decide(scheme);
            let allowed = write_allowance(&scheme.allowance()).to_string();
            if allowed != *expected {
                return Err(format!(
                    "event {number}: allows {allowed}; in the log {expected}"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::{ALL, find};
    use crate::testing::history::{Decisions, History};
    use crate::testing::{MSS, example_params, example_setup};

    /// A log of random events, with timers, of `scheme`.
    fn log(scheme: &crate::Scheme) -> String {
        let mut text = Vec::new();
        let built = (scheme.build)(&example_params(scheme), example_setup()).unwrap();
        let mut logged = LoggedScheme::new(built, &example_setup(), &mut text);
        let mut history = History::new(Decisions::by_chance(5));
        for _ in 0..600 {
            let window = logged.allowance().cwnd.map_or(100 * MSS, Bytes::get);
            history.next(window).play(&mut logged);
            if logged
                .next_timer()
                .is_some_and(|timer| timer <= history.now)
            {
                logged.on_timer(history.now);
            }
        }
        drop(logged);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn every_scheme_allows_the_same_when_its_log_is_played_again() {
        for scheme in ALL {
            let log: EventLog = log(scheme).parse().unwrap();
            let setup = log.setup(example_setup());
            let mut built = (scheme.build)(&example_params(scheme), setup).unwrap();
            log.play(&mut *built, |_| ())
                .unwrap_or_else(|why| panic!("{}: {why}", scheme.name));
            assert!(log.len() >= 600);
        }
    }

    #[test]
    fn another_scheme_is_noticed() {
        let log: EventLog = log(find("cubic").unwrap()).parse().unwrap();
        let reno = find("reno").unwrap();
        let mut built = (reno.build)(&example_params(reno), log.setup(example_setup())).unwrap();
        let why = log.play(&mut *built, |_| ()).unwrap_err();
        assert!(
            why.starts_with("event ") && why.contains("in the log"),
            "{why}"
        );
    }

    #[test]
    fn damaged_lines_are_refused_by_their_number() {
        let text = log(find("reno").unwrap());
        for (line, damaged) in [
            (1, "[]"),
            (3, "[\"ack\",[1],[]]"),
            (4, "{}"),
            (5, "[\"heard\",[1],[]]"),
        ] {
            let lines = text.lines().enumerate();
            let lines = lines.map(|(index, old)| if index + 1 == line { damaged } else { old });
            let text = lines.collect::<Vec<_>>().join("\n");
            let why = text.parse::<EventLog>().err().unwrap();
            assert_eq!(why, format!("line {line} is not part of a log of events"));
        }
    }
}
