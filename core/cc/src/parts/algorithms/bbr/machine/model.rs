//! Bounds from losses: the long-term bound, above which a probe has lost too much, and the short-term bounds, which
//! follow the current delivery rate.

use super::{BbrMode, BbrSample, MIN_PACKETS, Machine};
use crate::{AckEvent, CaState, LossCause, LossEvent, LostPacket};
use narrows_units::{Bytes, Span, Time};

/// Losses in a round of STARTUP that end it, together with the loss rate.
const STARTUP_LOSSES: u32 = 6;

/// Bytes delivered in the current round, counted from the first loss if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest {
    /// Largest bandwidth and largest amount delivered.
    pub(super) bandwidth: f64,
    pub(super) in_flight: f64,
    /// Value of the delivered counter that ends the round.
    mark: u64,
    /// True if a round has just begun.
    pub(super) round_start: bool,
    /// True if something was lost in the round, or in the cycle.
    pub(super) loss: bool,
    pub(super) loss_in_cycle: bool,
}

impl Latest {
    pub(super) fn take(&mut self, sample: &BbrSample, prior_delivered: Bytes, delivered: Bytes) {
        self.bandwidth = self.bandwidth.max(sample.bandwidth);
        self.in_flight = self.in_flight.max(sample.delivered);
        self.round_start = prior_delivered.get() >= self.mark;
        if self.round_start {
            self.mark = delivered.get();
        }
    }

    /// At the end of an acknowledgement: a new round begins with its sample.
    pub(super) fn advance(&mut self, sample: &BbrSample) {
        if self.round_start {
            self.bandwidth = sample.bandwidth;
            self.in_flight = sample.delivered;
        }
    }

    fn note_loss(&mut self, delivered: Bytes) {
        if !self.loss {
            // A round from here on measures the delivery rate during losses.
            self.mark = delivered.get();
        }
        self.loss = true;
        self.loss_in_cycle = true;
    }

    /// Forgets the signals of a probe.
    pub(super) fn reset(&mut self) {
        self.loss = false;
        self.loss_in_cycle = false;
        self.bandwidth = 0.0;
        self.in_flight = 0.0;
    }
}

/// Bounds of bandwidth and data in flight; infinite if unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    /// Short-term bandwidth.
    pub(super) bandwidth: f64,
    /// Short-term data in flight.
    pub(super) short_term: f64,
    /// Long-term data in flight.
    pub(super) long_term: f64,
}

impl Bounds {
    pub(super) const NONE: Bounds = Bounds {
        bandwidth: f64::INFINITY,
        short_term: f64::INFINITY,
        long_term: f64::INFINITY,
    };

    pub(super) fn reset_short_term(&mut self) {
        self.bandwidth = f64::INFINITY;
        self.short_term = f64::INFINITY;
    }
}

/// Feedback about a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Feedback {
    /// Nothing.
    #[default]
    None,
    /// The pipe is being filled.
    Refilling,
    /// A probe has begun, its packets are in flight.
    Starting,
    /// They are being acknowledged.
    Arriving,
    /// The probe is over, its last packets are being acknowledged.
    Stopping,
}

/// The current or last probe for bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    pub(super) feedback: Feedback,
    /// True if losses are the probe's.
    pub(super) samples: bool,
    /// True if the last probe lost too much, and whether it stopped at the long-term bound as a
    /// precaution.
    pub(super) too_high: bool,
    pub(super) precautionary: bool,
    /// Rounds of growth of the long-term bound, bytes acknowledged towards the next packet of growth, and bytes per
    /// packet of growth.
    pub(super) up_rounds: u32,
    pub(super) up_acked: f64,
    pub(super) up_per_packet: f64,
    /// Rounds since the last probe (from 0 or 1), when the cycle began, and how long to wait.
    pub(super) rounds: u64,
    pub(super) since: Time,
    pub(super) wait: Span,
}

impl Probe {
    pub(super) fn new(now: Time) -> Self {
        Probe {
            up_per_packet: f64::INFINITY,
            since: now,
            ..Probe::default()
        }
    }

    pub(super) fn stop(&mut self) {
        self.feedback = Feedback::Stopping;
    }
}

/// State that is restored when losses turn out to be spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    bounds: Bounds,
    /// The probe ended by the losses.
    pub(super) probing: Option<BbrMode>,
}

/// Bytes in flight at which the losses crossed the share `threshold`: `lost` of the `in_flight` bytes up to and
/// including a packet of `size` bytes are lost, and that packet may be a burst, part of which would have passed.
pub(super) fn in_flight_at_loss(threshold: f64, in_flight: f64, lost: f64, size: f64) -> f64 {
    let before = (in_flight - size).max(0.0);
    let lost_before = (lost - size).max(0.0);
    before + ((threshold * before - lost_before) / (1.0 - threshold)).max(0.0)
}

impl Machine {
    pub(super) fn take_bandwidth(&mut self, sample: &BbrSample) {
        if !sample.app_limited || sample.bandwidth >= self.max_bandwidth() {
            self.bandwidths[1] = self.bandwidths[1].max(sample.bandwidth);
        }
    }

    /// Ends the cycle of the bandwidth filter, unless it has no samples.
    pub(super) fn advance_bandwidth(&mut self) {
        if self.bandwidths[1] > 0.0 {
            self.bandwidths = [self.bandwidths[1], 0.0];
        }
    }

    /// Once per round with losses or marks, while not probing.
    pub(super) fn update_bounds(&mut self) {
        if !self.latest.round_start {
            return;
        }
        if !self.mode.probes() {
            let marked = self.ecn.take_round().then(|| {
                if self.bounds.short_term.is_infinite() {
                    self.bounds.short_term = self.flow.cwnd;
                }
                self.bounds.short_term * self.ecn.kept()
            });
            if self.latest.loss {
                if self.bounds.bandwidth.is_infinite() {
                    self.bounds.bandwidth = self.max_bandwidth();
                }
                if self.bounds.short_term.is_infinite() {
                    self.bounds.short_term = self.flow.cwnd;
                }
                let beta = self.profile.params.beta;
                self.bounds.bandwidth = self.latest.bandwidth.max(beta * self.bounds.bandwidth);
                self.bounds.short_term = self.latest.in_flight.max(beta * self.bounds.short_term);
            }
            if let Some(marked) = marked {
                self.bounds.short_term = self.bounds.short_term.min(marked);
            }
        }
        self.latest.loss = false;
        self.ecn.take_round();
    }

    fn too_high(&self, in_flight: f64, lost: f64) -> bool {
        lost > in_flight * self.profile.params.loss_threshold
    }

    /// True if a sample shows that too much is in flight.
    pub(super) fn sample_too_high(&self, sample: &BbrSample) -> bool {
        (sample.lost > 0.0 && self.too_high(sample.in_flight, sample.lost)) || self.ecn.too_high()
    }

    /// A probe has lost too much with `in_flight` bytes in flight.
    pub(super) fn handle_too_high(&mut self, now: Time, in_flight: f64, app_limited: bool) {
        self.probe.too_high = true;
        // Once per probe.
        self.probe.samples = false;
        // An application-limited flow has not tested the path's capacity.
        if !app_limited {
            self.bounds.long_term =
                in_flight.max(self.target_in_flight() * self.profile.params.beta);
        }
        if self.mode == BbrMode::Up {
            self.undo.probing = Some(BbrMode::Up);
            self.start_down(now);
        }
    }

    /// The bandwidth-delay product, unless congestion has cut the window below it.
    pub(super) fn target_in_flight(&self) -> f64 {
        let bytes = if self.profile.target_with_budget {
            self.target(self.bandwidth(), 1.0)
        } else {
            self.bdp(self.bandwidth(), 1.0)
        };
        bytes.min(self.flow.cwnd)
    }

    /// Bytes that may be in flight while leaving headroom for other flows.
    pub(super) fn with_headroom(&self) -> f64 {
        let long_term = self.bounds.long_term;
        let headroom = (self.profile.params.headroom * long_term).max(self.flow.mss);
        if long_term.is_infinite() {
            return long_term;
        }
        (long_term - headroom).max(MIN_PACKETS * self.flow.mss)
    }

    pub(super) fn check_startup_losses(&mut self, ack: &AckEvent<'_>, sample: &BbrSample) {
        if self.flow.full.reached() {
            return;
        }
        if self.profile.count_loss_acks {
            self.startup_losses += u32::from(ack.lost > Bytes::ZERO);
        }
        if !self.latest.round_start {
            return;
        }
        let recovering = ack.phase == CaState::Recovery;
        if recovering && self.startup_losses >= STARTUP_LOSSES && self.sample_too_high(sample) {
            self.leave_startup();
        }
        self.startup_losses = 0;
    }

    /// STARTUP filled the queue.
    pub(super) fn leave_startup(&mut self) {
        self.flow.full.set_reached();
        self.undo.probing = Some(BbrMode::Startup);
        let product = if self.profile.target_with_budget {
            self.target(self.max_bandwidth(), 1.0)
        } else {
            self.bdp(self.max_bandwidth(), 1.0)
        };
        self.bounds.long_term = product.max(self.latest.in_flight);
    }

    pub(super) fn handle_losses(&mut self, loss: &LossEvent<'_>) {
        self.delivered = loss.delivered;
        if loss.new_epoch {
            self.save_cwnd();
            self.undo = Undo {
                bounds: self.bounds,
                probing: None,
            };
        }
        // Totals grow packet by packet.
        let mut total = loss.lost_total.saturating_sub(loss.bytes);
        let mut last = None;
        for packet in loss.lost {
            total += Bytes::new(u64::from(packet.bytes));
            if !self.profile.count_loss_acks && last != packet.number.checked_sub(1) {
                self.startup_losses += 1;
            }
            last = Some(packet.number);
            self.handle_lost_packet(loss.now, packet, total);
        }
        if loss.lost.is_empty() {
            self.latest.note_loss(self.delivered);
        }
        if loss.cause != LossCause::Reordering {
            self.handle_timeout(loss);
        }
    }

    fn handle_lost_packet(&mut self, now: Time, packet: &LostPacket, total: Bytes) {
        self.latest.note_loss(self.delivered);
        if !self.probe.samples {
            return;
        }
        let in_flight = packet.in_flight_at_send.get() as f64;
        let lost = total.saturating_sub(packet.lost_before).get() as f64;
        if self.too_high(in_flight, lost) {
            let threshold = self.profile.params.loss_threshold;
            let at_loss = in_flight_at_loss(threshold, in_flight, lost, f64::from(packet.bytes));
            self.handle_too_high(now, at_loss, packet.app_limited);
        }
    }

    fn handle_timeout(&mut self, loss: &LossEvent<'_>) {
        if self.profile.tidy_bounds && !self.mode.probes() && self.bounds.short_term.is_infinite() {
            // The window before the timeout, the base of the bound's reduction.
            self.bounds.short_term = self.flow.cwnd.max(self.flow.prior_cwnd);
        }
        self.flow.on_timeout(loss);
    }

    /// The losses were spurious: restores bounds and window, and in the draft the probe.
    pub(super) fn undo_losses(&mut self, now: Time) {
        self.flow.cwnd = self.flow.cwnd.max(self.flow.prior_cwnd);
        self.latest.loss = false;
        self.flow.full.reset();
        let saved = self.undo.bounds;
        self.bounds.bandwidth = self.bounds.bandwidth.max(saved.bandwidth);
        self.bounds.short_term = self.bounds.short_term.max(saved.short_term);
        self.bounds.long_term = self.bounds.long_term.max(saved.long_term);
        let probing = self.undo.probing.take();
        if !self.profile.resume_probe {
            return;
        }
        match probing {
            Some(BbrMode::Startup) if self.mode != BbrMode::Startup => {
                self.flow.full.set_not_reached();
                if self.mode != BbrMode::ProbeRtt {
                    self.mode = BbrMode::Startup;
                }
            }
            Some(BbrMode::Up) if !matches!(self.mode, BbrMode::Up | BbrMode::ProbeRtt) => {
                self.start_refill(now, 0);
            }
            _ => {}
        }
    }
}
