//! Bulk flows of the kernel's TCP: `linux:NAME`.

use super::clock::{RunClock, Sleeper};
use super::{Channel, Outcome, Role, State, addresses};
use crate::error::{Context, LiveError};
use crate::sys::socket;
use crate::sys::tcp_info::{BUFFER, TcpInfo};
use narrows_cell::{Cell, Flow};
use narrows_record::{ReceiverCounters, SenderCounters, StateRow};
use narrows_units::{Span, Time};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Unsent data kept in the send buffer: enough for 8 ms at 1 Gbit/s, in which the sender may have
/// to wait for a processor.
const UNSENT: u32 = 1 << 20;
/// Bytes per write.
const WRITE: usize = 256 * 1024;
/// Bytes taken from the receive buffer per call.
const READ: usize = 4 << 20;
/// The kernel's "no threshold yet" (TCP_INFINITE_SSTHRESH).
const NO_SSTHRESH: u32 = 0x7fff_ffff;

/// A socket with the congestion control `name`, not connected.
pub(super) fn prepare_sender(flow: &Flow, name: &str) -> Result<OwnedFd, LiveError> {
    let socket = socket::tcp().could_not("open a TCP socket")?;
    socket::set_congestion(socket.as_fd(), name).map_err(|error| {
        LiveError::Unavailable(format!(
            "flow {}: the kernel refuses the congestion control '{name}' ({error})",
            flow.flow
        ))
    })?;
    socket::set_unsent_limit(socket.as_fd(), UNSENT).could_not("limit the send buffer")?;
    let (own, _) = addresses(flow, Role::Sender);
    socket::bind(socket.as_fd(), own).could_not("bind the sender's port")?;
    Ok(socket)
}

/// A listening socket.
pub(super) fn prepare_receiver(flow: &Flow) -> Result<OwnedFd, LiveError> {
    let socket = socket::tcp().could_not("open a TCP socket")?;
    let (own, _) = addresses(flow, Role::Receiver);
    socket::bind(socket.as_fd(), own).could_not("bind the receiver's port")?;
    socket::listen(socket.as_fd()).could_not("listen on the receiver's port")?;
    Ok(socket)
}

/// Connects at the flow's start and writes until its stop.
pub(super) fn send(
    socket: &OwnedFd,
    cell: &Cell,
    flow: &Flow,
    name: &str,
    clock: &RunClock,
    channel: &mut Channel,
) -> Result<Outcome, LiveError> {
    let mut sleeper = Sleeper::new(channel)?;
    let stop = flow.stop.min(cell.duration);
    sleeper.wait(clock, flow.start, channel)?;
    let (_, peer) = addresses(flow, Role::Sender);
    socket::connect(socket.as_fd(), peer).could_not("connect to the receiver")?;
    sleeper.until_writable(socket.as_fd())?;
    let mut outcome = Outcome::default();
    if !sleeper.wait(clock, stop, channel)? {
        outcome.problem = Some("the connection was not established before the flow stopped".into());
    }
    let mut sampler = Sampler::new(flow, cell.sample);
    let data = vec![0u8; WRITE];
    while outcome.problem.is_none() && clock.now() < stop {
        match socket::send(socket.as_fd(), &data) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                sleeper.wait(clock, sampler.next.min(stop), channel)?;
            }
            Err(error) => outcome.problem = Some(format!("the connection broke: {error}")),
        }
        if clock.now() >= sampler.next {
            sampler.sample(socket.as_fd(), clock, &mut outcome);
        }
    }
    sampler.finish(socket.as_fd(), &mut outcome);
    outcome.read_back = socket::congestion(socket.as_fd()).ok();
    if outcome.problem.is_none() && outcome.read_back.as_deref() != Some(name) {
        let now = outcome.read_back.as_deref().unwrap_or("nothing");
        outcome.problem = Some(format!("the kernel used '{now}' in place of '{name}'"));
    }
    // The flow is stopped and not finished: what is left in the buffer is not to be delivered.
    socket::abort_on_close(socket.as_fd()).could_not("abort the connection")?;
    Ok(outcome)
}

/// Accepts the connection and reads until its end, or until the end of the run.
pub(super) fn receive(
    listener: &OwnedFd,
    cell: &Cell,
    clock: &RunClock,
    channel: &mut Channel,
) -> Result<Outcome, LiveError> {
    let mut sleeper = Sleeper::new(channel)?;
    sleeper.until_readable(listener.as_fd())?;
    let mut outcome = Outcome::default();
    if !sleeper.wait(clock, cell.duration, channel)? {
        outcome.problem = Some("no connection arrived".into());
        return Ok(outcome);
    }
    let socket = socket::accept(listener.as_fd()).could_not("accept the connection")?;
    sleeper.forget(listener.as_fd())?;
    sleeper.until_readable(socket.as_fd())?;
    let mut goodput = 0;
    while clock.now() < cell.duration {
        match socket::discard(socket.as_fd(), READ) {
            Ok(0) => break,
            Ok(length) => goodput += length as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                sleeper.wait(clock, cell.duration, channel)?;
            }
            // That is how a sender stops.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => {
                outcome.problem = Some(format!("the connection broke: {error}"));
                break;
            }
        }
    }
    let mut buffer = [0; BUFFER];
    let bytes = socket::tcp_info(socket.as_fd(), &mut buffer).could_not("read TCP_INFO")?;
    let info = TcpInfo::new(bytes);
    outcome.receiver = ReceiverCounters {
        received_packets: info.data_segs_in().map(u64::from),
        received_bytes: None,
        // Data that arrived after the last read is delivered too.
        goodput_bytes: Some(info.bytes_received().unwrap_or(0).max(goodput)),
        ..ReceiverCounters::default()
    };
    socket::abort_on_close(socket.as_fd()).could_not("abort the connection")?;
    Ok(outcome)
}

/// Takes samples of the sender's state at regular times.
struct Sampler {
    distance: Span,
    next: Time,
    buffer: [u8; BUFFER],
    details: [u8; 64],
}

impl Sampler {
    fn new(flow: &Flow, distance: Span) -> Self {
        // Samples lie on the same grid for all flows.
        let first = flow.start.ns().next_multiple_of(distance.ns());
        Sampler {
            distance,
            next: Time::from_ns(first),
            buffer: [0; BUFFER],
            details: [0; 64],
        }
    }

    fn sample(&mut self, socket: BorrowedFd, clock: &RunClock, outcome: &mut Outcome) {
        let now = clock.now();
        let passed = now.since(self.next).ns() / self.distance.ns() + 1;
        self.next += Span::from_ns(self.distance.ns() * passed);
        let Ok(bytes) = socket::tcp_info(socket, &mut self.buffer) else {
            return;
        };
        let info = TcpInfo::new(bytes);
        outcome.states.push(State::from(state(now, &info)));
        outcome.limits.samples += 1;
        outcome.limits.starved += u64::from(info.notsent_bytes() == Some(0));
        if let Ok(details) = socket::congestion_info(socket, &mut self.details) {
            bbr_details(now, details, &mut outcome.traces);
        }
    }

    fn finish(&mut self, socket: BorrowedFd, outcome: &mut Outcome) {
        let Ok(bytes) = socket::tcp_info(socket, &mut self.buffer) else {
            return;
        };
        let info = TcpInfo::new(bytes);
        outcome.sender = SenderCounters {
            sent_packets: info.data_segs_out().map(u64::from),
            // The kernel counts payload, and headers vary with the options.
            sent_bytes: None,
            retransmitted_packets: info.total_retrans().map(u64::from),
            retransmitted_bytes: info.bytes_retrans(),
            timeouts: info.total_rto().map(u64::from),
            tail_probes: None,
            spurious_losses: info.dsack_dups().map(u64::from),
        };
        outcome.limits.busy_us = info.busy_time_us().unwrap_or(0);
        outcome.limits.rwnd_us = info.rwnd_limited_us().unwrap_or(0);
        outcome.limits.sndbuf_us = info.sndbuf_limited_us().unwrap_or(0);
    }
}

/// The kernel counts windows in segments, and times in microseconds.
fn state(now: Time, info: &TcpInfo) -> StateRow {
    let mss = u64::from(info.snd_mss().unwrap_or(0));
    let bytes = |segments: u32| u64::from(segments) * mss;
    let known = |rate: u64| (rate != u64::MAX).then(|| rate.saturating_mul(8));
    let srtt = info
        .rtt_us()
        .filter(|&us| us > 0)
        .map(|us| u64::from(us) * 1000);
    StateRow {
        flow: 0,
        time_ns: now.ns(),
        cwnd_bytes: info.snd_cwnd().map(bytes),
        ssthresh_bytes: info.snd_ssthresh().filter(|&n| n < NO_SSTHRESH).map(bytes),
        pacing_bps: info.pacing_rate().and_then(known),
        // The kernel tells the smoothed value only.
        rtt_ns: None,
        srtt_ns: srtt,
        min_rtt_ns: info
            .min_rtt_us()
            .filter(|&us| us != u32::MAX)
            .map(|us| u64::from(us) * 1000),
        inflight_bytes: info.in_flight().map(bytes),
        delivered_bytes: info.bytes_acked(),
        delivery_rate_bps: info.delivery_rate().and_then(known),
        retransmitted_bytes: info.bytes_retrans(),
        // The kernel tells how many are lost now, not how many were lost ever.
        lost_packets: None,
        mode: info.recovery_state().map(str::to_owned),
    }
}

/// BBR's own view (struct tcp_bbr_info, include/uapi/linux/inet_diag.h): bandwidth in bytes/s in
/// two halves, minimum RTT in us, pacing and window gain in units of 1/256.
fn bbr_details(now: Time, details: &[u8], traces: &mut Vec<(u64, String, f64)>) {
    const LENGTH: usize = 20;
    if details.len() != LENGTH {
        return;
    }
    let word = |index: usize| {
        let bytes = details[index * 4..index * 4 + 4]
            .try_into()
            .unwrap_or_default();
        f64::from(u32::from_ne_bytes(bytes))
    };
    let bandwidth = (word(0) + word(1) * 4_294_967_296.0) * 8.0;
    let mut push = |name: &str, value: f64| traces.push((now.ns(), name.to_owned(), value));
    push("bandwidth_bps", bandwidth);
    push("pacing_gain", word(3) / 256.0);
    push("cwnd_gain", word(4) / 256.0);
}
