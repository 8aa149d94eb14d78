//! The folder of a record: written under a temporary name, renamed when complete.

use crate::{Cell, read_regular};
use narrows_record::completions::Completions;
use narrows_record::verify::VerifierReport;
use narrows_record::{
    BinLog, BinRow, CapacityRow, DelayRow, FrameRow, KeptTransfers, PACKETS_FILE, PacketFile,
    QueueRow, RUN_FILE, Record, RecordError, Row, RowFile, RunDocument, Severity, StateRow,
    TraceRow, TransferRow,
};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Reasons for which a record could not be written or read. Each message is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder exists already.
    #[error("{} exists already; choose another name, or remove it first", .0.display())]
    Exists(PathBuf),
    /// Errors of the file system.
    #[error("{}: {}", .path.display(), describe(.error))]
    Io {
        /// File or folder.
        path: PathBuf,
        /// Its error.
        error: io::Error,
    },
    /// The content is invalid.
    #[error("{}/{error}", .folder.display())]
    Record {
        /// The folder.
        folder: PathBuf,
        /// The problem.
        error: RecordError,
    },
}

impl FolderError {
    /// Turns errors of the file or folder at `path` into errors that name it.
    fn at(path: &Path) -> impl Fn(io::Error) -> FolderError + use<> {
        let path = path.to_owned();
        move |error| FolderError::Io {
            path: path.clone(),
            error,
        }
    }

    /// True if the disk is full.
    pub fn is_full(&self) -> bool {
        let full = |error: &io::Error| error.kind() == io::ErrorKind::StorageFull;
        match self {
            FolderError::Io { error, .. }
            | FolderError::Record {
                error: RecordError::Io(error),
                ..
            } => full(error),
            _ => false,
        }
    }
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => {
            "the disk is full; free some space and run the campaign again, it will resume".into()
        }
        _ => error.to_string(),
    }
}

/// A record being written. If it is dropped before [`RecordFolder::complete`], it removes its files.
#[derive(Debug)]
pub struct RecordFolder {
    partial: PathBuf,
    out: PathBuf,
    complete: bool,
}

impl RecordFolder {
    /// Prepares to write the record `out`. Leftovers of an interrupted attempt are removed.
    ///
    /// # Errors
    /// The folder exists, or cannot be made.
    pub fn create(out: &Path) -> Result<Self, FolderError> {
        if out.exists() {
            return Err(FolderError::Exists(out.to_owned()));
        }
        let partial = RecordFolder::partial(out);
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(FolderError::at(&partial))?;
        }
        fs::create_dir_all(partial.join("logs")).map_err(FolderError::at(&partial))?;
        Ok(RecordFolder {
            partial,
            out: out.to_owned(),
            complete: false,
        })
    }

    /// The temporary folder of the record `out` until it is complete.
    pub fn partial(out: &Path) -> PathBuf {
        let name = out.file_name().unwrap_or_default().to_string_lossy();
        let parent = match out.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        parent.join(format!(".{name}.partial"))
    }

    /// The folder of the incomplete record; it contains `logs/`.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    fn record(&self, name: &str) -> impl Fn(RecordError) -> FolderError + use<> {
        let (folder, at) = (
            self.partial.clone(),
            FolderError::at(&self.partial.join(name)),
        );
        move |error| match error {
            RecordError::Io(error) => at(error),
            error => FolderError::Record {
                folder: folder.clone(),
                error,
            },
        }
    }

    fn open(&self, name: &str, buffer: usize) -> Result<BufWriter<File>, FolderError> {
        let path = self.partial.join(name);
        let file = File::create(&path).map_err(FolderError::at(&path))?;
        Ok(BufWriter::with_capacity(buffer, file))
    }

    /// Opens the file of packets. The caller finishes it, on any thread.
    pub fn packets(&self) -> Result<PacketFile<BufWriter<File>>, FolderError> {
        PacketFile::create(self.open(PACKETS_FILE, 1 << 20)?).map_err(self.record(PACKETS_FILE))
    }

    /// Turns an error of a file opened here into an error that names it.
    pub fn packets_error(&self, error: RecordError) -> FolderError {
        self.record(PACKETS_FILE)(error)
    }

    /// Writes the binned series and the delay histograms.
    pub fn bins(&self, log: &BinLog) -> Result<(), FolderError> {
        self.bin_rows(log.bins(), log.delays())
    }

    /// Writes bins and delays that were counted elsewhere.
    pub fn bin_rows(
        &self,
        bins: impl Iterator<Item = BinRow>,
        delays: impl Iterator<Item = DelayRow>,
    ) -> Result<(), FolderError> {
        self.rows(bins)?;
        self.rows(delays)
    }

    /// Writes the sampled states, and what schemes published beyond them.
    pub fn states(
        &self,
        states: impl IntoIterator<Item = StateRow>,
        traces: Vec<TraceRow>,
    ) -> Result<(), FolderError> {
        self.rows(states)?;
        self.rows_if_any(traces)
    }

    /// Opens the files of samples, for rows that are written during the run.
    pub fn samples(&self) -> Result<SampleFiles<'_>, FolderError> {
        Ok(SampleFiles {
            folder: self,
            states: self.growing()?,
            traces: None,
            queues: self.growing()?,
        })
    }

    /// Writes the transfers of applications in the form that `cell` asks for; no file without transfers. `counted` are
    /// those that are in histograms already.
    pub fn transfers(
        &self,
        cell: &Cell,
        rows: impl IntoIterator<Item = TransferRow>,
        mut counted: Completions,
    ) -> Result<(), FolderError> {
        match cell.transfers {
            KeptTransfers::All => self.rows_if_any(rows),
            KeptTransfers::Bins => {
                rows.into_iter()
                    .for_each(|row| counted.add(&row, &cell.measure));
                self.rows_if_any(counted.rows())
            }
            KeptTransfers::None => Ok(()),
        }
    }

    /// Writes the frames of video; no file without frames.
    pub fn frames(&self, rows: &[FrameRow]) -> Result<(), FolderError> {
        self.rows_if_any(rows.iter().copied())
    }

    /// Writes the capacity of servers over time; no file if the cell specifies it for all.
    pub fn capacity(&self, rows: impl IntoIterator<Item = CapacityRow>) -> Result<(), FolderError> {
        self.rows_if_any(rows)
    }

    /// Writes the sampled queues.
    pub fn queues(&self, rows: impl IntoIterator<Item = QueueRow>) -> Result<(), FolderError> {
        self.rows(rows)
    }

    /// Writes the file of one kind of rows.
    fn rows<R: Row>(&self, rows: impl IntoIterator<Item = R>) -> Result<(), FolderError> {
        let mut file = self.growing()?;
        self.grow(&mut file, rows)?;
        self.close(file)
    }

    fn growing<R: Row>(&self) -> Result<Growing<R>, FolderError> {
        RowFile::create(self.open(R::FILE, 1 << 16)?).map_err(self.record(R::FILE))
    }

    fn grow<R: Row>(
        &self,
        file: &mut Growing<R>,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<(), FolderError> {
        let pushed = rows.into_iter().try_for_each(|row| file.push(row));
        pushed.map_err(self.record(R::FILE))
    }

    fn close<R: Row>(&self, file: Growing<R>) -> Result<(), FolderError> {
        file.finish().map(drop).map_err(self.record(R::FILE))
    }

    /// Writes the file of one kind of rows; no file without rows.
    fn rows_if_any<R: Row>(&self, rows: impl IntoIterator<Item = R>) -> Result<(), FolderError> {
        let mut rows = rows.into_iter().peekable();
        match rows.peek() {
            Some(_) => self.rows(rows),
            None => Ok(()),
        }
    }

    /// Verifies the written files, completes `run` with the checks, writes it, and renames the folder to its final
    /// name.
    ///
    /// # Errors
    /// Errors of the file system. A failed check is not an error: it makes the verdict invalid.
    pub fn complete(mut self, run: &mut RunDocument) -> Result<(), FolderError> {
        self.write_run(run)?;
        let report = narrows_record::verify::verify(&open_record(&self.partial)?);
        judge_by_verifier(run, &report);
        self.write_run(run)?
            .sync_all()
            .map_err(FolderError::at(&self.partial.join(RUN_FILE)))?;
        fs::rename(&self.partial, &self.out).map_err(FolderError::at(&self.out))?;
        self.complete = true;
        Ok(())
    }

    fn write_run(&self, run: &RunDocument) -> Result<File, FolderError> {
        let path = self.partial.join(RUN_FILE);
        let write = || -> io::Result<File> {
            let mut file = File::create(&path)?;
            file.write_all(run.to_text().as_bytes())?;
            Ok(file)
        };
        write().map_err(FolderError::at(&path))
    }
}

/// A file of rows that is being written.
type Growing<R> = RowFile<BufWriter<File>, R>;

/// The files of samples, which are written during the run, so that samples need not be kept until its end.
pub struct SampleFiles<'a> {
    folder: &'a RecordFolder,
    states: Growing<StateRow>,
    /// Not created before the first row.
    traces: Option<Growing<TraceRow>>,
    queues: Growing<QueueRow>,
}

impl SampleFiles<'_> {
    /// Writes these rows and clears them.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn drain(
        &mut self,
        states: &mut Vec<StateRow>,
        traces: &mut Vec<TraceRow>,
        queues: &mut Vec<QueueRow>,
    ) -> Result<(), FolderError> {
        let folder = self.folder;
        folder.grow(&mut self.states, states.drain(..))?;
        folder.grow(&mut self.queues, queues.drain(..))?;
        if traces.is_empty() {
            return Ok(());
        }
        let file = match &mut self.traces {
            Some(file) => file,
            none => none.insert(folder.growing()?),
        };
        folder.grow(file, traces.drain(..))
    }

    /// Completes the files.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn finish(self) -> Result<(), FolderError> {
        self.folder.close(self.states)?;
        self.folder.close(self.queues)?;
        self.traces.map_or(Ok(()), |file| self.folder.close(file))
    }
}

/// Adds the findings of the verifier; any contradiction makes the run invalid.
pub(crate) fn judge_by_verifier(run: &mut RunDocument, report: &VerifierReport) {
    run.checks = report.checks();
    for finding in report.findings.iter().filter(|finding| !finding.ok) {
        let text = format!("Verification failed ({}): {}", finding.name, finding.detail);
        run.judge(Severity::Invalid, "verification", text);
    }
}

impl Drop for RecordFolder {
    fn drop(&mut self) {
        if !self.complete {
            // No incomplete folder remains; if removing it fails, the next attempt removes it.
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}

/// Reads all files of the record in `folder`.
///
/// # Errors
/// A file that cannot be read or is invalid.
pub fn open_record(folder: &Path) -> Result<Record, FolderError> {
    enum Failure {
        Io(String, io::Error),
        Record(RecordError),
    }
    impl From<RecordError> for Failure {
        fn from(error: RecordError) -> Self {
            Failure::Record(error)
        }
    }
    Record::load(|name| match read_regular(&folder.join(name)) {
        Ok(bytes) => Ok(Some(bytes::Bytes::from(bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::Io(name.to_owned(), error)),
    })
    .map_err(|failure| match failure {
        Failure::Io(name, error) => FolderError::at(&folder.join(name))(error),
        Failure::Record(error) => FolderError::Record {
            folder: folder.to_owned(),
            error,
        },
    })
}
