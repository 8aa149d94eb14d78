//! Frames of a capture as TCP and UDP packets.
//!
//! Later fragments have no ports: they take those of the first fragment of their packet, which may follow them.

use super::RAW;
use super::ip::{Ip, Sack};
use super::link::{Link, Way};
use super::unread::Unread;
use std::collections::BTreeMap;

/// Maximum accepted size of a frame: adapters segment at most half of it.
const MAX_FRAME: u32 = 1 << 20;
/// Maximum number of fragmented packets whose ports are remembered.
const MAX_FRAGMENTED: usize = 1 << 16;

/// One TCP or UDP packet, or one fragment of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Since 1970.
    pub time_ns: i64,
    /// Number of the packet at all interfaces, if the file contains one; else 0.
    pub uid: u64,
    /// Hash of the first bytes of a UDP payload, in two parts; 0 if they were not captured.
    pub hash: u64,
    /// Sequence number of TCP.
    pub sequence: u32,
    /// Acknowledgement number of TCP.
    pub acknowledgement: u32,
    /// Time stamp of TCP's options; 0 if absent.
    pub stamp: u32,
    /// The time stamp that it echoes.
    pub echo: u32,
    /// Its selective acknowledgements, as an index into [`Capture::sacks`] plus one; 0 if it has none.
    pub sack: u32,
    /// Bytes of the IP packet.
    pub size: u32,
    /// Bytes of payload of TCP or UDP.
    pub payload: u32,
    /// Index into [`Capture::addresses`].
    pub source: u32,
    /// Index into [`Capture::addresses`].
    pub destination: u32,
    /// Index into [`Capture::interfaces`].
    pub interface: u16,
    /// Port of the host that sent it.
    pub source_port: u16,
    /// Port of the host that receives it.
    pub destination_port: u16,
    /// Identification of IPv4; 0 for IPv6.
    pub ip_id: u16,
    /// Maximum segment size that TCP's options announce; else 0.
    pub mss: u16,
    /// Protocol number of IP.
    pub protocol: u8,
    /// Flags of TCP.
    pub flags: u8,
    /// Direction in which it passed the interface.
    pub way: Way,
    /// True for all fragments except the first.
    pub later_fragment: bool,
}

/// The TCP and UDP packets of a capture, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// The packets.
    pub packets: Vec<Packet>,
    /// Names of the interfaces.
    pub interfaces: Vec<String>,
    /// Addresses, as text.
    pub addresses: Vec<String>,
    /// Selective acknowledgements of its packets.
    pub sacks: Vec<Sack>,
    /// Number of unread frames, by kind.
    pub unread: BTreeMap<Unread, u64>,
}

/// An interface at which frames were captured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface {
    pub(super) link: u16,
    /// Units per second, and seconds that are added.
    pub(super) per_second: u64,
    pub(super) offset_s: i64,
    pub(super) number: u16,
}

impl Default for Interface {
    fn default() -> Self {
        Interface {
            link: RAW,
            per_second: 1_000_000,
            offset_s: 0,
            number: 0,
        }
    }
}

/// Addresses and identification of a fragmented packet.
type FragmentKey = (u32, u32, u8, u32);

/// Data of the first fragment of a packet that later ones need.
#[derive(Clone, Copy, Debug)]
struct Head {
    ports: [u16; 2],
    /// Sequence number of the first byte behind the header, and bytes of the header.
    sequence: u32,
    header: u32,
    stamp: u32,
    flags: u8,
}

/// The frames that were read so far.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub(super) capture: Capture,
    /// Number of frames of all kinds.
    pub(super) count: u64,
    addresses: BTreeMap<Vec<u8>, u32>,
    /// Interfaces of captures that mix several, by the capturing interface and their index.
    mixed: BTreeMap<(u16, u32), u16>,
    heads: BTreeMap<FragmentKey, Head>,
    /// Later fragments that preceded the first one, with their offsets.
    waiting: BTreeMap<FragmentKey, Vec<(usize, u32)>>,
}

impl Frames {
    /// Excludes fragments whose first fragment is missing.
    pub(super) fn finish(mut self) -> Capture {
        let lost: usize = self.waiting.values().map(Vec::len).sum();
        if lost > 0 {
            self.unread(Unread::Fragments, lost as u64);
            let waiting: Vec<usize> = self.waiting.values().flatten().map(|one| one.0).collect();
            for place in waiting {
                self.capture.packets[place].protocol = 0;
            }
            self.capture.packets.retain(|packet| packet.protocol != 0);
        }
        self.capture
    }

    pub(super) fn unread(&mut self, kind: Unread, count: u64) {
        *self.capture.unread.entry(kind).or_default() += count;
    }

    /// One captured frame of `size` bytes, of which `data` were kept.
    pub(super) fn add(
        &mut self,
        time: i64,
        at: Interface,
        data: &[u8],
        size: u32,
        uid: u64,
        way: Way,
    ) {
        self.count += 1;
        if size > MAX_FRAME {
            return self.unread(Unread::Malformed, 1);
        }
        let parsed = Link::parse(at.link, data).and_then(|link| {
            let wire = size.saturating_sub(link.begin as u32);
            Ip::parse(data.get(link.begin..).unwrap_or(&[]), wire).map(|ip| (link, wire, ip))
        });
        let (link, wire, ip) = match parsed {
            Ok(parsed) => parsed,
            Err(kind) => return self.unread(kind, 1),
        };
        // Frames of our exports may be longer than their IP packet, and determine the size. Other media pad.
        let size = if at.link == RAW {
            ip.total.max(wire)
        } else {
            ip.total
        };
        let packet = Packet {
            time_ns: time,
            uid,
            hash: ip.hash,
            sequence: ip.sequence,
            acknowledgement: ip.acknowledgement,
            stamp: ip.options.stamp,
            echo: ip.options.echo,
            sack: self.sack(ip.options.sack),
            size,
            payload: ip.payload,
            source: self.address(ip.source),
            destination: self.address(ip.destination),
            interface: self.interface_number(at.number, link.index),
            source_port: ip.ports[0],
            destination_port: ip.ports[1],
            ip_id: ip.id,
            mss: ip.options.mss,
            protocol: ip.protocol,
            flags: ip.flags,
            way: if link.way == Way::Unknown {
                way
            } else {
                link.way
            },
            later_fragment: false,
        };
        self.capture.packets.push(packet);
        if let Some(fragment) = ip.fragment {
            let key = (
                packet.source,
                packet.destination,
                packet.protocol,
                fragment.id,
            );
            if fragment.offset == 0 {
                self.first_fragment(key, &ip);
            } else {
                self.later_fragment(key, fragment.offset);
            }
        }
    }

    fn first_fragment(&mut self, key: FragmentKey, ip: &Ip<'_>) {
        let head = Head {
            ports: ip.ports,
            sequence: ip.sequence,
            header: ip.header,
            stamp: ip.options.stamp,
            flags: ip.flags,
        };
        for (place, offset) in self.waiting.remove(&key).unwrap_or_default() {
            self.complete(place, offset, head);
        }
        if self.heads.len() >= MAX_FRAGMENTED {
            self.heads.clear();
        }
        self.heads.insert(key, head);
    }

    /// The last packet is a fragment but not the first.
    fn later_fragment(&mut self, key: FragmentKey, offset: u32) {
        let place = self.capture.packets.len() - 1;
        match self.heads.get(&key).copied() {
            Some(head) => self.complete(place, offset, head),
            None => self.waiting.entry(key).or_default().push((place, offset)),
        }
    }

    fn complete(&mut self, place: usize, offset: u32, head: Head) {
        let packet = &mut self.capture.packets[place];
        [packet.source_port, packet.destination_port] = head.ports;
        packet.sequence = head.sequence.wrapping_add(offset).wrapping_sub(head.header);
        packet.stamp = head.stamp;
        packet.flags = head.flags;
        packet.later_fragment = true;
    }

    fn interface_number(&mut self, number: u16, index: Option<u32>) -> u16 {
        let Some(index) = index else { return number };
        if let Some(&known) = self.mixed.get(&(number, index)) {
            return known;
        }
        let names = &mut self.capture.interfaces;
        let Ok(own) = u16::try_from(names.len()) else {
            return number;
        };
        names.push(format!("interface with index {index}"));
        self.mixed.insert((number, index), own);
        own
    }

    fn sack(&mut self, sack: Option<Sack>) -> u32 {
        let Some(sack) = sack else { return 0 };
        self.capture.sacks.push(sack);
        u32::try_from(self.capture.sacks.len()).unwrap_or(0)
    }

    fn address(&mut self, bytes: &[u8]) -> u32 {
        if let Some(&known) = self.addresses.get(bytes) {
            return known;
        }
        let text = match <[u8; 4]>::try_from(bytes) {
            Ok(four) => std::net::Ipv4Addr::from(four).to_string(),
            Err(_) => <[u8; 16]>::try_from(bytes)
                .map_or(String::new(), |it| std::net::Ipv6Addr::from(it).to_string()),
        };
        let number = self.capture.addresses.len() as u32;
        self.capture.addresses.push(text);
        self.addresses.insert(bytes.to_vec(), number);
        number
    }
}
