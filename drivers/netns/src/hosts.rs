//! The hosts of a run: a network namespace each, joined to the agent by a veth pair.
//!
//! ```text
//!   host 0                      the agent's namespace                      host 1
//!   eth0 10.77.0.1 ======= wire0  (emulator)  wire1 ======= eth0 10.77.0.2
//!                                    |
//!                                  wire2 ======= eth0 10.77.0.3, and so on
//! ```
//!
//! The outer ends carry no address, so the agent's own network stack never answers; the emulator
//! reads and writes them as raw Ethernet. Neighbours are fixed on all sides, IPv6 is off, and the
//! offloads are off, so that every frame on a wire is one packet that a scheme has sent.

mod settings;

use narrows_cell::addressing::{MAX_HOSTS, WARM_UP_PORT, address, mac};
use narrows_cell::{Context, RunError};
use narrows_sys::netlink::{LinkCounters, Netlink, VethEnd};
use narrows_sys::netns::{NetNs, PrivateNetwork, Privilege, read_sysctl};
use narrows_sys::{ethtool, socket};
pub use settings::HostPlan;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;

/// Name of the interface inside a host.
const INNER: &str = "eth0";
/// Bits of the network that all hosts share.
const PREFIX: u8 = 16;

fn outer_name(host: u16) -> String {
    format!("wire{host}")
}

/// One host.
#[derive(Debug)]
pub struct Host {
    /// Its name in the cell.
    pub name: String,
    /// Its namespace.
    pub netns: NetNs,
    /// Index of the veth end inside the host.
    pub inner: u32,
    /// Index of the veth end on the agent's side.
    pub outer: u32,
    /// Kernel settings inside the host, read back after they were set.
    pub sysctls: BTreeMap<String, String>,
    /// Largest IP packet of its interface, in bytes.
    pub mtu: u32,
    netlink: Netlink,
}

/// All hosts and the wires to them. Everything disappears with this object and the processes in
/// the namespaces.
#[derive(Debug)]
pub struct Hosts {
    /// In the order of their indices.
    pub hosts: Vec<Host>,
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

/// Settings that all hosts have in common.
#[derive(Clone, Copy, Debug)]
pub struct HostDefaults {
    /// Maximum IP packet size in bytes, unless a host overrides it.
    pub mtu: u32,
    /// Maximum TCP buffer in bytes, unless a host overrides it.
    pub buffer: u64,
    /// True if receivers verify checksums, which costs time; only needed if the network damages packets.
    pub verify_checksums: bool,
    /// Processors on which the hosts' stacks process received packets, as a bit mask; 0 is the sending processor, which
    /// is the emulator's.
    pub receive_cpus: u64,
}

/// Moves this process into a private network, as required by [`Hosts::build`].
///
/// # Errors
/// [`RunError::Unavailable`] with the setting or permission that is missing.
pub fn enter_private_network() -> Result<Privilege, RunError> {
    PrivateNetwork::prepare()
        .enter()
        .map_err(|error| RunError::Unavailable(explain_refusal(&error)))
}

/// The limit that prevents namespaces, and its remedy, as a sentence.
pub fn explain_refusal(error: &io::Error) -> String {
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
    /// Builds the hosts of `plans`.
    ///
    /// The calling thread is in the agent's private network and stays there.
    ///
    /// # Errors
    /// The setting or step that the kernel rejected, as a sentence.
    pub fn build(plans: &[HostPlan], common: HostDefaults) -> Result<Self, RunError> {
        if plans.len() > MAX_HOSTS {
            return Err(RunError::Unavailable(format!(
                "the network has {} hosts, and at most {MAX_HOSTS} can be emulated",
                plans.len()
            )));
        }
        Hosts::build_some(plans, 0, plans.len() as u16, common)
    }

    /// Builds one host of a network of `count` hosts, the others of which are elsewhere: the same addresses, one wire.
    ///
    /// The calling thread is in the agent's private network and stays there.
    ///
    /// # Errors
    /// As [`Hosts::build`].
    pub fn build_one(
        plan: &HostPlan,
        index: u16,
        count: u16,
        common: HostDefaults,
    ) -> Result<Self, RunError> {
        Hosts::build_some(std::slice::from_ref(plan), index, count, common)
    }

    /// Builds the hosts from index `first`.
    fn build_some(
        plans: &[HostPlan],
        first: u16,
        count: u16,
        common: HostDefaults,
    ) -> Result<Self, RunError> {
        // The agent's stack must not send on the wires either.
        settings::silence_ipv6();
        let mut netlink = Netlink::open().could_not("open a netlink socket")?;
        let mtu = |plan: &HostPlan| plan.mtu.unwrap_or(common.mtu);
        let wiring = Wiring {
            count,
            largest_mtu: plans.iter().map(mtu).max().unwrap_or(0),
            common,
        };
        let mut hosts = Vec::with_capacity(plans.len());
        for (index, plan) in (first..).zip(plans) {
            hosts.push(wiring.build(index, plan, &mut netlink)?);
        }
        Ok(Hosts { hosts, netlink })
    }

    /// Adds the address of a private host to the only host, from which it reaches the host with index `other` at the
    /// far end of its wire: the ends of programs have separate addresses, which identify their packets.
    pub fn add_own_address(&mut self, own: u16, other: u16) -> io::Result<()> {
        let host = &mut self.hosts[0];
        host.netlink.add_address(host.inner, address(own), 32)?;
        host.netlink
            .add_neighbour(host.inner, address(other), mac(other, false))?;
        host.netlink
            .add_route_from(host.inner, address(other), address(own))
    }

    /// The host with this index.
    pub fn host(&self, index: u16) -> &Host {
        &self.hosts[usize::from(index)]
    }

    /// Counters of all wires, in the order of the hosts.
    pub fn counters(&mut self) -> io::Result<Vec<WireCounters>> {
        let outside = &mut self.netlink;
        let read = |host: &mut Host| {
            Ok(WireCounters {
                inner: host.netlink.counters(host.inner)?,
                outer: outside.counters(host.outer)?,
            })
        };
        self.hosts.iter_mut().map(read).collect()
    }

    /// Sends one datagram from a host to the agent, to warm up its wire: kernels start stamping packets only after the
    /// first one.
    pub fn warm_up(&self, index: u16) -> io::Result<()> {
        let peer = u16::from(index == 0);
        let send = || {
            let socket = socket::udp_any()?;
            socket::connect(
                socket.as_fd(),
                SocketAddrV4::new(address(peer), WARM_UP_PORT),
            )?;
            socket::send(socket.as_fd(), b"narrows").map(drop)
        };
        self.host(index).netns.within(send)?
    }
}

/// The wiring common to all hosts of a network.
struct Wiring {
    /// Number of hosts.
    count: u16,
    /// Largest packet of any host in bytes, which the agent's ends must be able to send.
    largest_mtu: u32,
    common: HostDefaults,
}

impl Wiring {
    fn build(&self, index: u16, plan: &HostPlan, outside: &mut Netlink) -> Result<Host, RunError> {
        let netns =
            NetNs::create().map_err(|error| RunError::Unavailable(explain_refusal(&error)))?;
        netns
            .within(|| plan.configure(self.common.buffer, self.common.receive_cpus))
            .could_not("enter a host")??;
        let doing = format!("set up the host '{}'", plan.name);
        let mtu = plan.mtu.unwrap_or(self.common.mtu);
        let wire = self.wire(index, mtu, &netns, outside);
        let (inner, outer, netlink) = wire.could_not(&doing)?;
        let sysctls = netns.within(|| plan.read_back()).could_not(&doing)?;
        Ok(Host {
            name: plan.name.clone(),
            netns,
            inner,
            outer,
            sysctls,
            mtu,
            netlink,
        })
    }

    /// Connects the host in `netns` to the agent; returns the indices of both ends and a netlink
    /// socket inside.
    fn wire(
        &self,
        index: u16,
        mtu: u32,
        netns: &NetNs,
        outside: &mut Netlink,
    ) -> io::Result<(u32, u32, Netlink)> {
        let mut netlink = netns.within(Netlink::open)??;
        let name = outer_name(index);
        let near = VethEnd {
            name: &name,
            mac: mac(index, true),
            mtu: self.largest_mtu,
            netns: None,
        };
        let far = VethEnd {
            name: INNER,
            mac: mac(index, false),
            mtu,
            netns: Some(netns.as_fd()),
        };
        outside.add_veth(near, far, 10_000)?;
        let outer = outside.index_of(&name)?;
        let inner = netlink.index_of(INNER)?;
        let loopback = netlink.index_of("lo")?;
        netlink.set_up(loopback)?;
        netlink.add_address(inner, address(index), PREFIX)?;
        netlink.set_up(inner)?;
        for peer in (0..self.count).filter(|&peer| peer != index) {
            netlink.add_neighbour(inner, address(peer), mac(peer, false))?;
        }
        outside.set_up(outer)?;
        let verifies = self.common.verify_checksums;
        let unwanted = |feature: &str| is_offload(feature) || feature == "rx-checksum" && verifies;
        netns.within(|| require_off(INNER, unwanted))??;
        switch_offloads_off(&name)?;
        Ok((inner, outer, netlink))
    }
}

/// Disables features of an interface in the calling thread's namespace.
///
/// # Errors
/// A feature cannot be disabled.
fn require_off(name: &str, unwanted: impl Fn(&str) -> bool) -> io::Result<()> {
    match ethtool::switch_off(name, unwanted)?.first() {
        None => Ok(()),
        Some(feature) => Err(io::Error::other(format!(
            "the offload '{feature}' cannot be switched off"
        ))),
    }
}

/// Disables the offloads of an interface in the calling thread's namespace, so that a frame is a packet.
///
/// # Errors
/// A feature cannot be disabled.
pub fn switch_offloads_off(name: &str) -> io::Result<()> {
    require_off(name, is_offload)
}

/// Offloads merge packets, or omit checksums, both of which would be visible on the wire: segmentation (tx-tcp...,
/// tx-udp-segmentation, tx-gso...), checksums, and their receiving counterparts.
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
