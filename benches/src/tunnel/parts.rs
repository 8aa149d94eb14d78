//! The programs at the two ends of the tunnel that is measured. The benchmark starts itself again as one of
//! them.

use narrows_sys::batched_udp::UdpReceiver;
use narrows_sys::poll::{Epoll, Events};
use narrows_sys::{clock, cpu, socket};
use serde_json::json;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// First argument of a program that is one of the parts.
pub const WORD: &str = "tunnel-part";
/// The port of the stream and of the probes.
const PORT: u16 = 5000;
/// Time between two probes.
const PROBE_GAP: Duration = Duration::from_millis(1);
/// Bytes of a probe. It begins with the time of its sending.
const PROBE: usize = 100;
/// Time at the beginning that does not count.
const WARM_UP: Duration = Duration::from_secs(1);
/// Bytes per write, and those that wake a receiver: as our endpoints have it.
const BLOCK: usize = 256 * 1024;
const RECEIVE_MARK: u32 = 64 * 1024;
/// Time that the sender waits for the receiver to listen.
const PATIENCE: Duration = Duration::from_secs(20);
// asm-generic/socket.h
const SO_MAX_PACING_RATE: i32 = 47;
const SOL_SOCKET: i32 = 1;

/// Priority of the session of an end of a tunnel, as in runs between two hosts.
const PRIORITY: i32 = -11;

/// Plays a part: `receive ADDRESS` or `send ADDRESS SECONDS MBPS`; or becomes another program that has a preferred
/// session: `preferred PROGRAM ARGUMENT...`.
///
/// # Errors
/// The kernel's answer, or that the arguments are others.
pub fn play(arguments: &[String]) -> io::Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().map_err(io::Error::other);
    match words[..] {
        ["receive", address] => receive(address),
        ["send", address, seconds, mbps] => {
            let seconds = Duration::from_secs(number(seconds)?);
            send(address, seconds, number(mbps)?)
        }
        ["preferred", program, ref arguments @ ..] => {
            cpu::prefer_session(PRIORITY);
            Err(Command::new(program).args(arguments).exec())
        }
        _ => Err(io::Error::other("there is no such part")),
    }
}

/// Takes one stream and the probes beside it, and prints what came as a line of JSON.
fn receive(address: &str) -> io::Result<()> {
    let listener = TcpListener::bind((address, PORT))?;
    let probes = UdpSocket::bind((address, PORT))?;
    socket::prepare_udp(probes.as_fd(), 1 << 20)?;
    let stop = Arc::new(AtomicBool::new(false));
    let delays = collect(probes, stop.clone());
    let (mut stream, _) = listener.accept()?;
    socket::set_receive_mark(stream.as_fd(), RECEIVE_MARK)?;
    let epoll = Epoll::new()?;
    epoll.add(stream.as_fd(), 0)?;
    let mut events = Events::default();
    let start = Instant::now();
    let (mut bytes, mut counted_from) = (0u64, None);
    loop {
        match socket::discard(stream.as_fd(), 4 * BLOCK) {
            Ok(0) => break,
            Ok(taken) => bytes += taken as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                epoll.wait(&mut events, None)?;
            }
            Err(error) => return Err(error),
        }
        if counted_from.is_none() && start.elapsed() >= WARM_UP {
            counted_from = Some((Instant::now(), bytes));
        }
    }
    let (from, before) = counted_from.unwrap_or((start, 0));
    let seconds = from.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let mut delays = delays
        .join()
        .map_err(|_| io::Error::other("the thread of the probes has crashed"))??;
    delays.sort_unstable();
    let at = |share: f64| delays.get((delays.len() as f64 * share) as usize).copied();
    let line = json!({
        "mbps": (bytes - before) as f64 * 8.0 / seconds / 1e6, "probes": delays.len(),
        "p50_ns": at(0.5), "p99_ns": at(0.99),
    });
    println!("{line}");
    io::stdout().flush()?;
    // The sender waits for this, and its end is the end of the tunnel.
    stream.write_all(b"done")
}

/// The time that each probe after the warm-up took, from the call that sent it to the kernel's stamp here.
fn collect(probes: UdpSocket, stop: Arc<AtomicBool>) -> JoinHandle<io::Result<Vec<i64>>> {
    thread::spawn(move || {
        let mut receiver = UdpReceiver::default();
        let mut delays = Vec::new();
        let mut first = None;
        while !stop.load(Ordering::Relaxed) {
            for index in 0..receiver.receive(probes.as_fd())? {
                let probe = receiver.datagram(index);
                let sent = probe.bytes.first_chunk().copied().map(u64::from_be_bytes);
                if let (Some(sent), Some(stamp)) = (sent, probe.stamp_ns) {
                    let first = *first.get_or_insert(sent);
                    if sent >= first + WARM_UP.as_nanos() as u64 {
                        delays.push(stamp as i64 - sent as i64);
                    }
                }
            }
            // Stamps are the kernel's, so it does not matter when they are read.
            thread::sleep(5 * PROBE_GAP);
        }
        Ok(delays)
    })
}

/// Sends a stream for some time, at most at the given rate (0: as fast as it goes), and probes beside it.
fn send(address: &str, time: Duration, mbps: u64) -> io::Result<()> {
    let start = Instant::now();
    let mut stream = loop {
        match TcpStream::connect((address, PORT)) {
            Ok(stream) => break stream,
            Err(error) if start.elapsed() > PATIENCE => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    };
    socket::set_congestion(stream.as_fd(), "cubic")?;
    if mbps > 0 {
        let bytes = u32::try_from(mbps * 125_000).map_err(io::Error::other)?;
        let fd = stream.as_fd();
        socket::set_option(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes.to_ne_bytes())?;
    }
    let probes = UdpSocket::bind("0.0.0.0:0")?;
    probes.connect((address, PORT))?;
    let end = Instant::now() + time;
    let probing = thread::spawn(move || {
        let mut probe = [0; PROBE];
        while Instant::now() < end {
            probe[..8].copy_from_slice(&clock::real_ns().to_be_bytes());
            // One that is refused is one less.
            let _ = probes.send(&probe);
            thread::sleep(PROBE_GAP);
        }
    });
    let block = vec![0; BLOCK];
    while Instant::now() < end {
        stream.write_all(&block)?;
    }
    stream.shutdown(Shutdown::Write)?;
    stream.read_to_end(&mut Vec::new())?;
    probing
        .join()
        .map_err(|_| io::Error::other("the thread of the probes has crashed"))
}
