//! Pantheon's tunnel logs: reading them, Pantheon's statistics, and conversion into records and
//! back.
//!
//! Pantheon (Yan et al., USENIX ATC 2018) ran every flow through a tunnel that numbered each packet
//! and logged, at both ends, when it was sent and received. It merged these *raw* logs into one log
//! per run and direction, and measured that.
//!
//! ```text
//! egress log  \                                                /-> Statistics (Pantheon's numbers)
//!              merge -> Link -> join -> merged log -> read -> Link
//! ingress log /                                                \-> Packets -> packets.parquet
//! ```
//!
//! A [`Link`] is one direction of a run: packets that all flows sent, their arrivals, and the
//! opportunities of the emulated link. All times are nanoseconds; logs have milliseconds with three
//! decimals. Sizes are those of the tunnel's outer IP packets, as the path carries them: 36 bytes
//! more than the packets of the scheme.
//!
//! Like everything under `core/`, this crate opens no file and reads no clock: its input and output
//! are bytes.
#![forbid(unsafe_code)]

mod document;
mod error;
mod export;
mod link;
mod merged;
mod opportunities;
mod origin;
mod packets;
mod scan;
mod statistics;
mod tunnel;

pub use document::{Outcome, Task, import};
pub use error::{LogError, NoRun};
pub use export::{Exported, export};
pub use link::{Arrived, NO_PACKET, OneDirection, Opportunity, SentLine, join};
pub use merged::{Reading, read_merged, write_merged};
pub use packets::{Packets, Shifts};
pub use statistics::{Figures, MIN_SHARE, Statistics};
pub use tunnel::{Offsets, RawLogSide, TunnelLog, merge, read_tunnel};
