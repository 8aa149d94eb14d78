//! Reassembly of frames at the receiver.

use crate::FrameArrived;
use crate::rtp::{MAX_PACKETS, Rtp};
use narrows_units::Time;

/// Maximum number of incomplete frames: older ones are forgotten. Eight seconds at 30 frames/s.
const FRAMES: usize = 256;
const WORDS: usize = MAX_PACKETS as usize / 64;

/// One frame: which of its packets have arrived.
#[derive(Clone, Debug, Default)]
struct PartialFrame {
    frame: Option<u32>,
    count: u16,
    got: u16,
    packets: [u64; WORDS],
}

/// Effect of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It was new.
    New,
    /// It was new and completed its frame.
    Complete,
    /// It is a duplicate, or belongs to a forgotten frame.
    Old,
}

/// Reassembles frames from packets.
#[derive(Clone, Debug)]
pub struct Reassembly {
    ring: Vec<PartialFrame>,
    complete: Vec<FrameArrived>,
}

impl Default for Reassembly {
    fn default() -> Self {
        Reassembly {
            ring: vec![PartialFrame::default(); FRAMES],
            complete: Vec::new(),
        }
    }
}

impl Reassembly {
    /// A packet of media arrived (padding excluded).
    pub fn insert(&mut self, now: Time, packet: &Rtp) -> Inserted {
        let slot = &mut self.ring[packet.frame as usize % FRAMES];
        match slot.frame {
            Some(frame) if frame == packet.frame => {}
            Some(frame) if frame > packet.frame => return Inserted::Old,
            _ => {
                *slot = PartialFrame {
                    frame: Some(packet.frame),
                    count: packet.count,
                    ..PartialFrame::default()
                };
            }
        }
        let (word, bit) = (usize::from(packet.index) / 64, 1 << (packet.index % 64));
        // A packet that is inconsistent with the first of its frame is ignored.
        if packet.count != slot.count || word >= WORDS || slot.packets[word] & bit != 0 {
            return Inserted::Old;
        }
        slot.packets[word] |= bit;
        slot.got += 1;
        if slot.got < slot.count {
            return Inserted::New;
        }
        self.complete.push(FrameArrived {
            number: u64::from(packet.frame),
            at: now,
        });
        Inserted::Complete
    }

    /// True if all of a frame is remembered to have arrived.
    pub fn is_complete(&self, frame: u32) -> bool {
        let slot = &self.ring[frame as usize % FRAMES];
        slot.frame == Some(frame) && slot.got == slot.count
    }

    /// Moves the frames that have been completed into `frames`.
    pub fn take_complete(&mut self, frames: &mut Vec<FrameArrived>) {
        frames.append(&mut self.complete);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(frame: u32, index: u16, count: u16) -> Rtp {
        Rtp {
            frame,
            index,
            count,
            ..Rtp::default()
        }
    }

    #[test]
    fn a_frame_is_complete_with_its_last_packet_whatever_the_order() {
        let mut assembly = Reassembly::default();
        let mut at = |ms: u64, packet: Rtp| assembly.insert(Time::from_ns(ms * 1_000_000), &packet);
        assert_eq!(at(1, packet(0, 2, 3)), Inserted::New);
        assert_eq!(at(2, packet(1, 0, 1)), Inserted::Complete);
        assert_eq!(at(3, packet(0, 0, 3)), Inserted::New);
        assert_eq!(at(4, packet(0, 0, 3)), Inserted::Old, "a duplicate");
        assert_eq!(at(5, packet(0, 1, 3)), Inserted::Complete);
        assert_eq!(at(6, packet(0, 1, 3)), Inserted::Old);
        assert!(assembly.is_complete(0) && assembly.is_complete(1) && !assembly.is_complete(2));
        let mut frames = vec![];
        assembly.take_complete(&mut frames);
        let list: Vec<_> = frames
            .iter()
            .map(|frame| (frame.number, frame.at.ns() / 1_000_000))
            .collect();
        assert_eq!(list, [(1, 2), (0, 5)]);
    }

    #[test]
    fn the_largest_frames_fit_and_old_ones_are_forgotten() {
        let mut assembly = Reassembly::default();
        for index in 0..MAX_PACKETS as u16 {
            assembly.insert(Time::ZERO, &packet(3, index, MAX_PACKETS as u16));
        }
        assert!(assembly.is_complete(3));
        assert_eq!(
            assembly.insert(Time::ZERO, &packet(3 + 256, 0, 1)),
            Inserted::Complete
        );
        assert!(!assembly.is_complete(3));
        assert_eq!(assembly.insert(Time::ZERO, &packet(3, 0, 1)), Inserted::Old);
        assert_eq!(
            assembly.insert(Time::ZERO, &packet(3 + 256, 0, 2)),
            Inserted::Old,
            "contradiction"
        );
    }
}
