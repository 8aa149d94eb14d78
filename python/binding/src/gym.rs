//! Episodes of learning environments.

use crate::errors::cell_error;
use narrows_gym::{
    ActionSpace, COUNTERS, Course, Facts, Outputs, Policies as Copies, Reward, Worlds as Inner,
};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Many simulated episodes that advance together. Results of `reset` and `step` are written to the arrays of its attributes,
/// episode by episode and agent by agent.
#[pyclass]
pub(crate) struct Worlds {
    /// Worlds may move between threads, but two must not use them at once.
    inner: Mutex<Inner>,
    inputs: usize,
    numbers: usize,
    space: ActionSpace,
    observations: Py<PyArray1<f32>>,
    counters: Py<PyArray1<f64>>,
    rewards: Py<PyArray1<f64>>,
    clipped: Py<PyArray1<u32>>,
    endings: Py<PyArray1<u8>>,
}

fn refuse(text: String) -> PyErr {
    PyValueError::new_err(text)
}

/// Calls `$work` with the output arrays of `$worlds`, without the interpreter lock.
macro_rules! with_outputs {
    ($py:expr, $worlds:expr, $work:expr) => {{
        let worlds = $worlds;
        let mut observations = worlds.observations.bind($py).readwrite();
        let mut counters = worlds.counters.bind($py).readwrite();
        let mut rewards = worlds.rewards.bind($py).readwrite();
        let mut clipped = worlds.clipped.bind($py).readwrite();
        let mut endings = worlds.endings.bind($py).readwrite();
        let mut outputs = Outputs {
            observations: observations.as_slice_mut()?,
            counters: counters.as_slice_mut()?,
            rewards: rewards.as_slice_mut()?,
            clipped: clipped.as_slice_mut()?,
            endings: endings.as_slice_mut()?,
        };
        let inner = worlds
            .inner
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        $py.detach(|| $work(inner, &mut outputs))
    }};
}

#[pymethods]
impl Worlds {
    /// `count` episodes on courses: cells in JSON. `agents` are indices of flows of one scheme that leaves its decisions to the caller.
    /// With `oracle`, the best window of each course is searched. `files_dir` has the files that cells name. Raises `ValueError` with one sentence.
    #[new]
    #[pyo3(signature = (cells, agents, count, *, reward, steps, threads, oracle = false, files_dir = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        cells: Vec<String>,
        agents: Vec<usize>,
        count: usize,
        reward: &str,
        steps: u32,
        threads: usize,
        oracle: bool,
        files_dir: Option<PathBuf>,
    ) -> PyResult<Self> {
        let reward = Reward::find(reward).ok_or_else(|| {
            let known: Vec<&str> = Reward::ALL.iter().map(|(name, ..)| *name).collect();
            refuse(format!(
                "unknown reward '{reward}'; known: {}",
                known.join(", ")
            ))
        })?;
        let folder = files_dir.unwrap_or_default();
        let mut courses = Vec::with_capacity(cells.len());
        for cell in &cells {
            let cell: Value =
                serde_json::from_str(cell).map_err(|error| refuse(error.to_string()))?;
            courses.push(Course {
                files: narrows_cell::load_files(&cell, &folder).map_err(cell_error)?,
                cell,
            });
        }
        let width = agents.len();
        let make = move || {
            let mut worlds = Inner::new(courses, agents, count, reward, steps, threads)?;
            if oracle {
                worlds.find_best_windows()?;
            }
            Ok(worlds)
        };
        let inner = py.detach(make).map_err(cell_error)?;
        let rows = count * width;
        Ok(Worlds {
            observations: PyArray1::zeros(py, rows * inner.inputs(), false).unbind(),
            counters: PyArray1::zeros(py, rows * COUNTERS.len(), false).unbind(),
            rewards: PyArray1::zeros(py, rows, false).unbind(),
            clipped: PyArray1::zeros(py, rows, false).unbind(),
            endings: PyArray1::zeros(py, count, false).unbind(),
            inputs: inner.inputs(),
            numbers: rows * inner.space().size(),
            space: inner.space().clone(),
            inner: Mutex::new(inner),
        })
    }

    /// Properties of each course: mean capacity (bit/s), base RTT (ns), limit of the queue (bytes, or infinite), best window
    /// (packets, or NaN), number of flows.
    fn facts(&self) -> Vec<(f64, f64, f64, f64, f64)> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let values = |facts: &Facts| {
            let Facts {
                capacity_bps,
                base_rtt_ns,
                buffer_bytes,
                best_window,
                flows,
            } = *facts;
            (capacity_bps, base_rtt_ns, buffer_bytes, best_window, flows)
        };
        inner.facts().iter().map(values).collect()
    }

    /// Numbers of one observation.
    #[getter]
    fn inputs(&self) -> usize {
        self.inputs
    }

    /// Number of actions to choose from; None if an action consists of numbers.
    #[getter]
    fn choices(&self) -> Option<usize> {
        match &self.space {
            ActionSpace::Choice(count) => Some(*count),
            ActionSpace::Numbers(_) => None,
        }
    }

    /// Minimum and maximum of each number of an action.
    #[getter]
    fn bounds(&self) -> Vec<(f32, f32)> {
        match &self.space {
            ActionSpace::Choice(count) => vec![(0.0, (*count - 1) as f32)],
            ActionSpace::Numbers(bounds) => bounds.clone(),
        }
    }

    /// Inputs of the next decisions, float32.
    #[getter]
    fn observations(&self, py: Python<'_>) -> Py<PyArray1<f32>> {
        self.observations.clone_ref(py)
    }

    /// Counters of the last steps, float64, as listed by `gym_counters`.
    #[getter]
    fn counters(&self, py: Python<'_>) -> Py<PyArray1<f64>> {
        self.counters.clone_ref(py)
    }

    /// Rewards of the last steps, float64.
    #[getter]
    fn rewards(&self, py: Python<'_>) -> Py<PyArray1<f64>> {
        self.rewards.clone_ref(py)
    }

    /// Actions out of bounds since the episodes began, uint32.
    #[getter]
    fn clipped(&self, py: Python<'_>) -> Py<PyArray1<u32>> {
        self.clipped.clone_ref(py)
    }

    /// uint8 for each episode: 0 while it waits for actions, 1 after its number of steps, 2 at the end of its run, 3 after an
    /// action that was not a number.
    #[getter]
    fn endings(&self, py: Python<'_>) -> Py<PyArray1<u8>> {
        self.endings.clone_ref(py)
    }

    /// Begin an episode in each place that has a course and a seed. Raises `ValueError` with one sentence.
    fn reset(&mut self, py: Python<'_>, starts: Vec<Option<(usize, u64)>>) -> PyResult<()> {
        with_outputs!(py, self, |inner: &mut Inner, outputs: &mut Outputs<'_>| {
            inner.reset(&starts, outputs)
        })
        .map_err(cell_error)
    }

    /// Let the agents of all episodes act, except where `skip` is true.
    fn step(
        &mut self,
        py: Python<'_>,
        actions: PyReadonlyArray1<'_, f32>,
        skip: PyReadonlyArray1<'_, bool>,
    ) -> PyResult<()> {
        let (actions, skip) = (actions.as_slice()?, skip.as_slice()?);
        let needed = self.numbers;
        if actions.len() != needed {
            return Err(refuse(format!(
                "the actions have {} numbers instead of {needed}",
                actions.len()
            )));
        }
        with_outputs!(py, self, |inner: &mut Inner, outputs: &mut Outputs<'_>| {
            inner.step(actions, skip, outputs);
        });
        Ok(())
    }
}

/// Copies of a scheme's policy, each with a memory.
#[pyclass]
pub(crate) struct Policies {
    /// They may move between threads, but two must not use them at once.
    inner: Mutex<Copies>,
    count: usize,
}

#[pymethods]
impl Policies {
    /// `count` copies of the policy of the first flow of a cell in JSON; `files_dir` has the files that it names. Raises
    /// `ValueError` with one sentence.
    #[new]
    fn new(cell: &str, count: usize, files_dir: PathBuf) -> PyResult<Self> {
        let cell: Value = serde_json::from_str(cell).map_err(|error| refuse(error.to_string()))?;
        let files = narrows_cell::load_files(&cell, &files_dir).map_err(cell_error)?;
        let inner = Copies::new(Course { cell, files }, 0, count).map_err(cell_error)?;
        Ok(Policies {
            inner: Mutex::new(inner),
            count,
        })
    }

    /// Numbers of an observation.
    #[getter]
    fn inputs(&mut self) -> usize {
        self.copies().inputs()
    }

    /// Number of actions to choose from; None if an action consists of numbers.
    #[getter]
    fn choices(&mut self) -> Option<usize> {
        match self.copies().space() {
            ActionSpace::Choice(count) => Some(*count),
            ActionSpace::Numbers(_) => None,
        }
    }

    /// Forget the memories of the copies where `which` is true.
    fn reset(&mut self, which: PyReadonlyArray1<'_, bool>) -> PyResult<()> {
        self.copies().reset(which.as_slice()?).map_err(cell_error)
    }

    /// The actions for observations, one row for each copy.
    fn act<'py>(
        &mut self,
        py: Python<'py>,
        observations: PyReadonlyArray1<'_, f32>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let (count, copies) = (self.count, self.copies());
        let observations = observations.as_slice()?;
        let needed = count * copies.inputs();
        if observations.len() != needed {
            return Err(refuse(format!(
                "the observations have {} numbers instead of {needed}",
                observations.len()
            )));
        }
        let mut actions = vec![0.0; count * copies.space().size()];
        copies.act(observations, &mut actions);
        Ok(PyArray1::from_vec(py, actions))
    }
}

impl Policies {
    fn copies(&mut self) -> &mut Copies {
        self.inner.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counters of a step: name and meaning of each, in order.
#[pyfunction]
pub(crate) fn gym_counters() -> Vec<(&'static str, &'static str)> {
    COUNTERS.to_vec()
}

/// Built-in rewards: name and meaning.
#[pyfunction]
pub(crate) fn gym_rewards() -> Vec<(&'static str, &'static str)> {
    let entries = Reward::ALL.iter();
    entries.map(|(name, _, doc)| (*name, *doc)).collect()
}
