//! The registry of link elements. To add one: a file in `links/` and a name in this list.

use crate::Element;

crate::registry::registry!("link element", dyn Element<P>: delay, loss);
