//! A map from connection numbers to queue numbers, without collisions.
//!
//! Open addressing with linear probing, and deletion by moving later entries up (Knuth, The Art of
//! Computer Programming 3, section 6.4, algorithm R). It grows to the maximum number of connections
//! that ever waited at once, and allocates for no other reason.

/// A bijection on 64 bits whose results look random (the finaliser of SplitMix64; Steele, Lea and
/// Flood 2014).
#[inline]
pub(crate) const fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The place of `connection` among `places`, by a hash that depends on `salt`.
#[inline]
pub(crate) const fn place(connection: u32, salt: u64, places: u32) -> u32 {
    (((mix(connection as u64 ^ salt) >> 32) * places as u64) >> 32) as u32
}

/// A map from connections to queues.
#[derive(Clone, Debug)]
pub(crate) struct AqmTable {
    /// (connection, queue); the length is a power of two and at most half of it is taken.
    slots: Vec<Option<(u32, u32)>>,
    taken: usize,
}

impl AqmTable {
    pub(crate) fn new() -> Self {
        AqmTable {
            slots: vec![None; 16],
            taken: 0,
        }
    }

    fn home(&self, connection: u32) -> usize {
        mix(u64::from(connection)) as usize & (self.slots.len() - 1)
    }

    /// The slot of `connection`, or the slot where it would be inserted.
    fn find(&self, connection: u32) -> usize {
        let mut slot = self.home(connection);
        while self.slots[slot].is_some_and(|(owner, _)| owner != connection) {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    pub(crate) fn get(&self, connection: u32) -> Option<u32> {
        self.slots[self.find(connection)].map(|(_, queue)| queue)
    }

    pub(crate) fn insert(&mut self, connection: u32, queue: u32) {
        if 2 * (self.taken + 1) > self.slots.len() {
            let larger = vec![None; 2 * self.slots.len()];
            let old = std::mem::replace(&mut self.slots, larger);
            for entry in old.into_iter().flatten() {
                let slot = self.find(entry.0);
                self.slots[slot] = Some(entry);
            }
        }
        let slot = self.find(connection);
        self.taken += usize::from(self.slots[slot].is_none());
        self.slots[slot] = Some((connection, queue));
    }

    pub(crate) fn remove(&mut self, connection: u32) {
        let mut hole = self.find(connection);
        if self.slots[hole].take().is_none() {
            return;
        }
        self.taken -= 1;
        let last = self.slots.len() - 1;
        let mut slot = (hole + 1) & last;
        while let Some((owner, _)) = self.slots[slot] {
            // An entry may move up unless its home lies between the hole and where it is.
            let from_home = slot.wrapping_sub(self.home(owner)) & last;
            let from_hole = slot.wrapping_sub(hole) & last;
            if from_home >= from_hole {
                self.slots[hole] = self.slots[slot].take();
                hole = slot;
            }
            slot = (slot + 1) & last;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_units::Stream;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_sorted_map() {
        let mut table = AqmTable::new();
        let mut map = BTreeMap::new();
        let mut stream = Stream::new(2, "table");
        for step in 0..100_000 {
            let connection = stream.below(300) as u32;
            match stream.below(3) {
                0 => {
                    table.insert(connection, step);
                    map.insert(connection, step);
                }
                1 => {
                    table.remove(connection);
                    map.remove(&connection);
                }
                _ => {}
            }
            assert_eq!(table.get(connection), map.get(&connection).copied());
            let other = stream.below(300) as u32;
            assert_eq!(table.get(other), map.get(&other).copied());
        }
        assert_eq!(table.taken, map.len());
        assert_eq!(table.slots.len(), 512, "never more than 256 at once");
    }
}
