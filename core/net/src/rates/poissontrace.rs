//! A Poisson link based on a trace: opportunities to send as in `poisson`, at the mean rate that a trace specifies.

use super::trace::LOOP;
use crate::modulated::{Modulated, ModulatedPiece, Pieces};
use crate::opportunities::ByOpportunity;
use crate::trace::{self, RateTrace};
use crate::{Entry, Example, RateServer};
use narrows_units::{Kind, ParamSpec, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "poissontrace",
    summary: "Moves one packet's worth of bytes at each event of a Poisson process whose rate over time follows a trace",
    source: "Cox 1955, Some statistical methods connected with series of events (doubly stochastic Poisson process)",
    params: &[
        ParamSpec::new(
            "file",
            Kind::File,
            "The trace: CSV with the header time_ns,rate_bps or time_s,rate_mbps.",
        )
        .trial(&["rates", "rates-2"])
        .required(),
        LOOP,
        PoissonTraceParams::PARAMS[0],
        PoissonTraceParams::PARAMS[1],
    ],
    shorthand: &["file"],
    example: Example::new(
        "{poissontrace: cellular-drive.csv}",
        "The same with the rates of a shipped trace of a fading link.",
    )
    .picture(r#"{"seconds": 60, "bin_ms": 250}"#),
};

params! {
    /// Parameters besides the trace.
    struct PoissonTraceParams {
        /// Bytes that one opportunity moves; several small packets may share one, unused bytes are lost.
        packet: Bytes(64.0..=1e6) = 1500, "a full Ethernet packet, as mahimahi's opportunities";
        /// Factor that multiplies each rate.
        scale: Number(0.001..=1000.0) = 1;
    }
}

crate::registry::build!(dyn RateServer: |params, setup| {
    let read = trace::named(params, &setup.files, trace::parse_rates)?;
    let RateTrace::Rates { steps, end } = read else {
        let why = "it contains opportunities to send, but rates over time are required";
        return Err(trace::reject(params, &why));
    };
    let looped = params.read("loop");
    let params = PoissonTraceParams::read(params);
    let packet = params.packet.get() as u32;
    let told = TracedPoissonRate { steps, end, looped, scale: params.scale };
    let process = Modulated::new(told, setup.stream().bits(), packet);
    ByOpportunity::new(process, packet)
});

/// The rate of the process.
struct TracedPoissonRate {
    /// (ns, bit/s) with increasing times, the first 0.
    steps: Vec<(u64, u64)>,
    /// Length in ns.
    end: u64,
    looped: bool,
    scale: f64,
}

impl Pieces for TracedPoissonRate {
    fn piece(&self, at: u64) -> ModulatedPiece {
        if !self.looped && at >= self.end {
            return ModulatedPiece { start: self.end, end: u64::MAX, bps: 0.0 };
        }
        let round = at / self.end * self.end;
        let after = self.steps.partition_point(|step| step.0 <= at - round);
        let (start, bps) = self.steps[after - 1];
        let end = self.steps.get(after).map_or(self.end, |step| step.0);
        ModulatedPiece {
            start: round + start,
            end: round.saturating_add(end),
            bps: bps as f64 * self.scale,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_those_of_the_trace_round_after_round() {
        let mut told = TracedPoissonRate { steps: vec![(0, 8), (10, 0)], end: 30, looped: true, scale: 0.5 };
        let piece = |start, end, bps| ModulatedPiece { start, end, bps };
        assert_eq!(told.piece(9), piece(0, 10, 4.0));
        assert_eq!(told.piece(10), piece(10, 30, 0.0));
        assert_eq!(told.piece(65), piece(60, 70, 4.0));
        told.looped = false;
        assert_eq!(told.piece(29), piece(10, 30, 0.0));
        assert_eq!(told.piece(30), piece(30, u64::MAX, 0.0));
    }
}
