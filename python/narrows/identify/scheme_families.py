"""Names and families of schemes: which implementations have one name, and which names no observer of packets
can tell apart on every path.

Both follow from the definitions of the algorithms (papers, RFCs, the heads of `core/cc/src/schemes`). A
family unites names whose rules for the window are equal, or differ in constants alone. One entry is younger
than the first results, which showed it: dctcp in the family of reno.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """Schemes with one law; `reason` says which, as a clause."""

    name: str
    members: tuple[str, ...]
    reason: str


FAMILIES = (
    Family(
        "reno",
        ("reno", "newreno", "dctcp"),
        "the window of RFC 5681; newreno repairs several losses of a window in another way, and dctcp differs"
        " behind queues that mark alone (RFC 8257, section 3.5)",
    ),
    Family(
        "cubic",
        ("cubic", "cubic2008", "quic-cubic"),
        "W = C (t - K)^3 + W_max with different constants and limits of growth",
    ),
    Family(
        "vegas", ("vegas",), "alpha to beta packets in the queue; the kernel's rule differs in the divisor"
    ),
    Family(
        "ledbat",
        ("ledbat", "utp"),
        "a queueing delay of 100 ms as the target of a proportional controller, with different gains",
    ),
    Family("bbr1", ("bbr1", "fillp-sheep"), "fillp-sheep is bbr1 with fewer acknowledgements"),
    Family("bbr3", ("bbr3", "bbr-draft"), "the published code and the specification of one machine"),
    Family(
        "vivace",
        ("vivace", "pcc-expr"),
        "one utility of rate, loss and growth of the delay, which is measured in two ways",
    ),
    Family("koho", ("koho", "koho-calibrated"), "one rule per acknowledgement with two sets of constants"),
)

#: Implementations with the name of their algorithm: the kernel's, and our transcriptions of the kernel's.
_ALIASES = {"linux:bbr": "bbr1", "cubic-linux": "cubic", "vegas-linux": "vegas"}
_PREFIXES = ("linux:", "bpf:")
_FAMILY_OF = {member: family for family in FAMILIES for member in family.members}


def name_of(scheme: str) -> str:
    """The name of a scheme: `linux:cubic`, `bpf:cubic2008` and native schemes have that of their algorithm.

    Parameters do not change a name: `{scheme: cubic, beta: 0.75}` is written as `cubic` here.
    """
    if scheme in _ALIASES:
        return _ALIASES[scheme]
    for prefix in _PREFIXES:
        scheme = scheme.removeprefix(prefix)
    return _ALIASES.get(scheme, scheme)


def family_of(name: str) -> str:
    """The family of a name; a scheme without relatives is alone in the family of its name."""
    family = _FAMILY_OF.get(name)
    return family.name if family is not None else name
