//! The registry of queue disciplines. To add one: a file in `queues/` and a name in this list.

use crate::Queue;

crate::registry::registry!(
    "queue", dyn Queue<P>, QueueEffects:
    droptail, drophead, unlimited, onepacket, red, step, codel, pie, fqcodel, cake, sfq, drr,
    dualpi2, priority,
);
