//! Web traffic after SURGE: Barford and Crovella, "Generating Representative Web Workloads for
//! Network and Server Performance Evaluation", SIGMETRICS 1998.
//!
//! A number of user equivalents request pages. A page is one object and the objects that it embeds, fetched one after
//! the other with short pauses (active OFF) in between; after the page the user reads (inactive OFF). All users draw
//! the objects from a single sequence of requests to a finite set of files. The components and their distributions:
//!
//! | component | distribution | parameters |
//! | --- | --- | --- |
//! | file sizes, body | log-normal | mu 9.357, sigma 1.318 |
//! | file sizes, tail | Pareto | k 133 kB, alpha 1.1 |
//! | request sizes | Pareto | k 1000 B, alpha 1.0 |
//! | popularity | Zipf | exponent 1 |
//! | temporal locality (stack distance) | log-normal | mu 1.5, sigma 0.80 |
//! | embedded references | Pareto | k 1, alpha 2.43 |
//! | active OFF | Weibull | 1.46 s, shape 0.382 |
//! | inactive OFF | Pareto | k 1 s, alpha 1.5 |
//!
//! Deviations and choices (the paper's numbers as commonly cited):
//! - The set of files is not sampled but constructed: file i of n has the size of quantile (i - 1/2)/n. The tail has
//!   infinite variance, so sampled sets would differ by factors in their mean; a constructed set has a known mean, and
//!   its largest file is the cap of the tail (22 MB with 2000 files).
//! - Body and tail meet at k = 133 kB: 93 % of the files follow the log-normal distribution truncated at k (the
//!   untruncated one has 3.2 % above), 7 % the Pareto distribution.
//! - Request sizes follow from assigning each file a popularity rank such that requests, weighted by Zipf, approximate
//!   their distribution. That distribution has no mean (the largest file truncates it), and it can be matched no finer
//!   than the share of the most popular file, 12 %.
//! - Temporal locality is produced by picking, among the next 4096 requests of a shuffled sequence with exact Zipf
//!   counts, one whose position in the stack of recently used files is closest to a sampled distance; no request waits
//!   for more than 8192 turns. Popularity stays exact over the run, locality is approximate: rarely requested files
//!   cannot be close to the top.
//! - Embedded references are the sampled value rounded down, in addition to the page's own object; embedded objects
//!   come from the same sequence as pages.
//! - Users start in the stationary state: at a random point of their cycle, with the pages and OFF times that an
//!   observer meets at a random moment. The load equals the calibrated load from the start, instead of being higher at
//!   first, as it would be if all users began a page.
//! - The paper's users run HTTP/1.0 with a connection per object, as here by default; `persistent`
//!   keeps one connection per page.
//!
//! The load of one user equivalent on an ideal network follows from the means of all distributions: objects per page
//! times mean object over the mean length of a cycle. `load` is divided by it to find the number of users. Users wait
//! for their objects, so a slow network makes them slower: `object_time` is the time that an object is expected to
//! take, and enters the calculation. The load actually offered is counted in each run.

mod files;
mod locality;

use crate::{TrafficAction, Application, Built, Class, TrafficEvent, TrafficSetup, Traffic, TransferHeader};
use crate::fetches::Fetches;
use files::WebFiles;
use locality::Sequence;
use narrows_units::{Entry, Example, Distribution, ParamError, Params, Span, Stream, Time, Zipf, params};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

const SURGE: &str = "Barford and Crovella 1998";

/// Registry entry.
pub const TRAFFIC: Traffic = Traffic {
    entry: Entry {
        name: "web",
        summary: "Users of the web after SURGE: pages with embedded objects, heavy-tailed files, times to read",
        source: "Barford and Crovella, Generating Representative Web Workloads, SIGMETRICS 1998",
        params: WebParams::PARAMS,
        shorthand: &["load", "users"],
        example: Example::new(
            "{web: 8 Mbit/s}",
            "Arrivals through 20 Mbit/s: as many users as offer 8 Mbit/s in the long run; their files have heavy \
             tails.",
        )
        .picture(r#"{"seconds": 60, "bin_ms": 500}"#),
    },
    class: Class::Pull,
    parallel: false,
    whole: true,
    build,
};

params! {
    /// Parameters.
    struct WebParams {
        /// Target mean rate of the objects' payload; the number of users follows from it.
        load: Option<Rate>(1e3..=1e12);
        /// Number of user equivalents, instead of load.
        users: Option<Count>(1.0..=1e6);
        /// Time that an object is expected to take, for the number of users.
        object_time: Span = 0;
        /// Number of files on the server.
        files: Count(100.0..=100_000.0) = 2000, SURGE;
        /// Fraction of the files in the tail of the size distribution.
        tail: Ratio(0.0..=0.5) = 0.07, SURGE;
        /// Size of a request.
        request: Bytes(TransferHeader::LENGTH as f64..=1e6) = 300, "a GET with common headers";
        /// One connection per page, instead of one per object.
        persistent: Flag = false, "HTTP/1.0, as in the paper";
    }
}

/// Pauses between the objects of a page, in seconds.
const ACTIVE_OFF: Distribution = Distribution::Weibull {
    scale: 1.46,
    shape: 0.382,
};
/// Time to read a page, in seconds.
const INACTIVE_OFF: Distribution = Distribution::Pareto {
    scale: 1.0,
    shape: 1.5,
};
/// References that a page embeds, before rounding down.
const EMBEDDED: Distribution = Distribution::Pareto {
    scale: 1.0,
    shape: 2.43,
};

/// The mean of [`EMBEDDED`] rounded down: the sum of the probabilities of at least 1, 2, 3 ...
fn mean_embedded() -> f64 {
    let last = 100_000;
    let sum: f64 = (1..=last).map(|n| 1.0 - EMBEDDED.cdf(f64::from(n))).sum();
    // The sum beyond, by its integral.
    sum + f64::from(last).powf(-1.43) / 1.43
}

/// Mean length of a user's cycle in seconds, if an object takes `object` seconds.
fn mean_cycle(object: f64) -> f64 {
    let embedded = mean_embedded();
    INACTIVE_OFF.mean() + embedded * ACTIVE_OFF.mean() + (1.0 + embedded) * object
}

/// Residual inactive OFF time at a random moment: its distribution is the integral of the tail over the mean, x / 3 up
/// to 1 s and 1 - 2/3 x^-1/2 beyond.
fn remaining_inactive(stream: &mut Stream) -> f64 {
    let u = stream.uniform();
    if u < 1.0 / 3.0 {
        3.0 * u
    } else {
        (1.5 * (1.0 - u)).powi(-2)
    }
}

/// Residual active OFF time: a uniform fraction of a period sampled in proportion to its length. With shape k, the k-th
/// power of such a time is gamma distributed with 1 + 1/k, which the method of Marsaglia and Tsang (2000) draws.
fn remaining_active(stream: &mut Stream) -> f64 {
    let Distribution::Weibull { scale, shape } = ACTIVE_OFF else {
        return 0.0;
    };
    let d = 1.0 + 1.0 / shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    let gamma = loop {
        let normal = stream.normal();
        let v = (1.0 + c * normal).powi(3);
        let accept = (1.0 - stream.uniform()).ln();
        if v > 0.0 && accept < normal * normal / 2.0 + d * (1.0 - v + v.ln()) {
            break d * v;
        }
    };
    stream.uniform() * scale * gamma.powf(1.0 / shape)
}

fn build(params: &Params, setup: &TrafficSetup) -> Built {
    let params = WebParams::read(params);
    let files = WebFiles::new(params.files as usize, params.tail);
    let cycle = mean_cycle(params.object_time.secs());
    let per_user = (1.0 + mean_embedded()) * files.mean_request() * 8.0 / cycle;
    let users = match (params.load, params.users) {
        (Some(load), None) => (load.bps() as f64 / per_user).round().max(1.0),
        (None, Some(users)) => users as f64,
        _ => {
            return Err(ParamError::Conflict(
                "give either load (the wanted mean rate) or users (their number)".into(),
            ));
        }
    };
    if users > 1e6 {
        return Err(ParamError::Conflict(format!(
            "the load needs {users:.0} users, more than a million; ask for less"
        )));
    }
    let named = |what: &str| Stream::new(setup.seed, &format!("traffic/{}/{what}", setup.flow));
    Ok(Box::new(Web {
        sequence: Sequence::new(&files, named("requests")),
        facts: [
            ("users", users),
            ("calibrated_bps", users * per_user),
            ("mean_object_bytes", files.mean_request()),
            ("objects_per_page", 1.0 + mean_embedded()),
        ],
        sizes: files.sizes,
        request: params.request.get(),
        persistent: params.persistent,
        cycle,
        mean_embedded: mean_embedded(),
        embedded: Zipf::new(10_000, 2.43),
        stream: named("users"),
        users: vec![User::default(); users as usize],
        awake: BinaryHeap::new(),
        waiting: BTreeMap::new(),
        fetches: Fetches::default(),
    }))
}

#[derive(Clone, Copy, Debug, Default)]
struct User {
    /// Objects of the page still to fetch, including the one in progress.
    left: u32,
    /// The page's connection, if it is kept.
    connection: Option<u32>,
}

struct Web {
    sizes: Vec<u64>,
    sequence: Sequence,
    facts: [(&'static str, f64); 4],
    request: u64,
    persistent: bool,
    cycle: f64,
    mean_embedded: f64,
    /// Distribution of the position of an embedded object in its page.
    embedded: Zipf,
    stream: Stream,
    users: Vec<User>,
    /// When users act next.
    awake: BinaryHeap<Reverse<(Time, u32)>>,
    /// Users waiting for an object, by its connection.
    waiting: BTreeMap<u32, u32>,
    fetches: Fetches,
}

impl Web {
    fn wake(&mut self, user: u32, at: Time) {
        self.awake.push(Reverse((at, user)));
    }

    /// Puts a user into a state sampled from the stationary distribution, and returns the seconds until it acts.
    fn meet(&mut self, number: u32) -> f64 {
        let stream = &mut self.stream;
        let moment = stream.uniform() * self.cycle;
        let reading = INACTIVE_OFF.mean();
        let pausing = self.mean_embedded * ACTIVE_OFF.mean();
        if moment < reading {
            return remaining_inactive(stream);
        }
        let fetching = moment >= reading + pausing;
        if fetching && stream.chance(1.0 / (1.0 + self.mean_embedded)) {
            return 0.0;
        }
        // Before the k-th embedded object of a page: as likely as a page with at least k objects.
        let before = self.embedded.sample(stream);
        let embedded = before as f64 * EMBEDDED.sample(stream);
        self.users[number as usize].left = 1 + embedded.min(1e6) as u32 - before as u32;
        if fetching {
            0.0
        } else {
            remaining_active(stream)
        }
    }

    /// A user requests the next object, of a new page if the last one is complete.
    fn ask(&mut self, number: u32, actions: &mut Vec<TrafficAction>) {
        let user = &mut self.users[number as usize];
        if user.left == 0 {
            let embedded = EMBEDDED.sample(&mut self.stream).min(1e6) as u32;
            user.left = 1 + embedded;
        }
        let sizes = (self.request, self.sizes[self.sequence.next()]);
        let connection = self.fetches.ask(user.connection, sizes, self.persistent, actions);
        user.connection = Some(connection).filter(|_| self.persistent);
        self.waiting.insert(connection, number);
    }

    /// An object has arrived, or its connection broke.
    fn finish(&mut self, now: Time, connection: u32, failed: bool, actions: &mut Vec<TrafficAction>) {
        let Some(number) = self.waiting.remove(&connection) else {
            return;
        };
        let user = &mut self.users[number as usize];
        user.left -= 1;
        let law = if user.left > 0 {
            ACTIVE_OFF
        } else {
            INACTIVE_OFF
        };
        if failed {
            user.connection = None;
        } else if user.left == 0
            && let Some(connection) = user.connection.take()
        {
            actions.push(TrafficAction::Close { connection });
        }
        let off = Span::from_secs(law.sample(&mut self.stream));
        self.wake(number, now + off);
    }
}

impl Application for Web {
    fn on(&mut self, now: Time, event: TrafficEvent, actions: &mut Vec<TrafficAction>) {
        match event {
            TrafficEvent::Start => {
                for user in 0..self.users.len() as u32 {
                    let wait = self.meet(user);
                    self.wake(user, now + Span::from_secs(wait));
                }
            }
            TrafficEvent::Completed { connection, .. } => self.finish(now, connection, false, actions),
            TrafficEvent::Failed { connection } => self.finish(now, connection, true, actions),
            TrafficEvent::Wakeup => {}
        }
        while let Some(&Reverse((at, user))) = self.awake.peek()
            && at <= now
        {
            self.awake.pop();
            self.ask(user, actions);
        }
    }

    fn next_wakeup(&self) -> Time {
        self.awake.peek().map_or(Time::FAR, |Reverse((at, _))| *at)
    }

    fn facts(&self) -> Vec<(&'static str, f64)> {
        self.facts.to_vec()
    }
}

#[cfg(test)]
mod tests;
