//! Waiting in an emulator: sleeps as long as possible, and wakes up in time for frames that are due.

use narrows_sys::clock;
use narrows_sys::poll::{Epoll, Events, Waker};
use narrows_sys::ring::RxRing;
use narrows_units::Span;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Shorter waits are spent polling the clock and the rings: sleeping and waking takes longer.
const MIN_MARGIN: Span = Span::from_us(20);
/// Maximum time by which a sleep ends early, however late the machine wakes sleeping threads.
const MAX_MARGIN: Span = Span::from_us(100);
/// Maximum sleep that new frames do not end, so that few frames accumulate in the rings.
const MAX_NAP: Span = Span::from_ms(1);
/// Maximum sleep, so that the thread notices a lost wake-up.
const MAX_SLEEP: Duration = Duration::from_millis(50);
/// Key of the waker among the awaited events.
const WAKER: u64 = u64::MAX;

/// Events that end the sleep of an emulator: the time, new frames, and wake-ups by other threads.
#[derive(Debug)]
pub(crate) struct Sleep {
    /// Frames and wake-ups.
    all: Epoll,
    /// Wake-ups alone.
    words: Epoll,
    events: Events,
    margin: Margin,
}

impl Sleep {
    /// Starts without an estimate of how late this machine wakes sleeping threads.
    pub(crate) fn new<'a>(
        rings: impl IntoIterator<Item = &'a RxRing>,
        waker: &Waker,
    ) -> io::Result<Self> {
        let (all, words) = (Epoll::new()?, Epoll::new()?);
        for (key, ring) in (0..).zip(rings) {
            all.add(ring.as_fd(), key)?;
        }
        all.add(waker.as_fd(), WAKER)?;
        words.add(waker.as_fd(), WAKER)?;
        Ok(Sleep {
            all,
            words,
            events: Events::default(),
            margin: Margin(MIN_MARGIN),
        })
    }

    /// True if a wait is too short to sleep.
    #[inline]
    pub(crate) fn is_too_short(&self, wait: Span) -> bool {
        wait <= self.margin.0
    }

    /// Sleeps for `wait`, or until a wake-up or a frame arrives; returns whether it was a wake-up. Frames end the sleep
    /// only if they may matter before its end. `propagation` is the minimum time of frames in the network: if it
    /// exceeds the wait by a sufficient margin, frames can be taken after the sleep. Every frame that wakes this thread
    /// costs its sender an interrupt to another processor.
    pub(crate) fn until_due(&mut self, wait: Span, propagation: Span) -> io::Result<bool> {
        let through = wait <= MAX_NAP && wait.ns() <= propagation.ns() / 2;
        let epoll = if through { &self.words } else { &self.all };
        let wanted = Duration::from_nanos(wait.saturating_sub(self.margin.0).ns().max(1));
        let wanted = wanted.min(MAX_SLEEP);
        let began = clock::raw_ns();
        epoll.wait(&mut self.events, Some(wanted))?;
        if self.events.keys().next().is_none() {
            let slept = Duration::from_nanos(clock::raw_ns() - began);
            self.margin.overslept(slept.saturating_sub(wanted));
        }
        Ok(self.events.keys().any(|key| key == WAKER))
    }

    /// Sleeps until a frame or a wake-up arrives.
    pub(crate) fn until_woken(&mut self) -> io::Result<()> {
        self.all.wait(&mut self.events, Some(MAX_SLEEP))
    }
}

/// Margin by which sleeps have to be shortened so that nine of ten end in time, estimated from earlier ones.
#[derive(Debug)]
struct Margin(Span);

impl Margin {
    /// The estimate increases by nine steps if a sleep exceeded it, and decreases by one otherwise.
    const STEP: Span = Span::from_ns(200);

    fn overslept(&mut self, by: Duration) {
        let Margin(now) = *self;
        let next = if by.as_nanos() > u128::from(now.ns()) {
            now + Span::from_ns(9 * Self::STEP.ns())
        } else {
            now.saturating_sub(Self::STEP)
        };
        self.0 = next.clamp(MIN_MARGIN, MAX_MARGIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_units::Stream;

    /// The margin to which the estimate converges if each sleep takes this much longer, drawn at random.
    fn settled(late_us: impl Fn(&mut Stream) -> f64) -> f64 {
        let mut stream = Stream::new(7, "lateness");
        let mut margin = Margin(MIN_MARGIN);
        let mut sum = 0.0;
        for count in 0..20_000 {
            let late = late_us(&mut stream) * 1e-6;
            margin.overslept(Duration::from_secs_f64(late));
            if count >= 10_000 {
                sum += margin.0.ns() as f64 / 1e3;
            }
        }
        sum / 1e4
    }

    #[test]
    fn words_end_every_sleep_and_time_does_without_them() {
        let waker = Waker::new().unwrap();
        let mut sleep = Sleep::new([], &waker).unwrap();
        // The maximum sleep for frames, and sleeping through them.
        let sleeps = [
            (Span::from_ms(50), Span::ZERO),
            (MAX_NAP, Span::from_ms(50)),
        ];
        for (wait, propagation) in sleeps {
            assert!(!sleep.until_due(wait, propagation).unwrap());
            waker.wake();
            assert!(sleep.until_due(wait, propagation).unwrap());
            waker.clear();
        }
        assert!(sleep.is_too_short(MIN_MARGIN) && !sleep.is_too_short(Span::from_us(101)));
    }

    #[test]
    fn the_margin_covers_nine_of_ten_sleeps() {
        // Evenly from 30 to 80 us: nine tenths are below 75. The steps of 1.8 us keep the mean within one of it.
        let mean = settled(|stream| 30.0 + 50.0 * stream.uniform());
        assert!((73.0..77.0).contains(&mean), "{mean}");
    }

    #[test]
    fn the_margin_keeps_its_bounds() {
        assert_eq!(settled(|_| 0.5), 20.0);
        assert_eq!(settled(|_| 5000.0), 100.0);
        // One long pause in twenty is due to the machine, and sleeps must not end early because of it.
        let mean = settled(|stream| if stream.uniform() < 0.05 { 3000.0 } else { 5.0 });
        assert!(mean < 25.0, "{mean}");
    }
}
