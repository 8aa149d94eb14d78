//! Datagrams at a constant rate.

use super::ten_seconds;
use crate::{TrafficAction, Application, Built, Class, DATAGRAM_HEADER, TrafficEvent, IP_UDP, TrafficSetup, Traffic};
use narrows_units::{Bytes, Entry, Params, Rate, Time, params};

params! {
    /// Parameters of all kinds that send datagrams of one size.
    pub(super) struct DatagramParams {
        /// Rate in IP bits.
        rate: Rate(1e3..=1e12);
        /// IP size of a datagram.
        packet: Bytes((IP_UDP + DATAGRAM_HEADER) as f64..=9000.0) = 1500,
            "Ethernet MTU; iperf's default of 1470 bytes of payload is 1498";
    }
}

/// Registry entry.
pub const TRAFFIC: Traffic = Traffic {
    entry: Entry {
        name: "cbr",
        summary: "Sends datagrams of one size at equal distances",
        source: "iperf -u -b; RFC 8868, section 4.5",
        params: DatagramParams::PARAMS,
        shorthand: &["rate"],
        example: ten_seconds(
            "{cbr: 2 Mbit/s}",
            "Arrivals through 20 Mbit/s: datagrams at equal distances.",
        ),
    },
    class: Class::Datagrams,
    parallel: false,
    whole: false,
    build,
};

fn build(params: &Params, _: &TrafficSetup) -> Built {
    let DatagramParams { rate, packet } = DatagramParams::read(params);
    Ok(Box::new(Cbr {
        rate,
        packet: packet.get() as u32,
        start: Time::ZERO,
        sent: 0,
        next: Time::FAR,
    }))
}

struct Cbr {
    rate: Rate,
    packet: u32,
    start: Time,
    sent: u64,
    next: Time,
}

impl Application for Cbr {
    fn on(&mut self, now: Time, event: TrafficEvent, actions: &mut Vec<TrafficAction>) {
        if event == TrafficEvent::Start {
            (self.start, self.next) = (now, now);
        }
        while self.next <= now {
            actions.push(TrafficAction::Datagram { size: self.packet });
            self.sent += 1;
            // Counted from the start, so that rounding errors do not accumulate.
            let bytes = Bytes::new(u64::from(self.packet) * self.sent);
            self.next = self.start + self.rate.time_for(bytes);
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
    fn the_rate_is_exact() {
        // 1500 bytes at 7 Mbit/s: one datagram per 1.714285... ms; 583333.3 per 1000 s.
        let params = serde_json::json!({"rate": 7_000_000});
        let params = Params::from_json(TRAFFIC.entry.params, params.as_object().unwrap()).unwrap();
        let setup = TrafficSetup {
            seed: 1,
            flow: 1,
            connections: 1,
        };
        let mut cbr = TRAFFIC.build(&params, &setup).unwrap();
        let mut actions = Vec::new();
        cbr.on(Time::from_ns(500), TrafficEvent::Start, &mut actions);
        let end = Time::from_ns(1_000_000_000_500);
        while cbr.next_wakeup() < end {
            cbr.on(cbr.next_wakeup(), TrafficEvent::Wakeup, &mut actions);
        }
        assert_eq!(actions.len(), 583_334);
        assert!(TRAFFIC.build(&params, &TrafficSetup { connections: 2, ..setup }).is_err());
    }
}
