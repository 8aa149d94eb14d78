//! The clock of one end: the oscillator of the machine, which is never set, and the kernel's stamps converted to it.

use super::plan::ClockShift;
use narrows_cell::RunError;
use narrows_sys::clock;
use narrows_units::Time;

/// Time after which the relation to the clock of the kernel's stamps is measured again. Kernels slew by up to 500 ppm,
/// which is half a microsecond in this time.
const FRESH_NS: u64 = 1_000_000;
/// Maximum age of a stamp: older ones are of a clock that has been set since.
const OLDEST_NS: u64 = 2_000_000_000;
/// Minimum start of a shifted clock: zero in datagrams means that the time is absent.
const MIN_NS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct TunnelClock {
    shift: ClockShift,
    start: u64,
    real_minus_raw: i64,
    measured_at: u64,
}

impl TunnelClock {
    /// The machine's clock from now on, shifted.
    ///
    /// # Errors
    /// The shift would move the clock below its minimum, since the machine has not been up long enough.
    pub(crate) fn new(shift: ClockShift) -> Result<Self, RunError> {
        let start = clock::raw_ns();
        if start
            .checked_add_signed(shift.offset_ns)
            .is_none_or(|at| at < MIN_NS)
        {
            return Err(RunError::Input(format!(
                "the plan of the tunnel: 'clock.offset_ns' is {}, and this machine has been up for {start} ns; the \
                 offset must be at least {}",
                shift.offset_ns,
                i128::from(MIN_NS) - i128::from(start),
            )));
        }
        Ok(TunnelClock::starting_at(shift, start))
    }

    /// The machine's clock without a shift.
    pub(crate) fn plain() -> Self {
        TunnelClock::starting_at(ClockShift::default(), clock::raw_ns())
    }

    fn starting_at(shift: ClockShift, start: u64) -> Self {
        TunnelClock {
            shift,
            start,
            real_minus_raw: clock::real_minus_raw_ns(),
            measured_at: start,
        }
    }

    /// The machine's reading from which the drift of the shift is counted.
    pub(super) fn start_raw_ns(&self) -> u64 {
        self.start
    }

    /// Now.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.shifted(clock::raw_ns())
    }

    /// Reading of this clock when the machine's clock reads `raw` ns.
    pub(crate) fn at_raw(&self, raw: u64) -> Time {
        self.shifted(raw)
    }

    /// The machine's reading when this clock reads `at`, to a nanosecond.
    pub(crate) fn raw_at(&self, at: Time) -> u64 {
        let since = i128::from(at.ns()) - i128::from(self.start) - i128::from(self.shift.offset_ns);
        let billion = 1_000_000_000;
        let since = since * billion / (billion + i128::from(self.shift.drift_ppb));
        u64::try_from(i128::from(self.start) + since).unwrap_or(0)
    }

    /// The time of a recent kernel stamp; the current time if it is absent or implausible.
    #[inline]
    pub(super) fn at_stamp(&mut self, real_ns: Option<u64>) -> Time {
        let raw = clock::raw_ns();
        if raw - self.measured_at > FRESH_NS {
            self.measured_at = raw;
            self.real_minus_raw = clock::real_minus_raw_ns();
        }
        let stamp = real_ns.and_then(|real| real.checked_add_signed(-self.real_minus_raw));
        match stamp {
            Some(stamp) if stamp <= raw && raw - stamp <= OLDEST_NS => self.shifted(stamp),
            _ => self.shifted(raw),
        }
    }

    #[inline]
    fn shifted(&self, raw: u64) -> Time {
        if self.shift == ClockShift::default() {
            return Time::from_ns(raw);
        }
        let since = i128::from(raw) - i128::from(self.start);
        let drift = since * i128::from(self.shift.drift_ppb) / 1_000_000_000;
        let ns = i128::from(raw) + i128::from(self.shift.offset_ns) + drift;
        Time::from_ns(u64::try_from(ns).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_units::Span;

    #[test]
    fn shifts_are_applied_to_readings_and_stamps_alike() {
        let plain = TunnelClock::plain();
        let shift = ClockShift {
            offset_ns: 2_500_000_000,
            drift_ppb: 50_000,
        };
        let mut shifted = TunnelClock {
            start: plain.start,
            ..TunnelClock::new(shift).unwrap()
        };
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (a, b, c) = (plain.now(), shifted.now(), plain.now());
        let drift = (a.ns() - plain.start) / 20_000;
        let late = c.since(a).ns() + 2;
        let expected = a.ns() + 2_500_000_000 + drift;
        assert!((expected..=expected + late + late / 1000).contains(&b.ns()));
        // A clock does not begin before its minimum.
        let up = i64::try_from(plain.start).unwrap();
        for offset_ns in [-up - 3_600_000_000_000, -up - 3_600_000_000_000_000] {
            let wild = ClockShift {
                offset_ns,
                drift_ppb: 0,
            };
            let message = TunnelClock::new(wild).unwrap_err().to_string();
            assert!(message.contains("must be at least -"), "{message}");
        }
        // The inverse, from an hour ahead.
        for clock in [&plain, &shifted] {
            let at = b + Span::from_ms(3_600_000);
            assert!(clock.at_raw(clock.raw_at(at)).ns().abs_diff(at.ns()) <= 2);
        }
        // A stamp is before now; one from the future or of 1970 is rejected.
        let stamp = clock::real_ns();
        let at = shifted.at_stamp(Some(stamp));
        assert!(b <= at && at <= shifted.now());
        for wild in [None, Some(0), Some(stamp + 3_600_000_000_000)] {
            let before = shifted.now();
            let at = shifted.at_stamp(wild);
            assert!(before <= at && at <= shifted.now());
        }
    }
}
