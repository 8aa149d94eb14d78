//! Packet rings: TPACKET_V2 receive rings mapped into this process, and batched raw sending
//! (packet(7), Documentation/networking/packet_mmap in the kernel source).

use super::check;
use super::mmsg::{Message, SendBatch};
use super::socket::{bytes_of, get_option, set_int, set_option};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

// linux/if_packet.h
const PACKET_RX_RING: libc::c_int = 5;
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VERSION: libc::c_int = 10;
const PACKET_QDISC_BYPASS: libc::c_int = 20;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const TPACKET_V2: libc::c_int = 1;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;
const SOL_PACKET: libc::c_int = 263;

/// Room in each slot for the kernel's headers and the alignment of the frame.
const SLOT_HEADERS: usize = 128;
/// The kernel allocates the ring in blocks of this size.
const BLOCK: usize = 1 << 16;

#[repr(C)]
struct RingRequest {
    block_size: u32,
    blocks: u32,
    slot_size: u32,
    slots: u32,
}

/// struct tpacket2_hdr.
#[repr(C)]
struct SlotHeader {
    status: AtomicU32,
    length: u32,
    captured: u32,
    mac_offset: u16,
    net_offset: u16,
    seconds: u32,
    nanoseconds: u32,
}

/// A frame in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The Ethernet frame.
    pub bytes: &'a [u8],
    /// Its full length; more than `bytes` if it was truncated.
    pub length: u32,
    /// When the kernel saw it (`CLOCK_REALTIME`).
    pub stamp_ns: u64,
}

/// A ring that receives all frames that arrive at one interface.
#[derive(Debug)]
pub struct RxRing {
    fd: OwnedFd,
    map: *mut u8,
    slot: usize,
    slots: usize,
    next: usize,
}

// SAFETY: the mapping belongs to this object alone and moves with it.
unsafe impl Send for RxRing {}

impl RxRing {
    /// Bytes that a frame of up to `largest` bytes takes in a ring.
    pub fn slot_of(largest: usize) -> usize {
        (largest + SLOT_HEADERS).next_power_of_two().min(BLOCK)
    }

    /// Opens a ring of at least `slots` frames of up to `largest` bytes on interface `index` of the
    /// calling thread's namespace.
    pub fn open(index: u32, slots: usize, largest: usize) -> io::Result<Self> {
        let fd = packet_socket(SocketFlags::empty())?;
        set_int(fd.as_fd(), SOL_PACKET, PACKET_VERSION, TPACKET_V2)?;
        // Frames sent by this process on the same interface must not be received.
        set_int(fd.as_fd(), SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        // Makes the kernel stamp packets when they reach the interface, not when they reach the
        // socket.
        set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        let slot = Self::slot_of(largest);
        let blocks = (slots * slot).div_ceil(BLOCK).max(1);
        let slots = blocks * BLOCK / slot;
        let request = RingRequest {
            block_size: BLOCK as u32,
            blocks: blocks as u32,
            slot_size: slot as u32,
            slots: slots as u32,
        };
        set_option(fd.as_fd(), SOL_PACKET, PACKET_RX_RING, bytes_of(&request))?;
        // SAFETY: a new shared mapping of the ring that was just set up, of exactly its size.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                blocks * BLOCK,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ring = RxRing {
            fd,
            map: map.cast(),
            slot,
            slots,
            next: 0,
        };
        bind(ring.fd.as_fd(), index, libc::ETH_P_ALL)?;
        Ok(ring)
    }

    #[inline]
    #[allow(clippy::cast_ptr_alignment)] // slots begin at multiples of their size
    fn header(&self) -> &SlotHeader {
        // SAFETY: `next` is below `slots`, so the header lies inside the mapping, aligned to the
        // slot size; the kernel writes the other fields only before it sets the status.
        unsafe { &*self.map.add(self.next * self.slot).cast::<SlotHeader>() }
    }

    /// The oldest frame that was not released yet.
    #[inline]
    pub fn peek(&self) -> Option<Received<'_>> {
        let header = self.header();
        if header.status.load(Ordering::Acquire) & TP_STATUS_USER == 0 {
            return None;
        }
        let offset = usize::from(header.mac_offset).min(self.slot);
        let length = (header.captured as usize).min(self.slot - offset);
        // SAFETY: the range was just confined to the slot, which the kernel leaves alone until
        // `release`; the borrow of self prevents calls of `release`.
        let bytes = unsafe {
            std::slice::from_raw_parts(self.map.add(self.next * self.slot + offset), length)
        };
        let stamp_ns = u64::from(header.seconds) * 1_000_000_000 + u64::from(header.nanoseconds);
        Some(Received {
            bytes,
            length: header.length,
            stamp_ns,
        })
    }

    /// Returns the slot of the frame of `peek` to the kernel.
    #[inline]
    pub fn release(&mut self) {
        self.header()
            .status
            .store(TP_STATUS_KERNEL, Ordering::Release);
        self.next = if self.next + 1 == self.slots {
            0
        } else {
            self.next + 1
        };
    }

    /// Frames received and frames dropped because the ring was full, since the last call.
    pub fn statistics(&self) -> io::Result<(u32, u32)> {
        let mut counts = [0; 8];
        get_option(self.fd.as_fd(), SOL_PACKET, PACKET_STATISTICS, &mut counts)?;
        let [received, dropped] = *counts.as_chunks::<4>().0 else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let (received, dropped) = (u32::from_ne_bytes(received), u32::from_ne_bytes(dropped));
        // The kernel's first number includes the drops.
        Ok((received.saturating_sub(dropped), dropped))
    }
}

impl AsFd for RxRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for RxRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was created with this size and no reference to it remains.
        unsafe { libc::munmap(self.map.cast(), self.slots * self.slot) };
    }
}

/// Sends Ethernet frames on one interface, in batches.
#[derive(Debug)]
pub struct TxPort {
    fd: OwnedFd,
    batch: SendBatch,
}

impl TxPort {
    /// Opens a sending port on interface `index` of the calling thread's namespace.
    pub fn open(index: u32) -> io::Result<Self> {
        let fd = packet_socket(SocketFlags::NONBLOCK)?;
        set_int(fd.as_fd(), SOL_PACKET, PACKET_QDISC_BYPASS, 1)?;
        set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, 1 << 22)?;
        // Protocol 0: no frame is received here.
        bind(fd.as_fd(), index, 0)?;
        Ok(TxPort {
            fd,
            batch: SendBatch::default(),
        })
    }

    /// Passes frames to the interface and returns how many it accepted (at most
    /// [`SendBatch::CAPACITY`] per call).
    #[inline]
    pub fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        self.batch.send(self.fd.as_fd(), frames.map(Message::from))
    }
}

/// Opens a packet socket, to check whether that is allowed here.
pub fn probe() -> io::Result<()> {
    packet_socket(SocketFlags::empty()).map(drop)
}

fn packet_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    let (family, flags) = (AddressFamily::PACKET, flags | SocketFlags::CLOEXEC);
    Ok(socket_with(family, SocketType::RAW, flags, None)?)
}

fn bind(fd: BorrowedFd, index: u32, protocol: libc::c_int) -> io::Result<()> {
    // SAFETY: a zeroed sockaddr_ll is valid; its size is given with it.
    unsafe {
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (protocol as u16).to_be();
        address.sll_ifindex = index as i32;
        let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        check(libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size,
        ))?;
    }
    Ok(())
}
