//! Names: the resolvers outside, and the files by which programs inside find them.

use crate::addresses::{OUTSIDE, OUTSIDE_NAME};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The port of the domain name system.
const PORT: u16 = 53;

/// The machine's resolvers. Inside there is one address for them all.
#[derive(Debug)]
pub(crate) struct Resolvers {
    all: Vec<Ipv4Addr>,
    current: AtomicUsize,
}

impl Resolvers {
    /// The resolvers named in the text of a `resolv.conf` (IPv4 only); by default the machine
    /// itself, as in resolv.conf(5).
    pub(crate) fn parse(text: &str) -> Self {
        let named = |line: &str| line.strip_prefix("nameserver")?.trim().parse().ok();
        let mut all: Vec<Ipv4Addr> = text.lines().filter_map(named).collect();
        if all.is_empty() {
            all.push(Ipv4Addr::LOCALHOST);
        }
        Resolvers {
            all,
            current: AtomicUsize::new(0),
        }
    }

    /// The resolver to ask now.
    pub(super) fn current(&self) -> SocketAddrV4 {
        let index = self.current.load(Ordering::Relaxed) % self.all.len();
        SocketAddrV4::new(self.all[index], PORT)
    }

    /// Switches to the next resolver, as the current one did not answer.
    pub(super) fn next(&self) {
        self.current.fetch_add(1, Ordering::Relaxed);
    }

    /// The text that a program inside reads in place of `text`: identical except for the servers.
    pub(crate) fn rewrite(text: &str) -> String {
        let mut inside = format!("nameserver {OUTSIDE}\n");
        for line in text.lines() {
            if line.starts_with("search")
                || line.starts_with("domain")
                || line.starts_with("options")
            {
                inside.push_str(line);
                inside.push('\n');
            }
        }
        inside
    }
}

/// The text of a `hosts` file with the name of the machine outside.
pub(crate) fn host_names(text: &str) -> String {
    let gap = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{text}{gap}{OUTSIDE}\t{OUTSIDE_NAME}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolvers_take_turns_when_they_are_silent() {
        let text = "# x\nnameserver 127.0.0.53\nnameserver fe80::1\nnameserver\t9.9.9.9\nsearch a.b\noptions edns0\n";
        let resolvers = Resolvers::parse(text);
        assert_eq!(resolvers.current(), "127.0.0.53:53".parse().unwrap());
        resolvers.next();
        assert_eq!(resolvers.current(), "9.9.9.9:53".parse().unwrap());
        resolvers.next();
        assert_eq!(resolvers.current(), "127.0.0.53:53".parse().unwrap());
        assert_eq!(
            Resolvers::rewrite(text),
            "nameserver 198.18.0.1\nsearch a.b\noptions edns0\n"
        );
        let none = Resolvers::parse("");
        assert_eq!(none.current(), "127.0.0.1:53".parse().unwrap());
    }

    #[test]
    fn the_machine_outside_has_a_name() {
        assert_eq!(
            host_names("127.0.0.1 localhost"),
            "127.0.0.1 localhost\n198.18.0.1\toutside.narrows\n"
        );
        assert_eq!(host_names(""), "198.18.0.1\toutside.narrows\n");
    }
}
