//! Congestion control: the events that a scheme receives, its answers, and the registry of all schemes.
//!
//! A scheme is a pure state machine. The transport passes it events ([`AckEvent`], [`LossEvent`] ...), each with the
//! time, and reads its [`Allowance`]. It never sees a packet, a socket, a clock or the link: of the workspace's crates
//! this one depends only on `narrows-units`.
//!
//! Functions common to all schemes are implemented once, in the transport: accounting of data in flight, RTT, rounds,
//! delivery rate, loss detection, recovery epochs, application limits. A textbook AIMD scheme fits on one screen; see
//! `schemes/reno.rs`. To add a scheme, write a file in `schemes/` and add its name to the list in `schemes.rs`.
#![forbid(unsafe_code)]
// Constructors in a registry share one signature, whether or not they need all of it.
#![allow(clippy::needless_pass_by_value, clippy::unnecessary_wraps)]

mod events;
pub mod parts;
pub mod schemes;
pub mod testing;

pub use events::{
    AckEvent, AckedPacket, CaState, EcnEvent, LossCause, LossEvent, LostPacket, RateSample,
    SendEvent, SpuriousLossEvent,
};

use narrows_units::{Bytes, Files, Kind, ParamError, ParamSpec, Params, Rate, Stream, Time};
use parts::actions::ActionSpace;

/// Window and rate that a scheme allows. At least one of them is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Maximum bytes in flight.
    pub cwnd: Option<Bytes>,
    /// Maximum sending rate.
    pub pacing: Option<Rate>,
    /// Maximum burst in bytes when paced; by default the transport's own rule.
    pub quantum: Option<Bytes>,
    /// A new rate applies from the last packet on, not from the next: for schemes that define the spacing between
    /// packets.
    pub reschedule_pacing: bool,
    /// After a full window, the next packet's spacing begins with the acknowledgement that makes room: for schemes
    /// whose sender checks its window and its spacing in sequence.
    pub restart_pacing_when_open: bool,
}

/// Construction arguments of a scheme.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Payload of a full packet; windows are counted in payload bytes.
    pub mss: Bytes,
    /// Initial window in packets (RFC 6928: 10).
    pub initial_window: u64,
    /// Time of construction.
    pub now: Time,
    /// The scheme's own random numbers.
    pub random: Stream,
    /// True if packets will carry an ECN codepoint.
    pub ecn: bool,
    /// Contents of the files that parameters name.
    pub files: Files,
}

impl Setup {
    /// The initial window in bytes.
    pub fn initial_cwnd(&self) -> Bytes {
        self.mss * self.initial_window
    }
}

/// Values that a scheme exposes for plots and audits.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// Slow-start threshold, if the scheme has one and it is finite.
    pub ssthresh: Option<Bytes>,
    /// Phase of the scheme (`slow_start`, `avoidance`, `probe_bw` ...).
    pub mode: &'static str,
    /// Other values: name (with its unit at the end) and value.
    pub values: Vec<(&'static str, f64)>,
}

/// A congestion control scheme.
///
/// Times in events never decrease. For each acknowledgement the transport calls, in this order: `on_spurious_loss`,
/// `on_loss`, `on_ecn`, `on_recovery_exit` (each only if it applies), then `on_ack`; and reads `allowance` after that.
pub trait CongestionControl: Send {
    /// An acknowledgement that acknowledges new packets arrived.
    fn on_ack(&mut self, ack: &AckEvent<'_>);

    /// Without selective acknowledgements: a duplicate acknowledgement arrived, which shows that some packet beyond the
    /// first gap has arrived. `packets` is empty, and neither an RTT nor a rate is set. For schemes that set their
    /// window themselves in a recovery.
    fn on_duplicate(&mut self, _ack: &AckEvent<'_>) {}

    /// Packets were found to be lost.
    fn on_loss(&mut self, loss: &LossEvent<'_>);

    /// Bytes, and rate, that may be sent now.
    fn allowance(&self) -> Allowance;

    /// A packet was sent: one of those that [`heard_sends`](CongestionControl::heard_sends) names, or any.
    fn on_send(&mut self, _send: &SendEvent) {}

    /// The packets whose sending must be reported to the scheme.
    fn heard_sends(&self) -> HeardSends {
        HeardSends::All
    }

    /// The peer reported packets marked with congestion experienced.
    fn on_ecn(&mut self, _ecn: &EcnEvent) {}

    /// All losses of an epoch turned out to be spurious: the packets were only late.
    fn on_spurious_loss(&mut self, _spurious: &SpuriousLossEvent) {}

    /// Everything in flight when the recovery epoch began has been acknowledged or lost.
    fn on_recovery_exit(&mut self, _now: Time) {}

    /// When `on_timer` is wanted.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// The timer requested by `next_timer` has expired.
    fn on_timer(&mut self, _now: Time) {}

    /// True if the scheme itself keeps the flow below the path's capacity in order to probe the path (BBR's ProbeRTT):
    /// delivery-rate samples then count as application-limited.
    fn holds_back(&self) -> bool {
        false
    }

    /// True if the caller makes the decisions, because the scheme can't or was asked not to.
    fn needs_caller(&self) -> bool {
        false
    }

    /// Leaves all decisions from now on to the caller; returns false if the scheme makes none that can be left.
    ///
    /// After an event with which a decision is due, [`observation`](CongestionControl::observation) returns its inputs
    /// until [`take_action`](CongestionControl::take_action) is called. The allowance is unchanged until then.
    fn decide_outside(&mut self) -> bool {
        false
    }

    /// The inputs of the decision that is due; `None` unless one is, and was left to the caller.
    fn observation(&self) -> Option<&[f32]> {
        None
    }

    /// The decision of the caller, for schemes with a choice the number of the action. Ignored unless one is due.
    fn take_action(&mut self, _action: &[f32]) {}

    /// The actions of its policy, one entry for each number of an action; empty if it makes no decisions.
    fn action_space(&self) -> Vec<ActionSpace> {
        Vec::new()
    }

    /// Appends to `action` the action that the scheme would itself take for `inputs` at a decision, in the form of
    /// [`take_action`](CongestionControl::take_action), and updates the memory of its policy, nothing else. Appends nothing
    /// if it makes no decisions, leaves them to the caller, or takes another number of inputs.
    fn choose_action(&mut self, _inputs: &[f32], _action: &mut Vec<f32>) {}

    /// Values for plots and audits.
    fn trace(&self, _fields: &mut Fields) {}
}

/// Packets whose sending is reported to a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeardSends {
    /// All of them.
    All,
    /// Those before which nothing was in flight. The others change neither the allowance nor the timer.
    AfterIdle,
}

/// Method by which the transport reduces the data in flight after a window reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Spread over one round by Proportional Rate Reduction (RFC 6937), as in Linux for schemes that only set the new
    /// window.
    Proportional,
    /// The scheme's allowance applies at once, also during recovery.
    Direct,
    /// Everything in flight counts as lost and is retransmitted from the gap on, as after a timeout, while the scheme
    /// grows its window (Tahoe).
    Restart,
}

/// ECN codepoint that the scheme's packets carry when ECN is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnUse {
    /// None: the scheme does not react to marks.
    None,
    /// ECT(0), RFC 3168.
    Classic,
    /// ECT(1), RFC 9331.
    Scalable,
}

/// A configuration of a scheme with published results: a named set of defaults.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Name in scenarios.
    pub name: &'static str,
    /// The algorithm it reproduces and its source, one sentence.
    pub doc: &'static str,
    /// Parameters of the scheme, names and values as in scenarios.
    pub params: &'static [(&'static str, &'static str)],
    /// Settings of the transport, likewise.
    pub transport: &'static [(&'static str, &'static str)],
}

/// Constructor of a scheme.
pub type Build = fn(&Params, Setup) -> Result<Box<dyn CongestionControl>, ParamError>;

/// One entry of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// Name in scenarios.
    pub name: &'static str,
    /// Description, one sentence.
    pub summary: &'static str,
    /// Paper, RFC or draft with version.
    pub source: &'static str,
    /// Window reduction.
    pub recovery: Recovery,
    /// ECN codepoint.
    pub ecn: EcnUse,
    /// Whether it reduces its window at every loss by more than it adds between two, for any delay, so that random loss
    /// alone bounds a flow.
    pub loss_based: bool,
    /// Transport settings that are part of the scheme's definition (name and value as in scenarios), used unless the
    /// scenario sets them: NewReno has no selective acknowledgements.
    pub transport: &'static [(&'static str, &'static str)],
    /// Configurations used by others, which a scenario may select (`profile: pantheon`).
    pub profiles: &'static [Profile],
    /// Its parameters.
    pub params: &'static [ParamSpec],
    /// Its constructor.
    pub build: Build,
}

impl Scheme {
    /// True if one of its parameters names a file: a model, which may be what decides.
    pub fn reads_model(&self) -> bool {
        self.params.iter().any(|spec| spec.kind == Kind::File)
    }

    /// Properties of the scheme shown by registries, without its parameters: name and value.
    pub fn words(&self) -> Vec<(&'static str, String)> {
        vec![
            ("name", self.name.to_owned()),
            ("summary", self.summary.to_owned()),
            ("source", self.source.to_owned()),
            (
                "ecn",
                match self.ecn {
                    EcnUse::None => "none",
                    EcnUse::Classic => "classic",
                    EcnUse::Scalable => "scalable",
                }
                .to_owned(),
            ),
        ]
    }
}
