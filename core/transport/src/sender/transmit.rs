//! Transmission: retransmissions first, then new data, as window and pacing allow; and tail-loss probes.

use super::{CongestionState, FrtoState, Sender};
use crate::sent_packets::{PacketState, SentPacket};
use crate::{Data, Header, Outgoing, wire};
use narrows_cc::SendEvent;
use narrows_units::{Bytes, Span, Time};
use std::cmp::Reverse;

impl Sender {
    /// Drops retransmissions whose packets arrived after all; true if one is left.
    #[inline]
    pub(super) fn has_retransmission(&mut self) -> bool {
        while let Some(Reverse(retransmission)) = self.retransmit_queue.peek() {
            let moot = retransmission.offset + u64::from(retransmission.length) <= self.snd_una
                || self
                    .sent
                    .get(retransmission.number)
                    .is_some_and(|sent| sent.state != PacketState::Lost);
            if !moot {
                return true;
            }
            self.retransmit_queue.pop();
        }
        false
    }

    /// Bytes of the next new packet.
    #[inline]
    pub(super) fn next_new_data(&self) -> u64 {
        self.mss.min(self.write_seq - self.snd_nxt)
    }

    /// Interval between acknowledgements requested from the receiver (TACK).
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
        // Without selective acknowledgements an arrival is known only when the gap before it is closed.
        let idle = if self.config.sack {
            self.in_flight == 0
        } else {
            self.snd_una == offset && !retransmission
        };
        let idle = idle.then(|| now.since(self.last_activity));
        self.rate.on_send(now, idle.is_some());
        let number = self.sent.next_number();
        let data = Data {
            number,
            offset,
            least_unacked: self.sent.base(),
            length,
            retransmission,
            ack_interval: self.ack_interval(),
        };
        let bytes = u64::from(length);
        self.sent.push(SentPacket {
            offset,
            sent_at: now,
            delivered: self.rate.delivered,
            delivered_at: self.rate.delivered_at,
            first_sent_at: self.rate.first_sent_at,
            length_bytes: length,
            state: PacketState::Outstanding,
            retransmission,
            app_limited: self.rate.is_app_limited(),
            lost_in_epoch: 0,
            in_flight: self.in_flight + bytes,
            lost_before: self.rate.lost,
        });
        self.in_flight += bytes;
        self.last_activity = now;
        if let CongestionState::Recovery(Some(reduction)) = &mut self.state {
            reduction.on_sent(bytes);
        }
        if retransmission && self.first_retransmission.is_none() {
            self.first_retransmission = Some(number);
        }
        let size = wire::IP_UDP + wire::data_header(&data) + u32::from(length);
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(size);
        if retransmission {
            self.counters.retransmitted_packets += 1;
            self.counters.retransmitted_bytes += u64::from(size);
        }
        if idle.is_some() || self.hears_all_sends {
            let mut event = SendEvent::new(now, number, Bytes::new(bytes));
            event.in_flight = Bytes::new(self.in_flight);
            event.idle = idle;
            event.retransmission = retransmission;
            event.app_limited = self.rate.is_app_limited();
            self.scheme.on_send(&event);
            if idle.is_some() || self.scheme.allowance() != self.allowance {
                // After a pause a scheme may change its rate, also for this packet; and some change it with the last
                // packet of an interval.
                self.read_allowance();
            }
            self.read_scheme_timer();
        }
        if let Some(rate) = self.pacing_rate {
            self.pacer
                .on_sent(now, Bytes::new(bytes), rate, self.allowance.quantum);
        }
        // Without selective acknowledgements the timer is that of the first gap (Linux, tcp_event_new_data_sent and
        // tcp_xmit_retransmit_queue).
        let restarts = if self.config.sack {
            !(retransmission || self.only_rto_detects_loss())
        } else {
            offset <= self.snd_una
        };
        if self.retransmit_timer == Time::FAR || restarts {
            self.rearm_rto(now);
        }
        Outgoing {
            header: Header::Data(data),
            size,
            ecn: self.ecn,
        }
    }

    /// True if the congestion window allows `length` bytes.
    #[inline]
    pub(super) fn cwnd_allows(&self, length: u64, retransmission: bool) -> bool {
        let urgent = retransmission
            && self.config.repair_at_once
            && matches!(self.state, CongestionState::Recovery(_));
        urgent || self.in_flight + length <= self.cwnd()
    }

    /// True if F-RTO sends new data before retransmissions.
    #[inline]
    pub(super) fn frto_sends_now(&self) -> bool {
        self.frto == FrtoState::SendsNewData && {
            let length = self.next_new_data();
            length > 0 && self.snd_nxt + length <= self.snd_wnd_end()
        }
    }

    /// Bytes of the next packet that window and application allow, and whether it is a retransmission.
    #[inline]
    fn next_packet(&mut self) -> Option<(u64, bool)> {
        let asked = self.frto_sends_now();
        let retransmission =
            !asked && !self.retransmit_queue.is_empty() && self.has_retransmission();
        let length = match self.retransmit_queue.peek() {
            Some(Reverse(retransmission)) if !asked => u64::from(retransmission.length),
            _ => self.next_new_data(),
        };
        if length == 0 {
            if self.in_flight < self.cwnd() {
                self.rate.set_app_limited(self.in_flight);
            }
            return None;
        }
        if !self.cwnd_allows(length, retransmission) {
            self.cwnd_limited = true;
            if self.allowance.restart_pacing_when_open {
                self.pacer.wait_for_cwnd();
            }
            return None;
        }
        let fits = retransmission || self.snd_nxt + length <= self.snd_wnd_end();
        fits.then_some((length, retransmission))
    }

    /// The next packet that window and pacing allow.
    #[inline]
    pub(super) fn transmit_data(&mut self, now: Time) -> Option<Outgoing> {
        let Some((length, retransmission)) = self.next_packet() else {
            self.pacer.set_pacing_limited(false);
            return None;
        };
        if let Some(rate) = self.pacing_rate {
            self.pacer.on_cwnd_available(now, Bytes::new(length), rate);
            if self.pacer.next_send() > now {
                self.pacer.set_pacing_limited(true);
                // One burst of new data is the probe; then retransmissions continue without waiting for an answer, as
                // in Linux.
                if self.frto == FrtoState::SendsNewData {
                    self.frto = FrtoState::Inactive;
                }
                return None;
            }
        }
        if retransmission {
            let Reverse(retransmission) = self.retransmit_queue.pop()?;
            return Some(self.send(now, retransmission.offset, retransmission.length, true));
        }
        let offset = self.snd_nxt;
        self.snd_nxt += length;
        Some(self.send(now, offset, length as u16, false))
    }

    /// One packet beyond the window that probes for a loss at the tail of the flight: new data if available, else the
    /// newest outstanding data again (RFC 8985, section 7.3), if data is retransmitted at all.
    pub(super) fn transmit_tail_loss_probe(&mut self, now: Time) -> Option<Outgoing> {
        self.tlp_due = false;
        self.tlp_unanswered = true;
        self.counters.tail_probes += 1;
        let length = self.next_new_data();
        if length > 0 && self.snd_nxt + length <= self.snd_wnd_end() {
            let offset = self.snd_nxt;
            self.snd_nxt += length;
            return Some(self.send(now, offset, length as u16, false));
        }
        if !self.config.reliable {
            return None;
        }
        let newest = self.sent.next_number().checked_sub(1)?;
        let (offset, length) = {
            let packet = self.sent.get(newest)?;
            (packet.offset, packet.length_bytes)
        };
        Some(self.send(now, offset, length, true))
    }
}
