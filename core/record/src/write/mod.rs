//! Writers of the columnar files: parquet, compressed with zstd.
//!
//! Files contain only the rows: no time of writing, no host. The same rows result in the same
//! bytes, so that simulated records can be compared byte by byte.

mod packets;

pub use packets::PacketFile;

pub use crate::table::Column;
pub(crate) use packets::columns as packet_columns;

pub use crate::rows::{Row, RowFile};
