//! Writers of the columnar files: parquet, compressed with zstd.
//!
//! Files hold nothing but the rows: no time of writing, no host. The same rows give the same
//! bytes, so simulated records can be compared byte by byte.

mod packets;
mod table;

pub use packets::PacketFile;

pub(crate) use packets::columns as packet_columns;
pub use table::Column;
pub(crate) use table::{Coding, TableWriter, column};

pub use crate::rows::{Row, RowFile};
