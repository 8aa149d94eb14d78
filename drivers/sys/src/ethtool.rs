//! Offloads of an interface, by the names that `ethtool -k` prints (linux/ethtool.h).

use super::check;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
const NAME_LENGTH: usize = 32;

#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    data: *mut u8,
    // struct ifreq is larger than the part used here.
    rest: [u8; 16],
}

/// Disables every changeable feature of interface `name` whose name `unwanted` selects, and returns
/// the names of those that remain enabled.
pub fn switch_off(name: &str, unwanted: impl Fn(&str) -> bool) -> io::Result<Vec<String>> {
    let socket = super::socket::udp_any()?;
    let features = feature_names(&socket, name)?;
    let blocks = features.len().div_ceil(32);
    let mut wanted = vec![[0u32; 2]; blocks];
    let before = states(&socket, name, blocks)?;
    for (index, feature) in features.iter().enumerate() {
        let bit = 1 << (index % 32);
        // A request that includes an unchangeable feature is refused as a whole.
        if unwanted(feature) && before[index / 32][0] & bit != 0 {
            wanted[index / 32][0] |= bit;
        }
    }
    // struct ethtool_sfeatures: command, number of blocks, then (valid, requested) per block.
    let mut request = header(ETHTOOL_SFEATURES, blocks as u32);
    for [valid, requested] in wanted {
        request.extend_from_slice(&valid.to_ne_bytes());
        request.extend_from_slice(&requested.to_ne_bytes());
    }
    call(&socket, name, &mut request)?;
    let after = states(&socket, name, blocks)?;
    Ok(features
        .iter()
        .enumerate()
        .filter(|(index, feature)| {
            unwanted(feature) && after[index / 32][2] & (1 << (index % 32)) != 0
        })
        .map(|(_, feature)| feature.clone())
        .collect())
}

fn feature_names(socket: &OwnedFd, name: &str) -> io::Result<Vec<String>> {
    // struct ethtool_sset_info: command, reserved, mask of sets (64 bit), lengths.
    let mut request = header(ETHTOOL_GSSET_INFO, 0);
    request.extend_from_slice(&(1u64 << ETH_SS_FEATURES).to_ne_bytes());
    request.extend_from_slice(&[0; 4]);
    call(socket, name, &mut request)?;
    let count = word(&request, 4) as usize;
    // struct ethtool_gstrings: command, set, length, then 32 bytes per name.
    let mut request = header(ETHTOOL_GSTRINGS, ETH_SS_FEATURES);
    request.extend_from_slice(&(count as u32).to_ne_bytes());
    request.resize(request.len() + count * NAME_LENGTH, 0);
    call(socket, name, &mut request)?;
    Ok(request[12..]
        .chunks_exact(NAME_LENGTH)
        .map(|name| {
            String::from_utf8_lossy(name)
                .trim_end_matches('\0')
                .to_owned()
        })
        .collect())
}

/// Per block of 32 features: available, requested, active, never changed.
fn states(socket: &OwnedFd, name: &str, blocks: usize) -> io::Result<Vec<[u32; 4]>> {
    let mut request = header(ETHTOOL_GFEATURES, blocks as u32);
    request.resize(request.len() + blocks * 16, 0);
    call(socket, name, &mut request)?;
    Ok((0..blocks)
        .map(|block| [0, 1, 2, 3].map(|field| word(&request, 2 + block * 4 + field)))
        .collect())
}

fn header(command: u32, argument: u32) -> Vec<u8> {
    [command.to_ne_bytes(), argument.to_ne_bytes()].concat()
}

fn word(bytes: &[u8], index: usize) -> u32 {
    bytes
        .get(index * 4..index * 4 + 4)
        .and_then(|word| word.try_into().ok())
        .map_or(0, u32::from_ne_bytes)
}

fn call(socket: &OwnedFd, name: &str, data: &mut [u8]) -> io::Result<()> {
    let mut request = Request {
        name: [0; libc::IFNAMSIZ],
        data: data.as_mut_ptr(),
        rest: [0; 16],
    };
    let length = name.len().min(libc::IFNAMSIZ - 1);
    request.name[..length].copy_from_slice(&name.as_bytes()[..length]);
    // SAFETY: the request is laid out as struct ifreq; `data` is as long as the command needs,
    // since its length was computed from the counts written into it.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) })?;
    Ok(())
}
