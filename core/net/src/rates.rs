//! The registry of rate servers. To add one: a file in `rates/` and a name in this list.

use crate::RateServer;

crate::registry::registry!(
    "rate", dyn RateServer:
    constant, poisson, poissondrift, poissontrace, trace, steps, square, sine, onoff, tokenbucket,
    ticks, wifi,
);
