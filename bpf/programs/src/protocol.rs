//! Messages between the agent and the program `narrows-bpf`, which loads objects into the kernel: one JSON line
//! followed by the contents of all objects, one JSON line in answer, and another one when the input ends.
//!
//! The congestion controls stay until the loader ends, which happens at the end of its standard input. Therefore they
//! disappear with the agent, however that ends.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Request to the loader.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoadRequest {
    /// The objects, in order.
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

/// Answer of the loader.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadAnswer {
    /// All are loaded, in the order of the request.
    Loaded(Vec<Loaded>),
    /// None is loaded.
    Failed {
        /// Index of the object that could not be loaded.
        object: usize,
        /// Kind of the failure.
        obstacle: LoadObstacle,
        /// The reason, one sentence.
        message: String,
    },
}

/// Kinds of failures of loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadObstacle {
    /// Missing privileges.
    Rights,
    /// The kernel lacks support.
    Kernel,
    /// The kernel rejects this object.
    Refused,
    /// The file is not an object.
    Object,
}

/// One congestion control in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// The name under which sockets select it.
    pub kernel_name: String,
    /// The kernel's tag of each of its functions (the beginning of a hash of the instructions).
    pub tags: BTreeMap<String, String>,
    /// Constants as stored in the kernel.
    pub constants: BTreeMap<String, u64>,
}

/// Report of the loader at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReport {
    /// For each object, in the order of the request: number of omitted calls that the program detected; 0 also for
    /// programs that do not count them.
    pub missed: Vec<u64>,
}
