//! The clocks that a peer goes by, read together.

use crate::tunnel::TunnelClock;
use narrows_sys::clock as machine;
use serde::{Deserialize, Serialize};

/// The same moment on three clocks, in ns.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Moment {
    /// By the clock of this end of the tunnel.
    #[serde(rename = "tunnel_ns")]
    pub(crate) tunnel: u64,
    /// By `CLOCK_MONOTONIC`, which the endpoints count by.
    #[serde(rename = "mono_ns")]
    pub(crate) mono: u64,
    /// By `CLOCK_REALTIME`.
    #[serde(rename = "real_ns")]
    pub(crate) real: u64,
}

impl Moment {
    pub(super) fn now(clock: &TunnelClock) -> Moment {
        // The distances are measured so that a pause in between does no harm.
        let (mono_minus_raw, real_minus_raw) = (mono_minus_raw_ns(), machine::real_minus_raw_ns());
        let raw_ns = machine::raw_ns();
        Moment {
            tunnel: clock.at_raw(raw_ns).ns(),
            mono: raw_ns.saturating_add_signed(mono_minus_raw),
            real: raw_ns.saturating_add_signed(real_minus_raw),
        }
    }

    /// The moment when `CLOCK_MONOTONIC` reads or read `mono`, not long before or after this one.
    pub(super) fn at_mono(self, mono: u64) -> Moment {
        let shift = mono.wrapping_sub(self.mono) as i64;
        Moment {
            tunnel: self.tunnel.saturating_add_signed(shift),
            mono,
            real: self.real.saturating_add_signed(shift),
        }
    }
}

/// `CLOCK_MONOTONIC` minus `CLOCK_MONOTONIC_RAW`. It changes as the kernel corrects the rate of the first.
pub(super) fn mono_minus_raw_ns() -> i64 {
    machine::real_minus_raw_ns() - machine::real_minus_mono_ns()
}
