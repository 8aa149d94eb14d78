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
    /// Kernel settings inside the host, read back after they were made.
    pub sysctls: BTreeMap<String, String>,
    /// Largest IP packet of its interface.
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

/// What all hosts have in common.
#[derive(Clone, Copy, Debug)]
pub struct HostDefaults {
    /// Largest IP packet, where a host says nothing else.
    pub mtu: u32,
    /// Largest TCP buffer in bytes, where a host says nothing else.
    pub buffer: u64,
    /// Whether receivers verify checksums, which costs them time; needed only where the network
    /// damages packets.
    pub verify_checksums: bool,
    /// Processors on which the hosts' stacks treat what they receive, as a bit mask; 0 leaves it to
    /// the processor that sends, which is the emulator's.
    pub receive_cpus: u64,
}

/// Moves this process into a network of its own, in which [`Hosts::build`] can work.
///
/// # Errors
/// [`RunError::Unavailable`] with the setting or permission that is missing.
pub fn enter_private_network() -> Result<Privilege, RunError> {
    PrivateNetwork::prepare()
        .enter()
        .map_err(|error| RunError::Unavailable(explain_refusal(&error)))
}

/// Which limit stands in the way of namespaces, and what would remove it.
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
    /// What the kernel refused, in words.
    pub fn build(plans: &[HostPlan], common: HostDefaults) -> Result<Self, RunError> {
        if plans.len() > MAX_HOSTS {
            return Err(RunError::Unavailable(format!(
                "the network has {} hosts, and at most {MAX_HOSTS} can be emulated",
                plans.len()
            )));
        }
        // The agent's own stack must not speak on the wires either.
        settings::silence_ipv6();
        let mut netlink = Netlink::open().could_not("open a netlink socket")?;
        let count = plans.len() as u16;
        let largest = plans.iter().filter_map(|plan| plan.mtu).max();
        let largest = largest.unwrap_or(0).max(common.mtu);
        let mut hosts = Vec::with_capacity(plans.len());
        for (index, plan) in (0..count).zip(plans) {
            let mtu = plan.mtu.unwrap_or(common.mtu);
            let wiring = Wiring {
                index,
                count,
                mtu,
                largest,
                verify_checksums: common.verify_checksums,
            };
            hosts.push(wiring.build(plan, common, &mut netlink)?);
        }
        Ok(Hosts { hosts, netlink })
    }

    /// Builds one host of a network whose other hosts are elsewhere: the same addresses, one wire.
    ///
    /// The calling thread is in the agent's private network and stays there.
    ///
    /// # Errors
    /// What the kernel refused, in words.
    pub fn build_one(
        plan: &HostPlan,
        index: u16,
        count: u16,
        common: HostDefaults,
    ) -> Result<Self, RunError> {
        settings::silence_ipv6();
        let mut netlink = Netlink::open().could_not("open a netlink socket")?;
        let mtu = plan.mtu.unwrap_or(common.mtu);
        let wiring = Wiring {
            index,
            count,
            mtu,
            largest: mtu,
            verify_checksums: common.verify_checksums,
        };
        let hosts = vec![wiring.build(plan, common, &mut netlink)?];
        Ok(Hosts { hosts, netlink })
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

    /// Sends one datagram from a host that ends at the agent, to wake up its wire: kernels begin to
    /// stamp packets only after the first one.
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

/// How one host is wired.
struct Wiring {
    index: u16,
    /// Hosts in all.
    count: u16,
    mtu: u32,
    /// Largest packet of any host, which the agent's end must be able to send.
    largest: u32,
    verify_checksums: bool,
}

impl Wiring {
    fn build(
        &self,
        plan: &HostPlan,
        common: HostDefaults,
        outside: &mut Netlink,
    ) -> Result<Host, RunError> {
        let netns =
            NetNs::create().map_err(|error| RunError::Unavailable(explain_refusal(&error)))?;
        netns
            .within(|| plan.configure(common.buffer, common.receive_cpus))
            .could_not("enter a host")??;
        let doing = format!("set up the host '{}'", plan.name);
        let (inner, outer, netlink) = self.wire(&netns, outside).could_not(&doing)?;
        let sysctls = netns.within(|| plan.read_back()).could_not(&doing)?;
        Ok(Host {
            name: plan.name.clone(),
            netns,
            inner,
            outer,
            sysctls,
            mtu: self.mtu,
            netlink,
        })
    }

    /// Connects the host in `netns` to the agent; returns the indices of both ends and a netlink
    /// socket inside.
    fn wire(&self, netns: &NetNs, wire: &mut Netlink) -> io::Result<(u32, u32, Netlink)> {
        let mut netlink = netns.within(Netlink::open)??;
        let name = outer_name(self.index);
        let near = VethEnd {
            name: &name,
            mac: mac(self.index, true),
            mtu: self.largest,
            netns: None,
        };
        let far = VethEnd {
            name: INNER,
            mac: mac(self.index, false),
            mtu: self.mtu,
            netns: Some(netns.as_fd()),
        };
        wire.add_veth(near, far, 10_000)?;
        let outer = wire.index_of(&name)?;
        let inner = netlink.index_of(INNER)?;
        let loopback = netlink.index_of("lo")?;
        netlink.set_up(loopback)?;
        netlink.add_address(inner, address(self.index), PREFIX)?;
        netlink.set_up(inner)?;
        for peer in (0..self.count).filter(|&peer| peer != self.index) {
            netlink.add_neighbour(inner, address(peer), mac(peer, false))?;
        }
        wire.set_up(outer)?;
        let unwanted = |feature: &str| {
            is_offload(feature) || feature == "rx-checksum" && self.verify_checksums
        };
        let left = netns.within(|| ethtool::switch_off(INNER, unwanted))??;
        let left_outside = ethtool::switch_off(&name, is_offload)?;
        if let Some(feature) = left.first().or(left_outside.first()) {
            return Err(io::Error::other(format!(
                "the offload '{feature}' cannot be switched off"
            )));
        }
        Ok((inner, outer, netlink))
    }
}

/// Offloads make several packets one, or leave checksums undone, both of which the wire would
/// show: segmentation (tx-tcp..., tx-udp-segmentation, tx-gso...), checksums, and their receiving
/// counterparts.
pub fn is_offload(feature: &str) -> bool {
    feature == "tx-generic-segmentation"
        || feature == "tx-udp-segmentation"
        || feature == "tx-gso-list"
        || feature.starts_with("tx-tcp")
        || feature.starts_with("tx-checksum")
        || feature.starts_with("rx-gro")
        || feature == "rx-udp-gro-forwarding"
        || feature == "rx-lro"
}
