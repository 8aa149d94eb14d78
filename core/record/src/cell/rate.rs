//! The rate of a bottleneck as a function of time, where it follows from the cell alone.

use serde_json::Value;

/// Nanoseconds per second: work is counted in bits times this, so that it stays an integer.
const NS: i128 = 1_000_000_000;
/// Maximum number of pieces that are expanded one by one.
const MAX_PIECES: usize = 1_000_000;

/// A piecewise constant rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLaw {
    /// Start of each piece and its rate in bit/s; the first starts at 0, the last never ends.
    pieces: Vec<(u64, u64)>,
    /// Work possible until the start of each piece.
    work: Vec<i128>,
}

impl RateLaw {
    /// A constant rate.
    pub fn constant(bps: u64) -> Self {
        Self::from_pieces(vec![(0, bps)])
    }

    fn from_pieces(pieces: Vec<(u64, u64)>) -> Self {
        let mut sum = 0;
        let mut work = vec![0];
        for pair in pieces.windows(2) {
            sum += i128::from(pair[1].0 - pair[0].0) * i128::from(pair[0].1);
            work.push(sum);
        }
        RateLaw { pieces, work }
    }

    /// The rate law until `end` of a server written as `rate`, which `changes` (time and server, in
    /// order of time) replace.
    ///
    /// # Errors
    /// The kind of server whose rate does not follow from the cell.
    pub fn read(rate: &Value, changes: &[(u64, &Value)], end: u64) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut servers = vec![(0, rate)];
        servers.extend_from_slice(changes);
        for (index, &(from, server)) in servers.iter().enumerate() {
            let until = servers.get(index + 1).map_or(end.max(1), |next| next.0);
            pieces.retain(|&(start, _)| start < from || from == 0);
            let own = server_pieces(server, until)?;
            // The piece that is in force when the server takes over starts then.
            let current = own.iter().rev().find(|piece| piece.0 <= from);
            if let Some(&(_, bps)) = current {
                pieces.push((from, bps));
            }
            pieces.extend(own.iter().filter(|piece| piece.0 > from && piece.0 < until));
        }
        if pieces.first().is_none_or(|piece| piece.0 != 0) {
            return Err("does not specify its rate from the start".into());
        }
        // A new server may round what is left of a packet even if it is as fast as the old one.
        let new_server = |at: u64| changes.iter().any(|change| change.0 == at);
        pieces.dedup_by(|later, earlier| {
            later.0 == earlier.0 || later.1 == earlier.1 && !new_server(later.0)
        });
        Ok(Self::from_pieces(pieces))
    }

    /// The rate, if it is the same at all times.
    pub fn steady(&self) -> Option<u64> {
        let first = self.pieces[0].1;
        let same = self.pieces.iter().all(|piece| piece.1 == first);
        same.then_some(first)
    }

    /// The largest rate in bit/s.
    pub fn max_bps(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.1).max().unwrap_or(0)
    }

    /// The smallest rate above zero in bit/s.
    pub fn min_bps(&self) -> u64 {
        let rates = self.pieces.iter().map(|piece| piece.1);
        rates.filter(|&rate| rate > 0).min().unwrap_or(0)
    }

    /// Work that the server can do from 0 until `time`, in bits times 10^9.
    pub fn work(&self, time: u64) -> i128 {
        let piece = self.pieces.partition_point(|piece| piece.0 <= time) - 1;
        let (start, bps) = self.pieces[piece];
        self.work[piece] + i128::from(time - start) * i128::from(bps)
    }

    /// The time, rounded down, at which `work` is done; `None` if never.
    pub fn time_of(&self, work: i128) -> Option<u64> {
        let piece = self.work.partition_point(|&before| before < work).max(1) - 1;
        let (start, bps) = self.pieces[piece];
        let left = work - self.work[piece];
        if left <= 0 {
            return Some(start);
        }
        if bps == 0 {
            return None;
        }
        u64::try_from(i128::from(start) + left / i128::from(bps)).ok()
    }

    /// Bits that the server can carry between two times.
    pub fn bits(&self, from: u64, to: u64) -> f64 {
        (self.work(to.max(from)) - self.work(from)) as f64 / NS as f64
    }

    /// Times, apart from 0, at which the rate changes.
    pub fn changes(&self) -> impl Iterator<Item = u64> {
        self.pieces.iter().skip(1).map(|piece| piece.0)
    }
}

/// The pieces of one server up to `until`. Schedules count from the start of the run.
fn server_pieces(server: &Value, until: u64) -> Result<Vec<(u64, u64)>, String> {
    let kind = server.get("kind").and_then(Value::as_str).unwrap_or("");
    let number = |name: &str| server.get(name).and_then(Value::as_u64);
    let unknown = || format!("has a rate of kind '{kind}', which the cell alone does not tell");
    match kind {
        "constant" => Ok(vec![(
            0,
            number("rate").filter(|&bps| bps > 0).ok_or_else(unknown)?,
        )]),
        "steps" => {
            let steps = server.get("steps").and_then(Value::as_array);
            let step = |step: &Value| Some((step.get(0)?.as_u64()?, step.get(1)?.as_u64()?));
            let steps: Option<Vec<(u64, u64)>> =
                steps.and_then(|steps| steps.iter().map(step).collect());
            let mut steps = steps
                .filter(|steps| !steps.is_empty())
                .ok_or_else(unknown)?;
            // Before the first time the first rate holds.
            steps[0].0 = 0;
            if !steps.windows(2).all(|pair| pair[0].0 < pair[1].0) {
                return Err(unknown());
            }
            match number("period").filter(|&period| period > 0) {
                None => Ok(steps),
                Some(period) => repeat(&steps, period, until).ok_or_else(unknown),
            }
        }
        "square" => {
            let (low, high) = number("low").zip(number("high")).ok_or_else(unknown)?;
            let period = number("period")
                .filter(|&period| period > 1)
                .ok_or_else(unknown)?;
            let duty = server.get("duty").and_then(Value::as_f64).unwrap_or(0.5);
            let edge = ((period as f64 * duty).round() as u64).clamp(1, period - 1);
            repeat(&[(0, high), (edge, low)], period, until).ok_or_else(unknown)
        }
        _ => Err(unknown()),
    }
}

fn repeat(steps: &[(u64, u64)], period: u64, until: u64) -> Option<Vec<(u64, u64)>> {
    let rounds = usize::try_from(until / period + 1).ok()?;
    if rounds.checked_mul(steps.len())? > MAX_PIECES {
        return None;
    }
    let round = |n: usize| {
        let base = n as u64 * period;
        let own = steps.iter().filter(move |step| step.0 < period);
        own.map(move |step| (base + step.0, step.1))
    };
    Some((0..rounds).flat_map(round).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn work_and_time_are_inverse() {
        let rate = json!({"kind": "steps", "steps": [[0, 1000], [10, 0], [30, 2000]]});
        let law = RateLaw::read(&rate, &[], 100).unwrap();
        assert_eq!(law.work(10), 10_000);
        assert_eq!((law.work(20), law.work(30)), (10_000, 10_000));
        assert_eq!(law.work(31), 12_000);
        assert_eq!(law.time_of(5_500), Some(5));
        assert_eq!(law.time_of(10_001), Some(30));
        assert_eq!(law.time_of(14_000), Some(32));
        assert_eq!(
            (law.max_bps(), law.min_bps(), law.steady()),
            (2000, 1000, None)
        );
        let never = json!({"kind": "steps", "steps": [[0, 1000], [10, 0]]});
        assert_eq!(
            RateLaw::read(&never, &[], 100).unwrap().time_of(10_001),
            None
        );
    }

    #[test]
    fn steps_repeat_and_timelines_replace() {
        let rate = json!({"kind": "steps", "steps": [[0, 8], [5, 16]], "period": 10});
        let law = RateLaw::read(&rate, &[], 22).unwrap();
        assert_eq!(law.changes().collect::<Vec<_>>(), [5, 10, 15, 20]);
        let slow = json!({"kind": "constant", "rate": 1});
        let law = RateLaw::read(&rate, &[(12, &slow)], 22).unwrap();
        assert_eq!(law.changes().collect::<Vec<_>>(), [5, 10, 12]);
        assert_eq!(law.work(22), 5 * 8 + 5 * 16 + 2 * 8 + 10);
        // A server that takes over joins its schedule at that time.
        let law = RateLaw::read(&slow, &[(7, &rate)], 22).unwrap();
        assert_eq!(law.work(11), 7 + 3 * 16 + 8);
    }

    #[test]
    fn square_waves_begin_high() {
        let rate = json!({"kind": "square", "low": 1, "high": 3, "period": 10, "duty": 0.2});
        let law = RateLaw::read(&rate, &[], 20).unwrap();
        assert_eq!(law.changes().collect::<Vec<_>>(), [2, 10, 12]);
        assert_eq!(law.work(12), 6 + 8 + 6);
    }

    #[test]
    fn other_servers_are_named() {
        let error = RateLaw::read(&json!({"kind": "trace", "file": {}}), &[], 5).unwrap_err();
        assert_eq!(
            error,
            "has a rate of kind 'trace', which the cell alone does not tell"
        );
    }
}
