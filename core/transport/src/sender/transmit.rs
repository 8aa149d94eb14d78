//! What a sender sends next: repairs first, then new data, as window and pacing allow; and tail-loss probes.

use super::{Phase, Question, Sender};
use crate::sent::{Sent, State};
use crate::{Data, Header, Outgoing, wire};
use narrows_cc::SendEvent;
use narrows_units::{Bytes, Span, Time};
use std::cmp::Reverse;

impl Sender {
    /// Drops repairs whose packets turned up after all; whether one is left.
    #[inline]
    pub(super) fn has_repair(&mut self) -> bool {
        while let Some(Reverse(repair)) = self.repairs.peek() {
            let moot = repair.offset + u64::from(repair.length) <= self.settled
                || self
                    .sent
                    .get(repair.number)
                    .is_some_and(|sent| sent.state != State::Lost);
            if !moot {
                return true;
            }
            self.repairs.pop();
        }
        false
    }

    /// Bytes of the next new packet.
    #[inline]
    pub(super) fn next_fresh(&self) -> u64 {
        u64::from(self.config.mss).min(self.supply - self.fresh)
    }

    /// What the receiver is told about the time between acknowledgements.
    #[inline]
    pub(super) fn ack_interval(&self) -> Option<Span> {
        if self.config.acks_per_rtt == 0 || !self.config.sack {
            return None;
        }
        if !self.rtt.is_known() {
            return Some(Span::ZERO);
        }
        let us = self.rtt.min().ns() / (1000 * self.config.acks_per_rtt);
        Some(Span::from_us(us.min(u64::from(u32::MAX))))
    }

    /// Sends one packet with data from `offset`.
    #[inline]
    fn send(&mut self, now: Time, offset: u64, length: u16, retransmission: bool) -> Outgoing {
        // Without selective acknowledgements what has arrived is known to have only when the gap before it is closed.
        let idle = if self.config.sack {
            self.in_flight == 0
        } else {
            self.settled == offset && !retransmission
        };
        let idle = idle.then(|| now.since(self.last_activity));
        self.rate.on_send(now, idle.is_some());
        let number = self.sent.next_number();
        let data = Data {
            number,
            offset,
            floor: self.sent.base(),
            length,
            retransmission,
            ack_interval: self.ack_interval(),
        };
        let bytes = u64::from(length);
        self.sent.push(Sent {
            offset,
            at: now,
            delivered: self.rate.delivered,
            delivered_at: self.rate.delivered_at,
            first_sent_at: self.rate.first_sent_at,
            length,
            state: State::Outstanding,
            retransmission,
            app_limited: self.rate.is_app_limited(),
            lost_in: 0,
            in_flight: self.in_flight + bytes,
            lost_before: self.rate.lost,
        });
        self.in_flight += bytes;
        self.last_activity = now;
        if let Phase::Recovery(Some(reduction)) = &mut self.phase {
            reduction.on_sent(bytes);
        }
        if retransmission && self.first_repair.is_none() {
            self.first_repair = Some(number);
        }
        let size = wire::IP_UDP + wire::data_header(&data) + u32::from(length);
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(size);
        if retransmission {
            self.counters.retransmitted_packets += 1;
            self.counters.retransmitted_bytes += u64::from(size);
        }
        let mut event = SendEvent::new(now, number, Bytes::new(bytes));
        event.in_flight = Bytes::new(self.in_flight);
        event.idle = idle;
        event.retransmission = retransmission;
        event.app_limited = self.rate.is_app_limited();
        self.scheme.on_send(&event);
        if idle.is_some() || self.scheme.allowance() != self.allowance {
            // After a pause a scheme may want another rate, also for this packet; and some change their minds
            // with the last packet of an interval.
            self.read_allowance();
        }
        if let Some(rate) = self.pacing {
            self.pacer
                .sent(now, Bytes::new(bytes), rate, self.allowance.quantum);
        }
        // Without selective acknowledgements the timer is that of the first gap (Linux, tcp_event_new_data_sent and
        // tcp_xmit_retransmit_queue).
        let restarts = if self.config.sack {
            !(retransmission || self.awaits_repair())
        } else {
            offset <= self.settled
        };
        if self.timer == Time::FAR || restarts {
            self.arm_timer(now);
        }
        Outgoing {
            header: Header::Data(data),
            size,
            ecn: self.ecn,
        }
    }

    /// Whether the window lets `length` bytes go.
    #[inline]
    pub(super) fn has_room(&self, length: u64, repair: bool) -> bool {
        let urgent =
            repair && self.config.repair_at_once && matches!(self.phase, Phase::Recovery(_));
        urgent || self.in_flight + length <= self.window()
    }

    /// Whether new data goes out before repairs, because it is to tell if a timeout was right.
    #[inline]
    pub(super) fn asks_now(&self) -> bool {
        self.asks == Question::Asked && {
            let length = self.next_fresh();
            length > 0 && self.fresh + length <= self.end_of_window()
        }
    }

    /// Bytes of the next packet that window and application allow, and whether it is a repair.
    #[inline]
    fn next_packet(&mut self) -> Option<(u64, bool)> {
        let asked = self.asks_now();
        let repair = !asked && !self.repairs.is_empty() && self.has_repair();
        let length = match self.repairs.peek() {
            Some(Reverse(repair)) if !asked => u64::from(repair.length),
            _ => self.next_fresh(),
        };
        if length == 0 {
            if self.in_flight < self.window() {
                self.rate.set_app_limited(self.in_flight);
            }
            return None;
        }
        if !self.has_room(length, repair) {
            self.limited = true;
            if self.allowance.anew {
                self.pacer.shut();
            }
            return None;
        }
        let fits = repair || self.fresh + length <= self.end_of_window();
        fits.then_some((length, repair))
    }

    /// The next packet that window and pacing allow.
    #[inline]
    pub(super) fn transmit_data(&mut self, now: Time) -> Option<Outgoing> {
        let Some((length, repair)) = self.next_packet() else {
            self.pacer.hold(false);
            return None;
        };
        if let Some(rate) = self.pacing {
            self.pacer.open(now, Bytes::new(length), rate);
            if self.pacer.due() > now {
                self.pacer.hold(true);
                // One burst of new data asks; then repairs go on without an answer, as in Linux.
                if self.asks == Question::Asked {
                    self.asks = Question::Settled;
                }
                return None;
            }
        }
        if repair {
            let Reverse(repair) = self.repairs.pop()?;
            return Some(self.send(now, repair.offset, repair.length, true));
        }
        let offset = self.fresh;
        self.fresh += length;
        Some(self.send(now, offset, length as u16, false))
    }

    /// One packet beyond the window that asks whether the tail of the flight was lost: new data if
    /// there is some, else the newest outstanding data again (RFC 8985, section 7.3), if data is ever repeated.
    pub(super) fn transmit_probe(&mut self, now: Time) -> Option<Outgoing> {
        self.send_probe = false;
        self.probed = true;
        self.counters.tail_probes += 1;
        let length = self.next_fresh();
        if length > 0 && self.fresh + length <= self.end_of_window() {
            let offset = self.fresh;
            self.fresh += length;
            return Some(self.send(now, offset, length as u16, false));
        }
        if !self.config.reliable {
            return None;
        }
        let newest = self.sent.next_number().checked_sub(1)?;
        let (offset, length) = {
            let packet = self.sent.get(newest)?;
            (packet.offset, packet.length)
        };
        Some(self.send(now, offset, length, true))
    }
}
