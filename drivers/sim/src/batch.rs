//! Cells for which only metrics and verdict are needed: simulated, verified and measured in memory.
//!
//! No file is written and no process is started, so that a short cell costs little more than its packets. The rows are
//! those that [`crate::run`] writes, and the same code evaluates them, so that the numbers are the same.

use crate::run::describe;
use crate::{Decide, World};
use narrows_cell::{Cell, RecordRows};
use narrows_record::{Chunk, Log, Reason, Record, Verdict, metrics};
use narrows_units::{Span, Time};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Maximum virtual time between two checks of the limits.
const LONGEST: Span = Span::from_ms(100);
/// Minimum virtual time between two checks.
const SHORTEST: Span = Span::from_us(100);
/// Packets that may enter between two checks: about 20 ms of processor time.
const PACKETS: u64 = 65_536;

/// Bounds of one cell.
pub struct Limits<'a> {
    /// Maximum memory in bytes.
    pub memory: u64,
    /// Returns true when it has to stop; called by the simulating thread, about fifty times per second.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl Limits<'_> {
    /// No bounds.
    pub const UNLIMITED: Limits<'static> = Limits {
        memory: u64::MAX,
        stop: &|| false,
    };
}

/// The results of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The judgement of the run.
    pub verdict: Verdict,
    /// The reasons for the verdict.
    pub reasons: Vec<Reason>,
    /// All metrics, as returned by [`metrics::measure`].
    pub measured: Value,
}

impl Summary {
    /// An object of `verdict`, `reasons` and `measured`.
    pub fn to_json(&self) -> Value {
        json!({"verdict": self.verdict, "reasons": self.reasons, "measured": self.measured})
    }
}

/// A cell has no summary. Each message is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum CellFailure {
    /// It cannot be simulated.
    #[error("{0}")]
    Input(String),
    /// It needs more memory than allowed.
    #[error(
        "the run needs more memory than the {} that are allowed: allow more with --memory, or reduce the data in flight, in queues or in the record (lower rates and delays, shorter queues, record: bins)",
        narrows_cell::in_words(*.0, "B")
    )]
    Memory(u64),
    /// It was interrupted.
    #[error("the simulation was interrupted")]
    Interrupted,
    /// An internal error.
    #[error("{0}")]
    Internal(String),
}

impl CellFailure {
    /// A word for programs, as in the events of the agent.
    pub fn kind(&self) -> &'static str {
        match self {
            CellFailure::Input(_) => "input",
            CellFailure::Memory(_) => "memory",
            CellFailure::Interrupted => "interrupted",
            CellFailure::Internal(_) => "internal",
        }
    }
}

/// Simulates, verifies and measures `cell` on this thread. A panic only fails this cell.
///
/// # Errors
/// See [`CellFailure`].
pub fn summarise(cell: &Cell, limits: &Limits<'_>) -> Result<Summary, CellFailure> {
    summarise_by(cell, || run_to_record(cell, limits))
}

/// As [`summarise`]; `decide` makes the decisions, see [`World::run_deciding`].
///
/// # Errors
/// See [`CellFailure`].
pub fn summarise_deciding(
    cell: &Cell,
    limits: &Limits<'_>,
    decide: &mut Decide<'_>,
) -> Result<Summary, CellFailure> {
    summarise_by(cell, || run_to_record_deciding(cell, limits, decide))
}

fn summarise_by(
    cell: &Cell,
    run: impl FnOnce() -> Result<Record, CellFailure>,
) -> Result<Summary, CellFailure> {
    if let Some(why) = cell.unbounded() {
        return Err(CellFailure::Input(why));
    }
    let work = || -> Result<Summary, CellFailure> {
        let record = run()?;
        let internal =
            |error: narrows_record::RecordError| CellFailure::Internal(error.to_string());
        Ok(Summary {
            measured: metrics::measure(&record).map_err(internal)?,
            verdict: record.run.verdict,
            reasons: record.run.reasons,
        })
    };
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let what = text.unwrap_or("no message");
        Err(CellFailure::Internal(format!(
            "the simulator panicked: {what}"
        )))
    })
}

/// Simulates `cell` and keeps in memory the files that [`crate::run`] writes.
///
/// # Errors
/// See [`CellFailure`].
pub fn run_to_record(cell: &Cell, limits: &Limits<'_>) -> Result<Record, CellFailure> {
    let world = World::new(cell).map_err(|error| CellFailure::Input(error.to_string()))?;
    record(cell, limits, world, World::run_until)
}

/// As [`run_to_record`]; `decide` makes the decisions, see [`World::run_deciding`].
///
/// # Errors
/// See [`CellFailure`].
pub fn run_to_record_deciding(
    cell: &Cell,
    limits: &Limits<'_>,
    decide: &mut Decide<'_>,
) -> Result<Record, CellFailure> {
    let world = World::with_decisions_outside(cell)
        .map_err(|error| CellFailure::Input(error.to_string()))?;
    record(cell, limits, world, |world, until| {
        world.run_deciding(until, decide);
    })
}

/// Simulates `world`, that of `cell`, to its end; `advance` processes its events up to a time.
fn record(
    cell: &Cell,
    limits: &Limits<'_>,
    mut world: World,
    mut advance: impl FnMut(&mut World, Time),
) -> Result<Record, CellFailure> {
    let mut chunks = Vec::new();
    let (mut now, mut step) = (Time::ZERO, SHORTEST);
    let mut entered = 0;
    while now < cell.duration {
        now = (now + step).min(cell.duration);
        advance(&mut world, now);
        take_chunks(&mut world, &mut chunks);
        if (limits.stop)() {
            return Err(CellFailure::Interrupted);
        }
        if memory_bytes(&world) > limits.memory {
            return Err(CellFailure::Memory(limits.memory));
        }
        // A cell with a growing rate is stopped before it exceeds the limits by much.
        let since = world.exchange.transit.log.entered() - entered;
        entered += since;
        let next = if since > PACKETS {
            step.scale(1, 2)
        } else {
            step.scale(2, 1)
        };
        step = next.clamp(SHORTEST, LONGEST);
    }
    world.finish();
    take_chunks(&mut world, &mut chunks);
    let unknown = cell.unknown_rates();
    let capacity = narrows_cell::capacity_rows(
        &world.exchange.transit.network,
        cell.duration,
        cell.bin,
        &unknown,
    );
    let (transfers, counted) = world.applications.take_transfers();
    let rows = RecordRows {
        packets: matches!(world.exchange.transit.log, Log::Packets(_)).then_some(chunks),
        states: std::mem::take(&mut world.samples.states),
        traces: std::mem::take(&mut world.samples.traces),
        queues: std::mem::take(&mut world.samples.queues),
        transfers,
        counted,
        frames: world.frames(),
        capacity,
    };
    let bins = match &world.exchange.transit.log {
        Log::Bins(log) => Some(log),
        Log::Packets(_) | Log::Nothing(_) => None,
    };
    rows.complete(cell, bins, describe(cell, &world))
        .map_err(|error| CellFailure::Internal(error.to_string()))
}

fn take_chunks(world: &mut World, chunks: &mut Vec<Chunk>) {
    if let Log::Packets(log) = &mut world.exchange.transit.log {
        chunks.extend(std::iter::from_fn(|| log.take()));
    }
}

/// Bytes of a packet that has left: its row, and its copies in the verifier and the metrics.
const LEFT: u64 = 150;
/// Bytes of a packet in flight: its open row, its entries in queues and in the sender's scoreboard.
const UNDER_WAY: u64 = 400;
/// Bytes of a sample of a state, a queue or a trace with its words.
const SAMPLE: u64 = 250;

/// The memory of a cell, estimated from the parts that grow: packets, samples and transfers.
fn memory_bytes(world: &World) -> u64 {
    let left = match &world.exchange.transit.log {
        Log::Packets(log) => log.entered(),
        Log::Bins(_) | Log::Nothing(_) => 0,
    };
    let stages = world.exchange.transit.network.stages();
    let held: u64 = stages
        .map(|stage| u64::from(stage.element.held().packets))
        .sum();
    let transfers: usize = world
        .applications
        .flows
        .all
        .iter()
        .map(|flow| flow.transfers.held())
        .sum();
    let samples = world.samples.len() + transfers;
    left * LEFT + held * UNDER_WAY + samples as u64 * SAMPLE
}
