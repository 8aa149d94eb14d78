//! Datagrams of three sizes, seven small ones and four of medium size for each large one, at a constant rate.
//!
//! Provenance: the mix of sizes that RFC 6985 calls simple IMIX. Deviations: small datagrams have room for the header
//! by which Narrows counts them, and are larger than 40 bytes.

use narrows_traffic::{
    Application, Built, Class, DATAGRAM_HEADER, IP_UDP, Traffic, TrafficAction, TrafficEvent,
    TrafficSetup,
};
use narrows_units::{Bytes, Entry, Example, Params, Rate, Time, params};

/// Registry entry.
pub const TRAFFIC: Traffic = Traffic {
    entry: Entry {
        name: "imix",
        summary: "Sends datagrams of three sizes in the proportions 7:4:1 at a constant rate",
        source: "RFC 6985 (IMIX genome)",
        params: ImixParams::PARAMS,
        shorthand: &["rate"],
        example: Example::new(
            "{imix: 2 Mbit/s}",
            "Arrivals through 20 Mbit/s: small, medium and large datagrams.",
        )
        .picture(r#"{"seconds": 10, "bin_ms": 100}"#),
    },
    class: Class::Datagrams,
    parallel: false,
    whole: false,
    build,
};

const SMALL: u32 = IP_UDP + DATAGRAM_HEADER;
const MEDIUM: u32 = 576;
const LARGE: u32 = 1500;

/// One round of sizes: the larger ones are spread out.
pub const ROUND: [u32; 12] =
    [SMALL, MEDIUM, SMALL, SMALL, MEDIUM, SMALL, LARGE, SMALL, MEDIUM, SMALL, SMALL, MEDIUM];

params! {
    /// Parameters.
    struct ImixParams {
        /// Rate in IP bits per second, over a round of sizes.
        #[trial("2000000")]
        rate: Rate(1e3..=1e12);
    }
}

fn build(params: &Params, _: &TrafficSetup) -> Built {
    Ok(Box::new(Imix {
        rate: ImixParams::read(params).rate,
        start: Time::ZERO,
        sent_bytes: 0,
        sent: 0,
        next: Time::FAR,
    }))
}

struct Imix {
    rate: Rate,
    start: Time,
    sent_bytes: u64,
    sent: usize,
    next: Time,
}

impl Application for Imix {
    fn on(&mut self, now: Time, event: TrafficEvent, actions: &mut Vec<TrafficAction>) {
        if event == TrafficEvent::Start {
            (self.start, self.next) = (now, now);
        }
        while self.next <= now {
            let size = ROUND[self.sent % ROUND.len()];
            actions.push(TrafficAction::Datagram { size });
            self.sent += 1;
            self.sent_bytes += u64::from(size);
            // Counted from the start, so that rounding errors do not accumulate.
            self.next = self.start + self.rate.time_for(Bytes::new(self.sent_bytes));
        }
    }

    fn next_wakeup(&self) -> Time {
        self.next
    }
}
