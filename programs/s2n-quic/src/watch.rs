//! The library's events about its path.

use s2n_quic::provider::event::events::{PacketLost, PacketSent, RecoveryMetrics};
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The newest of each value.
#[derive(Default)]
pub struct Seen {
    cwnd_bytes: AtomicU64,
    rtt_us: AtomicU64,
    sent_packets: AtomicU64,
    lost_packets: AtomicU64,
}

impl Seen {
    /// A line of the report.
    pub fn line(&self, elapsed: Duration) -> String {
        format!(
            r#"{{"time_s": {:.3}, "cwnd_bytes": {}, "rtt_ms": {:.3}, "sent_packets": {}, "lost_packets": {}}}"#,
            elapsed.as_secs_f64(),
            self.cwnd_bytes.load(Relaxed),
            self.rtt_us.load(Relaxed) as f64 / 1e3,
            self.sent_packets.load(Relaxed),
            self.lost_packets.load(Relaxed),
        )
    }
}

/// Stores the reported values.
pub struct Watch(pub Arc<Seen>);

impl Subscriber for Watch {
    type ConnectionContext = ();

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo) {}

    fn on_recovery_metrics(&mut self, (): &mut (), _: &ConnectionMeta, event: &RecoveryMetrics) {
        self.0
            .cwnd_bytes
            .store(event.congestion_window.into(), Relaxed);
        let rtt = u64::try_from(event.smoothed_rtt.as_micros()).unwrap_or(u64::MAX);
        self.0.rtt_us.store(rtt, Relaxed);
    }

    fn on_packet_sent(&mut self, (): &mut (), _: &ConnectionMeta, _: &PacketSent) {
        self.0.sent_packets.fetch_add(1, Relaxed);
    }

    fn on_packet_lost(&mut self, (): &mut (), _: &ConnectionMeta, _: &PacketLost) {
        self.0.lost_packets.fetch_add(1, Relaxed);
    }
}
