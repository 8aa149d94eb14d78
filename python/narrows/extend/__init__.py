"""Extensions without a fork: queues, links, rates, schemes, traffic and metrics of the user's own crates.

`kinds` lists what a crate may add and where it goes, `crates` reads a crate, `sources` finds the sources of
Narrows, `workspace` writes a copy of them with the crates inside, `building` compiles it, `sets` keeps the
results, and `new` writes a crate to start from. `narrows.extended` puts a set into use.
"""
