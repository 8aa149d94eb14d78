//! The bins of one flow in one direction. Bins in which nothing has been counted for a while are packed into a quarter
//! of the memory: a run of an hour has thousands of them per flow.

use crate::schema::BinRow;

/// Bins that are packed together.
const BLOCK: usize = 64;
/// Approximate bytes of a packed bin in which something happened.
const PACKED: usize = 32;

/// Bins in the order of time, from the start of the run. Only the counters of each are set.
#[derive(Debug)]
pub(super) struct BinSeries {
    bin_ns: u64,
    /// The first bins, packed, [`BLOCK`] per block.
    packed: Vec<Box<[u8]>>,
    /// The bins that follow them.
    open: Vec<BinRow>,
    /// Index of the first open bin.
    first_open: usize,
}

impl BinSeries {
    pub(super) fn new(bin_ns: u64) -> Self {
        BinSeries {
            bin_ns,
            packed: Vec::new(),
            open: Vec::new(),
            first_open: 0,
        }
    }

    /// The bin with index `place`, to count in.
    #[inline]
    pub(super) fn at(&mut self, place: usize) -> &mut BinRow {
        if place.wrapping_sub(self.first_open) >= self.open.len() {
            self.reach(place);
        }
        &mut self.open[place - self.first_open]
    }

    /// All bins, with their indices.
    pub(super) fn each(&self) -> impl Iterator<Item = (usize, BinRow)> + '_ {
        let blocks = 0..self.packed.len();
        let packed = blocks.flat_map(|block| self.unpack(block));
        packed.chain(self.open.iter().cloned()).enumerate()
    }

    /// Opens the bin with index `place`, whether it is new or packed.
    #[cold]
    fn reach(&mut self, place: usize) {
        if place >= self.first_open {
            while self.open.len() >= 2 * BLOCK {
                self.pack();
            }
            let count = place - self.first_open + 1;
            self.open.resize(count, BinRow::default());
            return;
        }
        // The packet was in flight for longer than the open bins span.
        let from = place / BLOCK;
        let blocks = from..self.packed.len();
        let mut opened: Vec<BinRow> = blocks.flat_map(|block| self.unpack(block)).collect();
        opened.append(&mut self.open);
        self.open = opened;
        self.packed.truncate(from);
        self.first_open = from * BLOCK;
    }

    fn pack(&mut self) {
        let mut bytes = Vec::with_capacity(BLOCK * PACKED);
        for (index, bin) in self.open.drain(..BLOCK).enumerate() {
            let start = (self.first_open + index) as u64 * self.bin_ns;
            for number in numbers(&bin, start) {
                put(&mut bytes, number);
            }
        }
        self.packed.push(bytes.into_boxed_slice());
        self.first_open += BLOCK;
    }

    fn unpack(&self, block: usize) -> impl Iterator<Item = BinRow> + '_ {
        let mut bytes = &self.packed[block][..];
        (block * BLOCK..(block + 1) * BLOCK).map(move |place| {
            bin_of(
                [(); 9].map(|()| take(&mut bytes)),
                place as u64 * self.bin_ns,
            )
        })
    }
}

/// The counters of a bin that begins at `start`. Times are small because they are relative to its start.
fn numbers(bin: &BinRow, start: u64) -> [u64; 9] {
    let time = |at: Option<u64>| at.map_or(0, |at| at - start + 1);
    [
        bin.sent_packets,
        bin.sent_bytes,
        bin.arrived_packets,
        bin.arrived_bytes,
        bin.dropped_packets,
        bin.dropped_bytes,
        bin.delay_sum_ns,
        time(bin.first_arrival_ns),
        time(bin.last_arrival_ns),
    ]
}

fn bin_of(numbers: [u64; 9], start: u64) -> BinRow {
    let time = |offset: u64| offset.checked_sub(1).map(|since| start + since);
    let [
        sent,
        sent_bytes,
        arrived,
        arrived_bytes,
        dropped,
        dropped_bytes,
        delays,
        first,
        last,
    ] = numbers;
    BinRow {
        sent_packets: sent,
        sent_bytes,
        arrived_packets: arrived,
        arrived_bytes,
        dropped_packets: dropped,
        dropped_bytes,
        delay_sum_ns: delays,
        first_arrival_ns: time(first),
        last_arrival_ns: time(last),
        ..BinRow::default()
    }
}

/// Appends a number in groups of seven bits (LEB128).
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes
            .split_first()
            .expect("a packed bin has all its numbers");
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bins_are_those_of_a_plain_list(
            visits in prop::collection::vec((0usize..1000, any::<u64>(), any::<bool>()), 0..300),
        ) {
            let (mut series, mut plain) = (BinSeries::new(1000), Vec::<BinRow>::new());
            for (place, number, arrives) in visits {
                if place >= plain.len() {
                    plain.resize(place + 1, BinRow::default());
                }
                for bin in [series.at(place), &mut plain[place]] {
                    bin.sent_bytes = number;
                    bin.dropped_packets += 1;
                    bin.delay_sum_ns = number / 3;
                    let at = arrives.then_some(place as u64 * 1000 + number % 1000);
                    (bin.first_arrival_ns, bin.last_arrival_ns) = (at, at);
                }
            }
            let unpacked_bins: Vec<_> = series.each().collect();
            prop_assert_eq!(unpacked_bins, plain.into_iter().enumerate().collect::<Vec<_>>());
        }
    }

    #[test]
    fn old_bins_are_small() {
        let mut series = BinSeries::new(1_000_000_000);
        for place in 0..100_000 {
            let bin = series.at(place);
            (bin.sent_packets, bin.sent_bytes) = (33_333, 50_000_000);
            (bin.arrived_packets, bin.arrived_bytes) = (33_333, 50_000_000);
            bin.delay_sum_ns = 33_333 * 100_000_000;
            bin.last_arrival_ns = Some((place as u64 + 1) * 1_000_000_000 - 1);
        }
        let packed: usize = series.packed.iter().map(|block| block.len()).sum();
        assert!(packed < 100_000 * PACKED, "{packed} bytes");
        assert!(series.open.len() <= 2 * BLOCK);
        assert_eq!(series.each().count(), 100_000);
    }
}
