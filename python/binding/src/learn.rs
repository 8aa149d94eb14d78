//! Trainings of learned schemes, and scores of their models.

use narrows_learn::{Saved, Training as Inner, Trial};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;

/// A training under way. `recipe` is JSON; `state` and `rows` are those of a training with the same recipe and seed, which
/// is then resumed. Raises `ValueError` with one sentence.
#[pyclass]
pub(crate) struct Training {
    inner: Inner,
}

fn value_error(error: narrows_learn::RecipeError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Training {
    #[new]
    #[pyo3(signature = (recipe, seed, threads, state = None, rows = None))]
    fn new(
        py: Python<'_>,
        recipe: String,
        seed: u64,
        threads: usize,
        state: Option<Vec<u8>>,
        rows: Option<Vec<(u32, Vec<u8>)>>,
    ) -> PyResult<Self> {
        let saved = state.map(|state| Saved {
            state,
            rows: rows.unwrap_or_default(),
        });
        let inner = py.detach(|| Inner::new(&recipe, seed, threads, saved.as_ref()));
        Ok(Training {
            inner: inner.map_err(value_error)?,
        })
    }

    /// True after the last round of the recipe.
    #[getter]
    fn complete(&self) -> bool {
        self.inner.is_complete()
    }

    /// Number of latest rounds whose rows a resumed training needs.
    #[getter]
    fn rounds_kept(&self) -> usize {
        self.inner.rounds_kept()
    }

    /// The score of the best model so far, once measured.
    #[getter]
    fn score(&self) -> Option<f64> {
        self.inner.score()
    }

    /// Makes one round; returns a row of the log as JSON.
    fn round(&mut self, py: Python<'_>, threads: usize) -> String {
        py.detach(|| self.inner.round(threads).to_string())
    }

    /// The state after the latest round, without rows.
    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.to_state())
    }

    /// The rows of the latest round; empty if later rounds need none.
    fn latest_rows<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.latest_rows())
    }

    /// The content of the file of the best model so far; `notes` (names and texts) become part of its metadata.
    fn model<'py>(&self, py: Python<'py>, notes: Vec<(String, String)>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.model(&notes))
    }
}

/// A path of a score in JSON.
#[derive(Deserialize)]
struct TrialJson {
    path: narrows_learn::Path,
    late_hosts: bool,
    seconds: f64,
    seed: u64,
}

/// Throughput, delay and loss of one flow of the model in `content` (a file of the kind `scheme`) in each of `trials` (JSON:
/// a list of objects of `path`, `late_hosts`, `seconds`, `seed`), as JSON. Raises `ValueError` with one sentence.
#[pyfunction]
pub(crate) fn score_model(
    py: Python<'_>,
    scheme: String,
    content: Vec<u8>,
    trials: String,
    threads: usize,
) -> PyResult<String> {
    let trials: Vec<TrialJson> =
        serde_json::from_str(&trials).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let trial = |it: TrialJson| Trial {
        path: it.path,
        late_hosts: it.late_hosts,
        seconds: it.seconds,
        seed: it.seed,
    };
    let trials: Vec<Trial> = trials.into_iter().map(trial).collect();
    let scores = py.detach(|| narrows_learn::score(&scheme, &content, &trials, threads));
    let scores = scores.map_err(value_error)?;
    Ok(serde_json::to_string(&scores).expect("plain numbers"))
}

/// The objective of the rule table in `content` on each link of `objective` (JSON), as JSON: a list of objects of
/// `packets_per_ms` and `score_log2`. Raises `ValueError` with one sentence.
#[pyfunction]
pub(crate) fn score_rules(
    py: Python<'_>,
    content: Vec<u8>,
    objective: String,
    seed: u64,
    threads: usize,
) -> PyResult<String> {
    let objective: narrows_learn::Objective = serde_json::from_str(&objective)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let scores = py.detach(|| narrows_learn::score_rules(&content, &objective, seed, threads));
    let scores = scores.map_err(value_error)?;
    Ok(serde_json::to_string(&scores).expect("plain numbers"))
}
