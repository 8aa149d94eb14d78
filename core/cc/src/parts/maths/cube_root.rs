//! Cube roots with the same bits on every machine, unlike those of libraries.

/// The cube root of `x`, within one unit in the last place or two; 0 for negative numbers.
pub fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    // An exponent divided by three is within a factor of two of the root.
    let mut root = f64::from_bits(x.to_bits() / 3 + 0x2A9F_7893_0000_0000);
    for _ in 0..5 {
        root = (2.0 * root + x / (root * root)) / 3.0;
    }
    root
}

/// The cube root of `x` as Linux net/ipv4/tcp_cubic.c approximates it: a first guess that is a few
/// percent too large, one Newton step in whole numbers, and 341/1024 for a third. Up to 0.2 % off.
pub fn rough_cube_root(x: u64) -> u64 {
    let bits = u64::BITS - x.leading_zeros();
    if bits < 7 {
        return cube_root(x as f64).round() as u64;
    }
    // In base 8, every digit below the first two is worth a factor of two in the root.
    let digits = (bits - 1) / 3 - 1;
    let leading = (x >> (3 * digits)) as f64;
    let guess = ((64.6 * cube_root(leading + 1.0)).round() as u64) << digits >> 6;
    let sum = 2 * guess + x / (guess * (guess - 1));
    (sum * 341) >> 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cube_root_is_one() {
        for x in [1e-9, 0.3, 1.0, 8.0, 27.0, 750.0, 1e12] {
            let root = cube_root(x);
            assert!((root * root * root / x - 1.0).abs() < 1e-14, "{x}: {root}");
        }
        assert_eq!(cube_root(0.0), 0.0);
        assert_eq!(cube_root(-5.0), 0.0);
    }

    #[test]
    fn the_rough_one_is_near() {
        for x in [0, 1, 8, 27, 63] {
            assert_eq!(rough_cube_root(x), cube_root(x as f64).round() as u64);
        }
        let mut x = 1u64 << 20;
        while x < 1 << 52 {
            let ratio = rough_cube_root(x) as f64 / cube_root(x as f64);
            // One unit of a root above 100 is up to another percent.
            let unit = 1.0 / cube_root(x as f64);
            assert!((ratio - 1.0).abs() < 0.003 + unit, "{x}: {ratio}");
            x += x / 7;
        }
    }
}
