//! A tunnel with traffic in it, on a path on which somebody sits: he reads every datagram, and sends
//! whatever he likes to both ends as fast as he can. He does not know the secret, but for the hellos
//! of a caller who does.
//!
//! ```text
//!   dialer <---> the path (relays and takes copies) <---> listener
//!                      |            strangers ------------^ (and to the dialer)
//!                      +-- copies --^
//! ```

mod common;

use common::tunnel::{End, Logs, SECRET, Shift, join, play};
use common::{Folder, can_emulate, my_turn};
use narrows_tunnel::keys::{Key, Secret, Sender};
use narrows_tunnel::wire::{Body, ClockBody, Header, LARGEST_ID, VERSION, encode};
use narrows_units::{Stream, Time};
use serde_json::{Value, json};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const BYTES: usize = 5_000_000;
/// Copies that are kept, of both directions together.
const COPIES: usize = 20_000;

#[test]
#[ignore = "a program for the other tests"]
fn inside() {
    play();
}

/// A datagram that came by, and whether it went to the listener.
type Copied = (bool, Vec<u8>);

/// The path between both ends, in this process.
struct Path {
    /// Where the dialer calls.
    address: SocketAddr,
    /// Towards the dialer and towards the listener.
    sockets: [Arc<UdpSocket>; 2],
    dialer: Arc<Mutex<Option<SocketAddr>>>,
    listener: SocketAddr,
    copies: Arc<Mutex<Vec<Copied>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let patience = Some(Duration::from_millis(50));
    socket.set_read_timeout(patience).unwrap();
    socket
}

impl Path {
    fn to(listener: SocketAddr) -> Path {
        let sockets = [Arc::new(socket()), Arc::new(socket())];
        let mut path = Path {
            address: sockets[0].local_addr().unwrap(),
            sockets,
            dialer: Arc::default(),
            listener,
            copies: Arc::default(),
            stop: Arc::default(),
            threads: Vec::new(),
        };
        for to_listener in [true, false] {
            let from = path.sockets[usize::from(!to_listener)].clone();
            let to = path.sockets[usize::from(to_listener)].clone();
            let (copies, dialer) = (path.copies.clone(), path.dialer.clone());
            let (listener, stop) = (path.listener, path.stop.clone());
            path.threads.push(std::thread::spawn(move || {
                let mut buffer = [0; 2048];
                while !stop.load(Ordering::Relaxed) {
                    let Ok((length, source)) = from.recv_from(&mut buffer) else {
                        continue;
                    };
                    let bytes = &buffer[..length];
                    let target = if to_listener {
                        *dialer.lock().unwrap() = Some(source);
                        Some(listener)
                    } else {
                        *dialer.lock().unwrap()
                    };
                    if let Some(target) = target {
                        let _ = to.send_to(bytes, target);
                    }
                    let mut copies = copies.lock().unwrap();
                    if copies.len() < COPIES {
                        copies.push((to_listener, bytes.to_vec()));
                    }
                }
            }));
        }
        path
    }

    /// Sends something the way that the tunnel's own datagrams go.
    fn send(&self, to_listener: bool, bytes: &[u8]) {
        let target = if to_listener {
            Some(self.listener)
        } else {
            *self.dialer.lock().unwrap()
        };
        if let Some(target) = target {
            let _ = self.sockets[usize::from(to_listener)].send_to(bytes, target);
        }
    }

    fn copy(&self, index: u64) -> Option<Copied> {
        let copies = self.copies.lock().unwrap();
        let count = copies.len() as u64;
        copies.get(index.checked_rem(count)? as usize).cloned()
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Who attacks, and with what.
struct Attacker {
    chance: Stream,
    /// Not on the path.
    stranger: UdpSocket,
    wrong: Secret,
    right: Secret,
    /// Random bytes, of which pieces are sent.
    noise: Vec<u8>,
    round: u64,
    sent: u64,
}

impl Attacker {
    fn new() -> Attacker {
        let mut chance = Stream::new(7, "attacker");
        let noise = (0..1 << 13).flat_map(|_| chance.bits().to_le_bytes());
        Attacker {
            noise: noise.collect(),
            chance,
            stranger: socket(),
            wrong: Secret::new([9; 32]),
            right: Secret::parse(SECRET).unwrap(),
            round: 0,
            sent: 0,
        }
    }

    fn noise(&mut self, most: u64) -> Vec<u8> {
        let (length, from) = (
            self.chance.below(most) as usize,
            self.chance.below(1 << 15) as usize,
        );
        self.noise[from..from + length].to_vec()
    }

    /// One of everything, to both ends.
    fn attack(&mut self, path: &Path) {
        self.round += 1;
        for to_listener in [true, false] {
            let noise = self.noise(1400);
            self.send(path, to_listener, &noise);
            let index = self.chance.below(1 << 40);
            let Some((went_to_listener, copy)) = path.copy(index) else {
                continue;
            };
            // The same again, the way it came, and back to where it came from.
            path.send(went_to_listener, &copy);
            path.send(!went_to_listener, &copy);
            self.sent += 2;
            // Nearly the same: one byte changed, cut, and longer.
            let mut changed = copy.clone();
            let at = self.chance.below(changed.len() as u64) as usize;
            changed[at] ^= 1 + self.chance.below(255) as u8;
            self.send(path, to_listener, &changed);
            self.send(path, to_listener, &copy[..at]);
            let mut longer = copy.clone();
            longer.extend(self.noise(300));
            self.send(path, to_listener, &longer);
            self.forge(path, to_listener, &copy);
            if self.round.is_multiple_of(64) {
                self.rarely(path, to_listener, &longer);
            }
        }
    }

    /// All kinds with keys made of another secret, in the session that the copy shows.
    fn forge(&mut self, path: &Path, to_listener: bool, copy: &[u8]) {
        let sender = if to_listener {
            Sender::Dialer
        } else {
            Sender::Listener
        };
        let (dialer, listener) = ([1; 16], [2; 16]);
        let key = Key::of_session(&self.wrong, sender, &dialer, &listener);
        let session = u32::from_be_bytes([0, copy[1], copy[2], copy[3]]);
        let header = Header {
            session,
            id: self.chance.below(LARGEST_ID),
            sent: Time::from_ns(self.chance.below(1 << 62)),
        };
        let echo = Some((Time::from_ns(1), Time::from_ns(u64::MAX)));
        let clock = ClockBody {
            echo,
            largest: u32::MAX,
        };
        let mut bytes = Vec::new();
        for body in [Body::Packet(&copy[20..]), Body::Clock(clock), Body::Bye] {
            encode(header, &body, 0, &key, &mut bytes);
            self.send(path, to_listener, &bytes);
        }
        let key = Key::of_handshake(&self.wrong, sender);
        let header = Header {
            session: 0,
            ..header
        };
        let version = VERSION;
        for body in [
            Body::Hello { version, dialer },
            Body::Welcome {
                version,
                dialer,
                listener,
            },
        ] {
            encode(header, &body, 0, &key, &mut bytes);
            self.send(path, to_listener, &bytes);
        }
    }

    /// What is larger than any datagram of ours; and what is authentic and a lie: callers who have
    /// the secret and never come back, of this version and another, and answers that nobody asked for.
    fn rarely(&mut self, path: &Path, to_listener: bool, start: &[u8]) {
        for size in [9_300, 20_000, 65_507] {
            let mut large = start.to_vec();
            large.resize(size, 0x5a);
            self.send(path, to_listener, &large);
        }
        let mut nonce = [0xee; 16];
        nonce[..8].copy_from_slice(&self.round.to_be_bytes());
        let header = Header {
            session: 0,
            id: 0,
            sent: Time::ZERO,
        };
        let mut bytes = Vec::new();
        for version in [VERSION, 9] {
            let (dialer, listener) = (nonce, nonce);
            let hello = Body::Hello { version, dialer };
            let welcome = Body::Welcome {
                version,
                dialer,
                listener,
            };
            for (sender, body) in [(Sender::Dialer, hello), (Sender::Listener, welcome)] {
                let key = Key::of_handshake(&self.right, sender);
                encode(header, &body, 0, &key, &mut bytes);
                self.send(path, to_listener, &bytes);
            }
        }
    }

    fn send(&mut self, path: &Path, to_listener: bool, bytes: &[u8]) {
        let target = if to_listener {
            Some(path.listener)
        } else {
            *path.dialer.lock().unwrap()
        };
        if let Some(target) = target {
            let _ = self.stranger.send_to(bytes, target);
            self.sent += 1;
        }
    }
}

#[test]
fn a_running_tunnel_is_neither_crashed_nor_confused() {
    let _turn = my_turn();
    if !can_emulate("a running tunnel is neither crashed nor confused") {
        return;
    }
    let folder = Folder::new("tunnel-hostile");
    let shift = json!({"offset_ns": -1_000_000_000i64, "drift_ppb": 80_000});
    let end = json!({"bind": "127.0.0.1:0", "clock": shift});
    let mut listener = End::start(&folder, "listener", &format!("receive {BYTES}"), &end);
    let path = Path::to(listener.address().parse().unwrap());
    let call = json!({"dial": path.address.to_string()});
    let mut dialer = End::start(&folder, "dialer", &format!("send {BYTES}"), &call);
    dialer.until("open").expect("the tunnel opens");
    let mut attacker = Attacker::new();
    while dialer.child.try_wait().unwrap().is_none() {
        attacker.attack(&path);
    }
    let (there, here) = (dialer.end(), listener.end());

    let log = std::fs::read_to_string(dialer.folder.join("program.log")).unwrap();
    assert_eq!(there["program"]["exit_code"], 0, "{log}");
    for (end, reason) in [(&there, "program_ended"), (&here, "other_end")] {
        assert_eq!(end["reason"], reason, "{end:#}");
        let arrived = &end["arrived"];
        assert_eq!(
            (&arrived["sessions"], &arrived["moves"]),
            (&json!(1), &json!(0)),
            "{end:#}"
        );
        // Nobody makes an end believe that a larger size passes than its own interface sends.
        assert_eq!(end["path_bytes"], 1500, "{end:#}");
        for reason in ["malformed", "forged", "unknown_session", "replayed"] {
            assert!(
                arrived["refused"][reason].as_u64().unwrap() > 0,
                "{reason}: {end:#}"
            );
        }
    }
    assert!(
        here["arrived"]["refused"]["incompatible"].as_u64().unwrap() > 0,
        "{here:#}"
    );
    tell(&attacker, &there, &here);

    // Both logs are of one tunnel and nothing else is in them.
    let joined = join(&dialer.folder, &listener.folder);
    for (way, sent) in [("there", &there), ("back", &here)] {
        let direction = &joined[way];
        assert_eq!(direction["sent"], sent["sent"]["packets"]);
        for kind in ["unknown", "again", "contradicting"] {
            assert_eq!(direction[kind], 0, "{joined:#}");
        }
        assert!(
            direction["delay_ns"]["min"].as_i64().unwrap() >= -1_002,
            "{joined:#}"
        );
    }
    assert_eq!(joined["there"]["arrived"], here["arrived"]["packets"]);
    assert_eq!(joined["back"]["arrived"], there["arrived"]["packets"]);
    // And the clocks are what they are.
    let shift = Shift::of(&here);
    for place in ["start", "end"] {
        let clock = &joined["clock"][place];
        let truth = shift.offset_ns(clock["at_ns"].as_i64().unwrap());
        let error = (clock["offset_ns"].as_i64().unwrap() - truth).unsigned_abs();
        assert!(
            error <= clock["error_ns"].as_u64().unwrap() + 2,
            "{joined:#}"
        );
    }
    let rows = Logs::read(&listener.folder).arrived.len() as u64;
    assert_eq!(here["log_rows"]["arrived"], rows);
}

fn tell(attacker: &Attacker, there: &Value, here: &Value) {
    eprintln!(
        "{} hostile datagrams; refused by the dialer {}, by the listener {}; lost before they were looked at {} and {}",
        attacker.sent,
        there["arrived"]["refused"],
        here["arrived"]["refused"],
        there["lost_here"]["socket"],
        here["lost_here"]["socket"],
    );
}
