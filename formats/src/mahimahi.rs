//! Logs of mahimahi's links: `mm-link --uplink-log FILE --downlink-log FILE`.
//!
//! ```text
//! # base timestamp: 0
//! 21 + 1504          arrived at the queue
//! 40 # 1504          the link could have carried so much
//! 40 - 1504 19       left it, after 19 ms
//! 52 d 1 1504        dropped so many packets of so many bytes in all
//! ```
//!
//! Times are whole milliseconds, and sizes those of packets with four bytes of mahimahi's own before them.

use crate::FormatError;
use narrows_pantheon::{Arrived, NO_PACKET, OneDirection, Opportunity, SentLine};

const MS: i64 = 1_000_000;
/// Bytes that the kernel puts in front of an IP packet of a tunnel device.
const TUN_HEADER: u32 = 4;

/// Reads the log of one direction of a link, whose packets are all of one flow.
///
/// # Errors
/// A line that is none of such a log, with its number, or a log without packets.
pub fn read(bytes: &[u8]) -> Result<OneDirection, FormatError> {
    let mut link = OneDirection::default();
    let mut init = None;
    for (number, line) in (1_u32..).zip(bytes.split(|&byte| byte == b'\n')) {
        let wrong = || {
            FormatError::input(format!(
                "line {number} is none of a log of mahimahi's mm-link"
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
        entry(&mut link, line, number).ok_or_else(wrong)?;
    }
    if link.sent.is_empty() && link.arrived.is_empty() {
        return Err(FormatError::input("the log has no packets"));
    }
    link.base_ns = init.and_then(|ms| ms.checked_mul(MS)).unwrap_or(0);
    link.match_up();
    link.arrived.retain(|arrived| arrived.sent != NO_PACKET);
    Ok(link)
}

fn entry(link: &mut OneDirection, line: &str, number: u32) -> Option<()> {
    let mut words = line.split_ascii_whitespace();
    let time_ns = words.next()?.parse::<i64>().ok()?.checked_mul(MS)?;
    let what = words.next()?;
    let size = words.next()?.parse::<u32>().ok()?;
    let packet = size.saturating_sub(TUN_HEADER);
    match what {
        "+" => link.sent.push(SentLine {
            time_ns,
            size: packet,
            flow: 1,
        }),
        "-" => link.arrived.push(Arrived {
            time_ns,
            delay_ns: words.next()?.parse::<i64>().ok()?.checked_mul(MS)?,
            size: packet,
            flow: 1,
            line: number,
            sent: NO_PACKET,
        }),
        "#" => link.opportunities.push(Opportunity {
            time_ns,
            bytes: packet,
        }),
        // Which packets were dropped follows from those that never left.
        "d" => {
            words.next()?.parse::<u64>().ok()?;
        }
        _ => return None,
    }
    words.next().is_none().then_some(())
}
