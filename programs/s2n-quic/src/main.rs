//! A bulk sender and a receiver over s2n-quic.
//!
//! `receive PORT` waits for one connection and reads its stream to the end; `send ADDRESS PORT CONTROLLER FOLDER` fills
//! one unidirectional stream until SIGTERM. Everything but the congestion control is as the library has it, apart from
//! the windows of flow control, which must not limit what is studied. Every 100 ms the sender writes what the library
//! knows of the path to `FOLDER/report.ndjson`.

use s2n_quic::client::Connect;
use s2n_quic::connection::Handle;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls::{Client as ClientTls, Server as ServerTls};
use s2n_quic::{Client, Server};
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

mod trust;
mod watch;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// The default protocol of the library's server.
const PROTOCOL: &str = "h3";
/// Enough for 1 Gbit/s over 500 ms.
const FLOW_CONTROL_WINDOW: u64 = 64_000_000;
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// Time for the closing packets after the sender has been asked to stop.
const CLOSING: Duration = Duration::from_millis(200);
const USAGE: &str =
    "usage: narrows-s2n-quic --version | receive PORT | send ADDRESS PORT cubic|bbr2 FOLDER";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--version"] => {
            println!(
                "s2n-quic {}, s2n-quic-core {}",
                locked("s2n-quic"),
                locked("s2n-quic-core")
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

fn limits() -> Result<Limits, Box<dyn Error + Send + Sync>> {
    Ok(Limits::new()
        .with_data_window(FLOW_CONTROL_WINDOW)?
        .with_unidirectional_data_window(FLOW_CONTROL_WINDOW)?
        .with_max_send_buffer_size(FLOW_CONTROL_WINDOW as u32)?)
}

async fn receive(port: u16) -> Outcome {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let chain = vec![made.cert.der().to_vec()];
    let tls = ServerTls::builder()
        .with_certificate(chain, made.signing_key.serialize_der())?
        .build()?;
    let mut server = Server::builder()
        .with_tls(tls)?
        .with_io(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port))?
        .with_limits(limits()?)?
        .start()?;
    let mut stopped = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = stopped.recv() => Ok(()),
        outcome = read_all(&mut server) => outcome,
    }
}

/// Reads the stream of the first connection, to its end or that of the connection.
async fn read_all(server: &mut Server) -> Outcome {
    let mut connection = server.accept().await.ok_or("the socket was closed")?;
    let mut stream = connection
        .accept_receive_stream()
        .await?
        .ok_or("there was no stream")?;
    // A connection that its sender closes ends its stream with an error, which is the usual end here.
    while let Ok(Some(_)) = stream.receive().await {}
    Ok(())
}

async fn send(to: SocketAddr, controller: &str, folder: &Path) -> Outcome {
    let seen = Arc::new(watch::Seen::default());
    let trusting = ClientTls::from(trust::anybody(PROTOCOL));
    let builder = Client::builder()
        .with_tls(trusting)?
        .with_io(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0))?
        .with_limits(limits()?)?
        .with_event(watch::Watch(seen.clone()))?;
    let client = match controller {
        "cubic" => builder
            .with_congestion_controller(Cubic::default())?
            .start()?,
        "bbr2" => builder
            .with_congestion_controller(Bbr::default())?
            .start()?,
        _ => return Err(format!("unknown congestion control {controller}; {USAGE}").into()),
    };
    let mut stopped = signal(SignalKind::terminate())?;
    let connection = client
        .connect(Connect::new(to).with_server_name("localhost"))
        .await?;
    let mut handle = connection.handle();
    let ended = tokio::select! {
        _ = stopped.recv() => Ok(()),
        ended = fill(&mut handle) => ended,
        ended = report(&seen, folder) => ended,
    };
    handle.close(0_u8.into());
    tokio::time::sleep(CLOSING).await;
    ended
}

/// Writes into one stream without end.
async fn fill(connection: &mut Handle) -> Outcome {
    let mut stream = connection.open_send_stream().await?;
    let data = bytes::Bytes::from(vec![0; 65_536]);
    loop {
        stream.send(data.clone()).await?;
    }
}

/// Writes what the library knows of the path, line by line.
async fn report(seen: &watch::Seen, folder: &Path) -> Outcome {
    let mut file = File::create(folder.join("report.ndjson"))?;
    let started = Instant::now();
    let mut due = tokio::time::interval(REPORT_INTERVAL);
    loop {
        due.tick().await;
        writeln!(file, "{}", seen.line(started.elapsed()))?;
    }
}
