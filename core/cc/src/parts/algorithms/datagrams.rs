//! Settings of the transport for schemes whose programs sent datagrams to a receiver that answers each of them.

/// Name and value of a setting, as in scenarios.
pub type Setting = (&'static str, &'static str);

/// Nothing is retransmitted, and each packet is acknowledged.
pub const DATAGRAMS: [Setting; 2] = [("reliable", "false"), ("ack_every", "1")];

/// A packet is lost as soon as a later one has arrived.
pub const GAPS_ARE_LOSSES: [Setting; 4] = [
    ("packet_threshold", "1"),
    ("max_packet_threshold", "1"),
    ("rack", "false"),
    ("tail_loss_probe", "false"),
];

/// The transport's timeout is at least `ns`, because the scheme has its own.
pub const fn timeout(ns: &'static str) -> [Setting; 2] {
    [("rto_rule", "rfc6298"), ("min_rto", ns)]
}

/// The settings of several lists.
///
/// # Panics
/// If their number is not `N`.
pub const fn settings<const N: usize>(lists: &[&[Setting]]) -> [Setting; N] {
    narrows_units::join(lists, ("", ""))
}
