//! A tunnel with traffic, on a path with an attacker who reads every datagram, and sends arbitrary datagrams to both
//! ends as fast as possible. The attacker does not know the secret, but has hellos of a caller who does.
//!
//! ```text
//!   dialer <---> the path (relays and takes copies) <---> listener
//!                      |            strangers ------------^ (and to the dialer)
//!                      +-- copies --^
//! ```

mod attacker;
mod handshake;
mod liar;
mod path;
mod race;

use crate::common::tunnel::{End, Logs, Shift, join};
use crate::common::{Folder, can_emulate, my_turn};
use attacker::Attacker;
use path::Path;
use serde_json::{Value, json};

const BYTES: usize = 5_000_000;

#[test]
fn a_running_tunnel_is_neither_crashed_nor_confused() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("tunnel-hostile");
    let shift = json!({"offset_ns": -1_000_000_000i64, "drift_ppb": 80_000});
    let end = json!({"bind": "127.0.0.1:0", "clock": shift});
    let mut listener = End::start(&folder, "listener", &format!("receive {BYTES}"), &end);
    let path = Path::to(&listener.address());
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
        // An end cannot be made to believe in a larger path MTU than that of its interface.
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

    // Both logs are of one tunnel and contain nothing else.
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
    // And the clock relation is correct.
    let shift = Shift::from_document(&here);
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
