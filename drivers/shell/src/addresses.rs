//! The addresses of shells.
//!
//! All are in 198.18.0.0/15, which is reserved for measurements (RFC 2544, appendix C.2.2; RFC
//! 6890) and therefore not used otherwise. A shell has a prefix; a nested shell takes one sixteenth
//! of it, so that the namespaces on the path need a single route per shell:
//!
//! ```text
//! 198.18.0.0/16     outermost shell   .0.1 outside, .0.2 the program
//! 198.18.16.0/20    a shell in it     .16.1 the enclosing namespace, .16.2 the program
//! 198.18.17.0/24    a shell in that   ...
//! 198.18.17.16/28   the deepest
//! ```

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// Bits per level of nesting.
const LEVEL: u8 = 4;
/// The longest prefix in use.
const MAX_PREFIX_LENGTH: u8 = 28;

/// The addresses of one shell and of the shells in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    base: u32,
    length: u8,
}

/// The machine outside, as seen from every shell.
pub(super) const OUTSIDE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Its name.
pub(super) const OUTSIDE_NAME: &str = "outside.narrows";

impl Prefix {
    /// The prefix of a shell that is not nested.
    pub(super) const OUTERMOST: Prefix = Prefix {
        base: 0xc612_0000,
        length: 16,
    };

    /// First address.
    pub(super) fn first(self) -> Ipv4Addr {
        Ipv4Addr::from(self.base)
    }

    /// Number of leading bits that all its addresses share.
    pub(super) const fn length(self) -> u8 {
        self.length
    }

    /// The far end of the emulated path.
    pub(super) fn far(self) -> Ipv4Addr {
        Ipv4Addr::from(self.base + 1)
    }

    /// The program.
    pub(super) fn inside(self) -> Ipv4Addr {
        Ipv4Addr::from(self.base + 2)
    }

    /// The `number`th shell (from 1) started in this one; `None` if there is no room for it.
    pub(super) fn child(self, number: u32) -> Option<Prefix> {
        let length = self.length + LEVEL;
        let fits = (1..1 << LEVEL).contains(&number) && length <= MAX_PREFIX_LENGTH;
        fits.then(|| Prefix {
            base: self.base + (number << (32 - length)),
            length,
        })
    }

    /// True if an address belongs to a shell.
    pub(super) fn contains(self, address: Ipv4Addr) -> bool {
        (address.to_bits() ^ self.base) >> (32 - u32::from(self.length)) == 0
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first(), self.length)
    }
}

impl FromStr for Prefix {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (base, length) = text.split_once('/').ok_or(())?;
        let base = base.parse::<Ipv4Addr>().map_err(drop)?;
        let length = length.parse().map_err(drop)?;
        let outermost = Prefix::OUTERMOST;
        let sane = (outermost.length..=MAX_PREFIX_LENGTH).contains(&length)
            && (length - outermost.length).is_multiple_of(LEVEL)
            && outermost.contains(base)
            && base.to_bits().trailing_zeros() >= 32 - u32::from(length);
        let base = base.to_bits();
        if sane {
            Ok(Prefix { base, length })
        } else {
            Err(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_in_shells_never_share_an_address() {
        let mut all = vec![Prefix::OUTERMOST];
        let mut next = 0;
        while let Some(&prefix) = all.get(next) {
            all.extend((1..16).filter_map(|number| prefix.child(number)));
            next += 1;
        }
        assert_eq!(all.len(), 1 + 15 + 15 * 15 + 15 * 15 * 15);
        let mut used: Vec<Ipv4Addr> = all.iter().flat_map(|p| [p.far(), p.inside()]).collect();
        used.sort();
        used.dedup();
        assert_eq!(used.len(), 2 * all.len());
        for prefix in &all {
            assert_eq!(prefix.to_string().parse(), Ok(*prefix));
            assert!(Prefix::OUTERMOST.contains(prefix.inside()));
        }
        assert_eq!(Prefix::OUTERMOST.far(), OUTSIDE);
    }

    #[test]
    fn other_texts_are_no_prefixes() {
        for text in [
            "",
            "1",
            "198.18.0.0",
            "198.18.0.0/15",
            "198.18.0.0/17",
            "198.18.1.0/20",
            "198.18.0.0/32",
            "10.0.0.0/16",
            "198.19.0.0/16",
            "198.18.16.0/20x",
        ] {
            assert_eq!(text.parse::<Prefix>(), Err(()), "{text}");
        }
    }
}
