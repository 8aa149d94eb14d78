//! Frames that were not read as TCP or UDP packets, by kind.

/// Reasons why a frame or a part of a capture was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unread {
    /// A link type that is not read.
    Link(u16),
    /// A protocol other than IP, by its EtherType; 0 without one.
    NotIp(u16),
    /// Another protocol of IP.
    Protocol(u8),
    /// Later fragments whose first fragment, which has the ports, was not captured.
    Fragments,
    /// Frames that were truncated before the ports or sequence numbers.
    Short,
    /// Headers that contradict themselves.
    Malformed,
    /// Frames of 802.11 whose content is encrypted.
    Encrypted,
    /// Frames of 802.11 that contain several others (A-MSDU).
    Aggregated,
    /// Frames of 802.11 without data.
    Management,
    /// Further copies of a frame that was captured more than once.
    Copies,
    /// Packets that the capturing program counts as dropped by itself.
    Dropped,
    /// The last frame of a file that ends in the middle of it.
    CutOff,
}

impl Unread {
    /// The kind in plural, as in "3 ARP frames".
    pub fn text(self) -> String {
        match self {
            Unread::Link(link) => match link_name(link) {
                Some(name) => format!("frames of link type {link} ({name})"),
                None => format!("frames of link type {link}"),
            },
            Unread::NotIp(0) => "frames that are not IP".into(),
            Unread::NotIp(kind) => match ether_name(kind) {
                Some(name) => format!("{name} frames"),
                None => format!("frames of EtherType 0x{kind:04x}"),
            },
            Unread::Protocol(number) => match protocol_name(number) {
                Some(name) => format!("{name} packets"),
                None => format!("packets of IP protocol {number}"),
            },
            Unread::Fragments => {
                "IP fragments whose first fragment, which has the ports, was not captured".into()
            }
            Unread::Short => "frames cut off before their TCP or UDP header was complete".into(),
            Unread::Malformed => "frames with malformed headers".into(),
            Unread::Encrypted => "encrypted 802.11 frames".into(),
            Unread::Aggregated => "aggregated 802.11 frames (A-MSDU)".into(),
            Unread::Management => "802.11 frames without data".into(),
            Unread::Copies => "further copies of frames that were captured twice".into(),
            Unread::Dropped => "packets that the capturing program dropped".into(),
            Unread::CutOff => {
                "frames cut off at the end of the file, after which more may be missing".into()
            }
        }
    }

    /// True if TCP or UDP packets that belong to the measurement may be among them.
    pub const fn matters(self) -> bool {
        match self {
            Unread::Link(_)
            | Unread::Fragments
            | Unread::Short
            | Unread::Malformed
            | Unread::Encrypted
            | Unread::Aggregated
            | Unread::Dropped
            | Unread::CutOff => true,
            Unread::NotIp(kind) => matches!(kind, MACSEC | MPLS | MPLS_MULTICAST),
            Unread::Protocol(_) | Unread::Management | Unread::Copies => false,
        }
    }
}

const MACSEC: u16 = 0x88e5;
pub(super) const MPLS: u16 = 0x8847;
pub(super) const MPLS_MULTICAST: u16 = 0x8848;

fn link_name(link: u16) -> Option<&'static str> {
    Some(match link {
        105 => "802.11",
        119 => "802.11 with Prism header",
        127 => "802.11 with radiotap header",
        163 => "802.11 with AVS header",
        147..=162 => "private use",
        187 | 201 | 251 => "Bluetooth",
        189 | 220 => "USB",
        195 | 230 => "802.15.4",
        253 => "netlink",
        _ => return None,
    })
}

fn ether_name(kind: u16) -> Option<&'static str> {
    Some(match kind {
        0x0806 => "ARP",
        0x8035 => "RARP",
        0x8808 => "Ethernet flow control",
        0x8809 => "LACP",
        MPLS | MPLS_MULTICAST => "MPLS",
        0x8863 => "PPPoE discovery",
        0x8864 => "PPPoE session",
        0x888e => "EAPOL",
        0x88cc => "LLDP",
        MACSEC => "MACsec",
        0x88f7 => "PTP",
        _ => return None,
    })
}

fn protocol_name(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "ICMP",
        2 => "IGMP",
        4 => "IP-in-IP",
        33 => "DCCP",
        41 => "IPv6-in-IP",
        47 => "GRE",
        50 => "ESP",
        58 => "ICMPv6",
        89 => "OSPF",
        103 => "PIM",
        112 => "VRRP",
        132 => "SCTP",
        136 => "UDP-Lite",
        _ => return None,
    })
}
