//! Memory for the frames inside the network.

/// Frames per slab.
const SLAB: usize = 1024;

/// Frames by number. Grows by slabs up to a limit and reuses the slot freed last, which is most
/// likely still in the cache.
#[derive(Debug)]
pub struct Pool {
    slabs: Vec<Box<[u8]>>,
    free: Vec<u32>,
    /// Bytes per frame.
    room: usize,
    most_slabs: usize,
}

impl Pool {
    /// A pool with room for `frames` frames of up to `largest` bytes at once, that may grow to
    /// `bytes` bytes.
    pub fn new(frames: usize, largest: usize, bytes: usize) -> Self {
        // Whole cache lines.
        let room = largest.next_multiple_of(64);
        let mut pool = Pool {
            room,
            slabs: Vec::new(),
            free: Vec::new(),
            most_slabs: (bytes / (SLAB * room)).max(1),
        };
        for _ in 0..frames.div_ceil(SLAB).clamp(1, pool.most_slabs) {
            pool.grow();
        }
        pool
    }

    #[cold]
    fn grow(&mut self) -> bool {
        if self.slabs.len() >= self.most_slabs {
            return false;
        }
        let first = (self.slabs.len() * SLAB) as u32;
        // Not zeroed lazily: each page is touched now and not when a packet arrives.
        self.slabs.push(vec![1u8; SLAB * self.room].into());
        self.free.reserve(self.slabs.len() * SLAB);
        self.free.extend((first..first + SLAB as u32).rev());
        true
    }

    /// Keeps a copy of `frame`; `None` if the pool may not grow any more.
    #[inline]
    pub fn store(&mut self, frame: &[u8]) -> Option<u32> {
        if self.free.is_empty() && !self.grow() {
            return None;
        }
        let slot = self.free.pop()?;
        self.room_mut(slot)[..frame.len()].copy_from_slice(frame);
        Some(slot)
    }

    /// Keeps another copy of the first `length` bytes of a stored frame; `None` if the pool may not
    /// grow any more.
    pub fn copy(&mut self, slot: u32, length: usize) -> Option<u32> {
        if self.free.is_empty() && !self.grow() {
            return None;
        }
        let copy = self.free.pop()?;
        let (from, to) = (slot as usize, copy as usize);
        let place = |slot: usize| (slot / SLAB, slot % SLAB * self.room);
        let ((from_slab, from), (to_slab, to)) = (place(from), place(to));
        if from_slab == to_slab {
            self.slabs[from_slab].copy_within(from..from + length, to);
        } else {
            let last = from_slab.max(to_slab);
            let (low, high) = self.slabs.split_at_mut(last);
            let (source, target) = if from_slab == last {
                (&high[0], &mut low[to_slab])
            } else {
                (&low[from_slab], &mut high[0])
            };
            target[to..to + length].copy_from_slice(&source[from..from + length]);
        }
        Some(copy)
    }

    /// The first `length` bytes of a stored frame.
    #[inline]
    pub fn frame(&self, slot: u32, length: usize) -> &[u8] {
        let at = slot as usize % SLAB * self.room;
        &self.slabs[slot as usize / SLAB][at..at + length]
    }

    /// A stored frame, to change it.
    #[inline]
    pub fn room_mut(&mut self, slot: u32) -> &mut [u8] {
        let at = slot as usize % SLAB * self.room;
        &mut self.slabs[slot as usize / SLAB][at..at + self.room]
    }

    /// Frees a stored frame.
    #[inline]
    pub fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Frames stored now.
    pub fn stored(&self) -> usize {
        self.slabs.len() * SLAB - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_frames_of_their_own() {
        let mut pool = Pool::new(1, 64, 2 * SLAB * 64);
        let slots: Vec<u32> = (0..SLAB as u32 - 1)
            .map(|n| pool.store(&n.to_ne_bytes()).unwrap())
            .collect();
        // One in the same slab, then others in a new slab.
        for &slot in &slots[5..8] {
            let content = pool.frame(slot, 4).to_vec();
            let copy = pool.copy(slot, 4).unwrap();
            assert_eq!(pool.frame(copy, 4), content);
            pool.room_mut(copy)[0] ^= 1;
            assert_eq!(pool.frame(slot, 4), content);
            let back = pool.copy(copy, 4).unwrap();
            assert_eq!(pool.frame(back, 4), pool.frame(copy, 4));
        }
        while pool.store(&[0; 4]).is_some() {}
        assert_eq!(pool.copy(slots[0], 4), None, "the limit holds");
    }

    #[test]
    fn frames_are_kept_apart_and_reused() {
        let mut pool = Pool::new(1, 1514, 2 * SLAB * 1536);
        let slots: Vec<u32> = (0..2 * SLAB)
            .map(|n| pool.store(&(n as u32).to_ne_bytes()).unwrap())
            .collect();
        assert_eq!(pool.store(&[0; 4]), None, "the limit holds");
        for (n, &slot) in slots.iter().enumerate() {
            assert_eq!(pool.frame(slot, 4), (n as u32).to_ne_bytes());
        }
        pool.release(slots[77]);
        assert_eq!(pool.store(&[9; 1514]), Some(slots[77]));
        assert_eq!(pool.stored(), 2 * SLAB);
        assert_eq!(pool.frame(slots[78], 4), 78u32.to_ne_bytes());
    }
}
