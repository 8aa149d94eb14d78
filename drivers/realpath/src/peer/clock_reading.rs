//! The clocks that a peer uses, read together.

use crate::tunnel::TunnelClock;
use narrows_sys::clock as machine;
use serde::{Deserialize, Serialize};

/// The same time on three clocks, in ns.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[allow(clippy::struct_field_names)] // units are in the names of members of files
pub(crate) struct ClockReading {
    /// By the clock of this end of the tunnel.
    pub(crate) tunnel_ns: u64,
    /// By `CLOCK_MONOTONIC`, which the endpoints use.
    pub(crate) mono_ns: u64,
    /// By `CLOCK_REALTIME`.
    pub(crate) real_ns: u64,
}

impl ClockReading {
    pub(super) fn now(clock: &TunnelClock) -> ClockReading {
        // The differences are measured so that a pause in between does not matter.
        let (mono_minus_raw, real_minus_raw) = (mono_minus_raw_ns(), machine::real_minus_raw_ns());
        let raw_ns = machine::raw_ns();
        ClockReading {
            tunnel_ns: clock.at_raw(raw_ns).ns(),
            mono_ns: raw_ns.saturating_add_signed(mono_minus_raw),
            real_ns: raw_ns.saturating_add_signed(real_minus_raw),
        }
    }

    /// The time at which `CLOCK_MONOTONIC` reads `mono_ns`, shortly before or after this reading.
    pub(super) fn at_mono(self, mono_ns: u64) -> ClockReading {
        let shift = mono_ns.wrapping_sub(self.mono_ns) as i64;
        ClockReading {
            tunnel_ns: self.tunnel_ns.saturating_add_signed(shift),
            mono_ns,
            real_ns: self.real_ns.saturating_add_signed(shift),
        }
    }
}

/// `CLOCK_MONOTONIC` minus `CLOCK_MONOTONIC_RAW`. It changes as the kernel corrects the rate of the first.
pub(super) fn mono_minus_raw_ns() -> i64 {
    machine::real_minus_raw_ns() - machine::real_minus_mono_ns()
}
