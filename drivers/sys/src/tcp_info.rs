//! The kernel's `struct tcp_info`, read field by field from the bytes it returned.
//!
//! The structure grows at its end with new kernels, and the header of the C library is older than
//! most kernels. Fields are therefore read by offset (include/uapi/linux/tcp.h, Linux 6.18), and
//! those beyond the returned length are absent.

/// The bytes of a `struct tcp_info`.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo<'a>(&'a [u8]);

/// Large enough for the structure of any kernel so far, with room to grow.
pub const BUFFER: usize = 512;

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $offset:literal;)+) => {
        impl TcpInfo<'_> {
            $($(#[$doc])*
            pub fn $name(&self) -> Option<$type> {
                let bytes = self.0.get($offset..$offset + size_of::<$type>())?;
                Some(<$type>::from_ne_bytes(bytes.try_into().ok()?))
            })+
        }
    };
}

fields! {
    /// State of the connection (1 = established).
    state: u8 = 0;
    /// State of loss recovery, see [`TcpInfo::recovery_state`].
    ca_state: u8 = 1;
    /// Segment size for sending.
    snd_mss: u32 = 16;
    /// Segments sent and not cumulatively acknowledged.
    unacked: u32 = 24;
    /// Segments selectively acknowledged.
    sacked: u32 = 28;
    /// Segments deemed lost.
    lost: u32 = 32;
    /// Segments retransmitted and still in flight.
    retrans: u32 = 36;
    /// Smoothed round-trip time in us.
    rtt_us: u32 = 68;
    /// Slow-start threshold in segments.
    snd_ssthresh: u32 = 76;
    /// Congestion window in segments.
    snd_cwnd: u32 = 80;
    /// Segments retransmitted in total.
    total_retrans: u32 = 100;
    /// Pacing rate in bytes/s.
    pacing_rate: u64 = 104;
    /// Payload bytes acknowledged.
    bytes_acked: u64 = 120;
    /// Payload bytes received in order.
    bytes_received: u64 = 128;
    /// Bytes in the send buffer that were never sent.
    notsent_bytes: u32 = 144;
    /// Smallest round-trip time in us.
    min_rtt_us: u32 = 148;
    /// Segments received with data.
    data_segs_in: u32 = 152;
    /// Segments sent with data.
    data_segs_out: u32 = 156;
    /// Delivery rate in bytes/s.
    delivery_rate: u64 = 160;
    /// Time with data outstanding or waiting, in us.
    busy_time_us: u64 = 168;
    /// Time limited by the receiver's window, in us.
    rwnd_limited_us: u64 = 176;
    /// Time limited by the send buffer, in us.
    sndbuf_limited_us: u64 = 184;
    /// Segments delivered, selectively acknowledged ones included.
    delivered: u32 = 192;
    /// Segments delivered with a congestion mark.
    delivered_ce: u32 = 196;
    /// Payload bytes sent, retransmissions included.
    bytes_sent: u64 = 200;
    /// Payload bytes retransmitted.
    bytes_retrans: u64 = 208;
    /// Duplicate SACK blocks received: retransmissions that were not needed.
    dsack_dups: u32 = 216;
    /// The peer's receive window in bytes.
    snd_wnd: u32 = 228;
    /// Changes of the flow hash (Linux 6.2).
    rehash: u32 = 236;
    /// Retransmission timeouts (Linux 6.7).
    total_rto: u16 = 240;
}

impl<'a> TcpInfo<'a> {
    /// Wraps the bytes that the kernel returned.
    pub fn new(bytes: &'a [u8]) -> Self {
        TcpInfo(bytes)
    }

    /// True if the last delivery-rate sample was taken while the application had no data.
    pub fn app_limited(&self) -> Option<bool> {
        // Third byte after the two scale nibbles: a one-bit field, lowest bit first.
        self.0.get(7).map(|byte| byte & 1 != 0)
    }

    /// The state of loss recovery as the kernel's documentation names it.
    pub fn recovery_state(&self) -> Option<&'static str> {
        Some(match self.ca_state()? {
            0 => "open",
            1 => "disorder",
            2 => "cwr",
            3 => "recovery",
            4 => "loss",
            _ => return None,
        })
    }

    /// Segments in flight by the kernel's definition.
    pub fn in_flight(&self) -> Option<u32> {
        let gone = self.sacked()? + self.lost()?;
        Some((self.unacked()? + self.retrans()?).saturating_sub(gone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    #[test]
    fn offsets_fit_the_running_kernel() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_peer, _) = listener.accept().unwrap();
        stream.write_all(&[7; 5000]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let mut buffer = [0; BUFFER];
        let info = TcpInfo::new(socket::tcp_info(stream.as_fd(), &mut buffer).unwrap());
        assert_eq!(info.state(), Some(1));
        assert_eq!(info.recovery_state(), Some("open"));
        assert_eq!(info.bytes_acked(), Some(5001), "the kernel counts the SYN");
        assert!((1..200_000).contains(&info.rtt_us().unwrap()));
        assert!(info.snd_cwnd().unwrap() >= 2);
        assert!(info.snd_mss().unwrap() > 500);
        // Newer than the C library's header; present since Linux 4.19.
        assert_eq!(info.bytes_sent(), Some(5000));
        assert_eq!(info.bytes_retrans(), Some(0));
        assert!(info.snd_wnd().is_none_or(|window| window > 1000));
        assert_eq!(info.total_rto().unwrap_or(0), 0);
    }

    #[test]
    fn fields_beyond_the_returned_length_are_absent() {
        let bytes = [0; 104];
        let info = TcpInfo::new(&bytes);
        assert_eq!(info.snd_cwnd(), Some(0));
        assert_eq!(info.pacing_rate(), None);
        assert_eq!(info.total_rto(), None);
    }
}
