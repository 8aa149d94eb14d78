//! The namespaces and wires of one shell.
//!
//! ```text
//!  the program's namespace      the emulator's namespace                 the far end
//!  eth0 198.18.0.2 ======== to-inside  (emulator)  to-outside ======== eth0 198.18.0.1
//! ```
//!
//! The far end of the outermost shell is a *gateway*: a namespace in which every address is local
//! (`local 0.0.0.0/0`), so that the kernel's TCP, UDP and ICMP answer in place of any machine that
//! the program contacts, and the relay forwards the bytes. The far end of a shell in a shell is the
//! enclosing namespace itself, which routes packets: one connection then passes all paths.

use super::addresses::Prefix;
use narrows_emulator::Wires;
use narrows_netns::{explain_refusal, switch_offloads_off};
use narrows_sys::netlink::{Mac, Netlink, Route, VethEnd};
use narrows_sys::netns::{NetNs, write_sysctl};
use narrows_sys::ring::{RxRing, TxPort};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

/// Name of the interface in the program's namespace and in the gateway.
const INNER: &str = "eth0";
/// MTU of the wires, that of Ethernet.
pub(super) const MTU: u32 = 1500;
/// Frames that may wait until the emulator reads them: 50 ms at 2 Gbit/s.
const RING: usize = 8 * 1024;
/// Maximum size of one TCP buffer. Buffers grow on demand, and paths may be long.
const TCP_BUFFER: u64 = 64 << 20;

const INSIDE_MAC: Mac = [0x02, 0, 0, 0x78, 0, 2];
const FAR_MAC: Mac = [0x02, 0, 0, 0x78, 0, 1];

/// The namespaces and wires of a shell.
#[derive(Debug)]
pub(super) struct ShellNetwork {
    /// Namespace in which the program runs.
    pub(super) inside: NetNs,
    /// Namespace in which connections end, unless the enclosing shell forwards packets.
    pub(super) gateway: Option<NetNs>,
    /// Wires towards the program and towards the outside.
    pub(super) wires: Wires,
    /// Its addresses.
    pub(super) prefix: Prefix,
    /// Why packets are not forwarded although a shell encloses this one.
    pub(super) no_forwarding: Option<String>,
}

/// The namespace of the enclosing shell.
#[derive(Debug)]
pub(super) struct Enclosing {
    /// The namespace.
    pub(super) netns: NetNs,
    /// Its addresses.
    pub(super) prefix: Prefix,
}

impl ShellNetwork {
    /// Builds everything. The calling thread moves into the emulator's namespace for good.
    pub(super) fn build(enclosing: Option<&Enclosing>) -> io::Result<ShellNetwork> {
        let refused = |error: io::Error| io::Error::new(error.kind(), explain_refusal(&error));
        NetNs::enter_new().map_err(refused)?;
        switch_ipv6_off("all");
        let mut wire = Netlink::open()?;
        let inside = NetNs::create().map_err(refused)?;
        let mut no_forwarding = None;
        let mut forwarded = None;
        if let Some(enclosing) = enclosing {
            match attach(&mut wire, enclosing) {
                Ok(prefix) => forwarded = Some(prefix),
                Err(error) => no_forwarding = Some(error.to_string()),
            }
        }
        let prefix = forwarded.unwrap_or(Prefix::OUTERMOST);
        let gateway = match forwarded {
            Some(_) => None,
            None => Some(build_gateway(&mut wire, prefix)?),
        };
        build_inside(&mut wire, &inside, prefix)?;
        let mut open = |name: &str| -> io::Result<(RxRing, TxPort)> {
            let index = wire.index_of(name)?;
            wire.set_up(index)?;
            let ring = RxRing::open(index, RING, super::MAX_FRAME)?;
            Ok((ring, TxPort::open(index)?))
        };
        let (inner, outer) = (open("to-inside")?, open("to-outside")?);
        let wires = Wires {
            rings: vec![(0, inner.0), (1, outer.0)],
            ports: vec![inner.1, outer.1],
        };
        Ok(ShellNetwork {
            inside,
            gateway,
            wires,
            prefix,
            no_forwarding,
        })
    }
}

fn build_inside(wire: &mut Netlink, netns: &NetNs, prefix: Prefix) -> io::Result<()> {
    let (near, far) = ends("to-inside", INNER, INSIDE_MAC, 1, netns);
    wire.add_veth(near, far, 1000)?;
    switch_offloads_off("to-inside")?;
    let (_, group) = narrows_sys::userns::user();
    netns.within(|| -> io::Result<()> {
        configure()?;
        // Shells in this one are forwarded.
        write_sysctl("net.ipv4.ip_forward", "1")?;
        // Lets ordinary users ping; harmless if it fails.
        let _ = write_sysctl("net.ipv4.ping_group_range", &format!("{group} {group}"));
        let mut netlink = Netlink::open()?;
        let index = interface(&mut netlink, prefix.inside())?;
        netlink.add_neighbour(index, prefix.far(), FAR_MAC)?;
        let everywhere = Ipv4Addr::UNSPECIFIED;
        netlink.add_route(Route::through(prefix.far(), index, everywhere, 0))
    })?
}

fn build_gateway(wire: &mut Netlink, prefix: Prefix) -> io::Result<NetNs> {
    let netns = NetNs::create()?;
    let (near, far) = ends("to-outside", INNER, FAR_MAC, 2, &netns);
    wire.add_veth(near, far, 1000)?;
    switch_offloads_off("to-outside")?;
    netns.within(|| -> io::Result<()> {
        configure()?;
        let mut netlink = Netlink::open()?;
        let index = interface(&mut netlink, prefix.far())?;
        // Both in the first table, where the longer prefix wins: the shells are reached through the
        // path, all other addresses are local.
        reach_shells(&mut netlink, index, prefix, true)?;
        let index = netlink.index_of("lo")?;
        netlink.add_route(Route {
            to: Ipv4Addr::UNSPECIFIED,
            prefix: 0,
            index,
            via: None,
            local: true,
            first: true,
        })
    })??;
    Ok(netns)
}

/// Makes the enclosing shell's namespace the far end; returns the addresses of this shell.
fn attach(wire: &mut Netlink, enclosing: &Enclosing) -> io::Result<Prefix> {
    for number in 1.. {
        let Some(prefix) = enclosing.prefix.child(number) else {
            let why = "shells are nested too deeply, or too many run in this one";
            return Err(io::Error::other(why));
        };
        let name = format!("shell{number}");
        let (near, far) = ends("to-outside", &name, FAR_MAC, 2, &enclosing.netns);
        match wire.add_veth(near, far, 1000) {
            // Another shell in the same namespace has this number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            result => result?,
        }
        let result = switch_offloads_off("to-outside")
            .and_then(|()| enclosing.netns.within(|| attach_inside(&name, prefix))?);
        return result.map(|()| prefix);
    }
    unreachable!("the loop ends with the numbers of children")
}

/// Runs in the enclosing namespace.
fn attach_inside(name: &str, prefix: Prefix) -> io::Result<()> {
    write_sysctl("net.ipv4.ip_forward", "1")?;
    let mut netlink = Netlink::open()?;
    let index = netlink.index_of(name)?;
    netlink.add_address(index, prefix.far(), 32)?;
    switch_offloads_off(name)?;
    netlink.set_up(index)?;
    reach_shells(&mut netlink, index, prefix, false)
}

/// Adds the route from the far end to the shells of a prefix; `first` as in [`Route`].
fn reach_shells(netlink: &mut Netlink, index: u32, prefix: Prefix, first: bool) -> io::Result<()> {
    let inside = prefix.inside();
    netlink.add_neighbour(index, inside, INSIDE_MAC)?;
    let route = Route::through(inside, index, prefix.first(), prefix.length());
    netlink.add_route(Route { first, ..route })
}

fn ends<'a>(
    near: &'a str,
    far: &'a str,
    mac: Mac,
    number: u8,
    netns: &'a NetNs,
) -> (VethEnd<'a>, VethEnd<'a>) {
    let near = VethEnd {
        name: near,
        mac: [0x02, 0, 0, 0x78, 1, number],
        mtu: MTU,
        netns: None,
    };
    let far = VethEnd {
        name: far,
        mac,
        mtu: MTU,
        netns: Some(netns.as_fd()),
    };
    (near, far)
}

/// Sets the address of `eth0` and brings it and `lo` up; returns the index of `eth0`.
fn interface(netlink: &mut Netlink, address: Ipv4Addr) -> io::Result<u32> {
    let loopback = netlink.index_of("lo")?;
    netlink.set_up(loopback)?;
    let index = netlink.index_of(INNER)?;
    netlink.add_address(index, address, 32)?;
    switch_offloads_off(INNER)?;
    netlink.set_up(index)?;
    Ok(index)
}

/// Settings of the program's namespace and of the gateway.
fn configure() -> io::Result<()> {
    // The loopback interface keeps IPv6, which leads nowhere else.
    switch_ipv6_off("default");
    switch_ipv6_off(INNER);
    // The return path may use another interface, and any address may be on any side.
    for which in ["all", "default", INNER] {
        write_sysctl(&format!("net.ipv4.conf.{which}.rp_filter"), "0")?;
        write_sysctl(&format!("net.ipv4.conf.{which}.send_redirects"), "0")?;
    }
    write_sysctl("net.ipv4.tcp_no_metrics_save", "1")?;
    write_sysctl("net.ipv4.tcp_rmem", &format!("4096 131072 {TCP_BUFFER}"))?;
    write_sysctl("net.ipv4.tcp_wmem", &format!("4096 16384 {TCP_BUFFER}"))
}

fn switch_ipv6_off(which: &str) {
    // Kernels without IPv6 have nothing to disable.
    let _ = write_sysctl(&format!("net.ipv6.conf.{which}.disable_ipv6"), "1");
}
