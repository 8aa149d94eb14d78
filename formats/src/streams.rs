//! The byte streams of all flows: positions that packets carried, acknowledgements, retransmissions.
//!
//! A record does not contain the content of packets. It contains the size of each packet, when it was sent, and whether
//! and when it arrived, and how much each sender had retransmitted at each sample of its states and in total. From
//! these a consistent stream is reconstructed:
//!
//! - Between two samples of its states a sender retransmits as much as it counted. The packets taken as retransmissions
//!   are the first possible ones: a lost packet of the same size is outstanding, and an acknowledgement has arrived for
//!   a packet that was sent at least three packets later. If the sender counted more (after a timeout, or because of
//!   spurious losses), the last packets before the sample repeat older ones, or the newest data.
//! - An acknowledgement contains the position up to which the receiver had all data when it was sent.
//!
//! The number of retransmissions of each flow is thus exactly the one that its sender counted; their positions between
//! two samples are a reconstruction.

use crate::packets::Packets;
use narrows_record::log::NOT_ARRIVED;
use narrows_record::{Cell, Direction, Fate, FlowSummary, Record, StateRow};
use std::collections::{BTreeMap, VecDeque};

/// IPv4 header.
pub(crate) const IP: u32 = 20;
/// IPv4 and UDP headers.
pub(crate) const IP_UDP: u32 = 28;
/// Headers of a data packet with a full segment: IPv4 and TCP with time stamps, and the same in our transport (which
/// adds 24 bytes to IPv4 and UDP).
pub(crate) const HEADERS: u32 = 52;
/// Maximum size of an IP packet that can be a TCP acknowledgement without data.
const LARGEST_ACK: u32 = 80;
/// Size of the kernel's SYN and of its answer: 20 bytes of options.
const SYN_SIZE: u32 = 60;
/// First position in a stream.
const FIRST: u64 = 1;
/// Packets that must arrive after a packet before it counts as lost (RFC 9002, section 6.1.1).
pub(crate) const THRESHOLD: u32 = 3;
/// Maximum number of lost packets considered to find one of the right size.
const MAX_TRIES: usize = 64;

/// The content of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Position of its first byte in the stream.
    pub(crate) position: u64,
    /// All data before this position of the other direction had arrived when it was sent.
    pub(crate) ack: u64,
    /// Sending time of the newest packet of the other direction that had arrived; 0 if none had.
    pub(crate) echo_ns: u64,
    /// Bytes of the stream.
    pub(crate) length: u32,
    /// Uid of the packet whose data it repeats; 0 if they are new.
    pub(crate) repeats: u32,
}

/// One flow.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) number: u16,
    pub(crate) scheme: String,
    /// Direction of its data.
    pub(crate) direction: Direction,
    /// `native`, `linux`, `bpf` ...
    pub(crate) kind: String,
    /// True if it retransmits lost data; false for datagrams and media.
    pub(crate) reliable: bool,
    /// True if both ends send data.
    pub(crate) two_way: bool,
    /// Packets that repeat data.
    pub(crate) repeated: u64,
    /// Indices of its packets by direction, without copies.
    pub(crate) places: [Vec<u32>; 2],
}

/// Every packet's segment, and the flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    /// One per packet.
    pub(crate) segments: Vec<Segment>,
    pub(crate) flows: BTreeMap<u16, Flow>,
}

impl Streams {
    /// Reconstructs the streams.
    pub(crate) fn reconstruct(record: &Record, packets: &Packets, states: &[StateRow]) -> Self {
        let mut streams = Streams {
            segments: vec![Segment::default(); packets.all.len()],
            flows: flows(&record.cell, &record.run.flows, states),
        };
        let mut lanes: Vec<Option<[Vec<u32>; 2]>> = vec![None; 1 << 16];
        for number in streams.flows.keys() {
            lanes[usize::from(*number)] = Some([Vec::new(), Vec::new()]);
        }
        for (place, packet) in (0_u32..).zip(&packets.all) {
            if let (Some(lane), None) = (&mut lanes[usize::from(packet.flow)], packet.copy_of) {
                lane[packet.direction as usize].push(place);
            }
        }
        for (number, flow) in &mut streams.flows {
            flow.places = lanes[usize::from(*number)].take().unwrap_or_default();
            if flow.reliable {
                let summary = record.run.flows.iter().find(|it| it.flow == *number);
                let budget = Budget::new(summary, states.iter().filter(|it| it.flow == *number));
                Builder {
                    packets,
                    segments: &mut streams.segments,
                    flow,
                }
                .build(&budget);
            }
        }
        streams
    }
}

fn flows(cell: &Cell, summaries: &[FlowSummary], states: &[StateRow]) -> BTreeMap<u16, Flow> {
    let build_flow = |flow: &narrows_record::CellFlow| {
        let summary = summaries.iter().find(|it| it.flow == flow.flow);
        let kind = summary.map_or(String::new(), |it| it.fingerprint.kind.clone());
        let counted = summary.is_some_and(|it| {
            it.sender.retransmitted_packets.is_some() || it.sender.retransmitted_bytes.is_some()
        }) || states
            .iter()
            .any(|row| row.flow == flow.flow && row.retransmitted_bytes.is_some());
        let ours = ["native", "linux", "bpf"].contains(&kind.as_str());
        let scheme = match summary {
            Some(summary) if !summary.scheme.is_empty() => summary.scheme.clone(),
            _ => flow.scheme.clone(),
        };
        Flow {
            number: flow.flow,
            direction: flow.direction,
            reliable: ours && counted && scheme != "udp",
            two_way: ["requests", "web"].contains(&flow.traffic.kind.as_str()),
            scheme,
            kind,
            repeated: 0,
            places: [Vec::new(), Vec::new()],
        }
    };
    cell.flows
        .iter()
        .map(|flow| (flow.flow, build_flow(flow)))
        .collect()
}

/// Number of packets that a sender had retransmitted, by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Budget(Vec<(u64, u64)>);

impl Budget {
    fn new<'a>(summary: Option<&FlowSummary>, states: impl Iterator<Item = &'a StateRow>) -> Self {
        let samples: Vec<(u64, u64)> = states
            .filter_map(|row| Some((row.time_ns, row.retransmitted_bytes?)))
            .collect();
        let sampled = samples.last().map_or(0, |sample| sample.1);
        let sender = summary.map(|it| &it.sender);
        let bytes = sender.and_then(|it| it.retransmitted_bytes);
        let bytes = bytes.unwrap_or(0).max(sampled);
        let packets = sender.and_then(|it| it.retransmitted_packets);
        let all = packets.unwrap_or_else(|| bytes.div_ceil(u64::from(1500 - HEADERS)));
        let mut points = Vec::with_capacity(samples.len() + 1);
        let mut highest = 0;
        for (time, sum) in samples {
            let share = u128::from(sum) * u128::from(all) / u128::from(bytes.max(1));
            highest = highest.max(u64::try_from(share).unwrap_or(all)).min(all);
            points.push((time, highest));
        }
        points.push((u64::MAX, all));
        Budget(points)
    }
}

/// A segment that was lost and has to be retransmitted.
#[derive(Clone, Copy, Debug)]
struct Lost {
    position: u64,
    length: u32,
    /// Earliest time at which the sender can have detected the loss.
    noticed_ns: u64,
    uid: u32,
}

struct Builder<'a> {
    packets: &'a Packets,
    segments: &'a mut [Segment],
    flow: &'a mut Flow,
}

impl Builder<'_> {
    fn build(mut self, budget: &Budget) {
        self.lengths();
        let data = self.flow.direction;
        self.flow.repeated = self.place(data, budget);
        self.place(data.reverse(), &Budget(vec![(u64::MAX, 0)]));
        let places = self.flow.places.clone();
        for direction in [data, data.reverse()] {
            let answers = &places[direction.reverse() as usize];
            self.acknowledge(&places[direction as usize], answers);
        }
    }

    /// Payload of each packet. The kernel's first packet in each direction opens the connection and has none.
    fn lengths(&mut self) {
        let kernel = self.flow.kind != "native";
        for direction in [Direction::Forward, Direction::Backward] {
            let opened = direction as usize;
            for (index, &place) in self.flow.places[opened].iter().enumerate() {
                let size = self.packets.all[place as usize].size;
                let opens = kernel && index == 0 && size == SYN_SIZE;
                let data = direction == self.flow.direction;
                let ours = |size: u32| size.saturating_sub(68).is_multiple_of(8) && size < 400;
                let pure = if self.flow.two_way {
                    size <= LARGEST_ACK || !kernel && ours(size)
                } else {
                    !data
                };
                let segment = &mut self.segments[place as usize];
                segment.length = if opens || pure {
                    0
                } else {
                    size.saturating_sub(HEADERS)
                };
            }
        }
    }

    /// Assigns positions to the packets of one direction; returns the number of retransmissions.
    fn place(&mut self, direction: Direction, budget: &Budget) -> u64 {
        let places = &self.flow.places[direction as usize];
        let answers = &self.flow.places[direction.reverse() as usize];
        let notices = Notices::new(self.packets, places, answers);
        let numbered = (0_u32..).zip(places.iter().copied());
        let carrying: Vec<(u32, u32)> = numbered
            .filter(|&(_, place)| self.segments[place as usize].length > 0)
            .collect();
        let mut next = FIRST;
        let mut newest = None;
        let mut lost: VecDeque<Lost> = VecDeque::new();
        let (mut repeated, mut begin) = (0, 0);
        for &(until, all) in &budget.0 {
            let part = &carrying[begin..];
            let count = part
                .partition_point(|&(_, place)| self.packets.all[place as usize].sent_ns <= until);
            let mut group_end = 0;
            for (index, &(number, place)) in part[..count].iter().enumerate() {
                let packet = &self.packets.all[place as usize];
                if index >= group_end {
                    let later = part[index..count].partition_point(|it| {
                        self.packets.all[it.1 as usize].sent_ns <= packet.sent_ns
                    });
                    group_end = index + later;
                }
                let segment = &mut self.segments[place as usize];
                // Among packets sent at one instant, the first are retransmissions: analysers would take others for
                // reordering.
                let left = (count - group_end) as u64;
                let wanted = all.saturating_sub(repeated);
                let now = packet.sent_ns;
                let again = if wanted == 0 {
                    None
                } else {
                    let forced = wanted > left;
                    take(&mut lost, segment.length, |lost_segment| {
                        forced || lost_segment.noticed_ns <= now
                    })
                    .or_else(|| newest.filter(|_| forced))
                };
                let (position, uid) = match again {
                    Some(lost_segment) => {
                        repeated += 1;
                        segment.repeats = lost_segment.uid;
                        let fits = lost_segment.length.saturating_sub(segment.length);
                        (lost_segment.position + u64::from(fits), lost_segment.uid)
                    }
                    None => (next, place + 1),
                };
                segment.position = position;
                let mut lost_segment = Lost {
                    position,
                    length: segment.length,
                    noticed_ns: 0,
                    uid,
                };
                if again.is_none() {
                    next += u64::from(segment.length);
                    newest = Some(lost_segment);
                }
                if packet.fate != Fate::InFlight && !packet.is_sound() {
                    lost_segment.noticed_ns = notices.time_for_packet(number);
                    lost.push_back(lost_segment);
                }
            }
            begin += count;
        }
        // A packet without data has the position after all data sent before.
        let mut end = FIRST;
        for &place in places {
            let segment = &mut self.segments[place as usize];
            if segment.length == 0 {
                segment.position = end;
            } else {
                end = end.max(segment.position + u64::from(segment.length));
            }
        }
        repeated
    }

    /// Computes which data of `sent` are acknowledged by `answers`.
    fn acknowledge(&mut self, sent: &[u32], answers: &[u32]) {
        let all = &self.packets.all;
        // By position: its end, and when it first arrived.
        let mut parts: Vec<(u64, u64, u64)> = Vec::new();
        let mut arrivals: Vec<(u64, u64)> = Vec::new();
        for &place in sent {
            let (packet, segment) = (&all[place as usize], &self.segments[place as usize]);
            if packet.is_sound() {
                arrivals.push((packet.sound_ns, packet.sent_ns));
            }
            if segment.length > 0 {
                let end = segment.position + u64::from(segment.length);
                parts.push((segment.position, end, packet.sound_ns));
            }
        }
        parts.sort_unstable();
        arrivals.sort_unstable();
        let mut complete: Vec<(u64, u64)> = Vec::with_capacity(parts.len());
        let (mut end, mut since) = (FIRST, 0_u64);
        for group in parts.chunk_by(|a, b| a.0 == b.0) {
            let (position, _, at) = group[0];
            let at = group.iter().map(|part| part.2).min().unwrap_or(at);
            let until = group.iter().map(|part| part.1).max().unwrap_or(end);
            if position > end {
                break; // no data of it were sent
            }
            if until > end {
                (end, since) = (until, since.max(at));
                if since == NOT_ARRIVED {
                    break;
                }
                complete.push((since, end));
            }
        }
        let (mut place_of_ack, mut place_of_echo) = (0, 0);
        let (mut ack, mut echo) = (FIRST, 0);
        for &place in answers {
            let now = all[place as usize].sent_ns;
            while let Some(&(at, end)) = complete.get(place_of_ack).filter(|it| it.0 <= now) {
                ack = end;
                place_of_ack += 1;
                debug_assert!(at <= now);
            }
            while let Some(&(_, sent)) = arrivals.get(place_of_echo).filter(|it| it.0 <= now) {
                echo = sent;
                place_of_echo += 1;
            }
            let segment = &mut self.segments[place as usize];
            (segment.ack, segment.echo_ns) = (ack, echo);
        }
    }
}

/// Times at which a sender learns that packets sent later than others have arrived.
#[derive(Debug)]
pub(crate) struct Notices {
    /// Arrival of an acknowledgement, and the largest number that had arrived when it was sent, both increasing.
    largest: Vec<(u64, u32)>,
}

impl Notices {
    /// For the packets at `sent`, numbered from 0, and the acknowledgements at `answers`.
    pub(crate) fn new(packets: &Packets, sent: &[u32], answers: &[u32]) -> Self {
        let all = &packets.all;
        let numbered = (0_u32..)
            .zip(sent)
            .map(|(number, &place)| (number, all[place as usize]));
        let mut arrivals: Vec<(u64, u32)> = numbered
            .filter(|(_, packet)| packet.is_sound())
            .map(|(number, packet)| (packet.sound_ns, number))
            .collect();
        arrivals.sort_unstable();
        let mut highest = 0;
        for arrival in &mut arrivals {
            highest = highest.max(arrival.1);
            arrival.1 = highest;
        }
        let sound = answers.iter().map(|&place| &all[place as usize]);
        let mut heard: Vec<(u64, u64)> = sound
            .filter(|packet| packet.is_sound())
            .map(|packet| (packet.sound_ns, packet.sent_ns))
            .collect();
        heard.sort_unstable();
        let mut largest: Vec<(u64, u32)> = Vec::new();
        for (at, sent_ns) in heard {
            let before = arrivals.partition_point(|arrival| arrival.0 <= sent_ns);
            let Some(&(_, number)) = before.checked_sub(1).map(|last| &arrivals[last]) else {
                continue;
            };
            if largest.last().is_none_or(|last| last.1 < number) {
                largest.push((at, number));
            }
        }
        Notices { largest }
    }

    /// Earliest time at which the sender can have detected the loss of packet `number`; the maximum time if it cannot.
    pub(crate) fn time_for_packet(&self, number: u32) -> u64 {
        let first = self
            .largest
            .partition_point(|&(_, largest)| largest < number.saturating_add(THRESHOLD));
        self.largest.get(first).map_or(u64::MAX, |notice| notice.0)
    }
}

/// Takes the oldest lost segment of this length that is `due`.
fn take(lost: &mut VecDeque<Lost>, length: u32, due: impl Fn(&Lost) -> bool) -> Option<Lost> {
    let mut tried = lost.iter().take(MAX_TRIES);
    let place =
        tried.position(|lost_segment| lost_segment.length == length && due(lost_segment))?;
    lost.remove(place)
}
