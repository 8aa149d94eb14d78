//! Tests of whole simulated worlds in one program, since separate programs would take seconds each to link. Every file
//! of this folder is a module here.

mod batch;
mod bbr;
mod bounds;
mod copa;
mod decisions;
mod delay_schemes;
mod ecn_background;
mod elements;
mod events;
mod fuzz;
mod golden;
mod gym;
mod late_hosts;
mod losses;
mod media;
mod media_schemes;
mod model_flows;
mod models;
mod muses;
mod pcc;
mod quic;
mod remy;
mod response;
mod single_flows;
mod sprout;
mod survival;
mod traffic;
mod verus;
mod world;
