//! An eavesdropper who is faster than the path: copies arrive before the originals. And a dialer that has really moved.

use super::BYTES;
use super::path::{Guard, Path, free, socket};
use crate::common::tunnel::{End, join};
use crate::common::{Folder, can_emulate, my_turn};
use narrows_tunnel::wire::{Body, decode};
use serde_json::{Value, json};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// One-way delay of the path.
const DELAY: Duration = Duration::from_millis(10);

fn program_has_ended_well(folder: &std::path::Path, end: &Value) {
    let log = std::fs::read_to_string(folder.join("program.log")).unwrap();
    assert_eq!(end["program"]["exit_code"], 0, "{log}");
}

/// All datagrams that have reached a stranger so far.
fn all_that_came(stranger: &UdpSocket) -> Vec<Vec<u8>> {
    stranger.set_nonblocking(true).unwrap();
    let (mut buffer, mut all) = ([0; 2048], Vec::new());
    while let Ok(length) = stranger.recv(&mut buffer) {
        all.push(buffer[..length].to_vec());
    }
    all
}

/// Copies of every `every`th datagram to the listener arrive before the original, starting with the first hello.
fn copies_that_come_first(name: &str, every: u64) {
    let folder = Folder::new(name);
    let end = json!({"bind": "127.0.0.1:0"});
    let mut listener = End::start(&folder, "listener", &format!("receive {BYTES}"), &end);
    let address = listener.address();
    let to: SocketAddr = address.parse().unwrap();
    let stranger = Arc::new(socket());
    let (copier, count) = (stranger.clone(), AtomicU64::new(0));
    let guard: Arc<Guard> = Arc::new(move |to_listener, bytes: &[u8]| {
        if to_listener && count.fetch_add(1, Ordering::Relaxed).is_multiple_of(every) {
            let _ = copier.send_to(bytes, to);
        }
        true
    });
    let path = Path::guarded(&address, DELAY, &guard);
    let call = json!({"dial": path.address.to_string()});
    let mut dialer = End::start(&folder, "dialer", &format!("send {BYTES}"), &call);
    let (there, here) = (dialer.end(), listener.end());
    program_has_ended_well(&dialer.folder, &there);
    let arrived = &here["arrived"];
    assert_eq!(
        (&arrived["sessions"], &arrived["moves"]),
        (&json!(1), &json!(0)),
        "{here:#}"
    );
    let refused = arrived["moves_refused"].as_u64().unwrap();
    assert!(refused > 0, "{here:#}");
    // The eavesdropper has received welcomes and requests, which are useless, and no packet.
    for bytes in all_that_came(&stranger) {
        let body = decode(&bytes).map(|(_, body)| body);
        assert!(
            matches!(body, Ok(Body::Welcome { .. } | Body::Challenge(_))),
            "{body:?}"
        );
    }
    let joined = join(&dialer.folder, &listener.folder);
    for direction in [&joined["there"], &joined["back"]] {
        for kind in ["unknown", "again", "contradicting"] {
            assert_eq!(direction[kind], 0, "{joined:#}");
        }
    }
    // A reader of this document alone is informed.
    let remarks = joined["remarks"].to_string();
    assert_eq!(
        remarks.contains("sends copies"),
        refused >= 10,
        "{joined:#}"
    );
}

#[test]
fn copies_that_come_first_do_not_move_the_listener() {
    let _turn = my_turn();
    if can_emulate() {
        copies_that_come_first("tunnel-race", 3);
    }
}

#[test]
fn copies_of_everything_that_come_first_do_not_either() {
    let _turn = my_turn();
    if can_emulate() {
        copies_that_come_first("tunnel-race-all", 1);
    }
}

#[test]
fn who_forwards_faster_than_the_path_does_not_get_in_between() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("tunnel-forward");
    let end = json!({"bind": "127.0.0.1:0"});
    let mut listener = End::start(&folder, "listener", &format!("receive {BYTES}"), &end);
    let address = listener.address();
    let to: SocketAddr = address.parse().unwrap();
    let relay = Arc::new(socket());
    let dialer_at = Arc::new(OnceLock::<SocketAddr>::new());
    // All datagrams to the listener after the handshake, which precedes the first clock message.
    let copier = relay.clone();
    let guard: Arc<Guard> = Arc::new(move |to_listener, bytes: &[u8]| {
        let is_handshake = matches!(
            decode(bytes),
            Ok((header, _)) if header.session == 0
        );
        if to_listener && !is_handshake {
            let _ = copier.send_to(bytes, to);
        }
        true
    });
    let path = Path::guarded(&address, DELAY, &guard);
    // And all answers are forwarded to the dialer immediately.
    let (back, known) = (relay.clone(), dialer_at.clone());
    let forwarded = Arc::new(AtomicU64::new(0));
    let packets = forwarded.clone();
    let stop = Arc::new(AtomicU64::new(0));
    let stopped = stop.clone();
    let thread = std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while stopped.load(Ordering::Relaxed) == 0 {
            let (Ok(length), Some(dialer)) = (back.recv(&mut buffer), known.get()) else {
                continue;
            };
            let bytes = &buffer[..length];
            if !matches!(decode(bytes), Ok((_, Body::Challenge(_)))) {
                packets.fetch_add(1, Ordering::Relaxed);
            }
            let _ = back.send_to(bytes, dialer);
        }
    });
    let call = json!({"dial": path.address.to_string()});
    let mut dialer = End::start(&folder, "dialer", &format!("send {BYTES}"), &call);
    dialer.until("open").expect("the tunnel opens");
    dialer_at.set(path.dialer().unwrap()).unwrap();
    let (there, here) = (dialer.end(), listener.end());
    stop.store(1, Ordering::Relaxed);
    thread.join().unwrap();
    program_has_ended_well(&dialer.folder, &there);
    assert_eq!(here["arrived"]["moves"], 0, "{here:#}");
    assert!(
        here["arrived"]["moves_refused"].as_u64().unwrap() > 0,
        "{here:#}"
    );
    assert_eq!(forwarded.load(Ordering::Relaxed), 0);
}

#[test]
fn a_dialer_whose_port_changes_is_followed_without_another_session() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("tunnel-moves");
    let end = json!({"bind": "127.0.0.1:0"});
    let mut listener = End::start(&folder, "listener", &format!("receive {BYTES}"), &end);
    let path = Path::guarded(&listener.address(), DELAY, &free());
    let call = json!({"dial": path.address.to_string()});
    let mut dialer = End::start(&folder, "dialer", &format!("send {BYTES}"), &call);
    dialer.until("open").expect("the tunnel opens");
    // In the middle of the transfer, which takes more than 3500 datagrams.
    while path.seen() < 1_000 {
        std::thread::sleep(Duration::from_millis(1));
    }
    path.move_away();
    let (there, here) = (dialer.end(), listener.end());
    program_has_ended_well(&dialer.folder, &there);
    let arrived = &here["arrived"];
    assert_eq!(
        [
            &arrived["sessions"],
            &arrived["moves"],
            &arrived["moves_refused"]
        ],
        [&json!(1), &json!(1), &json!(0)],
        "{here:#}"
    );
    assert_eq!(here["path_bytes"], 1500, "{here:#}");
}
