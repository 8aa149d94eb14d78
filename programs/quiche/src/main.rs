//! A bulk sender and a receiver over quiche.
//!
//! `receive PORT` waits for one connection and reads its stream to the end; `send ADDRESS PORT CONTROLLER FOLDER` fills
//! one unidirectional stream until SIGTERM. Everything but the congestion control is as the library has it, apart from
//! the windows of flow control, which must not limit what is studied, and the size of packets, which the library leaves
//! to its user. Every 100 ms the sender writes what the library knows of the path to `FOLDER/report.ndjson`.

use boring::asn1::Asn1Time;
use boring::ec::{EcGroup, EcKey};
use boring::error::ErrorStack;
use boring::hash::MessageDigest;
use boring::nid::Nid;
use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod};
use boring::x509::{X509, X509NameBuilder};
use quiche::{Config, Connection, ConnectionId, RecvInfo};
use signal_hook::consts::SIGTERM;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

mod endpoint;

use endpoint::Endpoint;

type Outcome = Result<(), Box<dyn Error>>;

/// Enough for 1 Gbit/s over 500 ms.
const FLOW_CONTROL_WINDOW: u64 = 64_000_000;
/// Payload of the largest datagrams: IP packets of 1500 bytes.
const DATAGRAM: usize = 1472;
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// Time for the closing packets after the sender has been asked to stop.
const CLOSING: Duration = Duration::from_millis(200);
/// The first unidirectional stream of a client.
const STREAM: u64 = 2;
const PROTOCOL: &[u8] = b"narrows";
const USAGE: &str =
    "usage: narrows-quiche --version | receive PORT | send ADDRESS PORT cubic|reno|bbr2 FOLDER";

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let stopped = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGTERM, stopped.clone())?;
    match words.as_slice() {
        ["--version"] => {
            println!("quiche {}", locked("quiche"));
            Ok(())
        }
        ["receive", port] => receive(port.parse()?, &stopped),
        ["send", address, port, controller, folder] => {
            let to = SocketAddr::new(address.parse()?, port.parse()?);
            send(to, controller, Path::new(folder), &stopped)
        }
        _ => Err(USAGE.into()),
    }
}

/// The version of a crate in the lock file with which this was built.
fn locked(name: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let entry = format!("name = \"{name}\"\nversion = \"");
    lock.split_once(&entry)
        .and_then(|(_, rest)| rest.split('"').next())
        .unwrap_or("unknown")
}

/// Settings of both sides, with what TLS has been told.
fn config(tls: SslContextBuilder) -> Result<Config, quiche::Error> {
    let mut config = Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls)?;
    config.set_application_protos(&[PROTOCOL])?;
    config.set_initial_max_data(FLOW_CONTROL_WINDOW);
    config.set_initial_max_stream_data_uni(FLOW_CONTROL_WINDOW);
    config.set_max_connection_window(FLOW_CONTROL_WINDOW);
    config.set_max_stream_window(FLOW_CONTROL_WINDOW);
    config.set_initial_max_streams_uni(1);
    config.set_max_recv_udp_payload_size(DATAGRAM);
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.verify_peer(false);
    Ok(config)
}

/// TLS of a server with a certificate that is made now.
fn with_certificate() -> Result<SslContextBuilder, ErrorStack> {
    let curve = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    let key = PKey::from_ec_key(EcKey::generate(&curve)?)?;
    let mut name = X509NameBuilder::new()?;
    name.append_entry_by_nid(Nid::COMMONNAME, "localhost")?;
    let name = name.build();
    let mut made = X509::builder()?;
    made.set_version(2)?;
    made.set_subject_name(&name)?;
    made.set_issuer_name(&name)?;
    made.set_not_before(&*Asn1Time::days_from_now(0)?)?;
    made.set_not_after(&*Asn1Time::days_from_now(1)?)?;
    made.set_pubkey(&key)?;
    made.sign(&key, MessageDigest::sha256())?;
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    tls.set_certificate(&made.build())?;
    tls.set_private_key(&key)?;
    Ok(tls)
}

fn receive(port: u16, stopped: &AtomicBool) -> Outcome {
    let mut config = config(with_certificate()?)?;
    let here = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
    let mut endpoint = Endpoint::new(here)?;
    let mut data = vec![0; 65_536];
    let mut connection: Option<Connection> = None;
    while !stopped.load(Ordering::Relaxed) {
        endpoint.wait(connection.as_ref())?;
        while let Some((length, from)) = endpoint.datagram()? {
            let info = RecvInfo {
                from,
                to: endpoint.address,
            };
            let connection = match &mut connection {
                Some(known) => known,
                none => {
                    let id = endpoint::random_id()?;
                    let id = ConnectionId::from_ref(&id);
                    none.insert(quiche::accept(&id, None, info.to, from, &mut config)?)
                }
            };
            // Datagrams that are not packets of this connection are ignored.
            let _ = connection.recv(&mut endpoint.buffer[..length], info);
        }
        let Some(connection) = &mut connection else {
            continue;
        };
        while let Ok((_, _)) = connection.stream_recv(STREAM, &mut data) {}
        endpoint.send(connection)?;
        if connection.is_closed() || connection.is_draining() {
            break;
        }
    }
    Ok(())
}

fn send(to: SocketAddr, controller: &str, folder: &Path, stopped: &AtomicBool) -> Outcome {
    let mut config = config(SslContextBuilder::new(SslMethod::tls())?)?;
    if config.set_cc_algorithm_name(controller).is_err() {
        return Err(format!("unknown congestion control {controller}; {USAGE}").into());
    }
    let mut endpoint = Endpoint::new(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0))?;
    endpoint.connect(to)?;
    let id = endpoint::random_id()?;
    let id = ConnectionId::from_ref(&id);
    let mut connection =
        quiche::connect(Some("localhost"), &id, endpoint.address, to, &mut config)?;
    let mut report = File::create(folder.join("report.ndjson"))?;
    let data = vec![0; 65_536];
    let started = Instant::now();
    let mut due = started;
    while !stopped.load(Ordering::Relaxed) {
        endpoint.send(&mut connection)?;
        endpoint.wait_until(Some(&connection), due)?;
        endpoint.receive(&mut connection)?;
        if connection.is_closed() {
            return Err("the connection was closed".into());
        }
        if connection.is_established() {
            while let Ok(written) = connection.stream_send(STREAM, &data, false)
                && written > 0
            {}
        }
        if Instant::now() >= due {
            due += REPORT_INTERVAL;
            write_report(&mut report, &connection, started)?;
        }
    }
    let _ = connection.close(true, 0, b"");
    let end = Instant::now() + CLOSING;
    while Instant::now() < end && !connection.is_closed() {
        endpoint.send(&mut connection)?;
        endpoint.wait_until(Some(&connection), end)?;
        endpoint.receive(&mut connection)?;
    }
    Ok(())
}

/// Writes what the library knows of the path.
fn write_report(file: &mut File, connection: &Connection, started: Instant) -> Outcome {
    let stats = connection.stats();
    let Some(path) = connection.path_stats().next() else {
        return Ok(());
    };
    let rate = path.delivery_rate * 8;
    writeln!(
        file,
        r#"{{"time_s": {:.3}, "cwnd_bytes": {}, "rtt_ms": {:.3}, "sent_packets": {}, "lost_packets": {}, "delivery_bps": {rate}}}"#,
        started.elapsed().as_secs_f64(),
        path.cwnd,
        path.rtt.as_secs_f64() * 1e3,
        stats.sent,
        stats.lost,
    )?;
    Ok(())
}
