//! Traffic: the demand of a network's users.
//!
//! An [`Application`] is a sans-IO state machine. A driver passes it the time and completed transfers, and carries out
//! its requests: open a connection, transfer a number of bytes up and down, close, send a datagram. The same object
//! drives the simulator's transport, the kernel's TCP and our transport over real sockets, so that each kind of traffic
//! is implemented once.
//!
//! One application runs per flow, at the flow's client: the host that sends the data for kinds that push
//! ([`Class::Push`], [`Class::Datagrams`]), the host that receives them for kinds that pull ([`Class::Pull`]). The
//! other end is generic: it accepts any data and answers with the requested number of bytes.
#![forbid(unsafe_code)]

mod datagram;
mod fetches;
mod header;
pub mod kinds;
mod offered;
mod sink;
mod sizes;
pub mod testing;

pub use datagram::{DATAGRAM_HEADER, DatagramSource, IP_UDP};
pub use header::TransferHeader;
pub use kinds::find;
pub use offered::Offered;
pub use sink::{DatagramReport, DatagramSink};

use narrows_units::{Entry, ParamError, Params, Stream, Time};

/// The sending side, and what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The client sends data over connections.
    Push,
    /// The client sends requests and the server sends data over connections.
    Pull,
    /// The client sends datagrams, which are not answered.
    Datagrams,
}

impl Class {
    /// The word used in registries.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Push => "push",
            Class::Pull => "pull",
            Class::Datagrams => "datagrams",
        }
    }
}

/// An application, or the reason why its parameters are invalid.
pub type Built = Result<Box<dyn Application>, ParamError>;

/// One kind of traffic: an entry of the registry.
#[derive(Clone, Copy)]
pub struct Traffic {
    /// Name, meaning and parameters.
    pub entry: Entry,
    /// The sending side, and what it sends.
    pub class: Class,
    /// True if a flow may have several connections of this kind side by side.
    pub parallel: bool,
    /// True if its transfers are over when every byte has arrived, so that losses must be repaired.
    pub whole: bool,
    /// The constructor, from parameters that were checked individually.
    pub build: fn(&Params, &TrafficSetup) -> Built,
}

impl std::fmt::Debug for Traffic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.entry.name)
    }
}

impl Traffic {
    /// The entry as JSON, with its class and whether it may have parallel connections.
    pub fn to_json(&self) -> serde_json::Value {
        let mut json = self.entry.to_json();
        json["class"] = self.class.name().into();
        json["parallel"] = self.parallel.into();
        json
    }

    /// Builds the application from checked parameters.
    ///
    /// # Errors
    /// Contradictory parameters, or several connections of a kind that opens connections itself.
    pub fn build(
        &self,
        params: &Params,
        setup: &TrafficSetup,
    ) -> Result<Box<dyn Application>, ParamError> {
        if setup.connections == 0 {
            return Err(ParamError::Conflict(
                "a flow has at least one connection".into(),
            ));
        }
        if setup.connections > 1 && !self.parallel {
            return Err(ParamError::Conflict(format!(
                "traffic of the kind '{}' decides itself how many connections it has; leave out connections",
                self.entry.name
            )));
        }
        (self.build)(params, setup)
    }
}

/// Arguments of a constructor besides its parameters.
#[derive(Clone, Copy, Debug)]
pub struct TrafficSetup {
    /// Seed of the run.
    pub seed: u64,
    /// Number of the flow.
    pub flow: u16,
    /// Connections side by side.
    pub connections: u32,
}

impl TrafficSetup {
    /// The application's own stream of random numbers.
    pub fn stream(&self) -> Stream {
        Stream::new(self.seed, &format!("traffic/{}", self.flow))
    }
}

/// Events of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficEvent {
    /// The flow starts.
    Start,
    /// The time that [`Application::next_wakeup`] named has come.
    Wakeup,
    /// The last byte of the answer to a transfer has arrived. Only transfers with
    /// [`Transfer::down`] above zero are reported.
    Completed {
        /// Its connection.
        connection: u32,
        /// Its number.
        transfer: u32,
    },
    /// A connection broke; it delivers nothing more. Its number is not reused.
    Failed {
        /// The connection.
        connection: u32,
    },
}

/// Bytes up and down over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The connection.
    pub connection: u32,
    /// Number of the transfer in its flow, from 0.
    pub transfer: u32,
    /// Payload bytes from client to server, or [`Transfer::OPEN`].
    pub up: u64,
    /// Payload bytes from server to client, sent once all of `up` has arrived.
    pub down: u64,
}

impl Transfer {
    /// A transfer without end: its bytes grow with each [`TrafficAction::Grant`], until the flow
    /// stops. It is the last transfer of its connection.
    pub const OPEN: u64 = u64::MAX;

    /// True if the transfer has no end.
    pub const fn is_open(&self) -> bool {
        self.up == Transfer::OPEN
    }
}

/// Requests of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficAction {
    /// Open a connection. The application assigns the numbers, which increase from 0 and are never reused.
    Open {
        /// Its number.
        connection: u32,
    },
    /// Transfer data over an open connection, after the transfers begun on it earlier.
    Transfer(Transfer),
    /// This many more bytes of the connection's open transfer may be sent; `u64::MAX` means without limit.
    Grant {
        /// The connection.
        connection: u32,
        /// Bytes in addition to those granted before.
        bytes: u64,
    },
    /// Withdraws bytes that were granted and have not been sent.
    Hold {
        /// The connection.
        connection: u32,
    },
    /// No more transfers follow on this connection: it closes when those begun are complete.
    Close {
        /// The connection.
        connection: u32,
    },
    /// Send a datagram now. The driver numbers and stamps it.
    Datagram {
        /// Its IP size in bytes.
        size: u32,
    },
}

impl TrafficAction {
    /// The only transfer of a connection, with its number: a number of bytes up, none down.
    pub(crate) fn upload(connection: u32, bytes: u64) -> Self {
        TrafficAction::Transfer(Transfer {
            connection,
            transfer: connection,
            up: bytes,
            down: 0,
        })
    }
}

/// A source of traffic.
///
/// Times never decrease. An application is not called after its flow has stopped.
pub trait Application: Send {
    /// Handles an event at `now`; actions to take at once are appended to `actions`.
    fn on(&mut self, now: Time, event: TrafficEvent, actions: &mut Vec<TrafficAction>);

    /// When [`TrafficEvent::Wakeup`] is wanted next; [`Time::FAR`] if never. Asked after each event.
    fn next_wakeup(&self) -> Time;

    /// Facts about the source for the record of a run, such as the computed number of users.
    fn facts(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}
