//! Plan of one end of a tunnel: a JSON document of format narrows/tunnel/1.

use narrows_cell::RunError;
use narrows_tunnel::keys::Secret;
use narrows_tunnel::mtu::MIN_MTU;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const FORMAT: &str = "narrows/tunnel/1";
/// Maximum packet size in bytes: payload buffers hold this and the headers of IP and UDP.
const MAX_PACKET: u32 = 9000;
/// Maximum shift of a clock, and maximum time in a plan: one day, which suffices for tests and keeps sums with times
/// far from any limit.
const MAX_OFFSET_NS: u64 = 86_400_000_000_000;
/// Maximum drift of a clock: the bound that the estimate of the relation of two clocks assumes, which no oscillator
/// reaches.
const MAX_DRIFT_PPB: u64 = 1_000_000;

/// Shift of the clock, for tests of the estimate: readings begin `offset_ns` later and run faster by `drift_ppb`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct ClockShift {
    /// Added to every reading, in ns.
    pub offset_ns: i64,
    /// Added per second since the start, in ns.
    pub drift_ppb: i64,
}

/// One end of a tunnel, checked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunnelPlan {
    format: String,
    #[serde(default, deserialize_with = "bind_address")]
    bind: Option<SocketAddr>,
    /// The other end, if this one calls.
    #[serde(default, deserialize_with = "dial_address")]
    pub dial: Option<SocketAddr>,
    /// Interface towards the other end, if not that of the route.
    #[serde(default)]
    pub interface: Option<String>,
    /// Shared secret of both ends.
    #[serde(deserialize_with = "secret")]
    pub secret: Secret,
    /// New folder for logs and results.
    pub folder: PathBuf,
    #[serde(default)]
    host: Option<u16>,
    /// Largest IP packet that the interface can send, in bytes.
    #[serde(default = "ethernet_mtu")]
    pub outer_mtu: u32,
    #[serde(default)]
    inner_mtu: Option<u32>,
    /// Time to wait for the other end at the start, in ns.
    #[serde(default = "seconds::<20>")]
    pub patience_ns: u64,
    /// Silence after which the dialer calls again, in ns. The tunnel is closed after twice that.
    #[serde(default = "seconds::<10>")]
    pub silence_ns: u64,
    /// Time between clock messages, in ns.
    #[serde(default = "clock_gap_ns")]
    pub clock_gap_ns: u64,
    /// Shift of the clock.
    #[serde(default)]
    pub clock: ClockShift,
    /// Program to run inside while the tunnel is open; without one the tunnel stays open until it is stopped.
    #[serde(default)]
    pub command: Vec<String>,
}

const fn ethernet_mtu() -> u32 {
    1500
}

const fn seconds<const COUNT: u64>() -> u64 {
    COUNT * 1_000_000_000
}

const fn clock_gap_ns() -> u64 {
    100_000_000
}

impl TunnelPlan {
    /// Reads and checks a plan.
    ///
    /// # Errors
    /// [`RunError::Input`] with the key and its mistake.
    pub fn parse(text: &str) -> Result<Self, RunError> {
        match serde_json::from_str(text) {
            Ok(json) => TunnelPlan::from_json(json),
            Err(error) => {
                // An unknown name before the mistake is more informative.
                let unknown = serde_json::from_str::<TunnelPlan>(text).err();
                Err(wrong(&unknown.unwrap_or(error)))
            }
        }
    }

    /// The tunnel of an enclosing plan, which knows folder and host: `keys` are the other keys of a plan.
    ///
    /// # Errors
    /// As [`TunnelPlan::parse`].
    pub(crate) fn from_keys(
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
                return Err(wrong(&format!("'{key}' cannot be chosen here; omit it")));
            }
        }
        TunnelPlan::from_json(Value::Object(keys))
    }

    fn from_json(json: Value) -> Result<Self, RunError> {
        let plan: TunnelPlan = serde_json::from_value(json).map_err(|error| wrong(&error))?;
        plan.check().map_err(|message| wrong(&message))?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), String> {
        require(self.format == FORMAT, || {
            format!(
                "'format' is '{}', and this agent reads '{FORMAT}'; use the same version of Narrows on both hosts",
                self.format
            )
        })?;
        require(self.host() <= 1, || {
            format!(
                "'host' is {}; the host at one end is 0, at the other 1",
                self.host()
            )
        })?;
        if let Some(dial) = self.dial {
            require(dial.port() != 0, || {
                format!(
                    "'dial' is '{dial}'; port 0 cannot be dialled, so name the port of the other end"
                )
            })?;
            let bind = self.bind();
            require(bind.is_ipv4() == dial.is_ipv4(), || {
                format!(
                    "'bind' ({bind}) and 'dial' ({dial}) are of different versions of IP; use the same version"
                )
            })?;
        } else {
            require(self.bind.is_some(), || {
                "neither 'bind' nor 'dial' is given; one end needs an address to listen at, the other that of the first \
                 to dial"
                    .to_owned()
            })?;
        }
        let (outer, inner, overhead) = (self.outer_mtu, self.inner_mtu(), self.overhead());
        require((MIN_MTU..=MAX_PACKET).contains(&outer), || {
            format!("'outer_mtu' is {outer}; it must be from {MIN_MTU} to {MAX_PACKET} bytes")
        })?;
        let largest = outer - overhead;
        require((576..=largest).contains(&inner), || {
            format!(
                "'inner_mtu' is {inner}; with {overhead} bytes of headers around it, it must be from 576 to {largest} \
                 bytes"
            )
        })?;
        for (name, value) in [
            ("patience_ns", self.patience_ns),
            ("silence_ns", self.silence_ns),
            ("clock_gap_ns", self.clock_gap_ns),
        ] {
            // Sums with times stay far from any limit.
            require((1_000_000..=MAX_OFFSET_NS).contains(&value), || {
                format!("'{name}' is {value}; it must be from 1 ms to one day")
            })?;
        }
        let ClockShift {
            offset_ns,
            drift_ppb,
        } = self.clock;
        require(offset_ns.unsigned_abs() <= MAX_OFFSET_NS, || {
            format!(
                "'clock.offset_ns' is {offset_ns}; it must be from -{MAX_OFFSET_NS} to {MAX_OFFSET_NS}, one day each way"
            )
        })?;
        require(drift_ppb.unsigned_abs() <= MAX_DRIFT_PPB, || {
            format!(
                "'clock.drift_ppb' is {drift_ppb}; it must be from -{MAX_DRIFT_PPB} to {MAX_DRIFT_PPB}, one part in a \
                 thousand each way"
            )
        })
    }

    /// Local address; port 0 lets the kernel choose.
    pub fn bind(&self) -> SocketAddr {
        self.bind.unwrap_or_else(|| match self.dial {
            Some(SocketAddr::V6(_)) => SocketAddr::from(([0u16; 8], 0)),
            _ => SocketAddr::from(([0u8; 4], 0)),
        })
    }

    /// Bytes of headers around a packet.
    fn overhead(&self) -> u32 {
        narrows_tunnel::mtu::overhead(self.bind().ip())
    }

    /// Largest IP packet inside, in bytes.
    pub fn inner_mtu(&self) -> u32 {
        let largest = || self.outer_mtu.saturating_sub(self.overhead());
        self.inner_mtu.unwrap_or_else(largest)
    }

    /// Index of the host at this end: by default 0 for the listener and 1 for the dialer.
    pub fn host(&self) -> u16 {
        self.host.unwrap_or(u16::from(self.dial.is_some()))
    }

    /// The requested address and interface, in messages.
    pub(super) fn binding(&self) -> String {
        match &self.interface {
            Some(interface) => format!("{} on {interface}", self.bind()),
            None => self.bind().to_string(),
        }
    }
}

/// Rejects an existing folder.
pub(crate) fn check_folder(folder: &Path) -> Result<(), RunError> {
    if folder.exists() {
        return Err(RunError::Input(format!(
            "{} exists already; name a new folder for the logs",
            folder.display()
        )));
    }
    Ok(())
}

fn bind_address<'de, D: Deserializer<'de>>(value: D) -> Result<Option<SocketAddr>, D::Error> {
    address("bind", value)
}

fn dial_address<'de, D: Deserializer<'de>>(value: D) -> Result<Option<SocketAddr>, D::Error> {
    address("dial", value)
}

/// An address and a port of the plan, if it has them.
fn address<'de, D: Deserializer<'de>>(key: &str, value: D) -> Result<Option<SocketAddr>, D::Error> {
    let value = Value::deserialize(value)?;
    if value.is_null() {
        return Ok(None);
    }
    let address = value.as_str().and_then(|text| text.parse().ok());
    address.map(Some).ok_or_else(|| {
        D::Error::custom(format!(
            "'{key}' is {value}; it must be an IP address with a port, such as '192.0.2.7:7000' or \
             '[2001:db8::7]:7000' (names are not looked up, and the zone of a link-local address is a number: \
             '[fe80::7%2]:7000')"
        ))
    })
}

fn secret<'de, D: Deserializer<'de>>(value: D) -> Result<Secret, D::Error> {
    let secret = Secret::parse(&String::deserialize(value)?);
    secret.map_err(|error| D::Error::custom(format!("'secret': {error}")))
}

fn require(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

fn wrong(message: &impl ToString) -> RunError {
    RunError::plan("tunnel", &message.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(change: impl FnOnce(&mut Value)) -> Result<TunnelPlan, String> {
        let mut plan = json!({
            "format": "narrows/tunnel/1", "bind": "0.0.0.0:7000", "secret": "ab".repeat(32),
            "folder": "/tmp/x",
        });
        change(&mut plan);
        TunnelPlan::parse(&plan.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_fit_an_ethernet() {
        let listener = plan(|_| {}).unwrap();
        assert_eq!((listener.host(), listener.inner_mtu()), (0, 1444));
        let dialer = plan(|plan| {
            plan["bind"] = Value::Null;
            plan["dial"] = json!("[2001:db8::1]:7000");
        });
        let dialer = dialer.unwrap();
        assert_eq!((dialer.host(), dialer.inner_mtu()), (1, 1424));
        assert_eq!(dialer.bind(), "[::]:0".parse().unwrap());
        let listener = plan(|plan| plan["host"] = 1.into()).unwrap();
        assert_eq!(listener.host(), 1);
    }

    #[test]
    fn a_part_of_a_larger_plan_has_no_folder_of_its_own() {
        let keys = json!({"dial": "192.0.2.7:7000", "secret": "ab".repeat(32)});
        let keys = keys.as_object().unwrap();
        let of =
            |keys: &Map<String, Value>| TunnelPlan::from_keys(keys.clone(), Path::new("/tmp/x"), 0);
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
        assert!(refusal("dial", json!("127.0.0.1:0")).contains("'dial' is '127.0.0.1:0'; port 0"));
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
        for (key, minimum) in [
            ("offset_ns", -86_400_000_000_000i64),
            ("drift_ppb", -1_000_000),
        ] {
            for good in [minimum, -minimum] {
                assert!(plan(|plan| plan["clock"] = json!({key: good})).is_ok());
            }
            for bad in [minimum - 1, 1 - minimum, i64::MIN, i64::MAX] {
                let message = refusal("clock", json!({key: bad}));
                assert!(
                    message.contains(&format!("from {minimum} to {}", -minimum)),
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
