//! Prints the goodput of AIMD alone and beside schemes of Narrows; asked by `narrows lab contest`, simulates what that
//! wants to see of it.

use narrows_cc::schemes;
use own_scheme::{aimd, simulate};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = narrows_sim::submission(&aimd::SCHEME, &words) {
        return code;
    }
    println!("{:<16}{:>14}{:>14}", "against", "aimd, Mbit/s", "other, Mbit/s");
    println!("{:<16}{:>14.2}", "nobody", simulate(&[&aimd::SCHEME], 1)[0]);
    for other in ["reno", "cubic", "vegas", "copa", "bbr3"] {
        let other = schemes::find(other).expect("a scheme of Narrows");
        let goodput = simulate(&[&aimd::SCHEME, other], 1);
        println!("{:<16}{:>14.2}{:>14.2}", other.name, goodput[0], goodput[1]);
    }
    ExitCode::SUCCESS
}
