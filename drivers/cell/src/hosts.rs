//! Settings of hosts: the kernel's network settings, which are applied in emulated hosts, and their equivalents in our
//! transport in simulation and over UDP.

use crate::{CellError, NOISES, Noise};
use narrows_transport::Config;
use narrows_units::{Bytes, Kind, ParamSpec, Params, Span, params};
use serde_json::{Map, Value, json};

params! {
    /// Settings of a host in a scenario. Absent settings keep the kernel's value. Settings whose names begin with
    /// `tcp_` are those of the kernel in `net.ipv4`.
    #[derive(Default, PartialEq)]
    pub struct HostSettings {
        /// Selective acknowledgements (0 or 1).
        tcp_sack: Option<Count>(0.0..=1.0);
        /// Reports of duplicate data (0 or 1).
        tcp_dsack: Option<Count>(0.0..=1.0);
        /// Number of packets that may overtake one before it is declared lost.
        tcp_reordering: Option<Count>(1.0..=300.0);
        /// Maximum to which observed reordering raises that number.
        tcp_max_reordering: Option<Count>(1.0..=1e6);
        /// Time-based loss detection: bit 0 enables RACK, bits 1 and 2 change its window.
        tcp_recovery: Option<Count>(0.0..=7.0);
        /// 0: no ECN; 1: request and accept it; 2: accept it.
        tcp_ecn: Option<Count>(0.0..=2.0);
        /// Receive buffer of a connection in bytes: minimum, initial and maximum.
        tcp_rmem: Option<Counts>;
        /// Send buffer of a connection in bytes: minimum, initial and maximum.
        tcp_wmem: Option<Counts>;
        /// Maximum number of payload bytes that a connection from or to this host may have in flight.
        window: Option<Bytes>(2000.0..=1e12);
        /// Maximum size of an IP packet of the host.
        mtu: Option<Bytes>(576.0..=9000.0);
        /// Whether the window decays while a connection is idle (0 or 1).
        tcp_slow_start_after_idle: Option<Count>(0.0..=1.0);
        /// Tail-loss probes: 0 disables them, 3 enables them.
        tcp_early_retrans: Option<Count>(0.0..=4.0);
        /// Minimum retransmission timeout in microseconds.
        tcp_rto_min_us: Option<Count>(1.0..=6e7);
        /// TCP time stamps (0 or 1).
        tcp_timestamps: Option<Count>(0.0..=1.0);
        /// Whether the kernel discards cached metrics of a path when a connection ends (0 or 1).
        tcp_no_metrics_save: Option<Count>(0.0..=1.0);
        /// Unsent bytes above which a socket accepts no more data.
        tcp_notsent_lowat: Option<Count>(0.0..=4_294_967_295.0);
    }
}

const NOISE: ParamSpec = ParamSpec::new(
    "noise",
    Kind::Choice(NOISES),
    "Delay with which the processes of a simulated host react to datagrams and timers: none, or as measured on a kind of machine. Real hosts have real delays and do not support it.",
);

const CONGESTION_CONTROL: ParamSpec = ParamSpec::new(
    "tcp_congestion_control",
    Kind::Choice(&[
        "reno",
        "cubic",
        "bbr",
        "bic",
        "cdg",
        "dctcp",
        "highspeed",
        "htcp",
        "hybla",
        "illinois",
        "lp",
        "nv",
        "scalable",
        "vegas",
        "veno",
        "westwood",
        "yeah",
    ]),
    "Congestion control of TCP in programs that do not choose one (such as web servers): CUBIC unless it is set, and Reno if this machine does not allow CUBIC for all users (net.ipv4.tcp_allowed_congestion_control).",
);

/// All settings of a host.
const SPECS: [ParamSpec; 18] =
    ParamSpec::join(&[HostSettings::PARAMS, &[CONGESTION_CONTROL, NOISE]]);

/// Source of the settings.
const KERNEL: &str = "Linux, Documentation/networking/ip-sysctl.rst";

/// The equivalent of a setting in our transport, if any.
fn mirror_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "tcp_sack" => "transport parameter sack: off if either end of a connection has 0",
        "tcp_reordering" => "transport parameter packet_threshold of the sender",
        "tcp_max_reordering" => "transport parameter max_packet_threshold of the sender",
        "tcp_recovery" => "transport parameter rack of the sender: bit 0",
        "tcp_ecn" => {
            "transport parameter ecn: on if the client has 1 and the server does not have 0; off if either has 0"
        }
        "tcp_rmem" => {
            "transport parameter window: half of the maximum at the receiver, as the kernel reserves half for overhead"
        }
        "tcp_wmem" => {
            "transport parameter window: half of the maximum at the sender, as the kernel reserves half for overhead"
        }
        "window" => "transport parameter window: the minimum of both ends",
        "mtu" => {
            "transport parameter packet_size: the minimum of both ends, where an end without the setting has the scenario's packet_size"
        }
        "tcp_early_retrans" => "transport parameter tail_loss_probe of the sender: off with 0",
        "tcp_rto_min_us" => "transport parameter min_rto of the sender",
        "noise" => {
            "in simulation, sockets are read in batches and packets leave when the process runs"
        }
        _ => return None,
    })
}

/// Name of the kernel's setting that is called `name` in scenarios; `None` for other settings.
fn sysctl(name: &str) -> Option<String> {
    name.starts_with("tcp_").then(|| format!("net.ipv4.{name}"))
}

/// All settings as JSON, for scenario validation and the reference.
pub(crate) fn host_settings_json() -> Value {
    let setting = |spec: ParamSpec| {
        let mut json = spec.source(KERNEL).to_json();
        json["sysctl"] = json!(sysctl(spec.name));
        json["mirrored"] = json!(mirror_of(spec.name));
        json
    };
    SPECS.into_iter().map(setting).collect()
}

/// The settings of one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    written: Params,
    settings: HostSettings,
}

impl Host {
    /// Reads the settings of the host called `name`. Values are numbers, or text as one would write
    /// to the kernel (`"1"`, `"4096 131072 6291456"`).
    ///
    /// # Errors
    /// A setting that does not exist, or a value that it cannot have.
    pub fn new(name: &str, settings: &Map<String, Value>) -> Result<Self, CellError> {
        let written = settings
            .iter()
            .map(|(key, value)| (key.clone(), plain(key, value)))
            .collect();
        let refuse = |error| CellError::Params {
            at: format!("settings of host {name}"),
            error,
        };
        let written = Params::from_json(&SPECS, &written).map_err(refuse)?;
        for name in ["tcp_rmem", "tcp_wmem"] {
            let Some(list) = written.counts(name) else {
                continue;
            };
            if list.len() != 3 || list.windows(2).any(|pair| pair[0] > pair[1]) || list[2] < 4096 {
                return Err(refuse(narrows_units::ParamError::Conflict(format!(
                    "{name} needs three increasing numbers of bytes (minimum, initial, maximum), the last at least 4096"
                ))));
            }
        }
        let settings = HostSettings::read(&written);
        Ok(Host { written, settings })
    }

    /// Kernel settings to make in an emulated host: their names and values.
    pub fn sysctls(&self) -> Vec<(String, String)> {
        let set = SPECS.iter().filter_map(|&ParamSpec { name, .. }| {
            let value = if let Some(list) = self.written.counts(name) {
                let words: Vec<String> = list.iter().map(u64::to_string).collect();
                words.join(" ")
            } else if let Some(word) = self.written.word(name) {
                word.to_owned()
            } else {
                self.written.integer(name)?.to_string()
            };
            Some((sysctl(name)?, value))
        });
        set.collect()
    }

    /// The largest IP packet, if it is set.
    pub fn mtu(&self) -> Option<u32> {
        self.settings.mtu.map(|mtu| mtu.get() as u32)
    }

    /// Maximum number of payload bytes that a connection may have in flight, if that is set. Emulated hosts set it on
    /// the sockets that receive data (TCP_WINDOW_CLAMP).
    pub fn window(&self) -> Option<u64> {
        self.settings.window.map(Bytes::get)
    }

    /// Scheduling delays of its processes in simulation, if they have any.
    pub fn noise(&self) -> Option<&'static Noise> {
        Noise::find(self.written.word("noise")?)
    }
}

/// Converts text as written to the kernel into a number or a list; other text is unchanged, and the check rejects it.
fn plain(key: &str, value: &Value) -> Value {
    let Some(text) = value.as_str() else {
        return value.clone();
    };
    let numbers: Option<Vec<u64>> = text
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect();
    let list = SPECS
        .iter()
        .any(|spec| spec.name == key && spec.kind == Kind::Counts);
    match numbers.as_deref() {
        Some([number]) if !list => json!(number),
        Some(numbers) if list => json!(numbers),
        _ => value.clone(),
    }
}

/// The transport's parameters for data from host `from` to host `to`, on a connection that
/// `client` opened (it is one of the two).
pub(crate) fn transport(base: &Config, from: &Host, to: &Host, client_sends: bool) -> Config {
    let mut config = base.clone();
    let (sender, receiver) = (&from.settings, &to.settings);
    if let Some(threshold) = sender.tcp_reordering {
        config.packet_threshold = threshold;
    }
    if let Some(threshold) = sender.tcp_max_reordering {
        config.max_packet_threshold = threshold;
    }
    if let Some(mode) = sender.tcp_recovery {
        config.rack = mode & 1 != 0;
    }
    config.sack &= sender.tcp_sack != Some(0) && receiver.tcp_sack != Some(0);
    // Half of the maximum.
    let buffer = |sizes: &Option<Vec<u64>>| Some(sizes.as_ref()?.last()? / 2);
    let limits = [
        from.window(),
        to.window(),
        buffer(&sender.tcp_wmem),
        buffer(&receiver.tcp_rmem),
    ];
    let minimum = limits.into_iter().flatten().min();
    config.window = config.window.min(minimum.unwrap_or(u64::MAX));
    if let Some(mode) = sender.tcp_early_retrans {
        config.tail_loss_probe = mode != 0;
    }
    if let Some(us) = sender.tcp_rto_min_us {
        config.min_rto = Span::from_us(us);
    }
    let (client, server) = if client_sends {
        (sender, receiver)
    } else {
        (receiver, sender)
    };
    config.ecn = match (client.tcp_ecn, server.tcp_ecn) {
        (Some(0), _) | (_, Some(0)) => false,
        (Some(1), _) => true,
        (Some(_), _) => false,
        (None, _) => config.ecn,
    };
    let usual = config.packet_size.get() as u32;
    let size = from.mtu().unwrap_or(usual).min(to.mtu().unwrap_or(usual));
    config.packet_size = Bytes::new(u64::from(size));
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(json: &Value) -> Result<Host, String> {
        Host::new("left", json.as_object().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn text_and_numbers_are_read_and_written_back() {
        let host = host(&json!({"tcp_sack": "0", "tcp_reordering": 10, "mtu": 1400,
                               "tcp_rmem": "4096 131072 6291456", "tcp_congestion_control": "bbr"}))
        .unwrap();
        let sysctls = host.sysctls();
        assert_eq!(
            sysctls,
            [
                ("net.ipv4.tcp_sack".to_owned(), "0".to_owned()),
                ("net.ipv4.tcp_reordering".to_owned(), "10".to_owned()),
                (
                    "net.ipv4.tcp_rmem".to_owned(),
                    "4096 131072 6291456".to_owned()
                ),
                (
                    "net.ipv4.tcp_congestion_control".to_owned(),
                    "bbr".to_owned()
                ),
            ]
        );
        assert_eq!((host.mtu(), host.window()), (Some(1400), None));
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        let cases = [
            (
                json!({"tcp_sac": 1}),
                "settings of host left: unknown parameter 'tcp_sac'",
            ),
            (
                json!({"tcp_sack": "yes"}),
                "settings of host left: parameter 'tcp_sack' must be a count",
            ),
            (
                json!({"tcp_sack": 2}),
                "settings of host left: parameter 'tcp_sack' must be between 0 and 1",
            ),
            (
                json!({"tcp_rmem": "4096"}),
                "settings of host left: tcp_rmem needs three increasing",
            ),
            (
                json!({"tcp_wmem": [5, 4, 9000]}),
                "settings of host left: tcp_wmem needs three increasing",
            ),
            (
                json!({"noise": "loud"}),
                "settings of host left: parameter 'noise' must be one of none, linux-vm",
            ),
            (
                json!({"mtu": 100}),
                "settings of host left: parameter 'mtu' must be between",
            ),
        ];
        for (settings, says) in cases {
            let error = host(&settings).unwrap_err();
            assert!(
                error.starts_with(says),
                "'{error}' should start with '{says}'"
            );
        }
    }

    #[test]
    fn the_sender_and_the_smaller_end_decide() {
        let base = Config::default();
        let plain = Host::default();
        assert_eq!(transport(&base, &plain, &plain, true), base);
        let set = host(
            &json!({"tcp_reordering": 50, "tcp_max_reordering": 60, "tcp_early_retrans": 0, "mtu": 1000,
                              "tcp_rto_min_us": 5000, "tcp_ecn": 1}),
        )
        .unwrap();
        let config = transport(&base, &set, &plain, true);
        assert_eq!((config.packet_threshold, config.mss()), (50, 948));
        assert_eq!(config.max_packet_threshold, 60);
        assert_eq!(config.min_rto, Span::from_ms(5));
        assert!(config.ecn && !config.tail_loss_probe);
        let config = transport(&base, &plain, &set, true);
        assert_eq!((config.packet_threshold, config.mss()), (3, 948));
        assert!(!config.ecn && config.tail_loss_probe);
        // The receiving host opened the connection and asks for ECN.
        assert!(transport(&base, &plain, &set, false).ecn);
        let set = host(&json!({"tcp_sack": 0, "tcp_recovery": 0, "window": 100_000,
                              "tcp_wmem": "4096 16384 160000"}))
        .unwrap();
        let config = transport(&base, &set, &plain, true);
        assert_eq!(
            (config.sack, config.rack, config.window),
            (false, false, 80_000)
        );
        let config = transport(&base, &plain, &set, true);
        assert_eq!(
            (config.sack, config.rack, config.window),
            (false, true, 100_000)
        );
    }
}
