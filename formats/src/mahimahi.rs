//! Logs of mahimahi's links: `mm-link --uplink-log FILE --downlink-log FILE`.
//!
//! ```text
//! # base timestamp: 0
//! 21 + 1504          arrived at the queue
//! 40 # 1504          the link could have carried so much
//! 40 - 1504 19       left it, after 19 ms
//! 52 d 1 1504        dropped so many packets of so many bytes in all
//! 21 + 1504 47492 5201
//!                    the same by a fork that logs the ports of each packet
//! ```
//!
//! Times are whole milliseconds, and sizes those of packets with four bytes of mahimahi's own before them.

use crate::FormatError;
use narrows_pantheon::{Arrived, NO_PACKET, OneDirection, Opportunity, SentLine};
use std::collections::BTreeMap;

const MS: i64 = 1_000_000;
/// Bytes that the kernel puts in front of an IP packet of a tunnel device.
const TUN_HEADER: u32 = 4;

/// One log.
#[derive(Debug)]
pub struct Log {
    /// Its packets and opportunities; flows are numbered from 1 in the order of their first packets.
    pub link: OneDirection,
    /// The two ports of each flow, the smaller one first; empty if the log does not contain them.
    pub ports: Vec<(u16, u16)>,
    /// Departures of packets whose arrival is not in the log; they are excluded.
    pub strangers: usize,
    /// True if the last line has no terminator, so that it may be truncated; it is excluded.
    pub cut: bool,
}

/// Reads the log of one direction of a link.
///
/// # Errors
/// An invalid line, with its number, or a log without packets.
pub fn read(bytes: &[u8]) -> Result<Log, FormatError> {
    let mut link = OneDirection::default();
    let mut flows = Flows::default();
    let mut init = None;
    // The program's last line is complete only if its terminator was written.
    let whole = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |end| end + 1);
    let (lines, rest) = bytes.split_at(whole);
    for (number, line) in (1_u32..).zip(lines.split(|&byte| byte == b'\n')) {
        let wrong = || {
            FormatError::input(format!(
                "line {number} is not a line of a log of mahimahi's mm-link"
            ))
        };
        let line = std::str::from_utf8(line).map_err(|_| wrong())?.trim();
        if line.is_empty() {
            continue;
        }
        if let Some(comment) = line.strip_prefix('#') {
            if let Some(time) = comment.trim().strip_prefix("init timestamp:") {
                init = time.trim().parse::<i64>().ok();
            }
            continue;
        }
        entry(&mut link, &mut flows, line, number).ok_or_else(wrong)?;
    }
    if link.sent.is_empty() {
        return Err(FormatError::input("the log has no packets"));
    }
    link.base_ns = init.and_then(|ms| ms.checked_mul(MS)).unwrap_or(0);
    link.match_up();
    let departures = link.arrived.len();
    link.arrived.retain(|arrived| arrived.sent != NO_PACKET);
    Ok(Log {
        strangers: departures - link.arrived.len(),
        cut: !rest.trim_ascii().is_empty(),
        ports: flows.ports,
        link,
    })
}

/// Numbers of flows by their ports.
#[derive(Default)]
struct Flows {
    numbers: BTreeMap<(u16, u16), u16>,
    ports: Vec<(u16, u16)>,
}

impl Flows {
    /// The flow of a packet, by the two ports at the end of its line, if present. Both directions of a connection have
    /// the same ports.
    fn number<'a>(&mut self, mut words: impl Iterator<Item = &'a str>) -> Option<u16> {
        let Some(first) = words.next() else {
            return Some(1);
        };
        let ports = (
            first.parse::<u16>().ok()?,
            words.next()?.parse::<u16>().ok()?,
        );
        if words.next().is_some() {
            return None;
        }
        let ports = (ports.0.min(ports.1), ports.0.max(ports.1));
        if let Some(&number) = self.numbers.get(&ports) {
            return Some(number);
        }
        let number = u16::try_from(self.ports.len() + 1).ok()?;
        self.ports.push(ports);
        self.numbers.insert(ports, number);
        Some(number)
    }
}

fn entry(link: &mut OneDirection, flows: &mut Flows, line: &str, number: u32) -> Option<()> {
    let mut words = line.split_ascii_whitespace();
    let time_ns = words.next()?.parse::<i64>().ok()?.checked_mul(MS)?;
    let what = words.next()?;
    let size = words.next()?.parse::<u32>().ok()?;
    let packet = size.saturating_sub(TUN_HEADER);
    match what {
        "+" => link.sent.push(SentLine {
            time_ns,
            size: packet,
            flow: flows.number(words)?,
        }),
        "-" => {
            let delay_ns = words.next()?.parse::<i64>().ok()?.checked_mul(MS)?;
            link.arrived.push(Arrived {
                time_ns,
                delay_ns: Some(delay_ns).filter(|&delay| delay >= 0 && delay <= time_ns)?,
                size: packet,
                flow: flows.number(words)?,
                line: number,
                sent: NO_PACKET,
            });
        }
        "#" => {
            link.opportunities.push(Opportunity {
                time_ns,
                bytes: packet,
            });
            return words.next().is_none().then_some(());
        }
        // Packets that never left were dropped.
        "d" => {
            words.next()?.parse::<u64>().ok()?;
            flows.number(words)?;
        }
        _ => return None,
    }
    Some(())
}
