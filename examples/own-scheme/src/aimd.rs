//! AIMD: additive increase, multiplicative decrease, by the three methods that every scheme has.
//!
//! Provenance: Chiu and Jain (1989) for the rule, Jacobson (1988) for slow start and beta. Deviations: no reaction to
//! marks, and a reduction is not taken back if the losses turn out to be none.

use narrows_cc::{
    AckEvent, Allowance, CongestionControl, EcnUse, LossCause, LossEvent, Recovery, Scheme, Setup,
};
use narrows_units::{Bytes, ParamError, Params, params};

/// The entry of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "aimd",
    summary: "One packet more per round trip, half the window after a loss",
    source: "Chiu and Jain, 1989",
    recovery: Recovery::Proportional,
    ecn: EcnUse::None,
    loss_based: false,
    transport: &[],
    profiles: &[],
    params: AimdParams::PARAMS,
    build,
};

params! {
    /// Parameters of AIMD.
    struct AimdParams {
        /// Share of the data in flight kept after a loss.
        beta: Ratio(0.1..=0.9) = 0.5, "Jacobson, 1988";
    }
}

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    Ok(Box::new(Aimd {
        mss: setup.mss.get() as f64,
        cwnd: setup.initial_cwnd().get() as f64,
        ssthresh: f64::INFINITY,
        beta: AimdParams::read(params).beta,
    }))
}

/// Sizes are payload bytes.
struct Aimd {
    mss: f64,
    cwnd: f64,
    ssthresh: f64,
    beta: f64,
}

impl CongestionControl for Aimd {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        // Only a window that limits the sender says anything about the path (RFC 7661).
        if ack.in_recovery || !ack.may_grow || !ack.cwnd_limited {
            return;
        }
        let acked = ack.bytes.get() as f64;
        let slow_start = self.cwnd < self.ssthresh;
        self.cwnd += if slow_start { acked } else { self.mss * acked / self.cwnd };
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        if loss.new_epoch {
            self.ssthresh = (loss.in_flight.get() as f64 * self.beta).max(2.0 * self.mss);
        }
        match loss.cause {
            LossCause::Reordering if loss.new_epoch => self.cwnd = self.ssthresh,
            LossCause::Reordering => {} // The window has been reduced for this round trip.
            LossCause::Timeout | LossCause::Persistent => self.cwnd = self.mss,
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Some(Bytes::new(self.cwnd as u64)), ..Allowance::default() }
    }
}
