//! A server with ticks: packets leave at multiples of a tick only, like those of an emulator driven by the timer
//! interrupt of its kernel.
//!
//! At each multiple of `tick` since the start of the run the server receives as many bytes of credit as the rate
//! carries in a tick, if it had packets to serve since the previous tick. At that instant all packets that the credit
//! covers leave, one after the other; remaining credit is kept for the next packet, and lost if no packet waits.
//! Therefore the mean rate is exact while packets wait, packets leave in bursts of rate * tick, and a packet that finds
//! the server idle leaves at the next tick, which is up to a tick earlier or later than at the rate alone.

use crate::{Entry, Example, RateServer};
use narrows_units::{Bytes, Rate, Span, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "ticks",
    summary: "Serves packets at multiples of a tick only, with the credit of a rate, as dummynet does",
    source: "Rizzo, Dummynet: a simple approach to the evaluation of network protocols, ACM CCR 27(1), 1997: at every tick a pipe moves as many bytes as its bandwidth carries in one, and keeps the rest of the credit",
    params: TicksParams::PARAMS,
    shorthand: &["rate"],
    example: Example::new(
        "{ticks: {rate: 12 Mbit/s, tick: 10 ms}}",
        "Every 10 ms packets leave for the credit of 10 ms, and none in between.",
    )
    .picture(r#"{"seconds": 0.2, "bin_ms": 1}"#),
};

params! {
    /// Parameters.
    struct TicksParams {
        /// Rate in IP bits per second.
        rate: Rate(1.0..=1e13);
        /// Time from one tick to the next.
        tick: Span(1000.0..=1e10) = "1 ms", "FreeBSD's HZ = 1000; 10 ms at HZ = 100, as in the paper";
    }
}

crate::registry::build!(dyn RateServer: |params, _| {
    let params = TicksParams::read(params);
    Ticks { rate: params.rate.bps(), tick: params.tick.ns(), credit: 0, last: None }
});

/// Work of a byte, in bits times nanoseconds per second, so that it is an integer.
const PER_BYTE: u128 = 8_000_000_000;

struct Ticks {
    /// In bit/s.
    rate: u64,
    /// In ns.
    tick: u64,
    /// Work that may be done at the instant of tick `last`, or later unless the server becomes idle.
    credit: u128,
    /// Number of the last tick whose credit was added; `None` while the server is idle.
    last: Option<u64>,
}

impl Ticks {
    /// Work added per tick.
    fn each(&self) -> u128 {
        u128::from(self.rate) * u128::from(self.tick)
    }

    fn bytes(&self, ticks: u64) -> Bytes {
        let bytes = u128::from(ticks) * self.each() / PER_BYTE;
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl RateServer for Ticks {
    fn serve(&mut self, now: Time, bytes: u32) -> Time {
        let current = now.ns() / self.tick;
        let last = self.last.unwrap_or(current).max(current);
        let wanted = u128::from(bytes) * PER_BYTE;
        let missing = wanted.saturating_sub(self.credit);
        let ticks = missing.div_ceil(self.each());
        // At least the next tick, unless the credit of this one has been added already.
        let fresh = self.last.is_none() || last * self.tick < now.ns();
        let ticks = u64::try_from(ticks).unwrap_or(u64::MAX).max(u64::from(fresh));
        self.credit += u128::from(ticks) * self.each();
        self.credit -= wanted;
        let end = last.saturating_add(ticks);
        self.last = Some(end);
        match end.checked_mul(self.tick) {
            Some(ns) => Time::from_ns(ns),
            None => Time::FAR,
        }
    }

    fn rest(&mut self) {
        self.credit = 0;
        self.last = None;
    }

    fn served(&self, began: Time, now: Time) -> Bytes {
        let before = now.ns().saturating_sub(1) / self.tick;
        self.bytes(before.saturating_sub(began.ns() / self.tick))
    }

    /// Credit of the ticks after `from`, up to and including one at `to`.
    fn capacity(&self, from: Time, to: Time) -> Bytes {
        let before = Span::from_ns(from.ns() / self.tick);
        let until = Span::from_ns(to.ns() / self.tick);
        let bytes = |span: Span| self.bytes(span.ns()).get();
        Bytes::new(bytes(until) - bytes(before))
    }

    fn rate(&self, _: Time) -> Rate {
        Rate::from_bps(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementSetup;
    use narrows_units::Params;
    use serde_json::json;

    fn server(rate: u64) -> Box<dyn RateServer> {
        let params = json!({"rate": rate});
        let params = Params::from_json(ENTRY.params, params.as_object().unwrap()).unwrap();
        build(&params, &ElementSetup::default()).unwrap()
    }

    fn us(time: Time) -> u64 {
        time.ns() / 1000
    }

    #[test]
    fn packets_leave_in_bursts_at_ticks_with_what_the_rate_carries() {
        // 40 Mbit/s are 5000 bytes per millisecond: three packets and a third.
        let mut server = server(40_000_000);
        let mut at = Time::from_ns(300_000);
        let left: Vec<u64> = (0..11)
            .map(|_| {
                at = server.serve(at, 1500);
                us(at)
            })
            .collect();
        assert_eq!(left, [1000, 1000, 1000, 2000, 2000, 2000, 3000, 3000, 3000, 3000, 4000]);
    }

    #[test]
    fn an_idle_server_keeps_no_credit() {
        let mut server = server(40_000_000);
        assert_eq!(us(server.serve(Time::from_ns(300_000), 1500)), 1000);
        server.rest();
        // Exactly at the tick as well: the remaining credit is lost, and the next tick adds new credit.
        assert_eq!(us(server.serve(Time::from_ns(1_000_000), 1500)), 2000);
        server.rest();
        let mut at = Time::from_ns(7_999_999);
        let left = [0; 4].map(|_| {
            at = server.serve(at, 1500);
            us(at)
        });
        assert_eq!(left, [8000, 8000, 8000, 9000]);
    }

    #[test]
    fn a_packet_may_need_several_ticks() {
        // 375 bytes per millisecond.
        let mut server = server(3_000_000);
        assert_eq!(us(server.serve(Time::from_ns(100), 1500)), 4000);
        assert_eq!(us(server.serve(Time::from_ns(4_000_000), 1000)), 7000);
        // 125 bytes are left.
        assert_eq!(us(server.serve(Time::from_ns(7_000_000), 1250)), 10_000);
    }
}
