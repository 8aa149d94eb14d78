//! Datagrams: a source that sends the datagrams requested by an application.
//!
//! A datagram is a message of kind [`Media`] whose content is the time at which it was sent, in ns (64 bits, network byte
//! order). Its number is its position in the flow.

use narrows_transport::wire::MEDIA_HEADER;
use narrows_transport::{Body, Endpoint, Header, Outgoing};
use narrows_units::{Ecn, Time};
use std::collections::VecDeque;

pub use narrows_transport::wire::IP_UDP;

/// Bytes of the header; a datagram is at least `IP_UDP + DATAGRAM_HEADER` bytes at the IP layer.
pub const DATAGRAM_HEADER: u32 = MEDIA_HEADER + 8;

/// Sends the datagrams requested by an application.
#[derive(Clone, Debug, Default)]
pub struct DatagramSource {
    /// IP sizes of the waiting datagrams.
    waiting: VecDeque<u32>,
    sent_packets: u64,
    sent_bytes: u64,
}

impl DatagramSource {
    /// One datagram of `size` bytes at the IP layer is to be sent.
    pub fn push(&mut self, size: u32) {
        self.waiting.push_back(size);
    }

    /// Datagrams sent so far.
    pub fn sent_packets(&self) -> u64 {
        self.sent_packets
    }

    /// Their IP bytes.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }
}

impl Endpoint for DatagramSource {
    fn receive(&mut self, _: Time, _: Ecn, _: &Header, _: &Body) {}

    fn transmit(&mut self, now: Time, body: &mut Body) -> Option<Outgoing> {
        let size = self.waiting.pop_front()?;
        body.clear();
        body.bytes.extend(now.ns().to_be_bytes());
        let number = self.sent_packets;
        self.sent_packets += 1;
        self.sent_bytes += u64::from(size);
        let length = size.saturating_sub(IP_UDP + MEDIA_HEADER).max(8) as u16;
        Some(Outgoing {
            size,
            ..Outgoing::media(number, length, false, body)
        })
    }

    fn next_wakeup(&self) -> Time {
        if self.waiting.is_empty() {
            Time::FAR
        } else {
            Time::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DatagramSink;
    use narrows_transport::Media;
    use narrows_transport::wire;

    #[test]
    fn a_datagram_survives_the_wire() {
        let (mut source, mut sink) = (DatagramSource::default(), DatagramSink::default());
        let (mut body, mut bytes) = (Body::default(), Vec::new());
        for size in [200, IP_UDP + DATAGRAM_HEADER, 9000] {
            source.push(size);
            assert_eq!(source.next_wakeup(), Time::ZERO);
            let out = source.transmit(Time::from_ns(42), &mut body).unwrap();
            wire::encode(7, &out.header, &body, &mut bytes);
            assert_eq!((bytes.len() as u32 + IP_UDP, out.size), (size, size));
            let header = wire::decode(&bytes, &mut body).unwrap();
            sink.receive(Time::from_ns(50), out.ecn, &header, &body);
        }
        assert_eq!(source.next_wakeup(), Time::FAR);
        let report = sink.report();
        assert_eq!((report.received, report.lost), (3, 0));
        assert_eq!(report.received_bytes, source.sent_bytes());
        assert!(report.jitter_ns.abs() < 1e-9, "all took 8 ns");
        // A message without a send time is not a datagram.
        sink.receive(
            Time::FAR,
            Ecn::NotEct,
            &Header::Media(Media::default()),
            &Body::default(),
        );
        assert_eq!(sink.report(), report);
    }
}
