"""Explanations of what stays outside or near a tolerance, written by people who looked at the states.

By scheme and reference; they stand in the document below the comparison.
"""

REMARKS: dict[tuple[str, str], str] = {
    ("bbr1", "linux:bbr"): (
        "The windows agree, the queues of short paths do not: on 10 ms the kernel's are up to twice as "
        "long. The states of one flow of each on 50 Mbit/s, 10 ms, 2 BDP (20 s, alone) show why. Both "
        "hold windows of 100 to 118 packets and pace at 48 Mbit/s in the median; the link carries 48.3 "
        "Mbit/s of payload. But the kernel's estimate of the bandwidth, a maximum over ten round trips, "
        "reaches 49.6 Mbit/s in a twentieth of the samples, ours 49.0: it sends up to four packets at "
        "once, so that the rate at which a few of them are acknowledged is further off. While the "
        "estimate is above the link's rate the queue grows through all of a cycle's cruising, and on a "
        "path of 10 ms a surplus of 2 % for ten round trips is a fifth of a round trip's data. The mean "
        "of packets in flight is 64 (kernel) and 59 (ours)."
    ),
    ("lp", "bpf:lp"): (
        "Seven of twelve paths agree within 3 %. The others are of two kinds. On lossy paths with a "
        "window of a few dozen packets one run has few losses, and how they fall decides. On the paths "
        "with the least delay the rule itself is sensitive: TCP-LP yields when the smoothed delay exceeds "
        "the smallest one by 15 % of the range seen, there a fraction of a millisecond, and a processor "
        "that makes a sender or receiver wait that long does the same as a queue; ours reads one-way "
        "delays in a program that gets to wait more often, the kernel's reads round-trip times."
    ),
}
