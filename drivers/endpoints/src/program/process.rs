//! A started program and its descendants.

use super::cgroup::Group;
use super::file_system::FileSystem;
use super::files;
use super::output::Output;
use narrows_cell::{ProgramLimits, ProgramReport, StandardInput};
use narrows_sys::clock;
use narrows_sys::limits::{self, Limits};
use narrows_sys::subreaper::{self, ExitedChild};
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// Time within which processes have to end after the program.
const PATIENCE: Duration = Duration::from_millis(200);
/// Time within which the kernel ends killed processes.
const DEATH: Duration = Duration::from_secs(5);
/// Time that a version command may take, and bytes of its output that are kept.
const VERSION_LIMIT: Duration = Duration::from_secs(5);
const VERSION_BYTES: u64 = 2048;
/// Bytes per write to an endless standard input.
const BLOCK: usize = 64 << 10;

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// By `CLOCK_MONOTONIC`.
    pub(super) at_ns: u64,
    pub(super) exit: Option<i32>,
    pub(super) signal: Option<i32>,
}

/// The kept output.
#[derive(Debug, Default)]
pub(super) struct KeptOutput {
    pub(super) printed: [u64; 2],
    pub(super) kept: [u64; 2],
    pub(super) last_line: Option<String>,
}

/// A program that was started.
#[derive(Debug)]
pub(super) struct Started {
    /// By `CLOCK_MONOTONIC`.
    pub(super) at_ns: u64,
    /// Files whose code was mapped at the last check.
    pub(super) mapped: Vec<PathBuf>,
    pid: u32,
    outputs: [Output; 2],
    ended: Option<Ended>,
    /// Kept open, if required.
    stdin: Option<ChildStdin>,
}

impl Started {
    /// Starts the file `path` as described by `report`.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn new(
        path: &Path,
        report: &ProgramReport,
        stdin: StandardInput,
        bounds: ProgramLimits,
        wanted: Option<String>,
        group: Option<&Group>,
        place: FileSystem,
    ) -> io::Result<Started> {
        let mut command = Command::new(path);
        command
            .arg0(&report.command[0])
            .args(&report.command[1..])
            .stdin(match stdin {
                StandardInput::Null => Stdio::null(),
                StandardInput::Open | StandardInput::Endless => Stdio::piped(),
            });
        limits::limit(
            &mut command,
            Limits {
                memory: bounds.memory_bytes.filter(|_| group.is_none()),
                cpu_seconds: bounds.cpu_ns.map(|ns| ns.div_ceil(1_000_000_000)),
                file_size: Some(bounds.file_bytes),
            },
        );
        if let Some(group) = group {
            limits::join(&mut command, group.entrance()?);
        }
        // Last, because it may change the user.
        let env: Vec<(String, String)> = report.env.clone().into_iter().collect();
        place.contain(&mut command, Path::new(&report.folder), &env)?;
        let at_ns = clock::mono_ns();
        let mut child = spawn(&mut command)?;
        let mut input = child.stdin.take();
        if stdin == StandardInput::Endless
            && let Some(input) = input.take()
        {
            feed(input)?;
        }
        let outputs = read_outputs(&mut child, bounds.output_bytes, wanted)?;
        Ok(Started {
            at_ns,
            mapped: Vec::new(),
            pid: child.id(),
            outputs,
            ended: None,
            stdin: input,
        })
    }

    /// Signals the start of its flow to a program that was started before the run, with a line on its standard input.
    pub(super) fn begin(&mut self) {
        if let Some(input) = &mut self.stdin {
            // A program may have closed its standard input.
            let _ = input.write_all(b"begin\n");
        }
    }

    /// Collects children that have ended.
    pub(super) fn reap(&mut self) {
        while let Ok(Some(ExitedChild { pid, code, signal })) = subreaper::reap() {
            if pid == self.pid {
                self.ended = Some(Ended {
                    at_ns: clock::mono_ns(),
                    exit: signal.is_none().then_some(code),
                    signal,
                });
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// How it ended, as part of a sentence.
    pub(super) fn ending(&self) -> String {
        match self.ended {
            Some(Ended {
                signal: Some(signal),
                ..
            }) => format!("was ended by signal {signal}"),
            Some(Ended { exit, .. }) => format!("ended with exit code {}", exit.unwrap_or(0)),
            None => "runs".to_owned(),
        }
    }

    /// True if the expected line has appeared.
    pub(super) fn has_said_it(&self) -> bool {
        self.outputs.iter().any(Output::has_said_it)
    }

    /// The last line that it printed, as the end of a sentence.
    pub(super) fn last_words(&mut self) -> String {
        if self.has_ended() && subreaper::descendants().is_empty() {
            self.outputs.iter().for_each(Output::finish);
        }
        let last = self.last_line();
        last.map_or_else(String::new, |line| {
            format!("; its last line was \"{line}\"")
        })
    }

    /// Errors are more informative than other output.
    fn last_line(&self) -> Option<String> {
        let [standard, errors] = &self.outputs;
        errors.last_line().or_else(|| standard.last_line())
    }

    /// Records the files whose code the program and its descendants have mapped.
    pub(super) fn note_libraries(&mut self) {
        for pid in subreaper::descendants() {
            self.mapped.extend(files::mapped(pid));
        }
        self.mapped.sort();
        self.mapped.dedup();
    }

    /// Sends a signal to the process group of the program.
    pub(super) fn signal(&self, signal: i32) {
        subreaper::signal_group(self.pid, signal);
    }

    /// Kills the program.
    pub(super) fn kill(&self) {
        self.signal(libc::SIGKILL);
    }

    /// Kills the program and its descendants.
    pub(super) fn kill_all(&self) {
        self.kill();
        for pid in subreaper::descendants() {
            subreaper::send_signal(pid, libc::SIGKILL);
        }
    }

    /// Ends the program if it still runs, and every other descendant. Returns the names of those that did not end with
    /// the program.
    pub(super) fn end_all(&mut self) -> Vec<String> {
        let started = Instant::now();
        let mut left: Vec<(u32, String)> = Vec::new();
        loop {
            self.reap();
            if !self.has_ended() {
                self.kill();
            }
            let living = subreaper::descendants();
            if living.is_empty() && self.has_ended() || started.elapsed() > DEATH {
                break;
            }
            if started.elapsed() > PATIENCE {
                for pid in living.into_iter().filter(|&pid| pid != self.pid) {
                    if !left.iter().any(|(other, _)| *other == pid) {
                        left.push((pid, name_of(pid)));
                    }
                    subreaper::send_signal(pid, libc::SIGKILL);
                }
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        left.into_iter().map(|(_, name)| name).collect()
    }

    /// Writes the kept output, up to `maximum` bytes per stream, to files whose names begin with `path`.
    pub(super) fn keep_output(&self, path: &Path, maximum: u64) -> KeptOutput {
        debug_assert!(self.outputs.iter().all(|one| one.kept_bytes() <= maximum));
        let mut result = KeptOutput::default();
        for (index, (output, ending)) in self.outputs.iter().zip(["out", "err"]).enumerate() {
            output.finish();
            let (printed, kept) = output.kept();
            (result.printed[index], result.kept[index]) = (printed, output.kept_bytes());
            if printed > 0 {
                // A failure to keep output must not fail the run.
                let _ = fs::write(path.with_extension(ending), kept);
            }
        }
        result.last_line = self.last_line();
        result
    }
}

/// Starts a command in a new process group that ends with this process.
fn spawn(command: &mut Command) -> io::Result<Child> {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    subreaper::set_parent_death_signal(command);
    command.spawn()
}

/// Reads both streams of a child.
fn read_outputs(
    child: &mut Child,
    maximum: u64,
    wanted: Option<String>,
) -> io::Result<[Output; 2]> {
    let missing = || io::Error::other("its output cannot be read");
    let standard = child.stdout.take().ok_or_else(missing)?;
    let errors = child.stderr.take().ok_or_else(missing)?;
    Ok([
        Output::read(standard, maximum, wanted.clone())?,
        Output::read(errors, maximum, wanted)?,
    ])
}

/// Writes to a standard input until its reader closes it.
fn feed(mut input: ChildStdin) -> io::Result<()> {
    let write = move || {
        let block = vec![b'x'; BLOCK];
        while input.write_all(&block).is_ok() {}
    };
    std::thread::Builder::new()
        .name("input".to_owned())
        .spawn(write)
        .map(drop)
}

/// The name of a process.
fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match name.trim() {
        "" => format!("process {pid}"),
        name => name.to_owned(),
    }
}

/// The beginning of the output of a version command.
pub(super) fn version(
    words: &[String],
    env: &[(String, String)],
    folder: &Path,
    place: FileSystem,
) -> Option<String> {
    let (name, arguments) = words.split_first()?;
    let mut command = Command::new(place.find(name, env)?);
    command.args(arguments).stdin(Stdio::null());
    place.contain(&mut command, folder, env).ok()?;
    let mut child = spawn(&mut command).ok()?;
    let outputs = read_outputs(&mut child, VERSION_BYTES, None).ok()?;
    let limit = Instant::now() + VERSION_LIMIT;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > limit {
            subreaper::signal_group(child.id(), libc::SIGKILL);
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    outputs.iter().for_each(Output::finish);
    let kept = outputs.iter().flat_map(|output| output.kept().1);
    let text: Vec<u8> = kept.collect();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}
