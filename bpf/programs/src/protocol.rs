//! Messages between the agent and the program `narrows-bpf`, which loads objects into the kernel: one JSON line with the
//! contents of all objects behind it, one JSON line in answer, and another one when the input ends.
//!
//! The congestion controls stay until the loader ends, and it ends when its standard input does.
//! So they vanish with the agent, however that ends.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// To the loader: what to load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoadRequest {
    /// One after the other.
    pub objects: Vec<RequestedObject>,
}

/// One object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestedObject {
    /// Length of its content, in bytes.
    pub length: usize,
    /// Constants to set, by name.
    pub constants: BTreeMap<String, u64>,
}

/// From the loader.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadAnswer {
    /// All are loaded, in the order in which they were asked for.
    Loaded(Vec<Loaded>),
    /// Nothing is.
    Failed {
        /// Index of the object that could not be loaded.
        object: usize,
        /// Kind of the failure.
        obstacle: LoadObstacle,
        /// Why, one sentence.
        message: String,
    },
}

/// Kinds of failures of loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadObstacle {
    /// We may not.
    Rights,
    /// The kernel cannot.
    Kernel,
    /// The kernel does not want this object.
    Refused,
    /// The object is none.
    Object,
}

/// One congestion control in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// The name under which sockets select it.
    pub kernel_name: String,
    /// The kernel's tag of each of its functions (the beginning of a hash of the instructions).
    pub tags: BTreeMap<String, String>,
    /// Constants as the kernel holds them.
    pub constants: BTreeMap<String, u64>,
}

/// From the loader, at the end: what happened meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReport {
    /// For each object, in the order in which they were asked for: calls that the kernel left out, as far as
    /// the program noticed; 0 also of programs that do not count them.
    pub missed: Vec<u64>,
}
