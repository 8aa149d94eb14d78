//! One side of a run between two hosts: one end of a tunnel, and behind it the ends of the flows that are on this
//! host.
//!
//! ```text
//!   whoever started it          the agent here                                the agent there
//!   plan, orders  ------------> side --- tunnel (thread, last processor) ~~~~ the same
//!   events        <------------  |         |
//!                                |       eth0 10.77.0.1 or .2
//!                                +------ endpoints: one process per flow, in the namespace
//! ```
//!
//! The first line of standard input is the plan ([`Plan`]); orders follow, one a line: `start`, `stop`. The end of the
//! input stops the side, so nothing stays when a connection breaks. On standard output it tells how far it is:
//! `ready` (can be called), `open` (the tunnel), `prepared` (all endpoints), `starting`, `progress`, `done`, and `clock`
//! once a second. A side whose other end falls silent or leaves before the run is over fails by itself, so one
//! whose orders cannot reach it any more ends, too.
//!
//! Both sides start at the same time: one is told to start in so many ns, says at which reading of its clock that will
//! be, and the other translates this by what its tunnel knows of the clocks.
//!
//! The folder then has the logs of the tunnel ([`tunnel`](crate::tunnel)), those of the endpoints in `logs/`, and
//! `side.json` (format `narrows/side-end/1`) with what the endpoints have told and the facts about this machine.

mod base64;
mod line;
mod orders;
mod plan;
mod report;
mod watch;

use crate::bpf::{self, Programs};
use crate::crew::{Crew, PRIORITY, Post, Supplies, check_kernel_schemes, mask, share_cpus};
use crate::endpoints::{Role, host_at};
use crate::error::{Context, LiveError};
use crate::hosts::enter_private_network;
use crate::sys::cpu;
use crate::sys::poll::{Epoll, Signals};
use crate::tunnel::Bound;
use line::Line;
use narrows_cell::{Cell, Flow};
pub use orders::Orders;
pub use plan::Plan;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use watch::Watch;

/// Unsent data to keep in the send buffer of a connection: what a gigabit per second carries in 8 ms, for nobody
/// knows the rate of a real path, and a sender may have to wait so long for a processor.
const UNSENT: u32 = 1 << 20;

/// What surrounds a side.
pub struct Around<'a> {
    /// Signals that stop it.
    pub signals: &'a Signals,
    /// What it is told after its plan.
    pub orders: Orders,
    /// Hears what happens, as JSON documents with a member `event`.
    pub tell: &'a mut dyn FnMut(&Value),
}

/// Plays one side of a run. Must be called while this process has a single thread, because it enters namespaces.
///
/// # Errors
/// With a sentence for people. A refused plan leaves nothing behind; otherwise the folder holds what there is of the
/// logs.
pub fn run(plan: &Plan, around: &mut Around) -> Result<(), LiveError> {
    let mut place = Place::make(plan)?;
    let (cell, host) = plan.cell(&place.files())?;
    let own: Vec<(&Flow, Role)> = ends(&cell, plan.host).collect();
    let sends = |flow: &Flow| host_at(flow, Role::Sender) == plan.host;
    let sent = cell.flows.iter().filter(|flow| sends(flow));
    check_kernel_schemes(sent.clone())?;
    sent.clone().try_for_each(bpf::check_loader)?;
    // Before we enter namespaces: rights that we have here are not worth anything inside.
    let programs = Programs::of(&cell, sends)?;
    let bound = Bound::open(&plan.tunnel)?;
    cpu::prefer_session(PRIORITY);
    let privilege = enter_private_network()?;
    let (mover, rest) = share_cpus()?;
    let end = bound.build(&host, mask(&rest, &mover), privilege)?;
    let epoll = Epoll::new().could_not("wait for events")?;
    let posts = own.iter().map(|&(flow, role)| Post {
        flow,
        role,
        netns: Some(&end.host().netns),
        unsent: UNSENT,
    });
    let supplies = Supplies {
        cell: &cell,
        programs: programs.as_ref(),
        files: &place.files(),
        cpus: &rest,
        logs: &place.logs(),
    };
    place.keep = true;
    let crew = Crew::start(posts, supplies, &epoll)?;
    let mut facts = report::Facts {
        host: plan.host,
        privilege: privilege.name(),
        settings: json!({"mtu": end.host().mtu, "sysctls": end.host().sysctls}),
        cpus: json!({"tunnel": mover, "endpoints": rest}),
        programs,
    };
    let clock = end.clock();
    (around.tell)(&end.ready_event());
    let line = Line::start(end, mover)?;
    let watch = Watch::new(
        &cell,
        clock,
        plan.tunnel.silence_ns,
        epoll,
        crew,
        line,
        around,
    )?;
    let watched = watch.run(|| place.remove_files())?;
    report::write(&mut facts, watched, &cell, &plan.folder)?;
    (around.tell)(&json!({"event": "done"}));
    Ok(())
}

/// The ends of flows at the host with this index.
fn ends(cell: &Cell, host: u16) -> impl Iterator<Item = (&Flow, Role)> {
    let ends = |flow| [(flow, Role::Receiver), (flow, Role::Sender)];
    let all = cell.flows.iter().flat_map(ends);
    all.filter(move |&(flow, role)| host_at(flow, role) == host)
}

/// The folder of a side. Dropped before it is to be kept, it is removed.
struct Place {
    path: PathBuf,
    keep: bool,
}

impl Place {
    fn make(plan: &Plan) -> Result<Place, LiveError> {
        let place = Place {
            path: plan.folder.clone(),
            keep: false,
        };
        let failed = |path: &Path, error: &std::io::Error| {
            LiveError::Io(format!("{}: {error}", path.display()))
        };
        for path in [place.files(), place.logs()] {
            fs::create_dir_all(&path).map_err(|error| failed(&path, &error))?;
        }
        for (name, content) in &plan.files {
            let path = place.files().join(name);
            fs::write(&path, content).map_err(|error| failed(&path, &error))?;
        }
        Ok(place)
    }

    /// Where the files are that the cell names, until all endpoints have read them.
    fn files(&self) -> PathBuf {
        self.path.join("files")
    }

    fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    fn remove_files(&self) {
        // What stays is in nobody's way.
        let _ = fs::remove_dir_all(self.files());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.remove_files();
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
