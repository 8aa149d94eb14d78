//! Columnar files of one schema: their columns, a reader and a writer.

mod decoder_panics;
mod kind;
mod reader;
mod values;
mod words;
mod writer;

pub(crate) use kind::Kind;
pub(crate) use reader::{TableReader, kind_of_column};
pub(crate) use values::{Batch, Data, Values, optional_int64};
pub(crate) use writer::TableWriter;

use std::borrow::Cow;

/// Encoding of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// DELTA_BINARY_PACKED: counters and times.
    Delta,
    /// Dictionary: few distinct values.
    Words,
    /// Plain values: floating point.
    Plain,
}

/// One column of a schema.
pub struct Column {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: Kind,
    pub(crate) nullable: bool,
    pub(crate) coding: Coding,
    /// True if files of the first release lack it, so that readers must not require it. Such
    /// columns come last.
    pub(crate) added: bool,
}

/// A column without nulls.
pub(crate) fn column(name: &'static str, kind: Kind, coding: Coding) -> Column {
    Column {
        name: Cow::Borrowed(name),
        kind,
        nullable: false,
        coding,
        added: false,
    }
}

/// A column that may hold nulls.
pub(crate) fn optional(name: &'static str, kind: Kind, coding: Coding) -> Column {
    Column {
        name: Cow::Borrowed(name),
        kind,
        nullable: true,
        coding,
        added: false,
    }
}

/// A column that may hold nulls and that files of the first release do not have.
pub(crate) fn added(name: &'static str, kind: Kind, coding: Coding) -> Column {
    Column {
        added: true,
        ..optional(name, kind, coding)
    }
}
