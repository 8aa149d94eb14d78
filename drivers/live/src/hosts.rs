//! The hosts of a run: a network namespace each, joined to the agent by a veth pair.
//!
//! ```text
//!   sender's host               the agent's namespace               receiver's host
//!   eth0 10.77.0.1 ======= to-sender  (emulator)  to-receiver ======= eth0 10.77.0.2
//! ```
//!
//! The outer ends carry no address, so the agent's own network stack never answers; the emulator
//! reads and writes them as raw Ethernet. Neighbours are fixed on both sides, IPv6 is off, and the
//! offloads are off, so that every frame on the wire is one packet that a scheme has sent.

use crate::error::{Context, LiveError};
use crate::sys::netlink::{LinkCounters, Mac, Netlink, VethEnd};
use crate::sys::netns::{NetNs, PrivateNetwork, Privilege, read_sysctl, write_sysctl};
use crate::sys::{ethtool, socket};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;

/// Name of the interface inside a host.
const INNER: &str = "eth0";
/// Datagrams to this port ("discard") only wake up the path before a run and are never delivered.
pub const WARM_UP_PORT: u16 = 9;

/// The two sides of a dumbbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Side {
    /// Where packets of the forward direction start.
    Sender = 0,
    /// Where they end.
    Receiver = 1,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Side; 2] = [Side::Sender, Side::Receiver];

    /// The name used in records.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Sender => "sender",
            Side::Receiver => "receiver",
        }
    }

    /// The other side.
    pub const fn other(self) -> Side {
        match self {
            Side::Sender => Side::Receiver,
            Side::Receiver => Side::Sender,
        }
    }

    /// Address of the host on this side.
    pub const fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, self as u8 + 1)
    }

    /// Locally administered Ethernet address of the host on this side.
    const fn mac(self) -> Mac {
        [0x02, 0, 0, 0x77, 0, self as u8 + 1]
    }

    const fn outer_name(self) -> &'static str {
        match self {
            Side::Sender => "to-sender",
            Side::Receiver => "to-receiver",
        }
    }
}

/// One host.
#[derive(Debug)]
pub struct Host {
    /// Its namespace.
    pub netns: NetNs,
    /// Index of the veth end inside the host.
    pub inner: u32,
    /// Index of the veth end on the agent's side.
    pub outer: u32,
    netlink: Netlink,
}

/// Both hosts and the wires to them. Everything disappears with this object and the processes in
/// the namespaces.
#[derive(Debug)]
pub struct Hosts {
    /// By [`Side`].
    pub hosts: [Host; 2],
    /// Kernel settings inside the hosts, read back after they were made.
    pub sysctls: BTreeMap<String, String>,
    netlink: Netlink,
}

/// Counters of both ends of one wire.
#[derive(Clone, Copy, Debug)]
pub struct WireCounters {
    /// Inside the host.
    pub inner: LinkCounters,
    /// On the agent's side.
    pub outer: LinkCounters,
}

/// Moves this process into a network of its own, in which [`Hosts::build`] can work.
///
/// # Errors
/// [`LiveError::Unavailable`] with the setting or permission that is missing.
pub fn enter_private_network() -> Result<Privilege, LiveError> {
    PrivateNetwork::prepare()
        .enter()
        .map_err(|error| LiveError::Unavailable(explain_refusal(&error)))
}

/// Which limit stands in the way of namespaces, and what would remove it.
fn explain_refusal(error: &io::Error) -> String {
    let setting = |name: &str| read_sysctl(name).unwrap_or_default();
    let remedy = if setting("user.max_net_namespaces") == "0" {
        "set the kernel parameter user.max_net_namespaces above 0"
    } else if setting("user.max_user_namespaces") == "0" {
        "set the kernel parameter user.max_user_namespaces above 0, or run as root"
    } else if setting("kernel.unprivileged_userns_clone") == "0" {
        "set the kernel parameter kernel.unprivileged_userns_clone to 1, or run as root"
    } else if setting("kernel.apparmor_restrict_unprivileged_userns") == "1" {
        "set the kernel parameter kernel.apparmor_restrict_unprivileged_userns to 0, or run as root"
    } else if error.raw_os_error() == Some(libc::ENOSPC)
        || error.raw_os_error() == Some(libc::EUSERS)
    {
        "raise the kernel parameters user.max_net_namespaces and user.max_user_namespaces"
    } else {
        "run as root, or in a container that allows user and network namespaces"
    };
    format!(
        "no network namespace can be created here ({error}); {remedy}, or use the plane 'simulate'"
    )
}

impl Hosts {
    /// Builds both hosts, with IP packets of up to `mtu` and TCP buffers of up to `buffer` bytes.
    ///
    /// The calling thread is in the agent's private network and stays there.
    ///
    /// # Errors
    /// What the kernel refused, in words.
    pub fn build(mtu: u32, buffer: u64) -> Result<Self, LiveError> {
        // The agent's own stack must not speak on the wires either.
        for name in [
            "net.ipv6.conf.all.disable_ipv6",
            "net.ipv6.conf.default.disable_ipv6",
        ] {
            let _ = write_sysctl(name, "1"); // kernels without IPv6 have nothing to switch off
        }
        let mut netlink = Netlink::open().could_not("open a netlink socket")?;
        let mut build = |side: Side| -> Result<Host, LiveError> {
            let netns =
                NetNs::create().map_err(|error| LiveError::Unavailable(explain_refusal(&error)))?;
            let doing = format!("set up the {}'s host", side.name());
            build_host(side, netns, &mut netlink, mtu, buffer).could_not(&doing)
        };
        let hosts = [build(Side::Sender)?, build(Side::Receiver)?];
        let sysctls = hosts[0]
            .netns
            .within(read_back)
            .could_not("read the hosts' kernel settings")?;
        Ok(Hosts {
            hosts,
            sysctls,
            netlink,
        })
    }

    /// The host on one side.
    pub fn host(&self, side: Side) -> &Host {
        &self.hosts[side as usize]
    }

    /// Counters of the wire to one side.
    pub fn counters(&mut self, side: Side) -> io::Result<WireCounters> {
        let host = &mut self.hosts[side as usize];
        Ok(WireCounters {
            inner: host.netlink.counters(host.inner)?,
            outer: self.netlink.counters(host.outer)?,
        })
    }

    /// Sends one datagram from the host on `side` that ends at the agent, to wake up the path:
    /// kernels begin to stamp packets only after the first one.
    pub fn warm_up(&self, side: Side) -> io::Result<()> {
        let send = || {
            let socket = socket::udp_any()?;
            let target = SocketAddrV4::new(side.other().address(), WARM_UP_PORT);
            socket::connect(socket.as_fd(), target)?;
            socket::send(socket.as_fd(), b"narrows").map(drop)
        };
        self.host(side).netns.within(send)?
    }
}

fn build_host(
    side: Side,
    netns: NetNs,
    wire: &mut Netlink,
    mtu: u32,
    buffer: u64,
) -> io::Result<Host> {
    let mut netlink = netns.within(|| -> io::Result<Netlink> {
        configure(buffer)?;
        Netlink::open()
    })??;
    let outer_mac = [0x02, 0, 0, 0x77, 1, side as u8 + 1];
    let near = VethEnd {
        name: side.outer_name(),
        mac: outer_mac,
        netns: None,
    };
    let far = VethEnd {
        name: INNER,
        mac: side.mac(),
        netns: Some(netns.as_fd()),
    };
    wire.add_veth(near, far, mtu, 10_000)?;
    let outer = wire.index_of(side.outer_name())?;
    let inner = netlink.index_of(INNER)?;
    let loopback = netlink.index_of("lo")?;
    netlink.set_up(loopback)?;
    netlink.add_address(inner, side.address(), 24)?;
    netlink.set_up(inner)?;
    let peer = side.other();
    netlink.add_neighbour(inner, peer.address(), peer.mac())?;
    wire.set_up(outer)?;
    let left = netns.within(|| ethtool::switch_off(INNER, is_offload))??;
    let left_outside = ethtool::switch_off(side.outer_name(), is_offload)?;
    if let Some(feature) = left.first().or(left_outside.first()) {
        return Err(io::Error::other(format!(
            "the offload '{feature}' cannot be switched off"
        )));
    }
    Ok(Host {
        netns,
        inner,
        outer,
        netlink,
    })
}

/// Offloads make several packets one, or leave checksums undone, both of which the wire would
/// show: segmentation (tx-tcp..., tx-udp-segmentation, tx-gso...), checksums, and their receiving
/// counterparts.
fn is_offload(feature: &str) -> bool {
    feature == "tx-generic-segmentation"
        || feature == "tx-udp-segmentation"
        || feature == "tx-gso-list"
        || feature.starts_with("tx-tcp")
        || feature.starts_with("tx-checksum")
        || feature.starts_with("rx-gro")
        || feature == "rx-udp-gro-forwarding"
        || feature == "rx-lro"
}

/// Settings made in each host. Metrics of earlier connections must not leak into later ones, and
/// buffers must not limit what is being studied.
fn settings(buffer: u64) -> [(&'static str, String); 4] {
    [
        ("net.ipv4.tcp_no_metrics_save", "1".to_owned()),
        // The receive buffer starts large: its automatic growth would otherwise shape slow start.
        ("net.ipv4.tcp_rmem", format!("4096 {buffer} {buffer}")),
        ("net.ipv4.tcp_wmem", format!("4096 16384 {buffer}")),
        ("net.ipv4.ip_forward", "0".to_owned()),
    ]
}

fn configure(buffer: u64) -> io::Result<()> {
    for name in [
        "net.ipv6.conf.all.disable_ipv6",
        "net.ipv6.conf.default.disable_ipv6",
    ] {
        let _ = write_sysctl(name, "1");
    }
    for (name, value) in settings(buffer) {
        write_sysctl(name, &value).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("{name} cannot be set to '{value}' ({error})"),
            )
        })?;
    }
    Ok(())
}

/// Everything in the hosts that shapes TCP, as the kernel reports it.
fn read_back() -> BTreeMap<String, String> {
    const NAMES: &[&str] = &[
        "net.ipv4.tcp_no_metrics_save",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
        "net.ipv4.tcp_moderate_rcvbuf",
        "net.ipv4.tcp_sack",
        "net.ipv4.tcp_dsack",
        "net.ipv4.tcp_timestamps",
        "net.ipv4.tcp_window_scaling",
        "net.ipv4.tcp_ecn",
        "net.ipv4.tcp_recovery",
        "net.ipv4.tcp_early_retrans",
        "net.ipv4.tcp_slow_start_after_idle",
        "net.ipv4.tcp_limit_output_bytes",
        "net.ipv4.tcp_min_tso_segs",
        "net.ipv4.tcp_pacing_ss_ratio",
        "net.ipv4.tcp_pacing_ca_ratio",
        "net.core.rmem_max",
        "net.core.wmem_max",
    ];
    NAMES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), read_sysctl(name).ok()?)))
        .collect()
}
