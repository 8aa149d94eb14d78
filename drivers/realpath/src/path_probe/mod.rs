//! Examines the path between two hosts from both ends: UDP ports that pass in each direction, the maximum packet size,
//! the round-trip time, and the offset of the clocks.
//!
//! A probe runs on each host and carries out commands from its standard input, one JSON document per line, answering
//! each with one line. The controller of both ends compares packets sent and arrivals. Each port answers questions on a
//! separate thread. Only datagrams with the examination's token count; others are counted as foreign.

mod datagram;
mod port;

use datagram::{HEADER, ProbeDatagram, ProbeKind, ProbeToken, overhead};
use narrows_cell::RunError;
use narrows_sys::clock;
use narrows_sys::socket::{bind_udp, set_mtu_probing};
use port::Port;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Maximum number of ports of one examination.
const MAX_PORTS: usize = 64;
/// Maximum number of datagrams per command: enough for every size of a search, too few for a flood.
const MAX_DATAGRAMS: usize = 4096;
/// Maximum pause between two datagrams.
const MAX_GAP_US: u64 = 1_000_000;

/// Shifts the local clock, in nanoseconds: for tests with a wrong clock.
const SHIFT: &str = "NARROWS_CLOCK_SHIFT_NS";

/// Commands on standard input.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum ProbeCommand {
    /// Open UDP ports (0: any) at a local address, optionally of one interface only, and answer questions there.
    Open {
        address: IpAddr,
        ports: Vec<u16>,
        #[serde(default)]
        interface: Option<String>,
    },
    /// Send datagrams, each of the given sizes of IP packets `copies` times, first all sizes once.
    Send {
        /// Index of the opened port that sends.
        from: usize,
        to: SocketAddr,
        sizes: Vec<u32>,
        copies: usize,
        gap_us: u64,
        /// True if the other end has to answer.
        answer: bool,
    },
    /// Datagrams that have arrived since the last report.
    Report,
    /// The local address from which the kernel would send to another, optionally through one interface.
    Route {
        to: IpAddr,
        #[serde(default)]
        interface: Option<String>,
    },
}

/// One end of an examination.
struct Prober {
    token: ProbeToken,
    shift_ns: i64,
    ports: Vec<Port>,
}

/// Carries out `commands` until they end.
///
/// # Errors
///
/// Input or output that cannot be read or written. A command that cannot be carried out is answered with `{"error":
/// ...}` and is not an error here.
pub fn serve(commands: impl BufRead, mut answers: impl Write) -> Result<(), RunError> {
    let mut commands = commands.lines();
    let broken = |error: std::io::Error| RunError::Io(format!("the other end has ended: {error}"));
    // Not an argument: all users of a host can read the arguments of processes.
    let token = parse_token(
        &commands
            .next()
            .transpose()
            .map_err(broken)?
            .unwrap_or_default(),
    )?;
    let shift_ns = clock_shift()?;
    let mut prober = Prober {
        token,
        shift_ns,
        ports: Vec::new(),
    };
    let mut answer_line =
        |answer: &Value| writeln!(answers, "{answer}").and_then(|()| answers.flush());
    answer_line(&json!({"ready": true, "clock_shift_ns": shift_ns})).map_err(broken)?;
    for line in commands {
        let line = line.map_err(broken)?;
        let answer = match serde_json::from_str::<ProbeCommand>(&line) {
            Ok(command) => prober.execute(command),
            Err(error) => Err(format!("this command is not understood: {error}")),
        };
        answer_line(&answer.unwrap_or_else(|why| json!({"error": why}))).map_err(broken)?;
    }
    Ok(())
}

/// Offset by which this process reads a wrong clock (0 except in tests).
///
/// # Errors
///
/// A shift that is not a number.
pub fn clock_shift() -> Result<i64, RunError> {
    let Ok(text) = std::env::var(SHIFT) else {
        return Ok(0);
    };
    text.parse().map_err(|_| {
        RunError::Input(format!(
            "${SHIFT} is \"{text}\"; it must be a whole number of nanoseconds"
        ))
    })
}

fn parse_token(text: &str) -> Result<ProbeToken, RunError> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    bytes
        .and_then(|bytes| ProbeToken::try_from(bytes).ok())
        .ok_or_else(|| {
            RunError::Input("the token must be 32 hexadecimal digits, such as od prints".to_owned())
        })
}

/// The clock of this host, shifted in tests.
fn now_ns(shift_ns: i64) -> u64 {
    clock::real_ns().saturating_add_signed(shift_ns)
}

impl Prober {
    fn execute(&mut self, command: ProbeCommand) -> Result<Value, String> {
        match command {
            ProbeCommand::Open {
                address,
                ports,
                interface,
            } => self.open(address, &ports, interface.as_deref()),
            ProbeCommand::Send {
                from,
                to,
                sizes,
                copies,
                gap_us,
                answer,
            } => {
                if sizes.len().saturating_mul(copies) > MAX_DATAGRAMS || gap_us > MAX_GAP_US {
                    return Err(format!(
                        "at most {MAX_DATAGRAMS} datagrams and {MAX_GAP_US} us between two; request less"
                    ));
                }
                let kind = if answer {
                    ProbeKind::Ask
                } else {
                    ProbeKind::Fill
                };
                self.send(
                    from,
                    to,
                    &sizes,
                    copies,
                    Duration::from_micros(gap_us),
                    kind,
                )
            }
            ProbeCommand::Report => {
                Ok(json!({"ports": self.ports.iter().map(Port::report).collect::<Vec<_>>()}))
            }
            ProbeCommand::Route { to, interface } => route(to, interface.as_deref()),
        }
    }

    fn open(
        &mut self,
        address: IpAddr,
        ports: &[u16],
        interface: Option<&str>,
    ) -> Result<Value, String> {
        if self.ports.len() + ports.len() > MAX_PORTS {
            return Err(format!(
                "at most {MAX_PORTS} ports can be examined at once; name fewer"
            ));
        }
        let mut opened = Vec::new();
        for &asked in ports {
            let local = SocketAddr::new(address, asked);
            let port = bind_udp(local, interface).and_then(|socket| {
                set_mtu_probing(&socket)?;
                Port::serve(socket, self.token, self.shift_ns)
            });
            let answer = match port {
                Ok(port) => {
                    let answer = json!({"asked": asked, "port": port.number(), "index": self.ports.len(), "why": null});
                    self.ports.push(port);
                    answer
                }
                Err(error) => {
                    json!({"asked": asked, "port": null, "index": null, "why": plain(&error)})
                }
            };
            opened.push(answer);
        }
        Ok(json!({"opened": opened}))
    }

    fn send(
        &self,
        from: usize,
        to: SocketAddr,
        sizes: &[u32],
        copies: usize,
        gap: Duration,
        kind: ProbeKind,
    ) -> Result<Value, String> {
        let port = self
            .ports
            .get(from)
            .ok_or_else(|| format!("port number {from} has not been opened; open it first"))?;
        let smallest = HEADER + overhead(&to);
        let largest = 65_535;
        if let Some(size) = sizes
            .iter()
            .find(|&&size| (size as usize) < smallest || size > largest)
        {
            return Err(format!(
                "packets of {size} bytes cannot be sent; sizes go from {smallest} to {largest}"
            ));
        }
        let mut buffer = vec![0; largest as usize];
        let mut sent = 0;
        let mut refused: Vec<(u32, String)> = Vec::new();
        let start = Instant::now();
        for (number, &size) in (0..copies).flat_map(|_| sizes).enumerate() {
            // Relative to the start, so that errors of pauses do not accumulate.
            let due = gap * u32::try_from(number).unwrap_or(u32::MAX);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
            let datagram = ProbeDatagram {
                kind,
                token: self.token,
                ip_size: size,
                asked_ns: now_ns(self.shift_ns),
                arrived_ns: 0,
                answered_ns: 0,
                seen: to,
            };
            datagram.write(&mut buffer);
            match port
                .socket()
                .send_to(&buffer[..size as usize - overhead(&to)], to)
            {
                Ok(_) => sent += 1,
                Err(error) if refused.iter().all(|(known, _)| *known != size) => {
                    refused.push((size, plain(&error)));
                }
                Err(_) => {}
            }
        }
        let refused: Vec<Value> = refused
            .iter()
            .map(|(size, why)| json!({"size": size, "why": why}))
            .collect();
        Ok(json!({"sent": sent, "refused": refused}))
    }
}

/// Local address towards `to`; no packet is sent for that.
fn route(to: IpAddr, interface: Option<&str>) -> Result<Value, String> {
    let any: IpAddr = match to {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    let ask = || {
        let socket = bind_udp(SocketAddr::new(any, 0), interface)?;
        // Connecting a UDP socket only selects the route; the port does not matter.
        socket.connect(SocketAddr::new(to, 9))?;
        Ok(json!({"source": socket.local_addr()?.ip()}))
    };
    let by = interface.map_or_else(String::new, |name| format!(" by {name}"));
    ask().map_err(|error: std::io::Error| {
        format!("there is no route to {to}{by}: {}", plain(&error))
    })
}

/// The system's error text without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    words.to_lowercase()
}

#[cfg(test)]
mod tests;
