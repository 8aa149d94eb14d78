//! What messages of many per system call are made of: payload, control data and the header of both.

/// Control data, aligned as the headers in it need.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub(super) struct Control(pub(super) [u8; 128]);

impl Control {
    pub(super) const EMPTY: Control = Control([0; 128]);

    /// Writes a header and its value behind `used` bytes; returns how many are used then. There is room for
    /// all that a message of ours needs.
    #[inline]
    #[allow(clippy::cast_ptr_alignment)] // `used` is a sum of multiples of the alignment
    pub(super) fn push(
        &mut self,
        used: usize,
        level: libc::c_int,
        kind: libc::c_int,
        value: &[u8],
    ) -> usize {
        let length = value.len() as libc::c_uint;
        // SAFETY: the macro computes a size from a size.
        let end = used + unsafe { libc::CMSG_SPACE(length) } as usize;
        let place = self.0[used..end].as_mut_ptr();
        // SAFETY: header and value lie in the range that was just taken, which is aligned as its beginning.
        unsafe {
            let header = place.cast::<libc::cmsghdr>();
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            (*header).cmsg_len = libc::CMSG_LEN(length) as _;
            libc::CMSG_DATA(header).copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        end
    }
}

/// No payload.
pub(super) const NO_VECTOR: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// A message of nothing.
pub(super) fn no_message() -> libc::mmsghdr {
    // SAFETY: an all-zero mmsghdr is valid: no name, no vectors, no control data.
    unsafe { std::mem::zeroed() }
}

/// What the kernel tells in the control data of a message that was received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Came {
    /// When it was received (`CLOCK_REALTIME`).
    pub(super) stamp_ns: Option<u64>,
    /// Its traffic class: DSCP and ECN.
    pub(super) tos: u8,
    /// Bytes of each of the datagrams in it, if they are several.
    pub(super) each: Option<usize>,
    /// What the socket has dropped so far because its buffer was full.
    pub(super) dropped: Option<u32>,
}

/// Reads the control data of a message.
///
/// # Safety
/// The kernel has filled the control data that the header points to, and set its length.
#[inline]
pub(super) unsafe fn came_with(header: &libc::msghdr) -> Came {
    let mut came = Came::default();
    // SAFETY: the CMSG macros walk the control data within its length, and values are read unaligned.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while !control.is_null() {
            let data = libc::CMSG_DATA(control);
            match ((*control).cmsg_level, (*control).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time = data.cast::<libc::timespec>().read_unaligned();
                    came.stamp_ns = Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => came.tos = *data,
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    came.tos = data.cast::<libc::c_int>().read_unaligned() as u8;
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    came.each = Some(data.cast::<libc::c_int>().read_unaligned() as usize);
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    came.dropped = Some(data.cast::<u32>().read_unaligned());
                }
                _ => {}
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    came
}
