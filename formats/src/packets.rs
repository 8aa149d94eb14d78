//! All packets of a record at once.

use crate::FormatError;
use narrows_record::log::{Chunk, NO_WORD, NOT_ARRIVED};
use narrows_record::read::PacketReader;
use narrows_record::{Direction, Fate, PACKETS_FILE, Record, RecordError};

/// Reason of a packet that arrived damaged: its receiver discards it.
const CORRUPTED: &str = "corrupted";

/// One packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) sent_ns: u64,
    /// [`NOT_ARRIVED`] if it did not.
    pub(crate) arrived_ns: u64,
    pub(crate) size: u32,
    /// Index of the packet that it is a copy of.
    pub(crate) copy_of: Option<u32>,
    pub(crate) flow: u16,
    pub(crate) direction: Direction,
    pub(crate) fate: Fate,
    /// Index into [`Packets::words`].
    element: u16,
    reason: u16,
    /// When it or the first of its copies arrived undamaged; [`NOT_ARRIVED`] if none did.
    pub(crate) sound_ns: u64,
}

impl Packet {
    pub(crate) fn arrived(&self) -> bool {
        self.arrived_ns != NOT_ARRIVED
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.sound_ns != NOT_ARRIVED
    }
}

/// The packets of a record: the one with uid `n` has index `n - 1`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packets {
    pub(crate) all: Vec<Packet>,
    /// Names of elements and reasons.
    words: Vec<String>,
}

impl Packets {
    /// Reads the packets of a record.
    ///
    /// # Errors
    /// A damaged record, or one of bins: `purpose` says what needs packets.
    pub(crate) fn read(record: &Record, purpose: &str) -> Result<Self, FormatError> {
        let Some(bytes) = &record.packets else {
            let problem = format!(
                "the record keeps bins in place of packets, and {purpose} is made of packets; run it again with \
                 'record: packets'"
            );
            return Err(RecordError::data(PACKETS_FILE, problem).into());
        };
        let mut packets = Packets::default();
        let mut reader = PacketReader::open(bytes.clone())?;
        let rows = usize::try_from(reader.rows()).unwrap_or(usize::MAX);
        if rows >= u32::MAX as usize {
            let problem = "the record has more packets than can be exported at once";
            return Err(RecordError::data(PACKETS_FILE, problem).into());
        }
        packets.all.reserve_exact(rows);
        let mut chunk = Chunk::default();
        while reader.next(&mut chunk)? {
            packets.append(&chunk)?;
        }
        Ok(packets)
    }

    fn append(&mut self, chunk: &Chunk) -> Result<(), FormatError> {
        let elements: Vec<u16> = chunk.elements.iter().map(|word| self.word(word)).collect();
        let reasons: Vec<u16> = chunk.reasons.iter().map(|word| self.word(word)).collect();
        let find = |words: &[u16], index: u16| words.get(usize::from(index)).copied();
        for i in 0..chunk.len() {
            let place = self.all.len() as u64;
            let copy_of = match chunk.copy_of[i] {
                0 => None,
                original if original <= place => Some((original - 1) as u32),
                _ => {
                    let problem = "a copy precedes its original; run narrows check for details";
                    return Err(RecordError::data(PACKETS_FILE, problem).into());
                }
            };
            if chunk.uid[i] != place + 1 {
                let problem =
                    "the packets are not numbered 1, 2, 3 ...; run narrows check for details";
                return Err(RecordError::data(PACKETS_FILE, problem).into());
            }
            let damaged = chunk
                .reasons
                .get(usize::from(chunk.reason[i]))
                .is_some_and(|reason| reason == CORRUPTED);
            let arrived_ns = chunk.arrived_ns[i];
            let delivered = chunk.fate[i] == Fate::Delivered && arrived_ns != NOT_ARRIVED;
            self.all.push(Packet {
                sent_ns: chunk.sent_ns[i],
                arrived_ns: if delivered { arrived_ns } else { NOT_ARRIVED },
                size: chunk.size_bytes[i],
                copy_of,
                flow: chunk.flow[i],
                direction: chunk.direction[i],
                fate: chunk.fate[i],
                element: find(&elements, chunk.element[i]).unwrap_or(NO_WORD),
                reason: find(&reasons, chunk.reason[i]).unwrap_or(NO_WORD),
                sound_ns: if delivered && !damaged {
                    arrived_ns
                } else {
                    NOT_ARRIVED
                },
            });
            if let (Some(original), true) = (copy_of, delivered && !damaged) {
                let original = &mut self.all[original as usize];
                original.sound_ns = original.sound_ns.min(arrived_ns);
            }
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> u16 {
        let known = self.words.iter().position(|known| known == word);
        let place = known.unwrap_or_else(|| {
            self.words.push(word.to_owned());
            self.words.len() - 1
        });
        u16::try_from(place).unwrap_or(NO_WORD)
    }

    /// The element that dropped a packet and its reason, if known.
    pub(crate) fn drop_of(&self, packet: &Packet) -> (&str, &str) {
        let find = |index: u16| self.words.get(usize::from(index)).map_or("?", |it| it);
        (find(packet.element), find(packet.reason))
    }
}
