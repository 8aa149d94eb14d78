//! Plan of one peer: a JSON document of format narrows/side/1.

use crate::tunnel;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use narrows_cell::RunError;
use narrows_cell::{Cell, load_files};
use narrows_net::Topology;
use narrows_netns::HostPlan;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

const FORMAT: &str = "narrows/side/1";
/// Number of hosts of the tunnel in the network of the cell.
const HOSTS: usize = 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanDocument {
    format: String,
    cell: Value,
    #[serde(default)]
    files: BTreeMap<String, String>,
    host: u16,
    folder: PathBuf,
    tunnel: Option<Map<String, Value>>,
    #[serde(default)]
    addresses: Option<PeerAddresses>,
    #[serde(default)]
    live: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PeerAddresses {
    here: IpAddr,
    there: IpAddr,
}

/// The path of packets to the other host.
#[derive(Clone, Debug)]
pub(super) enum PeerPath {
    /// In a tunnel.
    Tunnel(Box<tunnel::TunnelPlan>),
    /// Direct, between these addresses of the machines, by the index of the host.
    Direct([Ipv4Addr; 2]),
}

impl PeerPath {
    fn new(
        tunnel: Option<Map<String, Value>>,
        addresses: Option<PeerAddresses>,
        folder: &Path,
        host: u16,
    ) -> Result<PeerPath, RunError> {
        match (tunnel, addresses) {
            (Some(keys), None) => {
                let plan = tunnel::TunnelPlan::from_keys(keys, folder, host)?;
                Ok(PeerPath::Tunnel(Box::new(plan)))
            }
            (None, Some(PeerAddresses { here, there })) => {
                let (IpAddr::V4(here), IpAddr::V4(there)) = (here, there) else {
                    return Err(wrong(
                        "'addresses' are of IPv6; without a tunnel flows need IPv4, and the tunnel works over both",
                    ));
                };
                if host > 1 {
                    return Err(wrong(&format!("'host' is {host}; it is 0 or 1")));
                }
                Ok(PeerPath::Direct(if host == 0 {
                    [here, there]
                } else {
                    [there, here]
                }))
            }
            _ => Err(wrong(
                "it needs either 'tunnel' or, where that is null, 'addresses' with 'here' and 'there'",
            )),
        }
    }
}

/// One peer of a cell, with all checks made that need no files.
#[derive(Clone, Debug)]
pub struct PeerPlan {
    /// The cell as it was given.
    cell: Value,
    /// Contents of the files that it names, by file name.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Index of the host of this peer.
    pub(super) host: u16,
    /// New folder for logs and results.
    pub(super) folder: PathBuf,
    pub(super) path: PeerPath,
    /// True if it reports counts of flows during the run.
    pub(super) is_live: bool,
}

impl PeerPlan {
    /// Reads and checks a plan.
    ///
    /// # Errors
    /// [`RunError::Input`] with the problem and its position.
    pub fn parse(text: &str) -> Result<Self, RunError> {
        let document: PlanDocument =
            serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        if document.format != FORMAT {
            return Err(wrong(&format!(
                "'format' is '{}', and this agent reads '{FORMAT}'; use the same version of Narrows on both hosts",
                document.format
            )));
        }
        let mut files = BTreeMap::new();
        for (name, text) in document.files {
            if name.contains('/') || name.starts_with('.') || name.is_empty() {
                return Err(wrong(&format!("files: '{name}' is not a plain file name")));
            }
            let content = BASE64.decode(&text).map_err(|error| {
                wrong(&format!(
                    "files: the content of '{name}' is not base64: {error}"
                ))
            })?;
            files.insert(name, content);
        }
        let PlanDocument { folder, host, .. } = document;
        let path = PeerPath::new(document.tunnel, document.addresses, &folder, host)?;
        tunnel::check_folder(&folder)?;
        Ok(PeerPlan {
            cell: document.cell,
            files,
            host,
            folder,
            path,
            is_live: document.live,
        })
    }

    /// The cell, with its files from `folder`, and the host of this peer. The MTU of both hosts is limited to the
    /// maximum packet size of the tunnel: the same at both peers, so that both use the same cell.
    pub(super) fn cell(&self, folder: &Path) -> Result<(Cell, HostPlan), RunError> {
        let parse = |json: &Value| -> Result<Cell, RunError> {
            let cell = Cell::parse_with(&json.to_string(), |json| load_files(json, folder));
            // It cannot contain a secret, but may contain hashes of files.
            cell.map_err(|error| {
                RunError::Input(format!("the plan of the side: the cell: {error}"))
            })
        };
        let written = parse(&self.cell)?;
        let network = Topology::from_json(&self.cell["network"]);
        let names = network.map_err(|error| wrong(&error.to_string()))?.hosts;
        if names.len() != HOSTS {
            return Err(wrong(&format!(
                "the cell has {} hosts; between two machines there are {HOSTS}",
                names.len()
            )));
        }
        if let Some(flow) = written.flows.iter().find(|flow| !flow.extra_rtt.is_zero()) {
            return Err(wrong(&format!(
                "flow {}: a real path cannot be made longer for one flow; omit its extra RTT",
                flow.flow
            )));
        }
        let cell = match &self.path {
            PeerPath::Tunnel(tunnel) => {
                let mut json = self.cell.clone();
                for (name, host) in names.iter().zip(&written.hosts) {
                    let maximum = tunnel.inner_mtu();
                    let mtu = host.mtu().map_or(maximum, |mtu| mtu.min(maximum));
                    set_mtu(&mut json["network"], name, mtu);
                }
                parse(&json)?
            }
            PeerPath::Direct(_) => {
                let set = |host: &narrows_cell::Host| !host.sysctls().is_empty();
                if written.hosts.iter().any(set) {
                    return Err(wrong(
                        "settings of hosts are set in their namespaces, which exist only with a tunnel; omit them",
                    ));
                }
                written
            }
        };
        let host = HostPlan::from_cell(&cell, &names).swap_remove(usize::from(self.host));
        Ok((cell, host))
    }
}

/// Sets the largest packet of the host called `name` in the description of a network.
fn set_mtu(network: &mut Value, name: &str, mtu: u32) {
    let hosts = &mut network["hosts"];
    if hosts.is_null() {
        *hosts = json!([]);
    }
    // A value that is not a list was rejected before.
    let Some(hosts) = hosts.as_array_mut() else {
        return;
    };
    let index = hosts.iter().position(|host| host["name"] == name);
    let index = index.unwrap_or_else(|| {
        hosts.push(json!({"name": name}));
        hosts.len() - 1
    });
    hosts[index]["settings"]["mtu"] = mtu.into();
}

fn wrong(message: &str) -> RunError {
    RunError::plan("side", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        json!({
            "format": FORMAT, "host": 1, "folder": "/tmp/there-is-no-such-folder",
            "tunnel": {"dial": "192.0.2.7:7000", "secret": "ab".repeat(32)},
            "cell": {
                "format": "narrows/cell/1", "id": "reno-r1", "scheme": "reno", "run": 1,
                "where": "hosts", "seed": 1, "duration_ns": 1_000_000_000u64,
                "record": "packets", "bin_ns": 100_000_000, "sample_ns": 10_000_000,
                "network": {"kind": "dumbbell", "forward": [{"name": "forward.0", "kind": "real"}],
                            "backward": [{"name": "backward.0", "kind": "real"}]},
                "flows": [{"flow": 1, "scheme": "reno", "start_ns": 0, "stop_ns": 1_000_000_000u64}],
            },
        })
    }

    fn refusal(change: impl FnOnce(&mut Value)) -> String {
        let mut document = document();
        change(&mut document);
        let plan = PeerPlan::parse(&document.to_string());
        let error = plan
            .and_then(|plan| plan.cell(Path::new("/none")))
            .unwrap_err();
        assert!(matches!(error, RunError::Input(_)), "{error:?}");
        error.to_string()
    }

    #[test]
    fn packets_fit_into_the_tunnel() {
        let plan = PeerPlan::parse(&document().to_string()).unwrap();
        let (cell, host) = plan.cell(Path::new("/none")).unwrap();
        assert_eq!((host.name.as_str(), host.mtu), ("receiver", Some(1444)));
        let config = cell.transport(&cell.flows[0], 0);
        assert_eq!(config.packet_size.get(), 1444);
        // A host with a smaller MTU keeps it.
        let mut document = document();
        document["cell"]["network"]["hosts"] =
            json!([{"name": "sender", "settings": {"mtu": 1200, "tcp_sack": 0}}]);
        let plan = PeerPlan::parse(&document.to_string()).unwrap();
        let (cell, _) = plan.cell(Path::new("/none")).unwrap();
        let mtus: Vec<Option<u32>> = cell.hosts.iter().map(narrows_cell::Host::mtu).collect();
        assert_eq!(mtus, [Some(1200), Some(1444)]);
        assert_eq!(cell.hosts[0].sysctls().len(), 1);
    }

    #[test]
    fn without_a_tunnel_hosts_have_the_addresses_of_machines() {
        let addresses = |host: u16| {
            let mut document = document();
            document["host"] = host.into();
            document["tunnel"] = Value::Null;
            document["addresses"] = json!({"here": "192.0.2.1", "there": "192.0.2.2"});
            let plan = PeerPlan::parse(&document.to_string()).unwrap();
            assert_eq!(plan.cell(Path::new("/none")).unwrap().1.mtu, None);
            match plan.path {
                PeerPath::Direct(addresses) => addresses.map(|address| address.octets()[3]),
                PeerPath::Tunnel(_) => unreachable!("there is none"),
            }
        };
        assert_eq!((addresses(0), addresses(1)), ([1, 2], [2, 1]));
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        assert!(refusal(|it| it["format"] = "narrows/side/9".into()).contains("same version"));
        assert!(refusal(|it| it["colour"] = 1.into()).contains("unknown field `colour`"));
        assert!(refusal(|it| it["host"] = 2.into()).contains("'host' is 2"));
        assert!(refusal(|it| it["folder"] = "/tmp".into()).contains("exists already"));
        assert!(refusal(|it| it["files"] = json!({"../x": ""})).contains("'../x'"));
        assert!(refusal(|it| it["files"] = json!({"x": "%"})).contains("'x' is not base64"));
        assert!(refusal(|it| it["tunnel"] = json!({})).contains("secret"));
        assert!(refusal(|it| it["tunnel"] = Value::Null).contains("'addresses'"));
        let both = json!({"here": "192.0.2.1", "there": "192.0.2.2"});
        assert!(refusal(|it| it["addresses"] = both.clone()).contains("either 'tunnel'"));
        let bare = |change: &dyn Fn(&mut Value)| {
            refusal(|it| {
                it["tunnel"] = Value::Null;
                it["addresses"] = both.clone();
                change(it);
            })
        };
        assert!(bare(&|it| it["addresses"]["here"] = "::1".into()).contains("IPv6"));
        assert!(bare(&|it| it["host"] = 2.into()).contains("'host' is 2"));
        let set = json!([{"name": "sender", "settings": {"tcp_sack": 0}}]);
        assert!(bare(&|it| it["cell"]["network"]["hosts"] = set.clone()).contains("settings"));
        assert!(refusal(|it| it["cell"]["seed"] = Value::Null).contains("the cell: "));
        assert!(refusal(|it| it["cell"]["flows"][0]["extra_rtt_ns"] = 5.into()).contains("flow 1"));
        let graph = json!({"kind": "graph", "hosts": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
                           "links": [], "routes": []});
        let graph = refusal(|it| {
            it["cell"]["network"] = graph;
            it["cell"]["flows"][0]["from"] = "a".into();
            it["cell"]["flows"][0]["to"] = "b".into();
        });
        assert!(graph.contains("3 hosts"), "{graph}");
    }
}
