//! A listener that has the secret but sends false messages, and logs of such a peer.

use crate::common::tunnel::{AGENT, End, SECRET};
use crate::common::{Folder, can_emulate, failure, my_turn, run_to_end};
use narrows_tunnel::keys::{Key, Secret, Sender};
use narrows_tunnel::log::{Columns, Content, LogKind, TunnelLogRow};
use narrows_tunnel::wire::{Body, ClockBody, Header, MAX_ID, Nonce, VERSION, decode, encode};
use narrows_units::{Stream, Time};
use serde_json::{Value, json};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Implausible times.
const WILD: [u64; 6] = [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, 1_000_000_000];

/// The other end of a dialer's session.
struct Liar {
    socket: UdpSocket,
    dialer: SocketAddr,
    nonces: (Nonce, Nonce),
    key: Key,
    session: u32,
    next_id: u64,
    chance: Stream,
    /// The packets that it has really sent in the session.
    rows: Vec<TunnelLogRow>,
}

impl Liar {
    /// Waits for a call, and opens a session that the dialer accepts.
    fn answer(socket: UdpSocket) -> Liar {
        let secret = Secret::parse(SECRET).unwrap();
        let handshake = Key::of_handshake(&secret, Sender::Listener);
        let listener = [7; 16];
        let mut buffer = [0; 2048];
        loop {
            let (length, dialer_at) = socket.recv_from(&mut buffer).expect("a dialer calls");
            let header = Header {
                session: 0,
                id: 0,
                sent: Time::from_ns(u64::MAX),
            };
            let mut bytes = Vec::new();
            let (dialer, done) = match decode(&buffer[..length]) {
                Ok((_, Body::Hello { dialer, .. })) => (dialer, false),
                Ok((_, Body::Confirm { dialer, .. })) => (dialer, true),
                other => panic!("{other:?} before there is a session"),
            };
            let version = VERSION;
            let body = if done {
                Body::Accept { dialer, listener }
            } else {
                Body::Welcome {
                    version,
                    dialer,
                    listener,
                }
            };
            encode(header, &body, 0, &handshake, &mut bytes);
            socket.send_to(&bytes, dialer_at).unwrap();
            if done {
                let key = Key::of_session(&secret, Sender::Listener, &dialer, &listener);
                let both = Key::of_session(&secret, Sender::Dialer, &dialer, &listener);
                let number = u64::from_be_bytes(both.tag(b"number")) as u32 & 0x00ff_ffff;
                return Liar {
                    socket,
                    dialer: dialer_at,
                    nonces: (dialer, listener),
                    key,
                    session: number.max(1),
                    next_id: 0,
                    chance: Stream::new(3, "liar"),
                    rows: Vec::new(),
                };
            }
        }
    }

    fn wild(&mut self) -> Time {
        Time::from_ns(WILD[self.chance.below(WILD.len() as u64) as usize])
    }

    fn say(&mut self, id: u64, sent: Time, body: &Body<'_>, size: usize) {
        let header = Header {
            session: self.session,
            id,
            sent,
        };
        let mut bytes = Vec::new();
        encode(header, body, size, &self.key, &mut bytes);
        let content = if matches!(body, Body::Packet(_)) {
            Content::Packet
        } else {
            Content::Clock
        };
        self.rows.push(TunnelLogRow {
            id,
            sent,
            arrived: sent,
            size: bytes.len() as u32 + 28,
            content,
            tos: 0,
            flow: 0,
        });
        let _ = self.socket.send_to(&bytes, self.dialer);
        // So that it is read, and not lost in a buffer.
        if self.rows.len().is_multiple_of(32) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn next(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn clock(&mut self, sent: Time, clock: ClockBody, size: usize) {
        let id = self.next();
        self.say(id, sent, &Body::Clock(clock), size);
    }
}

/// A way to lie.
type Lie = fn(&mut Liar);

/// Stamps of all kinds.
fn times(liar: &mut Liar) {
    for _ in 0..400 {
        let (sent, echo) = (liar.wild(), (liar.wild(), liar.wild()));
        let clock = ClockBody {
            echo: Some(echo),
            largest: u32::MAX,
        };
        liar.clock(sent, clock, 0);
        let (id, sent) = (liar.next(), liar.wild());
        liar.say(id, sent, &Body::Packet(&[0x45; 40]), 0);
    }
}

/// Times of the dialer's clock, recent ones, and ones that never occurred.
fn echoes(liar: &mut Liar) {
    for step in 0..400u64 {
        let sent = liar.wild();
        let mine = Time::from_ns(1 + step * 10_000_000_000);
        let clock = ClockBody {
            echo: Some((mine, liar.wild())),
            largest: step as u32,
        };
        liar.clock(sent, clock, 0);
    }
}

/// Backwards, repeated, the maximum, and beyond.
fn ids(liar: &mut Liar) {
    for step in 0..400u64 {
        let bits = liar.chance.below(63) as u32;
        let id = match step % 4 {
            0 => liar.chance.below(1 << bits),
            1 => 400 - step,
            2 => MAX_ID - (400 - step),
            _ => u64::MAX - step,
        };
        liar.say(id, Time::from_ns(step), &Body::Packet(&[0x45; 40]), 0);
    }
    liar.next_id = MAX_ID - 10;
}

/// From zero to the maximum of UDP.
fn sizes(liar: &mut Liar) {
    for length in [
        0usize, 1, 19, 20, 21, 40, 1_400, 1_444, 1_500, 9_000, 20_000, 65_000,
    ] {
        for first in [0x00, 0x45, 0x4f, 0x60] {
            let mut packet = vec![0xff; length];
            if let Some(byte) = packet.first_mut() {
                *byte = first;
            }
            let id = liar.next();
            liar.say(id, Time::from_ns(id), &Body::Packet(&packet), 0);
        }
        liar.clock(Time::from_ns(5), ClockBody::default(), length);
    }
}

/// Messages that only a dialer sends, messages of the handshake, and endless requests.
fn kinds(liar: &mut Liar) {
    let (dialer, listener) = liar.nonces;
    let version = VERSION;
    for _ in 0..100 {
        for body in [
            Body::Challenge([9; 16]),
            Body::Response([9; 16]),
            Body::Hello { version, dialer },
            Body::Confirm { dialer, listener },
            Body::Accept { dialer, listener },
            Body::Welcome {
                version: 9,
                dialer,
                listener,
            },
        ] {
            let id = liar.next();
            liar.say(id, Time::from_ns(id), &body, 0);
        }
    }
}

/// Checks that a dialer survives: it ends regularly, and has counted and logged all accepted messages.
fn lied_to(folder: &Folder, name: &str, lie: Lie) -> (Value, Liar) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_mins(1)))
        .unwrap();
    let to = socket.local_addr().unwrap().to_string();
    let call = json!({"dial": to, "silence_ns": 500_000_000u64});
    let mut dialer = End::start(folder, name, "wait", &call);
    let mut liar = Liar::answer(socket);
    dialer.until("open").expect("the tunnel opens");
    lie(&mut liar);
    for _ in 0..3 {
        let id = liar.next();
        liar.say(id, Time::from_ns(1), &Body::Bye, 0);
    }
    let end = dialer.end();
    assert_eq!(end["reason"], "other_end", "{name}: {end:#}");
    assert_eq!(end["arrived"]["sessions"], 1, "{name}: {end:#}");
    assert!(
        end["path_bytes"].as_u64().unwrap_or(0) <= 1500,
        "{name}: {end:#}"
    );
    (end, liar)
}

/// Writes the folder of a listener with these rows.
fn write_listener(folder: &Path, sent: &[TunnelLogRow], arrived: &[TunnelLogRow]) {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).unwrap();
    let document = json!({"format": "narrows/tunnel-end/1", "role": "listener"});
    std::fs::write(folder.join("tunnel.json"), document.to_string()).unwrap();
    for (name, side, rows) in [
        ("sent.ntl", LogKind::Sent, sent),
        ("arrived.ntl", LogKind::Arrived, arrived),
    ] {
        let (mut columns, mut bytes) = (Columns::new(side), Vec::new());
        for &row in rows {
            columns.push(row);
            if columns.is_full() {
                columns.drain_into(&mut bytes);
            }
        }
        columns.drain_into(&mut bytes);
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

/// Joins both ends, each as the reference once: the result is a sentence about the problem, or numbers with remarks.
fn join_is_clear(dialer: &Path, listener: &Path, what: &str) {
    for (reference, other) in [(dialer, listener), (listener, dialer)] {
        for lenient in [false, true] {
            let mut command = Command::new(AGENT);
            command.arg("tunnel-join").arg(reference).arg(other);
            if lenient {
                command.arg("--lenient");
            }
            let output = run_to_end(&mut command);
            if !output.status.success() {
                failure(&output, 3, "input");
                continue;
            }
            let joined: Value = serde_json::from_slice(&output.stdout).unwrap();
            let is_marked = joined["remarks"]
                .as_array()
                .is_some_and(|remarks| !remarks.is_empty())
                || joined["clock"]["implausible"].as_u64().unwrap() > 0;
            assert!(is_marked, "{what}: {joined:#}");
        }
    }
}

#[test]
fn a_listener_that_lies_neither_crashes_nor_holds_a_dialer_and_its_logs_are_recognised() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("tunnel-liar");
    let lies: [(&str, Lie); 5] = [
        ("times", times),
        ("echoes", echoes),
        ("ids", ids),
        ("sizes", sizes),
        ("kinds", kinds),
    ];
    for (name, lie) in lies {
        let (end, liar) = lied_to(&folder, name, lie);
        let arrived = &end["arrived"];
        let counts = arrived["refused"].as_object().unwrap().values();
        let refused: u64 = counts.map(|count| count.as_u64().unwrap()).sum();
        // All of it has the tag of the session, which messages of the handshake must not have: four of six kinds.
        let forged = if name == "kinds" { 400 } else { 0 };
        assert_eq!(arrived["refused"]["forged"], forged, "{end:#}");
        // It was accepted once or rejected for a reason.
        let taken = arrived["packets"].as_u64().unwrap() + arrived["messages"].as_u64().unwrap();
        assert!(taken + refused > 0);
        let (dialer, listener) = (folder.path().join(name), folder.path().join("lied"));
        // It logs sent rows, invented rows, or a mixture.
        let mut ordered = liar.rows.clone();
        ordered.sort_by_key(|row| row.id);
        ordered.dedup_by_key(|row| row.id);
        let wild = |row: &TunnelLogRow| TunnelLogRow {
            arrived: Time::from_ns(WILD[row.id as usize % WILD.len()]),
            ..*row
        };
        let arrivals: Vec<TunnelLogRow> = ordered.iter().map(wild).collect();
        let large = ordered.iter().map(|row| TunnelLogRow {
            size: u32::MAX,
            ..*row
        });
        let large: Vec<TunnelLogRow> = large.collect();
        for (what, sent, arrived) in [
            ("as said", &liar.rows, &arrivals),
            ("in order", &ordered, &arrivals),
            ("nothing sent", &Vec::new(), &arrivals),
            ("nothing arrived", &ordered, &Vec::new()),
            ("other sizes", &large, &large),
        ] {
            write_listener(&listener, sent, arrived);
            join_is_clear(&dialer, &listener, &format!("{name}, {what}"));
        }
    }
}

#[test]
fn a_listener_that_never_opens_is_given_up() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("tunnel-never");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = socket.local_addr().unwrap().to_string();
    let thread = std::thread::spawn(move || {
        let secret = Secret::parse(SECRET).unwrap();
        let key = Key::of_handshake(&secret, Sender::Listener);
        let patience = Some(Duration::from_secs(3));
        socket.set_read_timeout(patience).unwrap();
        let (mut buffer, mut bytes, mut count) = ([0; 2048], Vec::new(), 0u8);
        // Each answer is different, and some come in pairs.
        while let Ok((length, dialer_at)) = socket.recv_from(&mut buffer) {
            let Ok((header, Body::Hello { dialer, .. })) = decode(&buffer[..length]) else {
                continue;
            };
            for _ in 0..5 {
                count = count.wrapping_add(1);
                let (version, listener) = (VERSION, [count; 16]);
                let welcome = Body::Welcome {
                    version,
                    dialer,
                    listener,
                };
                encode(header, &welcome, 0, &key, &mut bytes);
                socket.send_to(&bytes, dialer_at).unwrap();
                // Logs of a call that never happened.
                let accept = Body::Accept {
                    dialer: listener,
                    listener,
                };
                encode(header, &accept, 0, &key, &mut bytes);
                socket.send_to(&bytes, dialer_at).unwrap();
            }
        }
    });
    let call = json!({"dial": to, "patience_ns": 1_000_000_000u64});
    let dialer = End::start(&folder, "dialer", "wait", &call).output();
    let message = failure(&dialer, 4, "unavailable");
    assert!(message.contains("but later ones were lost"), "{message}");
    thread.join().unwrap();
}
