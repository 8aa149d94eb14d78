"""Behaviour cards: what a sender does, measured from the packets of its runs.

    probes (scenarios/identify)  ->  runs  ->  trace.py    packets, bytes in flight, rounds
                                              features     samples of single features, each from one run
                                              card.py      lines with intervals over events and runs
                                              differences  lines of two cards that differ

Nothing is read from the state of a sender, because programs and captures have none: bytes in flight are sent
less acknowledged bytes, as an observer beside the sender counts them.
"""
