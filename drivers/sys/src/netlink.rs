//! A minimal rtnetlink client: enough to create veth pairs, set their addresses and neighbours, and read their
//! counters. Message layouts: rtnetlink(7), netlink(7).

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

// linux/if_link.h, linux/neighbour.h, linux/veth.h
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;
// linux/rtnetlink.h
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;
const RTA_GATEWAY: u16 = 5;
const RTPROT_BOOT: u8 = 3;
const RTNH_F_ONLINK: u32 = 4;
const NLA_F_NESTED: u16 = 1 << 15;

const AF_INET: u8 = libc::AF_INET as u8;
const REPLACE: libc::c_int = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// One end of a veth pair to be created.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// Interface name.
    pub name: &'a str,
    /// Ethernet address.
    pub mac: Mac,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Namespace in which it is created; `None` is that of the socket.
    pub netns: Option<BorrowedFd<'a>>,
}

/// One route to be added.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// First address of the destination.
    pub to: Ipv4Addr,
    /// Length of its prefix.
    pub prefix: u8,
    /// Index of the interface.
    pub index: u32,
    /// Neighbour on that interface; `None`: the destination itself is there.
    pub via: Option<Ipv4Addr>,
    /// True if every address of the destination belongs to this machine.
    pub local: bool,
    /// True if it is in the table of local addresses, which precedes all others.
    pub first: bool,
}

impl Route {
    /// The route to a prefix through the neighbour `via` on the interface `index`.
    pub const fn through(via: Ipv4Addr, index: u32, to: Ipv4Addr, prefix: u8) -> Self {
        Route {
            to,
            prefix,
            index,
            via: Some(via),
            local: false,
            first: false,
        }
    }
}

/// Counters of an interface since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Received packets that were dropped.
    pub rx_dropped: u64,
    /// Packets dropped on sending.
    pub tx_dropped: u64,
}

/// A netlink socket in the namespace in which it was opened.
#[derive(Debug)]
pub struct Netlink {
    fd: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket in the namespace of the calling thread.
    pub fn open() -> io::Result<Self> {
        // The protocol with the number 0 is NETLINK_ROUTE.
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        let fd = socket_with(family, SocketType::RAW, flags, None)?;
        Ok(Netlink { fd, sequence: 0 })
    }

    /// Creates a veth pair.
    pub fn add_veth(&mut self, near: VethEnd, far: VethEnd, queue: u32) -> io::Result<()> {
        let describe = |message: &mut Message, end: VethEnd| {
            message.bytes(IFLA_IFNAME, &null_terminated(end.name));
            message.bytes(IFLA_ADDRESS, &end.mac);
            message.bytes(IFLA_MTU, &end.mtu.to_ne_bytes());
            message.bytes(IFLA_TXQLEN, &queue.to_ne_bytes());
            if let Some(netns) = end.netns {
                message.bytes(IFLA_NET_NS_FD, &netns.as_raw_fd().to_ne_bytes());
            }
        };
        let header = interface_header(0, 0, 0);
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.change(libc::RTM_NEWLINK, flags, &header, |message| {
            describe(message, near);
            message.nest(IFLA_LINKINFO, |info| {
                info.bytes(IFLA_INFO_KIND, b"veth");
                info.nest(IFLA_INFO_DATA, |data| {
                    data.nest(VETH_INFO_PEER, |peer| {
                        peer.raw(&header);
                        describe(peer, far);
                    });
                });
            });
        })
    }

    /// Brings an interface up.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        let up = libc::IFF_UP as u32;
        let header = interface_header(index, up, up);
        self.change(libc::RTM_NEWLINK, 0, &header, |_| {})
    }

    /// Adds an IPv4 address to an interface.
    pub fn add_address(&mut self, index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        // struct ifaddrmsg: family, prefix length, flags, scope, index.
        let header = [[AF_INET, prefix, 0, 0], index.to_ne_bytes()].concat();
        self.change(libc::RTM_NEWADDR, REPLACE, &header, |message| {
            message.bytes(IFA_LOCAL, &address.octets());
            message.bytes(IFA_ADDRESS, &address.octets());
        })
    }

    /// Adds a route. Its neighbour need not be in a network that the kernel knows.
    pub fn add_route(&mut self, route: Route) -> io::Result<()> {
        let table = if route.first {
            libc::RT_TABLE_LOCAL
        } else {
            libc::RT_TABLE_MAIN
        };
        let (kind, scope) = match (route.local, route.via) {
            (true, _) => (libc::RTN_LOCAL, libc::RT_SCOPE_HOST),
            (false, Some(_)) => (libc::RTN_UNICAST, libc::RT_SCOPE_UNIVERSE),
            (false, None) => (libc::RTN_UNICAST, libc::RT_SCOPE_LINK),
        };
        // struct rtmsg: family, lengths of destination and source, TOS, table, protocol, scope,
        // type, flags.
        let flags = route.via.map_or(0, |_| RTNH_F_ONLINK);
        let header = [
            [AF_INET, route.prefix, 0, 0],
            [table, RTPROT_BOOT, scope, kind],
            flags.to_ne_bytes(),
        ];
        self.change(libc::RTM_NEWROUTE, REPLACE, &header.concat(), |message| {
            if route.prefix > 0 {
                message.bytes(RTA_DST, &route.to.octets());
            }
            if let Some(via) = route.via {
                message.bytes(RTA_GATEWAY, &via.octets());
            }
            message.bytes(RTA_OIF, &route.index.to_ne_bytes());
        })
    }

    /// Sets `source`, an address of this machine, as the source of packets to an address in the network of an
    /// interface.
    pub fn add_route_from(&mut self, index: u32, to: Ipv4Addr, source: Ipv4Addr) -> io::Result<()> {
        let header = [
            [AF_INET, 32, 0, 0],
            [
                libc::RT_TABLE_MAIN,
                RTPROT_BOOT,
                libc::RT_SCOPE_LINK,
                libc::RTN_UNICAST,
            ],
            0_u32.to_ne_bytes(),
        ];
        self.change(libc::RTM_NEWROUTE, REPLACE, &header.concat(), |message| {
            message.bytes(RTA_DST, &to.octets());
            message.bytes(RTA_PREFSRC, &source.octets());
            message.bytes(RTA_OIF, &index.to_ne_bytes());
        })
    }

    /// Adds a permanent Ethernet address of a neighbour, so that ARP is not used.
    pub fn add_neighbour(&mut self, index: u32, address: Ipv4Addr, mac: Mac) -> io::Result<()> {
        // struct ndmsg: family, padding (3), index, state (2), flags, type.
        let [low, high] = NUD_PERMANENT.to_ne_bytes();
        let header = [[AF_INET, 0, 0, 0], index.to_ne_bytes(), [low, high, 0, 0]].concat();
        self.change(libc::RTM_NEWNEIGH, REPLACE, &header, |message| {
            message.bytes(NDA_DST, &address.octets());
            message.bytes(NDA_LLADDR, &mac);
        })
    }

    /// The index of the interface called `name`.
    pub fn index_of(&mut self, name: &str) -> io::Result<u32> {
        let mut message = Message::new(libc::RTM_GETLINK, 0, &interface_header(0, 0, 0));
        message.bytes(IFLA_IFNAME, &null_terminated(name));
        let reply = self.request(message)?;
        let index = reply.get(4..8).ok_or(io::ErrorKind::InvalidData)?;
        Ok(u32::from_ne_bytes(index.try_into().unwrap_or_default()))
    }

    /// The counters of an interface.
    pub fn counters(&mut self, index: u32) -> io::Result<LinkCounters> {
        let reply = self.request(Message::new(
            libc::RTM_GETLINK,
            0,
            &interface_header(index, 0, 0),
        ))?;
        let stats = attributes(reply.get(16..).unwrap_or_default())
            .find(|(kind, _)| *kind == IFLA_STATS64)
            .map(|(_, bytes)| bytes)
            .ok_or(io::ErrorKind::InvalidData)?;
        // struct rtnl_link_stats64: rx_packets, tx_packets, rx_bytes, tx_bytes, rx_errors,
        // tx_errors, rx_dropped, tx_dropped ...
        let at = |field: usize| {
            let bytes = stats.get(field * 8..field * 8 + 8).unwrap_or(&[0; 8]);
            u64::from_ne_bytes(bytes.try_into().unwrap_or_default())
        };
        Ok(LinkCounters {
            rx_packets: at(0),
            tx_packets: at(1),
            rx_dropped: at(6),
            tx_dropped: at(7),
        })
    }

    /// Sends a request for a change.
    fn change(
        &mut self,
        kind: u16,
        flags: libc::c_int,
        header: &[u8],
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        let mut message = Message::new(kind, flags, header);
        fill(&mut message);
        self.request(message).map(drop)
    }

    /// Sends a request and returns the body of the answer (empty for a plain acknowledgement).
    fn request(&mut self, message: Message) -> io::Result<Vec<u8>> {
        self.sequence += 1;
        let answer_wanted = message.kind == libc::RTM_GETLINK;
        let bytes = message.finish(self.sequence);
        send(&self.fd, &bytes, SendFlags::empty())?;
        let mut body = Vec::new();
        let mut buffer = vec![0u8; 32 * 1024];
        loop {
            let (length, _) = recv(&self.fd, &mut buffer[..], RecvFlags::empty())?;
            let mut rest = &buffer[..length];
            while let Some((kind, sequence, content, tail)) = next_message(rest) {
                rest = tail;
                if sequence != self.sequence {
                    continue;
                }
                if i32::from(kind) != libc::NLMSG_ERROR {
                    body = content.to_vec();
                    continue;
                }
                let code = content.get(..4).and_then(|code| code.try_into().ok());
                return match i32::from_ne_bytes(code.unwrap_or_default()) {
                    0 if answer_wanted && body.is_empty() => Err(io::ErrorKind::NotFound.into()),
                    0 => Ok(body),
                    code => Err(io::Error::from_raw_os_error(-code)),
                };
            }
        }
    }
}

/// One netlink message under construction.
struct Message {
    kind: u16,
    flags: u16,
    body: Vec<u8>,
}

impl Message {
    fn new(kind: u16, flags: libc::c_int, header: &[u8]) -> Self {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        Message {
            kind,
            flags,
            body: header.to_vec(),
        }
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    /// The header of an attribute: length, kind.
    fn attribute(&mut self, length: usize, kind: u16) {
        self.body.extend((length as u16 + 4).to_ne_bytes());
        self.body.extend(kind.to_ne_bytes());
    }

    fn bytes(&mut self, kind: u16, value: &[u8]) {
        self.attribute(value.len(), kind);
        self.raw(value);
    }

    fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Message)) {
        let start = self.body.len();
        self.attribute(0, kind | NLA_F_NESTED);
        fill(self);
        let length = (self.body.len() - start) as u16;
        self.body[start..start + 2].copy_from_slice(&length.to_ne_bytes());
    }

    /// The whole message: struct nlmsghdr (length, kind and flags, sequence number, port) and the body.
    fn finish(self, sequence: u32) -> Vec<u8> {
        let mut bytes = (self.body.len() as u32 + 16).to_ne_bytes().to_vec();
        bytes.extend([self.kind, self.flags].map(u16::to_ne_bytes).concat());
        bytes.extend([sequence, 0].map(u32::to_ne_bytes).concat());
        bytes.extend(self.body);
        bytes
    }
}

/// struct ifinfomsg: family (unspecified), padding, type (2), index, flags, change mask.
fn interface_header(index: u32, flags: u32, change: u32) -> Vec<u8> {
    [0, index, flags, change].map(u32::to_ne_bytes).concat()
}

fn null_terminated(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

/// Type, sequence number and content of the first message, and the remaining bytes.
fn next_message(bytes: &[u8]) -> Option<(u16, u32, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let sequence = u32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?);
    let content = bytes.get(16..length)?;
    let tail = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, sequence, content, tail))
}

/// The attributes of a message.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?) & !NLA_F_NESTED;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}
