//! Shared by all drivers: the [`Cell`] that they run, and the [`RecordFolder`] that they write.
#![forbid(unsafe_code)]

pub mod addressing;
mod bounds;
mod cell;
mod check;
mod error;
mod files;
mod flow;
mod folder;
mod hosts;
pub mod judgement;
mod machine;
mod media;
mod memory;
mod noise;
mod outcome;
mod program;
mod program_reports;
mod registry;
mod results;
mod silence;
mod summary;

pub use bounds::{Bound, in_words};
pub use cell::{Cell, CellError, RecordKind, replaced_rates};
pub use check::check_scheme;
pub use error::{Context, RunError};
pub use files::{as_text, keep_file, load_files, read_regular, sha256};
pub use flow::{BpfRef, Flow, SchemeRef, TrafficRef};
pub use folder::{FolderError, RecordFolder, SampleFiles, open_record};
pub use hosts::{Host, HostSettings};
pub use machine::Machine;
pub use media::{judge_frames, media_receiver, media_sender, merge_frames};
pub use memory::RecordRows;
pub use narrows_net::MIN_LOSS;
pub use noise::{Delays, NOISES, Noise};
pub use outcome::{
    EndpointOutcome, OfferedLoad, Role, SentFrame, StateSample, TcpLimits, TransferReport,
    WakeupDelay, WakeupDelays,
};
pub use program::{
    EndPlan, EndsWith, Program, ProgramFile, ProgramLimits, ProgramReport, ProgramRoot, Readiness,
    Side, SidePlan, StandardInput,
};
pub use program_reports::ProgramReports;
pub use registry::registry;
pub use results::{EndpointResults, FlowDeliveries, FlowEnd};
pub use silence::Silence;
pub use summary::{
    capacity_rows, described, element_counters, element_names, offered, receiver_counters,
    sender_counters, sink_counters, state_row, trace_rows,
};

/// Version of Narrows.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Hash of the source tree that was built, if it was known at build time.
pub const GIT: Option<&str> = option_env!("NARROWS_GIT");

/// The version of Narrows and its source, as records keep them.
pub fn versions() -> narrows_record::Versions {
    narrows_record::Versions {
        narrows: VERSION.to_owned(),
        git: GIT.map(str::to_owned),
        extensions: extensions(),
    }
}

/// The crates of users that were built in, by `narrows extend`.
///
/// # Panics
/// When the environment of the compiler described them wrongly.
pub fn extensions() -> Vec<narrows_record::Extension> {
    option_env!("NARROWS_EXTENSIONS_BUILT").map_or_else(Vec::new, |text| {
        serde_json::from_str(text).expect("written by narrows extend")
    })
}
