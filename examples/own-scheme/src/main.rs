//! Prints the goodput of AIMD alone and beside schemes of Narrows.

use narrows_cc::schemes;
use own_scheme::{aimd, simulate};

fn main() {
    println!("{:<16}{:>14}{:>14}", "against", "aimd, Mbit/s", "other, Mbit/s");
    println!("{:<16}{:>14.2}", "nobody", simulate(&[&aimd::SCHEME], 1)[0]);
    for other in ["reno", "cubic", "vegas", "copa", "bbr3"] {
        let other = schemes::find(other).expect("a scheme of Narrows");
        let goodput = simulate(&[&aimd::SCHEME, other], 1);
        println!("{:<16}{:>14.2}{:>14.2}", other.name, goodput[0], goodput[1]);
    }
}
