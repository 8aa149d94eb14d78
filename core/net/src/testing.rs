//! The conformance kit: the contract of every queue and every element.
//!
//! The registries run it over all their entries with several sets of parameters ([`examples`]); a crate elsewhere
//! runs it over its entry with one call ([`check_queue_entry`], [`check_link_entry`], [`check_rate_entry`]). Every
//! trial takes its decisions from [`Dice`], which are random or the bytes of a fuzzer.

mod cases;
mod check_entries;
mod conformance;
mod dice;
mod examples;
pub mod fuzz;
pub mod play;

use crate::{Ecn, Packet};
pub use cases::{CHANGE_NS, Case, cases};
pub use check_entries::{
    check_link_entry, check_link_sets, check_queue_entry, check_queue_sets, check_rate_entry,
    check_rate_sets,
};
pub use conformance::{Trial, check_changing_queue, check_element, check_queue};
pub use dice::Dice;
pub use examples::{example_files, examples, strands};

/// A packet for tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestPacket {
    /// Identity.
    pub uid: u64,
    /// IP size in bytes.
    pub size: u32,
    /// Flow number.
    pub flow: u16,
    /// ECN field.
    pub ecn: Ecn,
    /// DSCP field.
    pub dscp: u8,
    /// Number of the connection.
    pub connection: u32,
    /// True if it is a pure acknowledgement.
    pub ack: bool,
    /// True if it was damaged.
    pub corrupt: bool,
    /// Index of its route.
    pub route: u16,
}

impl Packet for TestPacket {
    fn size(&self) -> u32 {
        self.size
    }
    fn flow(&self) -> u16 {
        self.flow
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn dscp(&self) -> u8 {
        self.dscp
    }
    fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }
    fn connection(&self) -> u32 {
        self.connection
    }
    fn is_ack(&self) -> bool {
        self.ack
    }
    fn corrupt(&mut self) {
        self.corrupt = true;
    }
    fn route(&self) -> u16 {
        self.route
    }
}
