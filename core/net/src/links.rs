//! The registry of link elements. To add one: a file in `links/` and a name in this list.

use crate::Element;
use narrows_units::{Kind, ParamSpec};

/// The parameter of all elements with varying delay.
const REORDER: ParamSpec = ParamSpec::new(
    "reorder",
    Kind::Flag,
    "Whether packets may overtake each other; if not, a packet that would overtake waits for the one ahead.",
)
.default("false");

crate::registry::registry!(
    "link element", dyn Element<P>, LinkEffects:
    delay, delaysteps, delayticks, drift, delaytrace, jitter, jittertrace, loss, gilbert, periodicloss,
    losslist, reorder, duplicate, corrupt, policer, ackaggregation, ackdecimation, mtu, outage,
    gate,
);
