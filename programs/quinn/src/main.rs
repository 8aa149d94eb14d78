//! A bulk sender and a receiver over quinn.
//!
//! `receive PORT` waits for one connection and reads its stream to the end; `send ADDRESS PORT CONTROLLER FOLDER` fills
//! one unidirectional stream until SIGTERM. Everything but the congestion control is as the library has it, apart from
//! the windows of flow control, which must not limit what is studied. Every 100 ms the sender writes what the library
//! knows of the path to `FOLDER/report.ndjson`.

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, VarInt};
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

mod trust;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// Enough for 1 Gbit/s over 500 ms.
const FLOW_CONTROL_WINDOW: u32 = 64_000_000;
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// Time for the closing packets after the sender has been asked to stop.
const CLOSING: Duration = Duration::from_millis(200);
const USAGE: &str =
    "usage: narrows-quinn --version | receive PORT | send ADDRESS PORT cubic|newreno|bbr FOLDER";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--version"] => {
            println!(
                "quinn {}, quinn-proto {}",
                locked("quinn"),
                locked("quinn-proto")
            );
            Ok(())
        }
        ["receive", port] => receive(port.parse()?).await,
        ["send", address, port, controller, folder] => {
            let to = SocketAddr::new(address.parse()?, port.parse()?);
            send(to, controller, Path::new(folder)).await
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

fn transport(controller: Option<Arc<dyn ControllerFactory + Send + Sync>>) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .stream_receive_window(VarInt::from_u32(FLOW_CONTROL_WINDOW))
        .receive_window(VarInt::from_u32(FLOW_CONTROL_WINDOW))
        .send_window(FLOW_CONTROL_WINDOW.into());
    if let Some(controller) = controller {
        config.congestion_controller_factory(controller);
    }
    Arc::new(config)
}

async fn receive(port: u16) -> Outcome {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![made.cert.into()], key.into())?;
    config.transport_config(transport(None));
    let endpoint = Endpoint::server(
        config,
        SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port),
    )?;
    let mut stopped = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = stopped.recv() => Ok(()),
        outcome = read_all(&endpoint) => outcome,
    }
}

/// Reads the stream of the first connection, and waits for the end of the connection.
async fn read_all(endpoint: &Endpoint) -> Outcome {
    let incoming = endpoint.accept().await.ok_or("the socket was closed")?;
    let connection = incoming.await?;
    let mut stream = connection.accept_uni().await?;
    // A connection that its sender closes ends its stream with an error, which is the usual end here.
    while let Ok(Some(_)) = stream.read_chunk(usize::MAX, true).await {}
    connection.closed().await;
    Ok(())
}

async fn send(to: SocketAddr, controller: &str, folder: &Path) -> Outcome {
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match controller {
        "cubic" => Arc::new(CubicConfig::default()),
        "newreno" => Arc::new(NewRenoConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        _ => return Err(format!("unknown congestion control {controller}; {USAGE}").into()),
    };
    let mut stopped = signal(SignalKind::terminate())?;
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(trust::anybody())?));
    config.transport_config(transport(Some(factory)));
    let endpoint = Endpoint::client(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0))?;
    let connection = endpoint.connect_with(config, to, "localhost")?.await?;
    let ended = tokio::select! {
        _ = stopped.recv() => Ok(()),
        ended = fill(&connection) => ended,
        ended = report(&connection, folder) => ended,
    };
    connection.close(VarInt::from_u32(0), b"done");
    let _ = tokio::time::timeout(CLOSING, endpoint.wait_idle()).await;
    ended
}

/// Writes into one stream without end.
async fn fill(connection: &Connection) -> Outcome {
    let mut stream = connection.open_uni().await?;
    let data = vec![0; 65_536];
    loop {
        stream.write_all(&data).await?;
    }
}

/// Writes what the library knows of the path, line by line.
async fn report(connection: &Connection, folder: &Path) -> Outcome {
    let mut file = File::create(folder.join("report.ndjson"))?;
    let started = Instant::now();
    let mut due = tokio::time::interval(REPORT_INTERVAL);
    loop {
        due.tick().await;
        let path = connection.stats().path;
        writeln!(
            file,
            r#"{{"time_s": {:.3}, "cwnd_bytes": {}, "rtt_ms": {:.3}, "sent_packets": {}, "lost_packets": {}}}"#,
            started.elapsed().as_secs_f64(),
            path.cwnd,
            path.rtt.as_secs_f64() * 1e3,
            path.sent_packets,
            path.lost_packets,
        )?;
    }
}
