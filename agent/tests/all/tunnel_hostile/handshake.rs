//! Attacks before there is a session.

use super::path::{Guard, Path, free, socket};
use crate::common::tunnel::End;
use crate::common::{Folder, can_emulate, failure, last_event, my_turn};
use serde_json::json;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const BYTES: usize = 200_000;
/// The first byte of a hello in all versions.
const HELLO: u8 = 1;

/// An unanswered hello of a caller with the secret.
fn recorded_hello(folder: &Folder, name: &str) -> Vec<u8> {
    let ear = UdpSocket::bind("127.0.0.1:0").unwrap();
    ear.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let to = ear.local_addr().unwrap().to_string();
    // Ends when it is dropped.
    let _caller = End::start(folder, name, "wait", &json!({"dial": to}));
    let mut buffer = [0; 2048];
    let (length, _) = ear.recv_from(&mut buffer).unwrap();
    assert_eq!(buffer[0], HELLO);
    buffer[..length].to_vec()
}

/// Sends the same datagram repeatedly.
struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    fn start(to: SocketAddr, bytes: Vec<Vec<u8>>, per_second: u32) -> Flood {
        let (stop, sent): (Arc<AtomicBool>, Arc<AtomicU64>) = Default::default();
        let (stopped, count) = (stop.clone(), sent.clone());
        let thread = std::thread::spawn(move || {
            let socket = socket();
            for bytes in bytes.iter().cycle() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let _ = socket.send_to(bytes, to);
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_secs(1) / per_second);
            }
        });
        Flood {
            stop,
            sent,
            thread: Some(thread),
        }
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn recorded_hellos_do_not_keep_a_dialer_out() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("tunnel-hellos");
    let recorded: Vec<Vec<u8>> = (0..3)
        .map(|index| recorded_hello(&folder, &format!("old{index}")))
        .collect();
    for (round, (rate, hellos)) in [(20, 1), (100, 1), (1_000, 1), (1_000, 3)]
        .into_iter()
        .enumerate()
    {
        let part = format!("receive {BYTES}");
        // If it does not open, the test has to fail soon.
        let end = json!({"bind": "127.0.0.1:0", "patience_ns": 15_000_000_000u64});
        let mut listener = End::start(&folder, &format!("listener{round}"), &part, &end);
        let delay = Duration::from_millis(10);
        let path = Path::guarded(&listener.address(), delay, &free());
        let flood = Flood::start(path.listener, recorded[..hellos].to_vec(), rate);
        while flood.sent() < 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let call = json!({"dial": path.address.to_string(), "silence_ns": 2_000_000_000u64});
        let part = format!("send {BYTES}");
        let mut dialer = End::start(&folder, &format!("dialer{round}"), &part, &call);
        let there = dialer.end();
        assert_eq!(
            there["reason"], "program_ended",
            "{rate} per second: {there:#}"
        );
        assert_eq!(there["program"]["exit_code"], 0, "{there:#}");
        let here = listener.end();
        for end in [&there, &here] {
            assert_eq!(end["arrived"]["sessions"], 1, "{rate} per second: {end:#}");
            assert_eq!(end["arrived"]["moves"], 0, "{end:#}");
        }
        // The flood continued all the time.
        assert!(here["arrived"]["messages"].as_u64().unwrap() > 3);
    }
}

#[test]
fn a_dialer_says_that_it_is_open_only_when_the_listener_is() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("tunnel-one-way");
    let end = json!({"bind": "127.0.0.1:0", "patience_ns": 3_000_000_000u64});
    let mut listener = End::start(&folder, "listener", "wait", &end);
    // Calls and all answers pass; later messages do not.
    let guard: Arc<Guard> = Arc::new(|to_listener, bytes: &[u8]| !to_listener || bytes[0] == HELLO);
    let path = Path::guarded(&listener.address(), Duration::ZERO, &guard);
    let call = json!({"dial": path.address.to_string(), "patience_ns": 1_500_000_000u64,
                      "silence_ns": 500_000_000u64});
    let dialer = End::start(&folder, "dialer", "wait", &call).output();
    let message = failure(&dialer, 4, "unavailable");
    assert!(message.contains("but later ones were lost"), "{message}");
    let told = String::from_utf8_lossy(&dialer.stdout);
    assert!(!told.contains("\"open\""), "{told}");
    assert!(!dialer.stdout.is_empty() && last_event(&dialer)["event"] == "error");
    let message = failure(&listener.output(), 4, "unavailable");
    assert!(message.contains("but later ones were lost"), "{message}");
}
