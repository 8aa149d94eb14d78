//! Messages between the agent and its endpoints: JSON documents prefixed by their length, over a
//! socket pair. The end of the stream means that the other side has ended.

use narrows_cell::{EndpointOutcome, Role, StateSample};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// Maximum length of a document (an hour of states is about 40 MB).
const MAX_DOCUMENT: usize = 1 << 30;

/// Messages from the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum AgentCommand {
    /// Prepare one end of one flow of this cell, and say `ready`.
    Prepare {
        /// Text of the cell.
        cell: String,
        /// Folder of the files that the cell names.
        files: PathBuf,
        /// Number of the flow.
        flow: u16,
        /// The end of the flow.
        role: Role,
        /// Unsent bytes to keep in the send buffer of a connection.
        unsent: u32,
        /// The kernel's name of the congestion control loaded for the flow (`bpf:` schemes).
        loaded: Option<String>,
        /// Addresses of the hosts, by their index, unless they are those of emulated hosts.
        addresses: Option<[Ipv4Addr; 2]>,
        /// True if a sender reports its state during the run.
        is_live: bool,
        /// Folder of the logs.
        logs: PathBuf,
    },
    /// The run starts at these times of the two clocks (or has just started).
    Start {
        /// By `CLOCK_REALTIME`.
        real_ns: u64,
        /// By `CLOCK_MONOTONIC`.
        mono_ns: u64,
    },
    /// The flow has other times than the cell says; those that have passed stay.
    Reschedule {
        /// When it starts.
        start_ns: u64,
        /// When it stops.
        stop_ns: u64,
    },
}

/// Messages from an endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum EndpointMessage {
    /// Everything is prepared.
    Ready,
    /// The endpoint failed.
    Failed {
        /// The reason, one sentence.
        message: String,
        /// True if the machine, and not the program, is the reason.
        unavailable: bool,
        /// True if an external program is the reason.
        program: bool,
    },
    /// The present state of the sender, in a live run.
    State(Box<StateSample>),
    /// The flow has ended.
    Done(Box<EndpointOutcome>),
}

/// One end of the socket pair.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    received: Vec<u8>,
}

/// The result of [`Channel::receive`].
#[derive(Debug)]
pub enum Received<T> {
    /// A document.
    Document(T),
    /// No complete document yet.
    Nothing,
    /// The other side has ended.
    End,
}

impl Channel {
    /// Both ends of a new channel.
    pub fn pair() -> io::Result<(Channel, OwnedFd)> {
        let (ours, theirs) = UnixStream::pair()?;
        Ok((
            Channel {
                stream: ours,
                received: Vec::new(),
            },
            theirs.into(),
        ))
    }

    /// The end that was inherited from the agent.
    pub fn from_fd(fd: OwnedFd) -> Channel {
        Channel {
            stream: fd.into(),
            received: Vec::new(),
        }
    }

    /// Lets the other side see the end.
    pub fn close(&self) {
        // Closing fails only if it is closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Sends a document, waiting until the other side has room for it.
    pub fn send(&mut self, document: &impl Serialize) -> io::Result<()> {
        let body = serde_json::to_vec(document)?;
        self.stream.set_nonblocking(false)?;
        self.stream.write_all(&(body.len() as u32).to_le_bytes())?;
        self.stream.write_all(&body)
    }

    /// The next document, if it is complete, without waiting.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Received<T>> {
        self.stream.set_nonblocking(true)?;
        let mut ended = false;
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    ended = true;
                    break;
                }
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    ended = true;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(head) = self.received.first_chunk::<4>() {
            let length = u32::from_le_bytes(*head) as usize;
            if length > MAX_DOCUMENT {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if self.received.len() >= 4 + length {
                let document = serde_json::from_slice(&self.received[4..4 + length])?;
                self.received.drain(..4 + length);
                return Ok(Received::Document(document));
            }
        }
        Ok(if ended {
            Received::End
        } else {
            Received::Nothing
        })
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_record::StateRow;

    #[test]
    fn documents_arrive_whole_and_the_end_is_seen() {
        let (mut agent, fd) = Channel::pair().unwrap();
        let mut endpoint = Channel::from_fd(fd);
        assert!(matches!(
            agent.receive::<EndpointMessage>().unwrap(),
            Received::Nothing
        ));
        let row = StateRow {
            time_ns: 5,
            cwnd_bytes: Some(7),
            mode: Some("x".into()),
            ..StateRow::default()
        };
        let states = vec![StateSample::from(row.clone()); 100_000];
        let thread = std::thread::spawn(move || {
            endpoint.send(&EndpointMessage::Ready).unwrap();
            let outcome = EndpointOutcome {
                states,
                ..EndpointOutcome::default()
            };
            endpoint
                .send(&EndpointMessage::Done(Box::new(outcome)))
                .unwrap();
        });
        let mut documents = Vec::new();
        loop {
            match agent.receive::<EndpointMessage>().unwrap() {
                Received::Document(news) => documents.push(news),
                Received::Nothing => std::thread::yield_now(),
                Received::End => break,
            }
        }
        thread.join().unwrap();
        assert!(matches!(documents[0], EndpointMessage::Ready));
        let EndpointMessage::Done(outcome) = documents.remove(1) else {
            panic!("the second is the outcome")
        };
        assert_eq!(outcome.states.len(), 100_000);
        let first = outcome.states.into_iter().next().unwrap();
        assert_eq!(first.into_row(0), row);
    }
}
