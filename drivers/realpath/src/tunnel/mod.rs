//! One end of a measuring tunnel on this machine: a host in a namespace, whose only wire leads
//! through UDP to the host at the other end.
//!
//! ```text
//!   this machine's network             the agent's namespace              the host
//!   UDP socket  <------------------->  (engine)  wire0 ================ eth0 10.77.0.1 or .2
//! ```
//!
//! The socket is opened in the machine's network before the agent moves into a private namespace, so the machine's
//! network is not changed, and everything disappears with the process. The host's wire is the same as in emulation.
//! Unless the plan says otherwise, the listener's host is 10.77.0.1, the dialer's 10.77.0.2.
//!
//! The end writes two logs ([`narrows_tunnel::log`]) and `tunnel.json` into its folder. [`join`] joins the folders of
//! both ends into one table.

mod clock;
mod end;
mod engine;
mod folder;
mod join;
mod logs;
mod meter;
mod plan;
mod program;
mod program_flows;
mod report;
mod unfinished_files;

pub(crate) use clock::TunnelClock;
pub(crate) use end::{BoundEnd, EndObserver, EndView, OBSERVER_KEYS, TunnelEnd};
pub(crate) use folder::EndFolder;
pub(crate) use join::direction;
pub use join::join;
pub(crate) use meter::FlowMeter;
use narrows_cell::RunError;
use narrows_netns::{HostPlan, enter_private_network};
use narrows_sys::poll::Signals;
pub(crate) use plan::check_folder;
pub use plan::{ClockShift, TunnelPlan};
use program::ProgramObserver;
use serde_json::Value;
use std::os::fd::BorrowedFd;
pub(crate) use unfinished_files::save;

/// Context of an end: its signals, its parent, and the receiver of its events.
pub struct TunnelContext<'a> {
    /// Signals that stop it.
    pub signals: &'a Signals,
    /// A descriptor whose end also stops it.
    pub parent: Option<BorrowedFd<'a>>,
    /// Receives events, JSON documents with a member `event`.
    pub notify: &'a mut dyn FnMut(&Value),
}

/// Runs one end until its program has ended, the other end has, or it is stopped; returns the
/// content of `tunnel.json`.
///
/// # Errors
/// One sentence for people. The folder then contains the logs so far; it does not exist if the other end has not called
/// or answered.
pub fn run(plan: &TunnelPlan, context: &mut TunnelContext) -> Result<Value, RunError> {
    check_folder(&plan.folder)?;
    let bound = BoundEnd::open(plan)?;
    let privilege = enter_private_network()?;
    let mut end = bound.build(&HostPlan::named("inside"), 0, privilege)?;
    (context.notify)(&end.ready_event());
    let mut observer = ProgramObserver::new(plan, context);
    let lived = end.live(&mut observer);
    if let Err(error) = lived {
        end.withdraw();
        return Err(error);
    }
    let program = observer.finish();
    end.finish(program)
}
