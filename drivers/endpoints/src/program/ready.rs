//! Waits until a program is ready, and finds listening sockets in the network namespace of this process from /proc/net.

use super::{Channel, LOOK, Runner};
use narrows_cell::{Readiness, RunError};
use narrows_sys::clock;
use std::fs;

/// Protocols, by the names of their tables.
pub(super) const TCP: &str = "tcp";
pub(super) const UDP: &str = "udp";
/// State of a TCP socket that listens, and of a UDP socket that is bound.
const LISTENS: &str = "0A";
const BOUND: &str = "07";

/// True if a socket listens on a port.
pub(super) fn listens(protocol: &str, port: u16) -> bool {
    ports(protocol).contains(&port)
}

/// The listening sockets found instead, as part of a sentence.
pub(super) fn missing(protocols: &[&str], port: u16) -> String {
    let upper = |name: &str| name.to_uppercase();
    let others: Vec<String> = [TCP, UDP]
        .into_iter()
        .flat_map(|name| ports(name).into_iter().map(move |port| (name, port)))
        .map(|(name, port)| format!("{} port {port}", upper(name)))
        .collect();
    let instead = if others.is_empty() {
        String::new()
    } else {
        format!("; it listens on {}", others.join(", "))
    };
    let wanted: Vec<String> = protocols.iter().map(|name| upper(name)).collect();
    format!(
        "nothing listens on {} port {port}{instead}",
        wanted.join(" or ")
    )
}

/// The ports with listening sockets, in order.
fn ports(protocol: &str) -> Vec<u16> {
    let tables = [protocol.to_owned(), format!("{protocol}6")];
    let mut found: Vec<u16> = tables
        .iter()
        .flat_map(|name| {
            read(&fs::read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default())
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The ports of a table of /proc/net.
fn read(table: &str) -> Vec<u16> {
    let port = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, _, state) = (words.next()?, words.next()?, words.next()?);
        let port = local.rsplit(':').next()?;
        let port = u16::from_str_radix(port, 16).ok()?;
        [LISTENS, BOUND].contains(&state).then_some(port)
    };
    table.lines().skip(1).filter_map(port).collect()
}

impl Runner<'_> {
    /// Waits until the process that starts before the run is ready.
    pub(super) fn until_ready(&mut self, channel: &mut Channel) -> Result<(), RunError> {
        let limit = clock::mono_ns() + self.program.limits.ready_ns;
        loop {
            let Some(started) = &self.started else {
                return Ok(());
            };
            let is_ready = match &self.plan.ready {
                None => true,
                Some(Readiness::Line(_)) => started.has_said_it(),
                Some(Readiness::Tcp(port)) => listens(TCP, self.port(*port)),
                Some(Readiness::Udp(port)) => listens(UDP, self.port(*port)),
                Some(Readiness::Port(port)) => {
                    let port = self.port(*port);
                    listens(TCP, port) || listens(UDP, port)
                }
            };
            let now = clock::mono_ns();
            if self.has_ended() {
                return Err(self.ended_too_soon("was ready"));
            }
            if is_ready {
                self.report.ready_ns = Some(now - started.at_ns);
                return Ok(());
            }
            if now >= limit {
                return Err(self.never_ready());
            }
            self.wait(now + LOOK, channel)?;
        }
    }

    /// The port that a manifest names, or that of the flow.
    pub(super) fn port(&self, named: Option<u16>) -> u16 {
        named.unwrap_or(self.words.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn sockets_are_found() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("0.0.0.0:0").unwrap();
        let (one, other) = (
            tcp.local_addr().unwrap().port(),
            udp.local_addr().unwrap().port(),
        );
        assert!(listens(TCP, one) && listens(UDP, other));
        assert!(
            missing(&[TCP, UDP], 1)
                .starts_with("nothing listens on TCP or UDP port 1; it listens on")
        );
        drop((tcp, udp));
        assert!(!listens(TCP, one) && !listens(UDP, other));
    }

    #[test]
    fn tables_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue\n   \
                     0: 0100007F:1F90 00000000:0000 0A 00000000\n   \
                     1: 0100007F:1F91 0100007F:0001 01 00000000\n   \
                     2: 00000000:0044 00000000:0000 07 00000000\n";
        assert_eq!(read(table), [8080, 68]);
        assert!(read("").is_empty());
    }
}
