//! Plan of a shell: the path, and options of its display and record.

use narrows_cell::RunError;
use narrows_net::{Files, Network, Packet, Plan as NetworkPlan};
use narrows_units::Span;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

/// The format that is read.
const FORMAT: &str = "narrows/shell/1";

/// A shell's description, checked and typed.
#[derive(Clone, Debug)]
pub struct ShellPlan {
    /// As it was given.
    pub json: Value,
    /// Contents of the files that it names.
    pub files: Files,
    /// Everything else.
    pub options: ShellOptions,
}

/// Options other than the path.
#[derive(Clone, Debug, Deserialize)]
pub struct ShellOptions {
    format: String,
    /// Seed of all random numbers.
    #[serde(default = "one")]
    pub seed: u64,
    /// Congestion control of data from outside; by default the kernel's choice.
    #[serde(default)]
    pub congestion: Option<String>,
    /// Show a live line.
    #[serde(default)]
    pub live: bool,
    /// Show it even if standard error is not a terminal.
    #[serde(default)]
    pub live_anywhere: bool,
    /// Print no summary.
    #[serde(default)]
    pub quiet: bool,
    /// Folder of a record.
    #[serde(default)]
    pub log: Option<PathBuf>,
    /// File for the summary as JSON; `-` is standard error.
    #[serde(default)]
    pub summary: Option<PathBuf>,
    /// Time between samples of the queues.
    #[serde(default = "ten_ms")]
    sample_ns: u64,
}

fn one() -> u64 {
    1
}

fn ten_ms() -> u64 {
    10_000_000
}

impl ShellPlan {
    /// Reads a plan; `files` provides the files that it names.
    ///
    /// # Errors
    /// Anything that would prevent it from running.
    pub fn parse(
        text: &str,
        files: impl FnOnce(&Value) -> Result<Files, RunError>,
    ) -> Result<ShellPlan, RunError> {
        let input = |error: serde_json::Error| {
            RunError::Input(format!("the plan of the shell cannot be read: {error}"))
        };
        let json: Value = serde_json::from_str(text).map_err(input)?;
        let options = ShellOptions::deserialize(&json).map_err(input)?;
        if options.format != FORMAT {
            return Err(RunError::Input(format!(
                "the plan has the format '{}', but this program reads '{FORMAT}'",
                options.format
            )));
        }
        if options.sample_ns == 0 {
            return Err(RunError::Input("sample_ns must be at least 1".to_owned()));
        }
        if json["network"]["kind"] != "dumbbell" {
            return Err(RunError::Input(
                "the network of a shell must be a single path".to_owned(),
            ));
        }
        let files = files(&json)?;
        Ok(ShellPlan {
            json,
            files,
            options,
        })
    }

    /// Time between samples of the queues.
    pub fn sample(&self) -> Span {
        Span::from_ns(self.options.sample_ns)
    }

    /// Names of the elements whose rates the timeline replaces.
    pub fn replaced_rates(&self) -> Vec<String> {
        narrows_cell::replaced_rates(&self.json["timeline"])
    }

    /// Builds the path with everything in it idle.
    ///
    /// # Errors
    /// Unknown elements or rejected parameters.
    pub fn network<P: Packet + 'static>(&self) -> Result<Network<P>, RunError> {
        Network::new(&NetworkPlan {
            network: &self.json["network"],
            timeline: &self.json["timeline"],
            flows: &[],
            seed: self.options.seed,
            files: &self.files,
        })
        .map_err(|error| RunError::Input(error.to_string()))
    }
}
