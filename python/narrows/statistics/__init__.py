"""Statistics over runs: what one sample of runs says (`runs`), what two say about each other (`differences`),
what many such pairs say at once (`permutation`), and which order all of this leaves (`ranking`)."""
