//! What a tunnel is asked for: a JSON document of format narrows/tunnel/1.

use narrows_cell::RunError;
use narrows_tunnel::keys::Secret;
use narrows_tunnel::mtu::MIN_MTU;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const FORMAT: &str = "narrows/tunnel/1";
/// Payload buffers hold this much and the headers of IP and UDP.
const MAX_PACKET: u32 = 9000;

/// Furthest shift of a clock: hosts are never up at times that lie further apart than this, as far as tests go, and
/// sums with times stay far from any limit.
const FURTHEST_NS: u64 = 86_400_000_000_000;
/// Largest drift of a clock: what the estimate of the relation of two clocks assumes, and no oscillator has.
const FASTEST_PPB: u64 = 1_000_000;

/// Shifts of the clock, for tests of the estimate: readings begin `offset_ns` later and run faster by
/// `drift_ppb`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Shift {
    /// Added to every reading.
    pub offset_ns: i64,
    /// Added per second since the start, in ns.
    pub drift_ppb: i64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: String,
    #[serde(default)]
    bind: Value,
    #[serde(default)]
    dial: Value,
    #[serde(default)]
    interface: Option<String>,
    secret: String,
    folder: PathBuf,
    #[serde(default)]
    host: Option<u16>,
    #[serde(default = "ethernet")]
    outer_mtu: u32,
    #[serde(default)]
    inner_mtu: Option<u32>,
    #[serde(default = "patience")]
    patience_ns: u64,
    #[serde(default = "silence")]
    silence_ns: u64,
    #[serde(default = "clock_gap")]
    clock_gap_ns: u64,
    #[serde(default)]
    clock: Shift,
    #[serde(default)]
    command: Vec<String>,
}

const fn ethernet() -> u32 {
    1500
}

const fn patience() -> u64 {
    20_000_000_000
}

const fn silence() -> u64 {
    10_000_000_000
}

const fn clock_gap() -> u64 {
    100_000_000
}

/// One end of a tunnel, checked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Local address; port 0 lets the kernel choose.
    pub bind: SocketAddr,
    /// The other end, if this one calls.
    pub dial: Option<SocketAddr>,
    /// Interface towards the other end, if not the one that the routes say.
    pub interface: Option<String>,
    /// What both ends know.
    pub secret: Secret,
    /// New folder for logs and results.
    pub folder: PathBuf,
    /// Index of the host at this end, if that is not to follow from who calls whom.
    pub host: Option<u16>,
    /// Largest IP packet that the interface can send.
    pub outer_mtu: u32,
    /// Largest IP packet inside.
    pub inner_mtu: u32,
    /// How long to wait for the other end at the start.
    pub patience_ns: u64,
    /// After how much silence the dialer calls again, and the tunnel is given up after twice that.
    pub silence_ns: u64,
    /// Time between clock messages.
    pub clock_gap_ns: u64,
    /// Shift of the clock.
    pub clock: Shift,
    /// Program to run inside while the tunnel is open; none keeps it open until it is stopped.
    pub command: Vec<String>,
}

impl Plan {
    /// Reads and checks a plan.
    ///
    /// # Errors
    /// [`RunError::Input`] with what is wrong and where.
    pub fn parse(text: &str) -> Result<Self, RunError> {
        Plan::check(serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?)
    }

    /// The tunnel of something larger, which knows folder and host: `keys` are the others of a plan.
    ///
    /// # Errors
    /// As [`Plan::parse`].
    pub(crate) fn of(
        mut keys: Map<String, Value>,
        folder: &Path,
        host: u16,
    ) -> Result<Self, RunError> {
        let ours = [
            ("format", json!(FORMAT)),
            ("folder", json!(folder)),
            ("host", json!(host)),
            ("command", json!([])),
        ];
        for (key, value) in ours {
            if keys.insert(key.to_owned(), value).is_some() {
                return Err(wrong(&format!(
                    "'{key}' cannot be chosen here; leave it out"
                )));
            }
        }
        let document = Document::deserialize(Value::Object(keys));
        Plan::check(document.map_err(|error| wrong(&error.to_string()))?)
    }

    fn check(document: Document) -> Result<Self, RunError> {
        let wrong = |message: String| wrong(&message);
        if document.format != FORMAT {
            return Err(wrong(format!(
                "'format' is '{}', and this agent reads '{FORMAT}'; use the same version of Narrows on both hosts",
                document.format
            )));
        }
        let secret =
            Secret::parse(&document.secret).map_err(|error| wrong(format!("'secret': {error}")))?;
        if let Some(host) = document.host.filter(|&host| host > 1) {
            return Err(wrong(format!(
                "'host' is {host}; the host at one end is 0, at the other 1"
            )));
        }
        let dial = address("dial", &document.dial)?;
        if let Some(dial) = dial.filter(|dial| dial.port() == 0) {
            return Err(wrong(format!(
                "'dial' is '{dial}'; nobody listens at port 0, so name the port of the other end"
            )));
        }
        let bind = match (address("bind", &document.bind)?, dial) {
            (Some(bind), Some(dial)) if bind.is_ipv4() != dial.is_ipv4() => {
                return Err(wrong(format!(
                    "'bind' ({bind}) and 'dial' ({dial}) are of different versions of IP; give two of the same"
                )));
            }
            (Some(bind), _) => bind,
            (None, Some(SocketAddr::V6(_))) => SocketAddr::from(([0u16; 8], 0)),
            (None, Some(SocketAddr::V4(_))) => SocketAddr::from(([0u8; 4], 0)),
            (None, None) => {
                return Err(wrong(
                    "neither 'bind' nor 'dial' is given; one end needs an address to listen at, the other \
                     that of the first to dial"
                        .to_owned(),
                ));
            }
        };
        let overhead = narrows_tunnel::mtu::overhead(bind.ip());
        let outer_mtu = document.outer_mtu;
        if !(MIN_MTU..=MAX_PACKET).contains(&outer_mtu) {
            return Err(wrong(format!(
                "'outer_mtu' is {outer_mtu}; it must be from {MIN_MTU} to {MAX_PACKET} bytes"
            )));
        }
        let inner_mtu = document.inner_mtu.unwrap_or(outer_mtu - overhead);
        if inner_mtu > outer_mtu - overhead || inner_mtu < 576 {
            return Err(wrong(format!(
                "'inner_mtu' is {inner_mtu}; with {overhead} bytes of headers around it, it must be from \
                 576 to {} bytes",
                outer_mtu - overhead
            )));
        }
        for (name, value) in [
            ("patience_ns", document.patience_ns),
            ("silence_ns", document.silence_ns),
            ("clock_gap_ns", document.clock_gap_ns),
        ] {
            // From one millisecond to one day: sums with times stay far from any limit.
            if !(1_000_000..=86_400_000_000_000).contains(&value) {
                return Err(wrong(format!(
                    "'{name}' is {value}; it must be from 1 ms to one day"
                )));
            }
        }
        let Shift {
            offset_ns,
            drift_ppb,
        } = document.clock;
        if offset_ns.unsigned_abs() > FURTHEST_NS {
            return Err(wrong(format!(
                "'clock.offset_ns' is {offset_ns}; it must be from -{FURTHEST_NS} to {FURTHEST_NS}, one day each way"
            )));
        }
        if drift_ppb.unsigned_abs() > FASTEST_PPB {
            return Err(wrong(format!(
                "'clock.drift_ppb' is {drift_ppb}; it must be from -{FASTEST_PPB} to {FASTEST_PPB}, one part in a \
                 thousand each way"
            )));
        }
        Ok(Plan {
            bind,
            dial,
            interface: document.interface,
            secret,
            folder: document.folder,
            host: document.host,
            outer_mtu,
            inner_mtu,
            patience_ns: document.patience_ns,
            silence_ns: document.silence_ns,
            clock_gap_ns: document.clock_gap_ns,
            clock: document.clock,
            command: document.command,
        })
    }

    /// Index of the host at this end: the listener's is 0, the dialer's 1, if the plan says nothing else.
    pub fn host(&self) -> u16 {
        self.host.unwrap_or(u16::from(self.dial.is_some()))
    }

    /// How the socket was asked for, in messages.
    pub(super) fn binding(&self) -> String {
        match &self.interface {
            Some(interface) => format!("{} on {interface}", self.bind),
            None => self.bind.to_string(),
        }
    }
}

/// Refuses a folder that is there already.
pub(crate) fn check_folder(folder: &Path) -> Result<(), RunError> {
    if folder.exists() {
        return Err(RunError::Input(format!(
            "{} exists already; name a new folder for the logs",
            folder.display()
        )));
    }
    Ok(())
}

/// An address and a port of the plan, if it has them.
fn address(key: &str, value: &Value) -> Result<Option<SocketAddr>, RunError> {
    if value.is_null() {
        return Ok(None);
    }
    let address = value.as_str().and_then(|text| text.parse().ok());
    address.map(Some).ok_or_else(|| {
        wrong(&format!(
            "'{key}' is {value}; it must be an IP address with a port, such as '192.0.2.7:7000' or \
             '[2001:db8::7]:7000' (names are not looked up, and the zone of a link-local address is a number: \
             '[fe80::7%2]:7000')"
        ))
    })
}

fn wrong(message: &str) -> RunError {
    RunError::plan("tunnel", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(change: impl FnOnce(&mut Value)) -> Result<Plan, String> {
        let mut plan = json!({
            "format": "narrows/tunnel/1", "bind": "0.0.0.0:7000", "secret": "ab".repeat(32),
            "folder": "/tmp/x",
        });
        change(&mut plan);
        Plan::parse(&plan.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_fit_an_ethernet() {
        let listener = plan(|_| {}).unwrap();
        assert_eq!((listener.host(), listener.inner_mtu), (0, 1444));
        let dialer = plan(|plan| {
            plan["bind"] = Value::Null;
            plan["dial"] = json!("[2001:db8::1]:7000");
        });
        let dialer = dialer.unwrap();
        assert_eq!((dialer.host(), dialer.inner_mtu), (1, 1424));
        assert_eq!(dialer.bind, "[::]:0".parse().unwrap());
        let listener = plan(|plan| plan["host"] = 1.into()).unwrap();
        assert_eq!(listener.host(), 1);
    }

    #[test]
    fn a_part_of_a_larger_plan_has_no_folder_of_its_own() {
        let keys = json!({"dial": "192.0.2.7:7000", "secret": "ab".repeat(32)});
        let keys = keys.as_object().unwrap();
        let of = |keys: &Map<String, Value>| Plan::of(keys.clone(), Path::new("/tmp/x"), 0);
        let plan = of(keys).unwrap();
        assert_eq!(
            (plan.host(), plan.folder.as_path()),
            (0, Path::new("/tmp/x"))
        );
        assert!(plan.command.is_empty());
        for key in ["format", "folder", "host", "command"] {
            let mut more = keys.clone();
            more.insert(key.to_owned(), Value::Null);
            let message = of(&more).unwrap_err().to_string();
            assert!(message.contains(&format!("'{key}' cannot be chosen here")));
        }
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        let refusal = |key: &str, value: Value| plan(|plan| plan[key] = value).unwrap_err();
        assert!(refusal("format", json!("narrows/tunnel/9")).contains("same version of Narrows"));
        assert!(refusal("secret", json!("abc")).contains("64 hexadecimal digits"));
        assert!(refusal("bind", Value::Null).contains("neither 'bind' nor 'dial'"));
        assert!(refusal("dial", json!("[::1]:1")).contains("different versions of IP"));
        let zone = plan(|plan| {
            plan["bind"] = Value::Null;
            plan["dial"] = json!("[fe80::7%2]:7000");
        });
        assert!(zone.is_ok());
        assert!(refusal("dial", json!("127.0.0.1:0")).contains("'dial' is '127.0.0.1:0'; nobody"));
        for key in ["bind", "dial"] {
            for value in ["example.com:7000", "[fe80::1%lo]:7000", "192.0.2.7", ""] {
                let message = refusal(key, json!(value));
                let said = format!("'{key}' is \"{value}\"; it must be an IP address with a port");
                assert!(message.contains(&said), "{message}");
            }
            assert!(refusal(key, json!(7000)).contains(&format!("'{key}' is 7000; it must")));
        }
        assert!(refusal("outer_mtu", json!(1000)).contains("from 1280 to 9000"));
        assert!(refusal("inner_mtu", json!(1445)).contains("56 bytes of headers"));
        assert!(refusal("patience_ns", json!(0)).contains("from 1 ms to one day"));
        for (key, least) in [
            ("offset_ns", -86_400_000_000_000i64),
            ("drift_ppb", -1_000_000),
        ] {
            for good in [least, -least] {
                assert!(plan(|plan| plan["clock"] = json!({key: good})).is_ok());
            }
            for bad in [least - 1, 1 - least, i64::MIN, i64::MAX] {
                let message = refusal("clock", json!({key: bad}));
                assert!(
                    message.contains(&format!("from {least} to {}", -least)),
                    "{message}"
                );
            }
        }
        assert!(refusal("host", json!(2)).contains("'host' is 2"));
        assert!(refusal("colour", json!("blue")).contains("unknown field `colour`"));
        assert!(
            !refusal("colour", json!("blue")).contains("abab"),
            "the secret is not shown"
        );
    }
}
