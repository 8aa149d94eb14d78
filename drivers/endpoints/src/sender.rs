//! Sends encoded messages through a socket, in batches.

use narrows_cell::{Context, RunError};
use narrows_sys::mmsg::{Message, SendBatch};
use narrows_transport::wire;
use narrows_units::Ecn;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

/// Buffers and counters for sending that all sockets of an endpoint share.
pub(super) struct Sending {
    dscp: u8,
    batch: SendBatch,
    /// Reusable buffers for encoded messages.
    spare: Vec<Vec<u8>>,
    /// Datagrams and their IP bytes, sent.
    pub(super) sent: [u64; 2],
    /// Reason for which a datagram was not sent.
    pub(super) refused: Option<String>,
}

impl Sending {
    pub(super) fn new(dscp: u8) -> Self {
        Sending {
            dscp,
            batch: SendBatch::default(),
            spare: (0..SendBatch::CAPACITY)
                .map(|_| Vec::with_capacity(2048))
                .collect(),
            sent: [0; 2],
            refused: None,
        }
    }
}

/// Datagrams that wait to leave one socket.
#[derive(Default)]
pub(super) struct DatagramSender {
    waiting: VecDeque<(Ecn, Vec<u8>)>,
}

impl DatagramSender {
    /// True if no datagram waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends messages, up to one batch; returns whether there may be more immediately. `speak` encodes the next one
    /// into a buffer.
    pub(super) fn send(
        &mut self,
        fd: BorrowedFd<'_>,
        sending: &mut Sending,
        mut speak: impl FnMut(&mut Vec<u8>) -> Option<Ecn>,
    ) -> Result<bool, RunError> {
        let mut silent = false;
        while self.waiting.len() < SendBatch::CAPACITY && !silent {
            let mut bytes = sending.spare.pop().unwrap_or_default();
            if let Some(ecn) = speak(&mut bytes) {
                self.waiting.push_back((ecn, bytes));
            } else {
                sending.spare.push(bytes);
                silent = true;
            }
        }
        while !self.waiting.is_empty() {
            let dscp = sending.dscp;
            let messages = self.waiting.iter().map(|(ecn, bytes)| Message {
                tos: dscp << 2 | *ecn as u8,
                ..Message::from(bytes.as_slice())
            });
            let sent = match sending.batch.send(fd, messages) {
                Ok(sent) => sent,
                Err(error) => match error.raw_os_error() {
                    // They wait until the interface has room.
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR | libc::ECONNREFUSED) => {
                        return Ok(false);
                    }
                    Some(libc::EMSGSIZE) => {
                        if let Some((_, bytes)) = self.waiting.pop_front() {
                            let size = bytes.len() as u64 + u64::from(wire::IP_UDP);
                            sending.refused.get_or_insert_with(|| {
                                format!("datagrams of {size} bytes are larger than the host's mtu")
                            });
                        }
                        continue;
                    }
                    _ => return Err(error).could_not("send datagrams"),
                },
            };
            for (_, bytes) in self.waiting.drain(..sent) {
                sending.sent[0] += 1;
                sending.sent[1] += bytes.len() as u64 + u64::from(wire::IP_UDP);
                sending.spare.push(bytes);
            }
        }
        Ok(!silent)
    }
}
