//! Hybla: on long paths the window grows as fast as on a short one.
//!
//! Provenance: C. Caini, R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", 2004,
//! and Linux net/ipv4/tcp_hybla.c for the bounds (growth per packet at most 2^16, window at most 65 535
//! packets, slow start clipped at the threshold). Deviations: packets acknowledged are counted (Linux
//! counts acknowledgements), rho is a real number (Linux: eighths) and follows the smallest RTT, and the
//! connection begins with the transport's initial window; `linux_init` begins with rho packets as Linux
//! does, which is one packet up to 25 ms.
//!
//! With rho = RTT/25 ms (at least 1), each packet acknowledged adds 2^rho - 1 packets in slow start and rho^2/w in
//! congestion avoidance, so that the rate, not the window, grows as that of a flow with an RTT of 25 ms. The reaction
//! to losses is Reno's. Growth is bursty: above rho = 5 it should be paced (`pacing: true`), and the first slow start
//! overshoots by up to 2^rho windows.

use crate::parts::{LossBased, CongestionEvent, WindowRules, CongestionWindow};
use crate::{AckEvent, Allowance, CongestionControl, Fields, Scheme, Setup};
use narrows_units::{Bytes, ParamError, Params, Rate, Span, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "hybla",
    summary: "Growth in proportion to the RTT, so that satellite paths get as much as short ones",
    source: "Caini, Firrincieli 2004; Linux net/ipv4/tcp_hybla.c",
    params: HyblaParams::PARAMS,
    build,
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct HyblaParams {
        /// RTT of the reference flow whose growth is emulated.
        rtt0: Span(1e6..=1e9) = "25 ms", "Caini, Firrincieli 2004; Linux net/ipv4/tcp_hybla.c";
        /// Fraction of the data in flight kept after a loss.
        beta: Ratio(0.05..=0.95) = 0.5, "as Reno";
        /// Pace at 2 (slow start) or 1.2 windows per round trip.
        pacing: Flag = false, "Linux net/ipv4/tcp_hybla.c; the paper recommends it";
        /// Start with rho packets.
        linux_init: Flag = false, "Linux net/ipv4/tcp_hybla.c has it on";
    }
}

/// Maximum exponent of growth in slow start.
const MAX_EXPONENT: f64 = 16.0;
/// Maximum window in packets (Linux: snd_cwnd_clamp).
const MAX_WINDOW: f64 = 65_535.0;

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let mut window = CongestionWindow::new(&setup);
    let rules = rules(params);
    if rules.linux_init {
        // No RTT is known yet, so rho is 1.
        window.set_packets(1.0);
    }
    Ok(LossBased::boxed(window, rules))
}

fn rules(params: &Params) -> Hybla {
    let params = HyblaParams::read(params);
    Hybla {
        linux_init: params.linux_init,
        params,
        rho: 1.0,
        min_rtt: Span::MAX,
        smoothed_rtt: Span::ZERO,
    }
}

#[derive(Clone)]
struct Hybla {
    params: HyblaParams,
    /// True if the window is to be set to rho packets once the first RTT is known.
    linux_init: bool,
    rho: f64,
    min_rtt: Span,
    smoothed_rtt: Span,
}

/// 2^x for x from 0 to [`MAX_EXPONENT`]: with the same bits on every machine, unlike those of libraries.
fn power_of_two(x: f64) -> f64 {
    let whole = x.floor();
    // e^(fraction ln 2) as a series; its 20th term is below 1e-20.
    let y = (x - whole) * std::f64::consts::LN_2;
    let (mut sum, mut term) = (1.0, 1.0);
    for n in 1..20 {
        term *= y / f64::from(n);
        sum += term;
    }
    sum * (1u64 << whole as u32) as f64
}

impl Hybla {
    /// Packets of growth per packet acknowledged in slow start.
    fn slow_start_growth(&self) -> f64 {
        power_of_two(self.rho.min(MAX_EXPONENT)) - 1.0
    }
}

impl WindowRules for Hybla {
    fn observe(&mut self, ack: &AckEvent<'_>, window: &mut CongestionWindow) {
        self.smoothed_rtt = ack.smoothed_rtt;
        let Some(rtt) = ack.latest_rtt.filter(|rtt| *rtt < self.min_rtt) else { return };
        self.min_rtt = rtt;
        self.rho = (rtt.secs() / self.params.rtt0.secs()).max(1.0);
        if std::mem::take(&mut self.linux_init) {
            window.set_packets(self.rho.floor().min(MAX_WINDOW));
        }
    }

    fn slow_start(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) -> u64 {
        let growth = self.slow_start_growth();
        let room = ((MAX_WINDOW - window.packets()) * window.mss()).max(0.0);
        let left = window.slow_start((bytes as f64 * growth).min(room) as u64);
        (left as f64 / growth) as u64
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) {
        let packets = window.packets();
        // Never faster than slow start.
        let growth = (self.rho * self.rho / packets).min(self.slow_start_growth());
        let target = packets + growth * bytes as f64 / window.mss();
        window.set_packets(target.min(MAX_WINDOW.max(packets)));
    }

    fn ssthresh(&mut self, _: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        congestion.in_flight * self.params.beta
    }

    fn pace(&self, window: &CongestionWindow, allowance: &mut Allowance) {
        if self.params.pacing && !self.smoothed_rtt.is_zero() {
            let early = window.packets() < window.threshold() / 2.0;
            let percent = if early { 200 } else { 120 };
            let bytes = Bytes::new(window.cwnd().get() * percent / 100);
            allowance.pacing = Some(Rate::of(bytes, self.smoothed_rtt));
        }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("rho", self.rho));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;
    use crate::testing::{MSS, Script, setup};

    fn script(rtt_ms: u64, extra: &[(&str, &str)]) -> Script {
        let given = extra.iter().map(|(name, text)| {
            let spec = SCHEME.params.iter().find(|spec| spec.name == *name).unwrap();
            ((*name).to_owned(), spec.parse(text).unwrap())
        });
        let params = Params::resolve(SCHEME.params, given).unwrap();
        let mut script = Script::new(build(&params, setup()).unwrap());
        script.rtt = Span::from_ms(rtt_ms);
        script
    }

    #[test]
    fn powers_of_two() {
        for x in [0.0, 0.5, 1.0, 1.25, 7.9, 16.0] {
            assert!((power_of_two(x) / x.exp2() - 1.0).abs() < 1e-14, "{x}");
        }
        assert_eq!(power_of_two(10.0), 1024.0);
    }

    #[test]
    fn slow_start_adds_two_to_the_rho_less_one_for_each_packet() {
        for (rtt_ms, growth) in [(10, 1.0), (25, 1.0), (50, 3.0), (100, 15.0)] {
            let mut s = script(rtt_ms, &[]);
            s.ack_round();
            assert_eq!(s.cwnd_packets(), 10.0 + 10.0 * growth, "{rtt_ms} ms");
        }
        // A geostationary path: 2^22 - 1 without clipping; it ends at the maximum window.
        let mut s = script(550, &[]);
        s.ack_round();
        assert_eq!(s.fields().values, [("rho", 22.0)]);
        assert_eq!(s.cwnd_packets(), MAX_WINDOW);
        s.ack_round();
        assert_eq!(s.cwnd_packets(), MAX_WINDOW);
    }

    #[test]
    fn avoidance_adds_rho_squared_per_round() {
        for (rtt_ms, growth) in [(25, 1.0), (50, 4.0), (100, 16.0)] {
            let mut s = script(rtt_ms, &[]);
            while s.cwnd_packets() < 1000.0 {
                s.ack_round();
            }
            s.lose(LossCause::Reordering, 2000);
            assert_eq!(s.cwnd_packets(), 1000.0);
            s.ack_round();
            // rho^2/w with w growing within the round: up to 1.6 % less.
            let grown = s.cwnd_packets() - 1000.0;
            assert!((0.98 * growth..=growth).contains(&grown), "{rtt_ms} ms: {grown}");
        }
    }

    #[test]
    fn slow_start_ends_at_the_threshold() {
        let mut s = script(100, &[]);
        s.ack_round();
        s.lose(LossCause::Timeout, 160);
        assert_eq!(s.fields().ssthresh, Some(Bytes::new(80 * MSS)));
        // 1 -> 16 -> the threshold, and the rest counts for avoidance: at least 11 of 16 packets.
        s.ack_round();
        assert_eq!(s.cwnd_packets(), 16.0);
        s.ack_round();
        assert!((80.0 + 2.0..80.0 + 2.4).contains(&s.cwnd_packets()), "{}", s.cwnd_packets());
    }

    #[test]
    fn rho_never_follows_a_growing_rtt() {
        let mut s = script(50, &[]);
        s.ack_round();
        s.rtt = Span::from_ms(500);
        s.ack_round();
        assert_eq!(s.fields().values, [("rho", 2.0)]);
    }

    #[test]
    fn linux_begins_with_rho_packets() {
        assert_eq!(script(25, &[("linux_init", "true")]).cwnd_packets(), 1.0);
        for (rtt_ms, first) in [(25, 1.0 + 1.0), (100, 4.0 + 15.0)] {
            let mut s = script(rtt_ms, &[("linux_init", "true")]);
            s.ack_round();
            assert_eq!(s.cwnd_packets(), first, "{rtt_ms} ms");
        }
    }

    #[test]
    fn it_paces_if_asked() {
        let mut s = script(100, &[("pacing", "true")]);
        s.ack_round();
        // 160 packets of 1000 bytes, twice per 100 ms.
        assert_eq!(s.scheme.allowance().pacing, Some(Rate::from_bps(2 * 160 * 8000 * 10)));
        s.lose(LossCause::Reordering, 160);
        assert_eq!(s.scheme.allowance().pacing, Some(Rate::from_bps(96 * 8000 * 10)));
    }
}
