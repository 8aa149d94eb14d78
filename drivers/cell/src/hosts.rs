//! Settings of hosts: the kernel's network settings, as emulated hosts take them, and what our own
//! transport makes of them in simulation and over UDP.

use crate::{CellError, NOISES, Noise};
use narrows_transport::Config;
use narrows_units::{Bytes, Kind, ParamSpec, Params, Span};
use serde_json::{Map, Value, json};

/// One setting that a scenario may give a host.
#[derive(Clone, Copy, Debug)]
pub struct HostSetting {
    /// Name in scenarios, kind of its value, range and meaning. Settings have no default: the
    /// kernel's own stays in force.
    pub spec: ParamSpec,
    /// Path of the kernel's setting below `/proc/sys`; `None` for those that are none.
    pub sysctl: Option<&'static str>,
    /// Its effect on our own transport; `None` if it has none.
    pub mirrored: Option<&'static str>,
}

const fn flag(name: &'static str, doc: &'static str) -> ParamSpec {
    ParamSpec::new(name, Kind::Count, doc).range(0.0, 1.0)
}

const fn count(name: &'static str, doc: &'static str, most: f64) -> ParamSpec {
    ParamSpec::new(name, Kind::Count, doc).range(0.0, most)
}

const KERNEL: &str = "Linux, Documentation/networking/ip-sysctl.rst";

/// Everything that the settings of a host may name.
pub const HOST_SETTINGS: &[HostSetting] = &[
    HostSetting {
        spec: flag("tcp_sack", "Selective acknowledgements (0 or 1)."),
        sysctl: Some("net/ipv4/tcp_sack"),
        mirrored: Some("transport parameter sack: off if either end of a connection has 0"),
    },
    HostSetting {
        spec: flag("tcp_dsack", "Report of data received twice (0 or 1)."),
        sysctl: Some("net/ipv4/tcp_dsack"),
        mirrored: None,
    },
    HostSetting {
        spec: count(
            "tcp_reordering",
            "Packets that may overtake before one is taken to be lost.",
            300.0,
        )
        .range(1.0, 300.0),
        sysctl: Some("net/ipv4/tcp_reordering"),
        mirrored: Some("transport parameter packet_threshold of the sender"),
    },
    HostSetting {
        spec: count(
            "tcp_max_reordering",
            "How far reordering that is seen raises the number of packets that may overtake.",
            1e6,
        )
        .range(1.0, 1e6),
        sysctl: Some("net/ipv4/tcp_max_reordering"),
        mirrored: Some("transport parameter max_packet_threshold of the sender"),
    },
    HostSetting {
        spec: count(
            "tcp_recovery",
            "Loss detection by time: bit 0 switches RACK on, bits 1 and 2 change its window.",
            7.0,
        ),
        sysctl: Some("net/ipv4/tcp_recovery"),
        mirrored: Some("transport parameter rack of the sender: bit 0"),
    },
    HostSetting {
        spec: count(
            "tcp_ecn",
            "0: no ECN; 1: ask for it and accept it; 2: accept it.",
            2.0,
        ),
        sysctl: Some("net/ipv4/tcp_ecn"),
        mirrored: Some(
            "transport parameter ecn: on if the client has 1 and the server has not 0; off if either has 0",
        ),
    },
    HostSetting {
        spec: ParamSpec::new(
            "tcp_rmem",
            Kind::Counts,
            "Receive buffer of a connection in bytes: least, initial and most.",
        ),
        sysctl: Some("net/ipv4/tcp_rmem"),
        mirrored: Some(
            "transport parameter window: half of the most at the receiver, as the kernel keeps half for its own use",
        ),
    },
    HostSetting {
        spec: ParamSpec::new(
            "tcp_wmem",
            Kind::Counts,
            "Send buffer of a connection in bytes: least, initial and most.",
        ),
        sysctl: Some("net/ipv4/tcp_wmem"),
        mirrored: Some(
            "transport parameter window: half of the most at the sender, as the kernel keeps half for its own use",
        ),
    },
    HostSetting {
        spec: ParamSpec::new(
            "window",
            Kind::Bytes,
            "Most payload bytes that a connection from or to this host may have under way.",
        )
        .range(2000.0, 1e12),
        sysctl: None,
        mirrored: Some("transport parameter window: the smaller one of both ends"),
    },
    HostSetting {
        spec: ParamSpec::new("mtu", Kind::Bytes, "Largest IP packet of the host.")
            .range(576.0, 9000.0),
        sysctl: None,
        mirrored: Some(
            "transport parameter packet_size: the smaller one of both ends, where an end without the setting has the scenario's packet_size",
        ),
    },
    HostSetting {
        spec: flag(
            "tcp_slow_start_after_idle",
            "Whether the window shrinks while a connection is idle (0 or 1).",
        ),
        sysctl: Some("net/ipv4/tcp_slow_start_after_idle"),
        mirrored: None,
    },
    HostSetting {
        spec: count(
            "tcp_early_retrans",
            "Tail-loss probes: 0 switches them off, 3 on.",
            4.0,
        ),
        sysctl: Some("net/ipv4/tcp_early_retrans"),
        mirrored: Some("transport parameter tail_loss_probe of the sender: off with 0"),
    },
    HostSetting {
        spec: count(
            "tcp_rto_min_us",
            "Smallest retransmission timeout in microseconds.",
            6e7,
        )
        .range(1.0, 6e7),
        sysctl: Some("net/ipv4/tcp_rto_min_us"),
        mirrored: Some("transport parameter min_rto of the sender"),
    },
    HostSetting {
        spec: flag("tcp_timestamps", "TCP time stamps (0 or 1)."),
        sysctl: Some("net/ipv4/tcp_timestamps"),
        mirrored: None,
    },
    HostSetting {
        spec: flag(
            "tcp_no_metrics_save",
            "Whether the kernel forgets what it has learnt of a path when a connection ends (0 or 1).",
        ),
        sysctl: Some("net/ipv4/tcp_no_metrics_save"),
        mirrored: None,
    },
    HostSetting {
        spec: count(
            "tcp_notsent_lowat",
            "Unsent bytes above which a socket takes no more.",
            4_294_967_295.0,
        ),
        sysctl: Some("net/ipv4/tcp_notsent_lowat"),
        mirrored: None,
    },
    HostSetting {
        spec: ParamSpec::new(
            "noise",
            Kind::Choice(NOISES),
            "How late the processes of a simulated host act on datagrams and timers: not at all, or as measured on a \
             kind of machine. Real hosts have their own and take none.",
        ),
        sysctl: None,
        mirrored: Some(
            "in simulation, sockets are read in batches and packets leave when the process runs",
        ),
    },
];

impl HostSetting {
    /// The setting as JSON, for scenario validation and the reference.
    pub fn to_json(&self) -> Value {
        let mut json = self.spec.source(KERNEL).to_json();
        json["sysctl"] = json!(self.sysctl.map(|path| path.replace('/', ".")));
        json["mirrored"] = json!(self.mirrored);
        json
    }
}

/// The settings of one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    settings: Params,
}

impl Host {
    /// Reads the settings of the host called `name`. Values are numbers, or text as one would write
    /// to the kernel (`"1"`, `"4096 131072 6291456"`).
    ///
    /// # Errors
    /// A setting that does not exist, or a value that it cannot have.
    pub fn new(name: &str, settings: &Map<String, Value>) -> Result<Self, CellError> {
        let specs: Vec<ParamSpec> = HOST_SETTINGS.iter().map(|setting| setting.spec).collect();
        let written = settings
            .iter()
            .map(|(key, value)| (key.clone(), plain(&specs, key, value)))
            .collect();
        let refuse = |error| CellError::Params {
            at: format!("settings of host {name}"),
            error,
        };
        let settings = Params::from_json(&specs, &written).map_err(refuse)?;
        for name in ["tcp_rmem", "tcp_wmem"] {
            let Some(list) = settings.counts(name) else {
                continue;
            };
            if list.len() != 3 || list.windows(2).any(|pair| pair[0] > pair[1]) || list[2] < 4096 {
                return Err(refuse(narrows_units::ParamError::Conflict(format!(
                    "{name} needs three rising numbers of bytes (least, initial, most), the last at least 4096"
                ))));
            }
        }
        Ok(Host { settings })
    }

    /// Kernel settings to write in an emulated host: path below `/proc/sys`, and value.
    pub fn sysctls(&self) -> Vec<(&'static str, String)> {
        let written = HOST_SETTINGS.iter().filter_map(|setting| {
            let (path, name) = (setting.sysctl?, setting.spec.name);
            let value = match self.settings.counts(name) {
                Some(list) => {
                    let words: Vec<String> = list.iter().map(u64::to_string).collect();
                    words.join(" ")
                }
                None => self.settings.integer(name)?.to_string(),
            };
            Some((path, value))
        });
        written.collect()
    }

    /// The largest IP packet, if it is set.
    pub fn mtu(&self) -> Option<u32> {
        self.settings.integer("mtu").map(|mtu| mtu as u32)
    }

    /// Half of the most of `tcp_rmem` or `tcp_wmem`.
    fn buffer(&self, name: &str) -> Option<u64> {
        let most = *self.settings.counts(name)?.last()?;
        Some(most / 2)
    }

    /// Most payload bytes that a connection may have under way, if that is set. Emulated hosts set
    /// it on the sockets that receive data (TCP_WINDOW_CLAMP).
    pub fn window(&self) -> Option<u64> {
        self.settings.integer("window")
    }

    /// Scheduling delays of its processes in simulation, if they have any.
    pub fn noise(&self) -> Option<&'static Noise> {
        Noise::named(self.settings.word("noise")?)
    }
}

/// Text as one would write it to the kernel becomes the number or the list that it says; what is
/// neither stays as it is, for the check to refuse.
fn plain(specs: &[ParamSpec], key: &str, value: &Value) -> Value {
    let Some(text) = value.as_str() else {
        return value.clone();
    };
    let numbers: Option<Vec<u64>> = text
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect();
    let list = specs
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
    let sender = |name: &str| from.settings.integer(name);
    if let Some(threshold) = sender("tcp_reordering") {
        config.packet_threshold = threshold;
    }
    if let Some(threshold) = sender("tcp_max_reordering") {
        config.max_packet_threshold = threshold;
    }
    if let Some(mode) = sender("tcp_recovery") {
        config.rack = mode & 1 != 0;
    }
    let no_sack = |host: &Host| host.settings.integer("tcp_sack") == Some(0);
    config.sack &= !no_sack(from) && !no_sack(to);
    let limits = [
        from.window(),
        to.window(),
        from.buffer("tcp_wmem"),
        to.buffer("tcp_rmem"),
    ];
    let least = limits.into_iter().flatten().min();
    config.window = config.window.min(least.unwrap_or(u64::MAX));
    if let Some(mode) = sender("tcp_early_retrans") {
        config.tail_loss_probe = mode != 0;
    }
    if let Some(us) = sender("tcp_rto_min_us") {
        config.min_rto = Span::from_us(us);
    }
    let (client, server) = if client_sends { (from, to) } else { (to, from) };
    let ecn = |host: &Host| host.settings.integer("tcp_ecn");
    config.ecn = match (ecn(client), ecn(server)) {
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
                               "tcp_rmem": "4096 131072 6291456"}))
        .unwrap();
        let sysctls = host.sysctls();
        assert_eq!(
            sysctls,
            [
                ("net/ipv4/tcp_sack", "0".to_owned()),
                ("net/ipv4/tcp_reordering", "10".to_owned()),
                ("net/ipv4/tcp_rmem", "4096 131072 6291456".to_owned()),
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
                "settings of host left: tcp_rmem needs three rising",
            ),
            (
                json!({"tcp_wmem": [5, 4, 9000]}),
                "settings of host left: tcp_wmem needs three rising",
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
