//! Hosts as network namespaces, their kernel settings, and facts about the machine.
#![forbid(unsafe_code)]

pub mod host_info;
mod hosts;
pub mod sysctl_override;

pub use hosts::{
    Host, HostDefaults, HostPlan, Hosts, WireCounters, enter_private_network, explain_refusal,
    switch_offloads_off,
};
