//! Saturator: keeps a path full to measure its capacity; a probe, not meant for sharing a path.
//!
//! Provenance: the measuring program of K. Winstein, A. Sivaraman, H. Balakrishnan, "Stochastic Forecasts Achieve High
//! Throughput and Low Delay over Cellular Networks", NSDI 2013, section 4.1: a window that keeps the round-trip time
//! above 750 ms, so that the link never starves, and below 3000 ms, beyond which cellular networks drop packets or slow
//! a user down. Deviations: the paper does not specify the window's control, and its acknowledgements return over
//! another link. Here the window doubles per round trip until the RTT reaches `low`, is constant between the two, and
//! shrinks by half of the bytes acknowledged above `high`. Losses bound it too, since a path with a short queue never
//! has such an RTT: if more than `loss` of a round is missing the queue is full, the window shrinks to the amount that
//! arrived, and from then on grows by a sixteenth per round trip. The sending rate never exceeds `rate`, nor the total
//! `volume`.
//!
//! Without acknowledgements no more than the window is sent. After a timeout single packets probe whether the path is
//! back, after increasing pauses; the first answer restores half of the previous window, since packets of that may
//! still be in flight. Data is sent only once (datagrams).
//!
//! It fills any buffer up to seconds, by design: use it only on paths without other users. It is the sender of `narrows
//! trace record`.

use crate::parts::datagrams::DATAGRAMS;
use crate::{
    AckEvent, Allowance, CongestionControl, EcnUse, Fields, LossCause, LossEvent, Recovery, Scheme, SendEvent, Setup,
};
use narrows_units::{Bytes, Params, Rate, Span, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "saturator",
    summary: "Keeps the path full, with an RTT between 750 ms and 3 s, to measure what it carries",
    source: "Winstein et al., NSDI 2013, section 4.1",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    loss_based: false,
    transport: &DATAGRAMS,
    profiles: &[],
    params: SaturatorParams::PARAMS,
    build: |params, setup| Ok(Box::new(Saturator::new(params, &setup))),
};

params! {
    /// Parameters.
    struct SaturatorParams {
        /// Round-trip time below which the window grows.
        low: Span(1e6..=1e10) = "750 ms", "Winstein et al. 2013, section 4.1";
        /// Round-trip time above which it shrinks; no less than `low`.
        high: Span(1e6..=1e11) = "3 s", "Winstein et al. 2013, section 4.1";
        /// Maximum sending rate, in payload.
        rate: Rate(1e4..=1e12) = "100 Mbit/s", "ours: a safeguard";
        /// Total payload to send.
        volume: Bytes(1.0..=1e15) = "1000000000 MB", "ours: a safeguard";
        /// Fraction of a round trip's packets that may be missing before the window shrinks.
        loss: Ratio(0.001..=0.9) = 0.1, "ours: random losses of a radio link are fewer";
    }
}

/// Smallest window in packets while the path answers.
const LEAST: u64 = 2;
/// The pacing rate when all has been sent: a packet in hours.
const STOPPED: Rate = Rate::from_bps(1);
/// Growth per byte acknowledged once losses have shown how long the queue is.
const SLOW: u64 = 16;

/// Windows in payload bytes.
struct Saturator {
    mss: u64,
    low: Span,
    high: Span,
    rate: Rate,
    loss: f64,
    /// Bytes still to send.
    left: u64,
    window: u64,
    /// Bytes acknowledged per byte of growth.
    per_byte: u64,
    /// Window restored with the first acknowledgement after a timeout.
    after_silence: Option<u64>,
    /// Bytes acknowledged and lost in the current round.
    acked: u64,
    lost: u64,
}

impl Saturator {
    fn new(params: &Params, setup: &Setup) -> Self {
        let params = SaturatorParams::read(params);
        Saturator {
            mss: setup.mss.get(),
            low: params.low,
            high: params.high.max(params.low),
            rate: params.rate,
            loss: params.loss,
            left: params.volume.get(),
            window: setup.initial_cwnd().get(),
            per_byte: 1,
            after_silence: None,
            acked: 0,
            lost: 0,
        }
    }

    fn least(&self) -> u64 {
        LEAST * self.mss
    }

    /// The end of a round: too many of its packets are missing.
    fn judge_losses(&mut self) {
        let all = self.acked + self.lost;
        if self.lost as f64 > self.loss * all as f64 {
            self.window = (self.window as f64 * self.acked as f64 / all as f64) as u64;
            self.per_byte = SLOW;
        }
        (self.acked, self.lost) = (0, 0);
    }
}

impl CongestionControl for Saturator {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        if let Some(window) = self.after_silence.take() {
            self.window = window;
            (self.acked, self.lost) = (0, 0);
        }
        if ack.round_start {
            self.judge_losses();
        }
        let bytes = ack.bytes.get();
        self.acked += bytes;
        self.lost += ack.lost.get();
        if let Some(rtt) = ack.latest_rtt {
            if rtt > self.high {
                self.window = self.window.saturating_sub(bytes / 2);
            } else if rtt < self.low && ack.cwnd_limited {
                self.window += bytes / self.per_byte;
            }
        }
        self.window = self.window.max(self.least());
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        // Losses found by an acknowledgement are in its event.
        if loss.cause == LossCause::Reordering {
            return;
        }
        if self.after_silence.is_none() {
            self.after_silence = Some((self.window / 2).max(self.least()));
            self.per_byte = 1;
        }
        self.window = self.mss;
    }

    fn on_send(&mut self, send: &SendEvent) {
        self.left = self.left.saturating_sub(send.bytes.get());
    }

    fn allowance(&self) -> Allowance {
        if self.left == 0 {
            return Allowance {
                cwnd: Some(Bytes::new(self.mss)),
                pacing: Some(STOPPED),
                reschedule_pacing: true,
                ..Allowance::default()
            };
        }
        Allowance {
            cwnd: Some(Bytes::new(self.window)),
            pacing: Some(self.rate),
            ..Allowance::default()
        }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.mode = match (self.left, self.after_silence, self.per_byte) {
            (0, _, _) => "stopped",
            (_, Some(_), _) => "silence",
            (_, None, 1) => "growth",
            (_, None, _) => "full",
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, Script, setup, windows};

    fn script() -> Script {
        Script::new((SCHEME.build)(&Params::resolve(SCHEME.params, []).unwrap(), setup()).unwrap())
    }

    /// An acknowledgement of one packet, with a number of bytes lost, that begins a round.
    fn round(script: &mut Script, bytes: u64, lost: u64) {
        let mut ack = AckEvent::new(script.now);
        ack.bytes = Bytes::new(bytes);
        ack.lost = Bytes::new(lost);
        ack.latest_rtt = Some(script.rtt);
        ack.round_start = true;
        script.scheme.on_ack(&ack);
    }

    #[test]
    fn the_window_doubles_until_the_rtt_says_that_the_path_is_full() {
        let mut s = script();
        assert_eq!(windows(&mut s, 4), [10.0, 20.0, 40.0, 80.0]);
        s.rtt = Span::from_ms(750);
        assert_eq!(windows(&mut s, 2), [160.0, 160.0]);
        s.rtt = Span::from_ms(3000);
        assert_eq!(windows(&mut s, 2), [160.0, 160.0]);
    }

    #[test]
    fn above_three_seconds_half_of_it_goes_per_round_trip() {
        let mut s = script();
        windows(&mut s, 4);
        s.rtt = Span::from_ms(3001);
        assert_eq!(windows(&mut s, 3), [160.0, 80.0, 40.0]);
        // And never all of it.
        windows(&mut s, 10);
        assert_eq!(s.cwnd_packets(), 2.0);
    }

    #[test]
    fn a_full_queue_is_known_by_its_losses() {
        let mut s = script();
        windows(&mut s, 4);
        // A quarter of the round is missing, which is known when the next one begins.
        round(&mut s, 75 * MSS, 25 * MSS);
        let before = s.cwnd_packets();
        round(&mut s, 0, 0);
        assert_eq!(s.cwnd_packets(), before * 0.75);
        assert_eq!(s.fields().mode, "full");
        let kept = s.cwnd_packets();
        round(&mut s, 16 * MSS, 0);
        assert_eq!(s.cwnd_packets(), kept + 1.0);
        // A few losses are attributed to a radio link.
        round(&mut s, 95 * MSS, 5 * MSS);
        let before = s.cwnd_packets();
        round(&mut s, 0, 0);
        assert_eq!(s.cwnd_packets(), before);
    }

    #[test]
    fn without_an_answer_one_packet_asks_and_half_of_the_window_comes_back() {
        let mut s = script();
        windows(&mut s, 4);
        for _ in 0..3 {
            s.lose(LossCause::Timeout, 160);
            assert_eq!(s.cwnd_packets(), 1.0);
            assert_eq!(s.fields().mode, "silence");
        }
        s.rtt = Span::from_ms(800);
        round(&mut s, MSS, 0);
        assert_eq!(s.cwnd_packets(), 80.0);
    }

    #[test]
    fn nothing_is_sent_faster_than_the_rate_or_beyond_the_volume() {
        let spec = SCHEME.params.iter().find(|spec| spec.name == "volume").unwrap();
        let given = [("volume".to_owned(), spec.parse("3 kB").unwrap())];
        let params = Params::resolve(SCHEME.params, given).unwrap();
        let mut s = Script::new((SCHEME.build)(&params, setup()).unwrap());
        for number in 0..3 {
            assert_eq!(s.scheme.allowance().pacing, Some(Rate::from_bps(100_000_000)));
            s.scheme.on_send(&SendEvent::new(s.now, number, Bytes::new(MSS)));
        }
        assert_eq!(s.scheme.allowance().pacing, Some(STOPPED));
        assert_eq!(s.fields().mode, "stopped");
    }
}
