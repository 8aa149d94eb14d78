//! The log for long runs: binned series and delay histograms in place of packets.

use super::Entered;
use super::bin_series::BinSeries;
use crate::cell::Measure;
use crate::histogram::Histogram;
use crate::schema::{BinRow, DelayRow, Direction};

/// The bins of one flow in one direction.
#[derive(Debug)]
struct Series {
    bins: BinSeries,
    delays: Histogram,
    sends: Cursor,
    arrivals: Cursor,
}

impl Series {
    fn pair(bin_ns: u64) -> [Series; 2] {
        [(); 2].map(|()| Series {
            bins: BinSeries::new(bin_ns),
            delays: Histogram::default(),
            sends: Cursor::default(),
            arrivals: Cursor::default(),
        })
    }
}

/// Remembers the bin of the latest time: times mostly increase, so most look-ups need no division.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    start_ns: u64,
    /// Zero until it has been moved.
    width_ns: u64,
    index: usize,
    /// True if the bin belongs to the measured part.
    is_measured: bool,
}

impl Cursor {
    #[inline]
    fn seek(&mut self, time_ns: u64, bin_ns: u64, measure: &Measure) {
        if time_ns.wrapping_sub(self.start_ns) >= self.width_ns {
            self.index = (time_ns / bin_ns) as usize;
            self.start_ns = self.index as u64 * bin_ns;
            self.width_ns = bin_ns;
            self.is_measured = measure.counts_bin(self.start_ns, bin_ns);
        }
    }
}

/// Accumulates binned series and delay histograms per flow and direction.
///
/// Sent packets count in the bin of their sending, arrived packets and their delays in the bin of
/// their arrival, dropped packets in the bin of their sending.
#[derive(Debug)]
pub struct BinLog {
    bin_ns: u64,
    measure: Measure,
    /// Packets that have entered so far.
    entered: u64,
    /// Indexed by flow, then direction.
    series: Vec<[Series; 2]>,
}

impl BinLog {
    /// A log with bins of `bin_ns`.
    ///
    /// # Panics
    /// If `bin_ns` is zero.
    pub fn new(bin_ns: u64) -> Self {
        assert!(bin_ns > 0, "a bin lasts at least one nanosecond");
        BinLog {
            bin_ns,
            measure: Measure::default(),
            entered: 0,
            series: Vec::new(),
        }
    }

    /// The same, with histograms of the delays of the packets that arrive in the bins that are measured.
    #[must_use]
    pub fn measuring(mut self, measure: Measure) -> Self {
        self.measure = measure;
        self
    }

    /// A packet enters the network. Its key is its sending time: nothing else has to be kept about a packet in flight.
    #[inline]
    pub fn enter(&mut self, flow: u16, direction: Direction, size: u32, sent_ns: u64) -> Entered {
        self.entered += 1;
        if usize::from(flow) >= self.series.len() {
            let bin_ns = self.bin_ns;
            self.series
                .resize_with(usize::from(flow) + 1, || Series::pair(bin_ns));
        }
        let series = &mut self.series[usize::from(flow)][direction as usize];
        series.sends.seek(sent_ns, self.bin_ns, &self.measure);
        let bin = series.bins.at(series.sends.index);
        bin.sent_packets += 1;
        bin.sent_bytes += u64::from(size);
        Entered {
            key: sent_ns + 1,
            flow,
            direction,
            size,
        }
    }

    /// A packet is released to the other host.
    #[inline]
    pub fn arrive(&mut self, packet: Entered, arrived_ns: u64) {
        let delay = arrived_ns.saturating_sub(sent_ns(packet));
        let series = &mut self.series[usize::from(packet.flow)][packet.direction as usize];
        series.arrivals.seek(arrived_ns, self.bin_ns, &self.measure);
        if series.arrivals.is_measured {
            series.delays.add(delay);
        }
        let bin = series.bins.at(series.arrivals.index);
        bin.arrived_packets += 1;
        bin.arrived_bytes += u64::from(packet.size);
        bin.delay_sum_ns += delay;
        let first = bin.first_arrival_ns.unwrap_or(arrived_ns);
        bin.first_arrival_ns = Some(first.min(arrived_ns));
        bin.last_arrival_ns = bin.last_arrival_ns.max(Some(arrived_ns));
    }

    /// An element drops a packet.
    #[inline]
    pub fn drop(&mut self, packet: Entered) {
        let series = &mut self.series[usize::from(packet.flow)][packet.direction as usize];
        let bin = series.bins.at((sent_ns(packet) / self.bin_ns) as usize);
        bin.dropped_packets += 1;
        bin.dropped_bytes += u64::from(packet.size);
    }

    /// Adds everything that `other`, another log of the same run, has counted.
    pub fn merge(&mut self, other: BinLog) {
        self.entered += other.entered;
        if other.series.len() > self.series.len() {
            let bin_ns = self.bin_ns;
            self.series
                .resize_with(other.series.len(), || Series::pair(bin_ns));
        }
        let more = other.series.into_iter().flatten();
        for (series, more) in self.series.iter_mut().flatten().zip(more) {
            series.delays.merge(&more.delays);
            for (index, bin) in more.bins.each() {
                add_bin(series.bins.at(index), &bin);
            }
        }
    }

    /// The number of packets that have entered so far.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// The bins in which something happened, by flow, direction and time.
    pub fn bins(&self) -> impl Iterator<Item = BinRow> + '_ {
        let bin_ns = self.bin_ns;
        self.each().flat_map(move |(flow, direction, series)| {
            let used =
                |bin: &BinRow| bin.sent_packets + bin.arrived_packets + bin.dropped_packets > 0;
            series
                .bins
                .each()
                .filter(move |(_, bin)| used(bin))
                .map(move |(index, bin)| BinRow {
                    flow,
                    direction,
                    bin_ns: index as u64 * bin_ns,
                    ..bin
                })
        })
    }

    /// The delay histograms, by flow, direction and delay.
    pub fn delays(&self) -> impl Iterator<Item = DelayRow> + '_ {
        self.each().flat_map(|(flow, direction, series)| {
            series.delays.buckets().map(move |bucket| DelayRow {
                flow,
                direction,
                low_ns: bucket.low,
                high_ns: bucket.high,
                packets: bucket.count,
            })
        })
    }

    fn each(&self) -> impl Iterator<Item = (u16, Direction, &Series)> {
        self.series
            .iter()
            .enumerate()
            .flat_map(|(flow, [forward, backward])| {
                [
                    (flow as u16, Direction::Forward, forward),
                    (flow as u16, Direction::Backward, backward),
                ]
            })
    }
}

/// When a packet was sent.
#[inline]
fn sent_ns(packet: Entered) -> u64 {
    packet.key - 1
}

/// Adds the counters of `more`, the same bin of another log, to `bin`.
fn add_bin(bin: &mut BinRow, more: &BinRow) {
    bin.sent_packets += more.sent_packets;
    bin.sent_bytes += more.sent_bytes;
    bin.arrived_packets += more.arrived_packets;
    bin.arrived_bytes += more.arrived_bytes;
    bin.dropped_packets += more.dropped_packets;
    bin.dropped_bytes += more.dropped_bytes;
    bin.delay_sum_ns += more.delay_sum_ns;
    let first = [bin.first_arrival_ns, more.first_arrival_ns];
    bin.first_arrival_ns = first.into_iter().flatten().min();
    bin.last_arrival_ns = bin.last_arrival_ns.max(more.last_arrival_ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_one_run_count_together() {
        let play = |logs: [usize; 3], packets: &[(usize, u16, u64)]| -> Vec<BinLog> {
            let mut all: Vec<BinLog> = logs.iter().map(|_| BinLog::new(100)).collect();
            for &(log, flow, sent) in packets {
                let log = &mut all[logs[log]];
                let one = log.enter(flow, Direction::Forward, 100, sent);
                log.arrive(one, sent + 70);
                let lost = log.enter(flow, Direction::Backward, 50, sent);
                log.drop(lost);
                log.enter(flow, Direction::Forward, 10, sent);
            }
            all
        };
        let packets = [(0, 1, 10), (1, 3, 20), (0, 3, 40), (1, 1, 930), (0, 2, 0)];
        let one = play([0; 3], &packets).remove(0);
        let mut several = play([0, 1, 2], &packets).into_iter();
        let mut joined = several.next().unwrap();
        several.for_each(|other| joined.merge(other));
        assert_eq!(joined.entered(), one.entered());
        assert!(joined.bins().eq(one.bins()));
        assert!(joined.delays().eq(one.delays()));
    }

    #[test]
    fn packets_are_counted_where_they_happen() {
        let mut log = BinLog::new(100);
        let a = log.enter(1, Direction::Forward, 1500, 10);
        let b = log.enter(1, Direction::Forward, 1500, 90);
        let c = log.enter(2, Direction::Backward, 52, 110);
        let d = log.enter(1, Direction::Forward, 500, 120);
        assert_eq!((a.key, b.key, c.key, d.key), (11, 91, 111, 121));
        log.arrive(a, 130);
        log.arrive(c, 150);
        log.drop(b);
        assert_eq!(log.entered(), 4);
        let bins: Vec<_> = log.bins().collect();
        assert_eq!(bins.len(), 3);
        assert_eq!(
            (bins[0].flow, bins[0].bin_ns, bins[0].sent_packets),
            (1, 0, 2)
        );
        assert_eq!((bins[0].dropped_packets, bins[0].dropped_bytes), (1, 1500));
        assert_eq!(bins[0].first_arrival_ns, None);
        assert_eq!(
            (bins[1].bin_ns, bins[1].sent_bytes, bins[1].arrived_bytes),
            (100, 500, 1500)
        );
        assert_eq!(
            (bins[1].delay_sum_ns, bins[1].first_arrival_ns),
            (120, Some(130))
        );
        assert_eq!((bins[2].flow, bins[2].direction), (2, Direction::Backward));
        let delays: Vec<_> = log.delays().collect();
        assert_eq!(delays.len(), 2);
        assert_eq!(
            (delays[0].low_ns, delays[0].high_ns, delays[0].packets),
            (120, 120, 1)
        );
    }
}
