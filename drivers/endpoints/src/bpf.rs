//! Congestion controls that a run loads into the kernel before its endpoints start.
//!
//! They are loaded by the program `narrows-bpf` in the same folder, which keeps its objects until its standard input
//! ends. This process holds the other end: it closes it after the run, and if this process is killed the kernel does,
//! so that nothing stays registered.

use narrows_bpf::protocol::{
    ExitReport, LoadAnswer, LoadObstacle, LoadRequest, Loaded, RequestedObject,
};
use narrows_bpf::{Object, Program};
use narrows_cell::RunError;
use narrows_cell::{BpfRef, Cell, Flow, SchemeRef, sha256};
use narrows_record::BpfFingerprint;
use narrows_units::Params;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Name of the loader, in the folder of this program.
const LOADER: &str = "narrows-bpf";

/// A congestion control to load.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Its name in messages.
    label: String,
    /// A shipped program; `None` for a user's object.
    program: Option<&'static Program>,
    content: Vec<u8>,
    constants: BTreeMap<String, u64>,
}

impl Wish {
    /// A shipped program with parameters.
    ///
    /// # Errors
    /// It is not part of this build.
    pub fn program(program: &'static Program, params: &Params) -> Result<Wish, RunError> {
        let object = narrows_bpf::object(program);
        let label = format!("bpf:{}", program.name);
        let object = object.map_err(|error| RunError::Unavailable(format!("{label}: {error}")))?;
        Ok(Wish {
            label,
            program: Some(program),
            content: object.bytes().to_vec(),
            constants: program.constants(params),
        })
    }

    /// A user's object file; `name` is its name in messages.
    ///
    /// # Errors
    /// The file is not an object of a congestion control.
    pub fn object(name: &str, content: &[u8]) -> Result<Wish, RunError> {
        let object =
            Object::parse(content).map_err(|error| RunError::Input(format!("{name}: {error}")))?;
        Ok(Wish {
            label: name.to_owned(),
            program: None,
            content: object.bytes().to_vec(),
            constants: BTreeMap::new(),
        })
    }

    fn same(&self, other: &Wish) -> bool {
        self.content == other.content && self.constants == other.constants
    }

    /// The error sentence for an answer of the loader.
    fn refuse(&self, obstacle: LoadObstacle, message: &str) -> RunError {
        match (obstacle, self.program) {
            (LoadObstacle::Rights | LoadObstacle::Kernel, _) => {
                RunError::Unavailable(message.to_owned())
            }
            // Shipped programs are known to load elsewhere, so the kernel is the reason.
            (_, Some(_)) => RunError::Unavailable(format!(
                "this kernel does not accept {}: {message}",
                self.label
            )),
            (_, None) => RunError::Input(format!("{}: {message}", self.label)),
        }
    }
}

/// Congestion controls in the kernel during the lifetime of this object.
#[derive(Debug)]
pub struct Programs {
    loader: Child,
    wishes: Vec<Wish>,
    loaded: Vec<Loaded>,
    /// Index of the congestion control of each flow.
    flows: BTreeMap<u16, usize>,
    missed: BTreeMap<String, u64>,
}

impl Programs {
    /// Loads the congestion controls of the flows of `cell` that are `wanted`; `None` if no flow uses one. Flows with
    /// the same program and the same parameters share it.
    ///
    /// # Errors
    /// One sentence with a remedy.
    pub fn load_for(
        cell: &Cell,
        wanted: impl Fn(&Flow) -> bool,
    ) -> Result<Option<Programs>, RunError> {
        let mut wishes: Vec<Wish> = Vec::new();
        let mut flows = BTreeMap::new();
        for flow in cell.flows.iter().filter(|flow| wanted(flow)) {
            let SchemeRef::Bpf(scheme) = &flow.scheme else {
                continue;
            };
            let wish = match scheme {
                BpfRef::Program(program, params) => Wish::program(program, params)?,
                BpfRef::Object(file) => {
                    let content = cell.files.content(file);
                    let content = content
                        .map_err(|error| RunError::Input(format!("flow {}: {error}", flow.flow)))?;
                    Wish::object(&file.name, content)?
                }
            };
            let known = wishes.iter().position(|known| known.same(&wish));
            flows.insert(flow.flow, known.unwrap_or(wishes.len()));
            if known.is_none() {
                wishes.push(wish);
            }
        }
        if wishes.is_empty() {
            return Ok(None);
        }
        let mut programs = Programs::load(wishes)?;
        programs.flows = flows;
        Ok(Some(programs))
    }

    /// Loads all of `wishes`, or none.
    ///
    /// # Errors
    /// One sentence with a remedy.
    pub fn load(wishes: Vec<Wish>) -> Result<Programs, RunError> {
        let path = loader()?;
        let mut command = Command::new(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let started = command.stderr(Stdio::piped()).spawn();
        let loader = started.map_err(|error| {
            RunError::Unavailable(format!(
                "{} cannot be started ({error}); build it again with: make build",
                path.display()
            ))
        })?;
        // From here, dropping it ends the loader.
        let mut programs = Programs {
            loader,
            wishes,
            loaded: Vec::new(),
            flows: BTreeMap::new(),
            missed: BTreeMap::new(),
        };
        match programs.ask() {
            Some(LoadAnswer::Loaded(loaded)) => {
                programs.loaded = loaded;
                Ok(programs)
            }
            Some(LoadAnswer::Failed {
                object,
                obstacle,
                message,
            }) => Err(programs.wishes.get(object).map_or_else(
                || RunError::Internal(message.clone()),
                |wish| wish.refuse(obstacle, &message),
            )),
            None => Err(programs.broken()),
        }
    }

    /// The loader's answer; `None` if it ends without one.
    fn ask(&mut self) -> Option<LoadAnswer> {
        let objects = self.wishes.iter().map(|wish| RequestedObject {
            length: wish.content.len(),
            constants: wish.constants.clone(),
        });
        let request = LoadRequest {
            objects: objects.collect(),
        };
        let request = serde_json::to_string(&request).ok()?;
        let input = self.loader.stdin.as_mut()?;
        writeln!(input, "{request}").ok()?;
        for wish in &self.wishes {
            // After a failure it no longer reads, but it has answered.
            if input.write_all(&wish.content).is_err() {
                break;
            }
        }
        let mut line = String::new();
        let output = self.loader.stdout.as_mut()?;
        BufReader::new(output).read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// The reason for which the loader does not answer.
    fn broken(&mut self) -> RunError {
        let mut said = String::new();
        if let Some(errors) = self.loader.stderr.as_mut() {
            let _ = errors.read_to_string(&mut said);
        }
        let line = said.lines().next_back().unwrap_or("it says nothing").trim();
        if said.contains("shared libraries") {
            return RunError::Unavailable(format!(
                "the program {LOADER}, which loads BPF congestion controls, cannot start ({line}); \
                 install libelf and zlib (Debian: apt-get install libelf1 zlib1g)"
            ));
        }
        RunError::Internal(format!(
            "the program {LOADER} ended without an answer ({line})"
        ))
    }

    /// The name by which the sockets of a flow select its congestion control.
    pub fn kernel_name(&self, flow: u16) -> Option<&str> {
        let loaded = self.loaded.get(*self.flows.get(&flow)?)?;
        Some(&loaded.kernel_name)
    }

    /// The program that runs for a flow, and its parameters in the kernel.
    pub fn describe(&self, flow: u16) -> Option<(BpfFingerprint, Map<String, Value>)> {
        let index = *self.flows.get(&flow)?;
        let (wish, loaded) = (self.wishes.get(index)?, self.loaded.get(index)?);
        let fingerprint = BpfFingerprint {
            sha256: sha256(&wish.content),
            kernel_name: loaded.kernel_name.clone(),
            tags: loaded.tags.clone(),
            constants: loaded.constants.clone(),
        };
        let params = wish.program.map_or_else(BTreeMap::new, |program| {
            program.params_of(&loaded.constants)
        });
        Some((fingerprint, params.into_iter().collect()))
    }

    /// Unloads them from the kernel, and reads the numbers of missed calls. Returns whether they were loaded until now.
    pub fn finish(&mut self) -> bool {
        drop(self.loader.stdin.take());
        let Some(farewell) = self.farewell() else {
            return false;
        };
        let labels = self.wishes.iter().map(|wish| &wish.label);
        for (label, count) in labels.zip(farewell.missed) {
            if count > 0 {
                *self.missed.entry(label.clone()).or_default() += count;
            }
        }
        true
    }

    fn farewell(&mut self) -> Option<ExitReport> {
        let mut line = String::new();
        let output = self.loader.stdout.as_mut()?;
        BufReader::new(output).read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Calls that the kernel omitted, by the name of the scheme; schemes without any are not listed. Known at the end.
    pub fn missed(&self) -> &BTreeMap<String, u64> {
        &self.missed
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        // The end of the process removes its links, and with them the congestion controls.
        let _ = self.loader.kill();
        let _ = self.loader.wait();
    }
}

/// Path of the loader.
fn loader() -> Result<PathBuf, RunError> {
    let path = place_of_loader();
    if path.is_file() {
        return Ok(path);
    }
    Err(RunError::Unavailable(format!(
        "the program {LOADER}, which loads BPF congestion controls, is not in {}; build it with: make build",
        path.parent().unwrap_or(&path).display()
    )))
}

/// The expected path of the loader.
fn place_of_loader() -> PathBuf {
    let ours = std::env::current_exe().unwrap_or_default();
    ours.with_file_name(LOADER)
}

/// Rejects a flow for whose congestion control this host has no loader, which is installed with the agent if there is
/// one.
pub fn check_loader(flow: &Flow) -> Result<(), RunError> {
    let path = place_of_loader();
    if !matches!(flow.scheme, SchemeRef::Bpf(_)) || path.is_file() {
        return Ok(());
    }
    Err(RunError::Unavailable(format!(
        "flow {}: {} has to be sent by this host, and the program that loads it is not here; let the other host send, or install {LOADER} as {}",
        flow.flow,
        flow.name,
        path.display()
    )))
}

/// Checks that BPF congestion controls can be loaded here, by loading one. Returns its name in the kernel, or the
/// problem with a remedy.
///
/// # Errors
/// As [`Programs::load`].
pub fn probe() -> Result<String, RunError> {
    let Some(program) = narrows_bpf::ALL.first() else {
        return Err(RunError::Unavailable(
            "this build has no BPF programs".to_owned(),
        ));
    };
    let programs = Programs::load(vec![Wish::program(program, &Params::default())?])?;
    let first = programs.loaded.first();
    Ok(first.map_or_else(String::new, |it| it.kernel_name.clone()))
}
