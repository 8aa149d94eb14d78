//! One open port: it answers questions and remembers what arrived.

use super::datagram::{HEADER, ProbeDatagram, ProbeKind, ProbeToken};
use super::now_ns;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Maximum size of a datagram.
const MAX_DATAGRAM: usize = 65_535;
/// Number of consecutive errors after which a socket is abandoned.
const MAX_ERRORS: u32 = 1000;

/// A port, and the thread that reads it until the process ends.
pub(super) struct Port {
    socket: Arc<UdpSocket>,
    number: u16,
    seen: Arc<Mutex<ArrivedDatagrams>>,
}

/// Datagrams that have arrived since the last report.
#[derive(Debug, Default)]
struct ArrivedDatagrams {
    /// Questions and fillers of this examination.
    packets: u64,
    /// Size of the largest IP packet among them.
    largest: u32,
    /// Source address of the last one.
    from: Option<SocketAddr>,
    /// Answers to local questions, by source address.
    answers: BTreeMap<SocketAddr, u64>,
    /// The answer with the shortest round trip.
    best: Option<ProbeExchange>,
    /// Foreign datagrams.
    strangers: u64,
}

/// The four stamps of a question and its answer, and the local address as seen by the other end.
#[derive(Clone, Copy, Debug)]
struct ProbeExchange {
    datagram: ProbeDatagram,
    back_ns: u64,
}

impl ProbeExchange {
    /// Round-trip time, without the time that the other end took.
    fn rtt_ns(&self) -> i64 {
        let whole = self.back_ns.wrapping_sub(self.datagram.asked_ns) as i64;
        let held = self
            .datagram
            .answered_ns
            .wrapping_sub(self.datagram.arrived_ns) as i64;
        whole.wrapping_sub(held)
    }

    fn to_json(self) -> Value {
        json!({
            "asked_ns": self.datagram.asked_ns,
            "arrived_ns": self.datagram.arrived_ns,
            "answered_ns": self.datagram.answered_ns,
            "back_ns": self.back_ns,
            "seen": self.datagram.seen.to_string(),
        })
    }
}

impl Port {
    /// Starts answering questions on a socket.
    pub(super) fn serve(socket: UdpSocket, token: ProbeToken, shift_ns: i64) -> io::Result<Port> {
        let number = socket.local_addr()?.port();
        let port = Port {
            socket: Arc::new(socket),
            number,
            seen: Arc::default(),
        };
        let (socket, seen) = (Arc::clone(&port.socket), Arc::clone(&port.seen));
        thread::Builder::new()
            .name(format!("port {number}"))
            .spawn(move || read(&socket, &seen, &token, shift_ns))?;
        Ok(port)
    }

    /// The number of the port.
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    /// The socket for sending.
    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Returns and resets the counters of datagrams that have arrived.
    pub(super) fn report(&self) -> Value {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        let answers: serde_json::Map<String, Value> = seen
            .answers
            .iter()
            .map(|(from, count)| (from.to_string(), Value::from(*count)))
            .collect();
        json!({
            "port": self.number,
            "packets": seen.packets,
            "largest": seen.largest,
            "from": seen.from.map(|from| from.to_string()),
            "answers": answers,
            "best": seen.best.map(ProbeExchange::to_json),
            "strangers": seen.strangers,
        })
    }
}

fn read(socket: &UdpSocket, seen: &Mutex<ArrivedDatagrams>, token: &ProbeToken, shift_ns: i64) {
    let mut buffer = vec![0; MAX_DATAGRAM];
    let mut errors = 0;
    while errors < MAX_ERRORS {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            errors += 1;
            continue;
        };
        let now = now_ns(shift_ns);
        let datagram = ProbeDatagram::read(&buffer[..length], token);
        if let Some(asked) = datagram.filter(|datagram| datagram.kind == ProbeKind::Ask) {
            let answer = ProbeDatagram {
                kind: ProbeKind::Answer,
                arrived_ns: now,
                answered_ns: now_ns(shift_ns),
                seen: from,
                ..asked
            };
            let mut bytes = [0; HEADER];
            answer.write(&mut bytes);
            // An answer that cannot be sent counts as one that does not arrive.
            let _ = socket.send_to(&bytes, from);
        }
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.note(datagram, from, now);
    }
}

impl ArrivedDatagrams {
    fn note(&mut self, datagram: Option<ProbeDatagram>, from: SocketAddr, now_ns: u64) {
        match datagram {
            None => self.strangers += 1,
            Some(datagram) if datagram.kind == ProbeKind::Answer => {
                *self.answers.entry(from).or_default() += 1;
                let exchange = ProbeExchange {
                    datagram,
                    back_ns: now_ns,
                };
                if self
                    .best
                    .is_none_or(|best| exchange.rtt_ns() < best.rtt_ns())
                {
                    self.best = Some(exchange);
                }
            }
            Some(datagram) => {
                self.packets += 1;
                self.largest = self.largest.max(datagram.ip_size);
                self.from = Some(from);
            }
        }
    }
}
