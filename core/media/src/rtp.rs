//! Media packets of the schemes with an encoder: the equivalent of RTP's header and its extensions.
//!
//! ```text
//! flags:8 zero:8 frame:32 index:16 count:16 sequence:32
//! ```
//!
//! A packet of RTP with one extension has a header of 20 bytes. Here the 16 bytes of the media header and the first 4
//! of the content take its place, so that a packet has the same size as with RTP; the rest of the content lies at the
//! start of the payload. Numbers of messages count all packets, as transport-wide ones do. The sequence counts only
//! media packets: padding has none, and a retransmission has that of the original, as RTX (RFC 4588) carries the
//! original number and numbers its own packets separately.

use narrows_transport::wire;

/// Bytes of RTP's header with one extension.
pub const HEADER: u32 = 20;
/// Maximum number of packets in a frame.
pub const MAX_PACKETS: u32 = 2048;
/// Largest payload of a packet, as browsers choose it.
pub const PAYLOAD: u32 = 1200;
const CONTENT: usize = 14;
/// Bytes of content that count as the end of RTP's header.
const IN_CONTENT: u32 = HEADER - wire::MEDIA_HEADER;
const KEY: u8 = 1;
const PADDING: u8 = 2;
const REPEAT: u8 = 4;

/// Content of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtp {
    /// Number of the frame.
    pub frame: u32,
    /// Number of the packet within the frame, from 0.
    pub index: u16,
    /// Packets of the frame.
    pub count: u16,
    /// Part of a key frame.
    pub key: bool,
    /// Padding, only to fill a probe.
    pub padding: bool,
    /// A retransmission of the packet with this sequence number.
    pub repeated: bool,
    /// Sequence number among the media packets, if a scheme retransmits.
    pub sequence: u32,
}

impl Rtp {
    /// A packet of padding.
    pub fn padding() -> Rtp {
        Rtp {
            padding: true,
            ..Rtp::default()
        }
    }

    /// Writes the content.
    pub fn write(&self, out: &mut Vec<u8>) {
        let flag = |set, bit| if set { bit } else { 0 };
        out.extend([
            flag(self.key, KEY) | flag(self.padding, PADDING) | flag(self.repeated, REPEAT),
            0,
        ]);
        out.extend(self.frame.to_be_bytes());
        out.extend(self.index.to_be_bytes());
        out.extend(self.count.to_be_bytes());
        out.extend(self.sequence.to_be_bytes());
    }

    /// Reads the content; `None` if it is not that of a media packet.
    pub fn read(bytes: &[u8]) -> Option<Rtp> {
        let (content, _) = bytes.split_first_chunk::<CONTENT>()?;
        let [flags, _, f0, f1, f2, f3, i0, i1, c0, c1, s0, s1, s2, s3] = *content;
        let rtp = Rtp {
            frame: u32::from_be_bytes([f0, f1, f2, f3]),
            index: u16::from_be_bytes([i0, i1]),
            count: u16::from_be_bytes([c0, c1]),
            key: flags & KEY != 0,
            padding: flags & PADDING != 0,
            repeated: flags & REPEAT != 0,
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
        };
        let sane = rtp.index < rtp.count && u32::from(rtp.count) <= MAX_PACKETS;
        (rtp.padding || sane).then_some(rtp)
    }
}

/// Largest payload if the path carries IP packets of `packet_size`.
pub fn largest_payload(packet_size: u32) -> u32 {
    PAYLOAD
        .min(packet_size.saturating_sub(wire::IP_UDP + HEADER))
        .max(CONTENT as u32)
}

/// Length of the media message that carries `payload` bytes.
pub fn length(payload: u32) -> u16 {
    u16::try_from((payload + IN_CONTENT).max(CONTENT as u32)).unwrap_or(u16::MAX)
}

/// Payload bytes of a media message.
pub fn payload(length: u16) -> u32 {
    u32::from(length).saturating_sub(IN_CONTENT)
}

/// Size as RTP counts it (header and payload) of a media message: the unit of the rates of media schemes.
pub fn size(length: u16) -> u32 {
    wire::MEDIA_HEADER + u32::from(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_survives_and_nonsense_is_refused() {
        let packet = Rtp {
            frame: 7,
            index: 2,
            count: 5,
            key: true,
            padding: false,
            repeated: true,
            sequence: 9,
        };
        for packet in [
            packet,
            Rtp {
                repeated: false,
                key: false,
                ..packet
            },
            Rtp::padding(),
        ] {
            let mut bytes = vec![];
            packet.write(&mut bytes);
            assert_eq!(Rtp::read(&bytes), Some(packet));
            assert_eq!(Rtp::read(&bytes[1..]), None);
        }
        for wrong in [
            Rtp { index: 5, ..packet },
            Rtp {
                count: 2049,
                ..packet
            },
            Rtp { count: 0, ..packet },
        ] {
            let mut bytes = vec![];
            wrong.write(&mut bytes);
            assert_eq!(Rtp::read(&bytes), None, "{wrong:?}");
        }
    }

    #[test]
    fn packets_have_the_size_that_rtp_would_give_them() {
        // 1200 bytes of payload are 1220 with RTP and 1248 with IP and UDP.
        assert_eq!(size(length(1200)), 1220);
        assert_eq!(
            wire::IP_UDP + wire::MEDIA_HEADER + u32::from(length(1200)),
            1248
        );
        assert_eq!(payload(length(300)), 300);
        assert_eq!(largest_payload(1500), 1200);
        assert_eq!(largest_payload(576), 528);
        assert_eq!(
            usize::from(length(1)),
            CONTENT,
            "the smallest packets have room for the content"
        );
    }
}
