//! The data shared by all exports of one record.

use crate::FormatError;
use crate::packets::Packets;
use crate::streams::Streams;
use narrows_record::read::read_states;
use narrows_record::{Record, StateRow};

/// The packets of a record with their streams, and the sampled states of the senders.
#[derive(Clone, Debug)]
pub struct Traffic {
    pub(crate) packets: Packets,
    pub(crate) streams: Streams,
    pub(crate) states: Vec<StateRow>,
}

impl Traffic {
    /// Reads a record; `purpose` is the product in messages, for example "a capture".
    ///
    /// # Errors
    /// A damaged record, or one of bins.
    pub fn read(record: &Record, purpose: &str) -> Result<Self, FormatError> {
        let packets = Packets::read(record, purpose)?;
        let states = record.states.clone().map(read_states).transpose()?;
        let states = states.unwrap_or_default();
        let streams = Streams::reconstruct(record, &packets, &states);
        Ok(Traffic {
            packets,
            streams,
            states,
        })
    }

    /// The numbers of the flows.
    pub fn flows(&self) -> impl Iterator<Item = u16> {
        self.streams.flows.keys().copied()
    }
}
