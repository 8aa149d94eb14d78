//! Incomplete folders.

use super::*;
use crate::tunnel::join;
use narrows_tunnel::log::{Columns, Content};
use narrows_units::Time;
use proptest::prelude::*;
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder of an end, removed afterwards.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn block(kind: LogKind, ids: std::ops::Range<u64>, arrived_ns: fn(u64) -> u64) -> Vec<u8> {
    let mut columns = Columns::new(kind);
    for id in ids {
        columns.push(TunnelLogRow {
            id,
            sent: Time::from_ns(1_000_000_000 + id * 1_000_000),
            arrived: Time::from_ns(arrived_ns(id)),
            size: 100,
            content: Content::Packet,
            tos: 0,
            flow: 0,
        });
    }
    let mut bytes = Vec::new();
    columns.drain_into(&mut bytes);
    bytes
}

fn on_time(id: u64) -> u64 {
    1_010_000_000 + id * 1_000_000
}

/// An end that sent and received 30 packets, in three blocks each.
fn end(role: &str) -> Made {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("narrows-end-{}-{number}", std::process::id());
    let made = Made(std::env::temp_dir().join(name));
    fs::create_dir_all(&made.0).unwrap();
    let rows = json!({"sent": 30, "arrived": 30});
    let document = json!({"format": FORMAT, "role": role, "log_rows": rows});
    made.write(FILE, document.to_string().as_bytes());
    for kind in [LogKind::Sent, LogKind::Arrived] {
        made.write(file_name(kind), &blocks(kind, |_| true));
    }
    made
}

fn blocks(kind: LogKind, keep: impl Fn(u64) -> bool) -> Vec<u8> {
    let kept = (0..3).filter(|&number| keep(number));
    kept.flat_map(|number| block(kind, number * 10..(number + 1) * 10, on_time))
        .collect()
}

impl Made {
    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    fn refusal(&self) -> String {
        EndFolder::read(&self.0, false).err().unwrap().to_string()
    }

    fn lenient(&self) -> EndFolder {
        EndFolder::read(&self.0, true).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn no_block_is_missing_unnoticed(keep in any::<[bool; 3]>(), sent in any::<bool>()) {
        let kind = if sent { LogKind::Sent } else { LogKind::Arrived };
        let made = end("dialer");
        made.write(file_name(kind), &blocks(kind, |number| keep[number as usize]));
        let count = 10 * keep.iter().filter(|&&kept| kept).count();
        if count == 30 {
            prop_assert!(EndFolder::read(&made.0, false).unwrap().remarks.is_empty());
            return Ok(());
        }
        let name = file_name(kind);
        let said = format!("{name}: has {count} of the 30 rows that tunnel.json lists");
        let refusal = made.refusal();
        prop_assert!(refusal.contains(&said), "{}", refusal);
        prop_assert!(refusal.ends_with("; --lenient uses the existing ones"));
        let read = made.lenient();
        prop_assert_eq!(read.remarks.len(), 1);
        prop_assert!(read.remarks[0].ends_with(&said));
    }
}

#[test]
fn what_a_killed_agent_has_left_is_read_when_asked_for() {
    let made = end("dialer");
    for name in [FILE, SENT, ARRIVED] {
        fs::rename(made.0.join(name), unfinished(&made.0, name)).unwrap();
    }
    let known = json!({"format": FORMAT, "role": "dialer"}).to_string();
    made.write("tunnel.json.part", known.as_bytes());
    let mut cut = blocks(LogKind::Arrived, |number| number < 2);
    cut.pop();
    made.write("arrived.ntl.part", &cut);
    let refusal = made.refusal();
    assert!(
        refusal.contains(
            "the agent was killed, or still runs; --lenient uses the data written so far"
        ),
        "{refusal}"
    );
    let read = made.lenient();
    assert_eq!((read.sent.len(), read.arrived.len()), (30, 10));
    assert_eq!(read.role(), "dialer");
    assert!(read.remarks[0].contains("its agent was killed"));
    assert!(read.remarks[1].contains("arrived.ntl.part: the block at byte"));
    // Together with the other end that is a result.
    let other = end("listener");
    let joined = join(&other.0, &made.0, true).unwrap();
    assert_eq!(joined["back"]["arrived"], 30);
    assert_eq!(joined["there"]["arrived"], 10);
    assert_eq!(
        (&joined["there"]["lost"], &joined["there"]["undecided"]),
        (&json!(0), &json!(20))
    );
}

#[test]
fn a_hint_is_given_where_it_helps() {
    let made = end("dialer");
    let whole = blocks(LogKind::Sent, |_| true);
    let hint = "; --lenient uses the part before it";
    for (bytes, helps) in [
        (&whole[..whole.len() - 1], true),
        (&whole[..5], false),
        (&b"no log at all"[..], false),
        (&blocks(LogKind::Arrived, |_| true), false),
    ] {
        made.write(SENT, bytes);
        let refusal = made.refusal();
        assert_eq!(refusal.ends_with(hint), helps, "{refusal}");
    }
}

#[test]
fn only_regular_files_are_read() {
    for name in [FILE, SENT, ARRIVED] {
        let made = end("dialer");
        fs::remove_file(made.0.join(name)).unwrap();
        let refusal = made.refusal();
        assert!(
            refusal.contains(&format!("{name}: No such file")),
            "{refusal}"
        );
        fs::create_dir(made.0.join(name)).unwrap();
        let refusal = made.refusal();
        assert!(
            refusal.ends_with(&format!("{name}: is not a regular file")),
            "{refusal}"
        );
    }
}

#[test]
fn why_clocks_cannot_be_compared_is_told() {
    let told = |arrived: &[u8], rows: u32| {
        let (here, there) = (end("dialer"), end("listener"));
        there.write(ARRIVED, arrived);
        let rows = json!({"sent": 30, "arrived": rows});
        let document = json!({"format": FORMAT, "role": "listener", "log_rows": rows});
        there.write(FILE, document.to_string().as_bytes());
        let error = join(&here.0, &there.0, false).unwrap_err().to_string();
        (error, there.0.display().to_string())
    };
    let (silent, folder) = told(&[], 0);
    assert!(
        silent.starts_with(&format!("{folder}: no packet has arrived at this end")),
        "{silent}"
    );
    let (wild, _) = told(&block(LogKind::Arrived, 0..30, |_| 1 << 62), 30);
    assert!(wild.contains("no relation of two clocks fits"), "{wild}");
    assert!(wild.contains("30 of them are years away"), "{wild}");
}
