//! HighSpeed TCP: growth and reduction are functions of the window.
//!
//! Provenance: RFC 3649 (December 2003), with limited slow start (RFC 3742) on request. Deviations: the
//! functions a(w) and b(w) are interpolated between points 2 % apart (error below 0.1 %), and end at
//! 94 717 packets, the last row of the RFC's table; the reduction is spread over the recovery round by
//! Proportional Rate Reduction (RFC 6937).
//!
//! Up to 38 packets it is Reno. Above, growth per round trip rises to 72 packets and the fraction removed falls to a
//! tenth, so that the average window at a loss ratio p is 0.12/p^0.835. `lookup: table` uses the RFC's integer table as
//! interpreted by Linux (net/ipv4/tcp_highspeed.c): the row of the smallest window that is not below the current one,
//! which grows by up to one packet per round trip more than the function. Packets acknowledged are counted, never
//! acknowledgements, and a loss that ends slow start reduces by the value at its window (Linux halves). Two flows
//! converge over hundreds of round trips only.

use crate::parts::{LossBased, CongestionEvent, LimitedSlowStart, WindowRules, CongestionWindow};
use crate::{AckEvent, CongestionControl, Fields, Scheme, Setup};
use narrows_units::{ParamError, Params, choice, params};
use std::sync::Arc;

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "highspeed",
    summary: "Reno up to 38 packets; above, steeper growth and smaller reductions (HighSpeed TCP)",
    source: "RFC 3649, RFC 3742",
    params: HighSpeedParams::PARAMS,
    build,
    ..super::reno::SCHEME
};

choice! {
    /// Source of growth and reduction.
    enum Lookup { Functions = "functions", Table = "table" }
}

params! {
    /// Parameters.
    struct HighSpeedParams {
        /// Growth and reduction from the functions, or from the integer table.
        lookup: Lookup = "functions", "RFC 3649, section 5; the table is its appendix B";
        /// Window beyond which slow start adds at most half of this per round trip; 0: no limit.
        max_ssthresh: Packets(0.0..=1e6) = 0, "RFC 3742 (off unless given; it suggests 100)";
    }
}

/// Up to this window Reno's rules apply (RFC 3649, section 5: Low_Window).
const LOW_WINDOW: f64 = 38.0;
/// The window with the minimum reduction (High_Window), and that reduction.
const HIGH_WINDOW: f64 = 83_000.0;
const HIGH_DECREASE: f64 = 0.1;
/// The last row of the table.
const LAST_WINDOW: f64 = 94_717.0;
/// p(w) = 0.078 / w^1.2, and the variant from which the RFC's table was computed.
const LOSS: f64 = 0.078;
const TABLE_LOSS: f64 = 1.0 / 12.8;

/// Fraction removed at a window of `w` packets.
fn decrease(w: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 0.5;
    }
    let way = (w / LOW_WINDOW).ln() / (HIGH_WINDOW / LOW_WINDOW).ln();
    (HIGH_DECREASE - 0.5) * way + 0.5
}

/// Packets of growth per round trip at a window of `w` packets, where p(w) = `loss` / w^1.2.
fn increase(w: f64, loss: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 1.0;
    }
    let b = decrease(w);
    w * w * (loss / w.powf(1.2)) * 2.0 * b / (2.0 - b)
}

/// Growth and reduction above a window.
#[derive(Clone, Copy, Debug, PartialEq)]
struct HighSpeedRow {
    window: f64,
    increase: f64,
    decrease: f64,
}

/// Rounds to a multiple of 1e-9: logarithms and powers differ in their last bits from machine to
/// machine, and decisions must not.
fn settled(x: f64) -> f64 {
    (x * 1e9).round() / 1e9
}

/// Points of the functions, 2 % apart.
fn functions() -> Vec<HighSpeedRow> {
    let point = |window: f64| HighSpeedRow {
        window,
        increase: settled(increase(window, LOSS).max(1.0)),
        decrease: settled(decrease(window)),
    };
    let mut rows = vec![];
    let mut window = LOW_WINDOW;
    while window < LAST_WINDOW {
        rows.push(point(window));
        window *= 1.02;
    }
    rows.push(point(LAST_WINDOW));
    rows
}

/// The table of RFC 3649, appendix B: a row wherever growth has risen by one packet since the last.
fn table() -> Vec<HighSpeedRow> {
    let mut rows = vec![HighSpeedRow { window: LOW_WINDOW, increase: 1.0, decrease: 0.5 }];
    let mut last = 1.0;
    for window in LOW_WINDOW as u32..=LAST_WINDOW as u32 {
        let window = f64::from(window);
        let a = increase(window, TABLE_LOSS);
        if a > last + 1.0 {
            let decrease = (decrease(window) * 100.0).round() / 100.0;
            rows.push(HighSpeedRow { window, increase: a.floor(), decrease });
            last = a;
        }
    }
    rows
}

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let params = HighSpeedParams::read(params);
    let interpolate = params.lookup == Lookup::Functions;
    let rows = if interpolate { functions() } else { table() };
    let rules = HighSpeed {
        rows: rows.into(),
        interpolate,
        row: 0,
        slow_start: LimitedSlowStart::new(params.max_ssthresh as u64),
    };
    Ok(LossBased::boxed(CongestionWindow::new(&setup), rules))
}

#[derive(Clone)]
struct HighSpeed {
    rows: Arc<[HighSpeedRow]>,
    interpolate: bool,
    /// The first row whose window is not below the current one (or the last).
    row: usize,
    slow_start: LimitedSlowStart,
}

impl HighSpeed {
    /// Growth and reduction at `packets`. Windows change little between acknowledgements: the search starts from the
    /// previous row.
    fn at(&mut self, packets: f64) -> HighSpeedRow {
        while self.row > 0 && self.rows[self.row - 1].window >= packets {
            self.row -= 1;
        }
        while self.row + 1 < self.rows.len() && self.rows[self.row].window < packets {
            self.row += 1;
        }
        let above = self.rows[self.row];
        if !self.interpolate || self.row == 0 || packets >= above.window {
            return above;
        }
        let below = self.rows[self.row - 1];
        let way = (packets - below.window) / (above.window - below.window);
        HighSpeedRow {
            window: packets,
            increase: below.increase + way * (above.increase - below.increase),
            decrease: below.decrease + way * (above.decrease - below.decrease),
        }
    }
}

impl WindowRules for HighSpeed {
    fn slow_start(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) -> u64 {
        self.slow_start.grow(window, bytes)
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) {
        let packets = window.packets();
        let growth = self.at(packets).increase;
        window.add(growth * bytes as f64 / window.mss() / packets);
    }

    fn ssthresh(&mut self, window: &CongestionWindow, _: &CongestionEvent) -> f64 {
        let packets = window.packets();
        packets * (1.0 - self.at(packets).decrease)
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("increase_packets", self.rows[self.row].increase));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;
    use crate::testing::{Script, setup};

    /// Rows of the table in RFC 3649, appendix B.
    const PUBLISHED: &[(f64, f64, f64)] = &[
        (38.0, 1.0, 0.50),
        (118.0, 2.0, 0.44),
        (221.0, 3.0, 0.41),
        (347.0, 4.0, 0.38),
        (495.0, 5.0, 0.37),
        (663.0, 6.0, 0.35),
        (851.0, 7.0, 0.34),
        (1058.0, 8.0, 0.33),
        (10_661.0, 30.0, 0.21),
        (79_517.0, 70.0, 0.10),
        (84_035.0, 71.0, 0.10),
        (89_053.0, 72.0, 0.10),
        (94_717.0, 73.0, 0.09),
    ];

    fn rules(lookup: &str) -> HighSpeed {
        let interpolate = lookup == "functions";
        HighSpeed {
            rows: if interpolate { functions() } else { table() }.into(),
            interpolate,
            row: 0,
            slow_start: LimitedSlowStart::new(0),
        }
    }

    fn script(window: u64, lookup: &str) -> Script {
        let spec = SCHEME.params.iter().find(|spec| spec.name == "lookup").unwrap();
        let given = [("lookup".to_owned(), spec.parse(lookup).unwrap())];
        let params = Params::resolve(SCHEME.params, given).unwrap();
        let setup = Setup { initial_window: window, ..setup() };
        Script::new(build(&params, setup).unwrap())
    }

    #[test]
    fn the_generator_makes_the_table_of_the_rfc() {
        let table = table();
        assert_eq!(table.len(), 73);
        for (index, row) in table.iter().enumerate() {
            assert_eq!(row.increase, index as f64 + 1.0, "{row:?}");
        }
        for &(window, increase, decrease) in PUBLISHED {
            let wanted = HighSpeedRow { window, increase, decrease };
            assert!(table.contains(&wanted), "{wanted:?}");
        }
        // 83 333 packets (10 Gbit/s over 100 ms) lie between the rows of 70 and of 71.
        let reached = table.iter().rfind(|row| row.window <= 83_333.0).unwrap();
        assert_eq!((reached.increase, reached.decrease), (70.0, 0.10));
    }

    #[test]
    fn the_functions_have_the_values_of_the_rfc() {
        // (w, a(w) with 0.078, a(w) with 1/12.8, b(w))
        for (w, a, a_table, b) in [
            (118.0, 2.006, 2.009, 0.4411),
            (1058.0, 8.011, 8.024, 0.3269),
            (10_661.0, 30.005, 30.053, 0.2068),
            (83_333.0, 70.806, 70.920, 0.0998),
        ] {
            assert!((increase(w, LOSS) - a).abs() < 0.001, "{}", increase(w, LOSS));
            assert!((increase(w, TABLE_LOSS) - a_table).abs() < 0.001);
            assert!((decrease(w) - b).abs() < 0.0001, "{}", decrease(w));
            // The interpolation matches the function.
            let row = rules("functions").at(w);
            assert!((row.increase / a - 1.0).abs() < 0.001, "{row:?}");
            assert!((row.decrease / b - 1.0).abs() < 0.001, "{row:?}");
        }
        assert_eq!((increase(38.0, LOSS), decrease(38.0)), (1.0, 0.5));
        // RFC 3649, section 5: a(83000) = 72, which comes from the exact p = 1e-7 there.
        let exact = 1e-7 * 83_000f64.powf(1.2);
        assert!((increase(83_000.0, exact) - 72.52).abs() < 0.01);
    }

    #[test]
    fn rows_are_found_from_anywhere() {
        let mut rules = rules("table");
        for (window, increase) in
            [(1058.0, 8.0), (10.0, 1.0), (1059.0, 9.0), (1e6, 73.0), (39.0, 2.0), (38.0, 1.0)]
        {
            assert_eq!(rules.at(window).increase, increase, "{window}");
        }
    }

    #[test]
    fn the_table_is_read_as_linux_does() {
        // Linux net/ipv4/tcp_highspeed.c: at 1058 packets 8 more per round trip and 715 after a loss, at 1059 packets 9
        // and 724. Its fractions are n/256 where the RFC's have two digits (0.33 is 83/256 = 0.324, 0.32 is 81/256 =
        // 0.316), which is half a percent of the window.
        for (window, after) in [(1058, 715.0), (1059, 724.0)] {
            let mut s = script(window, "table");
            s.lose(LossCause::Reordering, window);
            assert!((s.cwnd_packets() / after - 1.0).abs() < 0.01, "{}", s.cwnd_packets());
        }
    }

    #[test]
    fn small_windows_are_renos() {
        let mut s = script(38, "functions");
        s.lose(LossCause::Reordering, 38);
        assert_eq!(s.cwnd_packets(), 19.0);
        let start = s.cwnd_packets();
        for _ in 0..10 {
            s.ack_round();
        }
        // Growth by 1/w per packet is a little less than one packet per round trip.
        assert!((9.5..=10.0).contains(&(s.cwnd_packets() - start)), "{}", s.cwnd_packets());
    }

    #[test]
    fn growth_and_reduction_at_a_large_window() {
        let mut s = script(10_661, "functions");
        s.lose(LossCause::Reordering, 10_661);
        let kept = s.cwnd_packets() / 10_661.0;
        assert!((kept - (1.0 - 0.2068)).abs() < 0.0005, "{kept}");
        let before = s.cwnd_packets();
        s.ack_round();
        let growth = s.cwnd_packets() - before;
        let expected = increase(before, LOSS);
        assert!((growth / expected - 1.0).abs() < 0.01, "{growth} {expected}");
    }
}
