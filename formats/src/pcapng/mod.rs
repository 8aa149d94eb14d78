//! Captures in the format of Wireshark: pcapng (draft-ietf-opsawg-pcapng).
//!
//! ```text
//! section header | interface | names of addresses | packet | packet | ...
//! ```
//!
//! Every block is `type:32 length:32 content length:32`, padded to 32 bits; options are `code:16 length:16 value`, padded
//! likewise. Files are little-endian with time stamps in nanoseconds; readers take either order and any resolution.

mod frames;
mod headers;
mod ip;
mod link;
mod read;
#[cfg(test)]
mod tests;
mod unread;
mod write;

pub use frames::{Capture, Packet};
pub(crate) use headers::{client_port, server_port};
pub use ip::Sack;
pub use link::Way;
pub use read::read;
pub use unread::Unread;
pub use write::{End, Written, write};

const SECTION: u32 = 0x0A0D_0D0A;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
const INTERFACE: u32 = 1;
/// Packets of the first drafts.
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const NAMES: u32 = 4;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
/// Option of a section: the program that wrote it.
const APPLICATION: u16 = 4;
/// Option of an interface.
const NAME: u16 = 2;
const DESCRIPTION: u16 = 3;
const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;
/// Option of the statistics of an interface: packets that it or the system dropped.
const DROPPED_BY_INTERFACE: u16 = 5;
const DROPPED_BY_SYSTEM: u16 = 7;
/// Option of a packet: its direction, and the number dropped before it.
const FLAGS: u16 = 2;
const DROPPED_BEFORE: u16 = 4;
/// Option of a packet: its number at all interfaces.
const PACKET_ID: u16 = 5;

/// Link types (of `pcap`): Ethernet, raw IPv4 or IPv6, and others that tools write.
const ETHERNET: u16 = 1;
const RAW: u16 = 101;
