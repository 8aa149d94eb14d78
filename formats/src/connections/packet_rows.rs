//! Packets of one direction, and the pairing of what two ends saw of them.

/// Packets of one direction as columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Bytes of the IP packet.
    pub size_bytes: Vec<u32>,
    /// When it was sent.
    pub sent_ns: Vec<i64>,
    /// When it arrived; the smallest number if it did not.
    pub arrived_ns: Vec<i64>,
}

impl Rows {
    /// In [`Rows::arrived_ns`]: it did not arrive.
    pub const NEVER: i64 = i64::MIN;

    pub(super) fn push(&mut self, size: u32, sent_ns: i64, arrived_ns: Option<i64>) {
        self.size_bytes.push(size);
        self.sent_ns.push(sent_ns);
        self.arrived_ns.push(arrived_ns.unwrap_or(Rows::NEVER));
    }

    pub(super) fn append(&mut self, mut other: Rows) {
        self.size_bytes.append(&mut other.size_bytes);
        self.sent_ns.append(&mut other.sent_ns);
        self.arrived_ns.append(&mut other.arrived_ns);
    }

    /// Number of packets that arrived.
    pub fn matched(&self) -> usize {
        self.delays().count()
    }

    /// Times from sending to arrival, by two clocks.
    pub(super) fn delays(&self) -> impl Iterator<Item = i64> {
        let times = self.sent_ns.iter().zip(&self.arrived_ns);
        times
            .filter(|times| *times.1 != Rows::NEVER)
            .map(|(sent, arrived)| arrived - sent)
    }
}

/// Pairs of indices with equal keys, the first with the first, the second with the second.
pub(super) fn in_order<K: Ord>(
    mut here: Vec<(K, u32)>,
    mut there: Vec<(K, u32)>,
) -> Vec<(u32, u32)> {
    here.sort_unstable();
    there.sort_unstable();
    let mut there = there.into_iter().peekable();
    let mut pairs = Vec::with_capacity(here.len());
    for (key, place) in here {
        while there.next_if(|other| other.0 < key).is_some() {}
        if let Some(other) = there.next_if(|other| other.0 == key) {
            pairs.push((place, other.1));
        }
    }
    pairs
}
