//! Runs a cell and writes its record.

use crate::World;
use narrows_cell::{
    Cell, CellError, FolderError, RecordFolder, SampleFiles, SchemeRef, Silence, versions,
};
use narrows_record::{Log, PacketFile, RunDocument, Severity};
use narrows_units::{Span, Time};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Virtual time between two calls of the progress function and two writes to the disk.
const STEP: Span = Span::from_ms(100);

/// Reasons for which a cell could not be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The cell cannot run.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// The record cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The caller asked to stop.
    #[error("the simulation was interrupted")]
    Interrupted,
}

/// Simulates `cell` and writes its record to `out`. `progress` is called with the virtual time from
/// time to time; when it returns `false`, the simulation stops and leaves no files.
///
/// # Errors
/// A cell that cannot run, a record that cannot be written, an interruption.
pub fn run(
    cell: &Cell,
    out: &Path,
    progress: &mut dyn FnMut(Time) -> bool,
) -> Result<RunDocument, SimError> {
    let mut world = World::new(cell)?;
    let folder = RecordFolder::create(out)?;
    let mut packets = match world.exchange.transit.log {
        Log::Packets(_) => Some(folder.packets()?),
        Log::Bins(_) | Log::Nothing(_) => None,
    };
    let mut samples = folder.samples()?;
    let mut now = Time::ZERO;
    while now < cell.duration {
        now = (now + STEP).min(cell.duration);
        world.run_until(now);
        drain(&mut world, &mut packets, &mut samples, &folder)?;
        if !progress(now) {
            return Err(SimError::Interrupted);
        }
    }
    world.finish();
    drain(&mut world, &mut packets, &mut samples, &folder)?;
    samples.finish()?;
    if let Some(packets) = packets {
        packets
            .finish()
            .map_err(|error| folder.packets_error(error))?;
    }
    if let Log::Bins(log) = &world.exchange.transit.log {
        folder.bins(log)?;
    }
    let (transfers, counted) = world.applications.take_transfers();
    folder.transfers(cell, transfers, counted)?;
    folder.frames(&world.frames())?;
    let unknown = cell.unknown_rates();
    let capacity = narrows_cell::capacity_rows(
        &world.exchange.transit.network,
        cell.duration,
        cell.bin,
        &unknown,
    );
    folder.capacity(capacity)?;
    let mut document = describe(cell, &world);
    // Its memory is now available to the verifier.
    drop(world);
    folder.complete(&mut document)?;
    Ok(document)
}

/// Simulates `cell` to its end without writing files, for benchmarks and tests.
///
/// # Errors
/// A cell that cannot run.
pub fn run_in_memory(cell: &Cell) -> Result<(World, RunDocument), CellError> {
    let mut world = World::new(cell)?;
    let mut now = Time::ZERO;
    while now < cell.duration {
        now = (now + STEP).min(cell.duration);
        world.run_until(now);
        if let Log::Packets(log) = &mut world.exchange.transit.log {
            while let Some(chunk) = log.take() {
                log.recycle(chunk);
            }
        }
    }
    world.finish();
    let document = describe(cell, &world);
    Ok((world, document))
}

fn drain(
    world: &mut World,
    packets: &mut Option<PacketFile<BufWriter<File>>>,
    samples: &mut SampleFiles<'_>,
    folder: &RecordFolder,
) -> Result<(), FolderError> {
    samples.drain(
        &mut world.samples.states,
        &mut world.samples.traces,
        &mut world.samples.queues,
    )?;
    match (&mut world.exchange.transit.log, packets) {
        (Log::Packets(log), Some(file)) => {
            file.drain(log).map_err(|error| folder.packets_error(error))
        }
        _ => Ok(()),
    }
}

pub(crate) fn describe(cell: &Cell, world: &World) -> RunDocument {
    let mut document = RunDocument::new(cell.json.clone(), "simulate", versions());
    document.elements = narrows_cell::element_counters(
        &world.exchange.transit.network,
        cell.duration,
        &cell.replaced_rates(),
    );
    let mut silent = Vec::new();
    for (flow, state) in cell.flows.iter().zip(&world.applications.flows.all) {
        let mut summary = narrows_cell::described(flow);
        let totals = world.counters(state);
        if let Some(report) = world.datagrams(state) {
            summary.sender.sent_packets = Some(totals.sender.sent_packets);
            summary.sender.sent_bytes = Some(totals.sender.sent_bytes);
            summary.receiver = narrows_cell::sink_counters(&report);
        } else {
            summary.sender = narrows_cell::sender_counters(&totals.sender);
            summary.receiver = narrows_cell::receiver_counters(&totals.receiver);
        }
        if let SchemeRef::Media(..) = flow.scheme {
            narrows_cell::judge_frames(&mut document, flow, state.frames.1);
        } else {
            summary.offered = narrows_cell::offered(cell, flow, &state.offered);
        }
        let facts = state.application.facts();
        if !facts.is_empty() {
            let facts = facts
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into()));
            summary.other.insert(
                "traffic".into(),
                facts.collect::<serde_json::Map<_, _>>().into(),
            );
        }
        let wanted = !flow.is_paused() && summary.offered.is_none_or(|offered| offered.bytes > 0);
        if wanted && summary.receiver.received_packets == Some(0) {
            silent.push(flow);
        }
        document.flows.push(summary);
    }
    if !silent.is_empty() {
        let silence = Silence::new(&document);
        let texts = silent.iter().map(|flow| {
            let missing = format!("No data of flow {} ({})", flow.flow, flow.name);
            silence.sentence(&missing, flow.flow)
        });
        for text in texts.collect::<Vec<_>>() {
            document.judge(Severity::Invalid, "silent", text);
        }
    }
    document
}
