"""The page of elements and its pictures, from the registries and the examples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows.reference.examples import BOTTLENECK, FAMILIES, Example
from narrows.scenario.declarations.reference import cell, describe_values, fill_template
from narrows.scenario.reference import parameters, short_form
from narrows.text import markdown_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from narrows.scenario.registry import Entry, Registry

_TEMPLATE = Path(__file__).with_name("elements.md.in")
#: Families of the registry, and the key that precedes an entry.
_KEYS = {"queues": "queue", "rates": "rate", "links": "link", "traffic": "traffic"}


def file_name(family: str, name: str) -> str:
    """The picture of an entry, below the page's folder."""
    return f"elements/{_KEYS[family]}-{name}.svg"


def markdown(registry: Registry) -> str:
    """The page."""
    parts = {"bottleneck": parameters(registry.bottleneck), "settings": _settings(registry)}
    for family in _KEYS:
        entries = _family(registry, family).values()
        parts[family] = "".join(_section(entry, family) for entry in entries)
    return fill_template(_TEMPLATE, parts)


def _settings(registry: Registry) -> str:
    """The settings of hosts, with what each is in the kernel and in simulation."""
    rows = [
        (
            f"`{setting.name}`",
            describe_values(setting),
            cell(setting.meaning),
            f"`{setting.sysctl}`" if setting.sysctl else "of the sockets or the device",
            cell(setting.mirrored) if setting.mirrored else "no effect",
            cell(setting.source),
        )
        for setting in registry.host_settings
    ]
    titles = ("setting", "allowed", "meaning", "in the kernel", "in simulation", "source")
    return markdown_table(titles, rows)


def _family(registry: Registry, family: str) -> dict[str, Entry]:
    result: dict[str, Entry] = getattr(registry, family)
    return result


def _section(entry: Entry, family: str) -> str:
    word, example = _KEYS[family], FAMILIES[family].get(entry.name)
    source = f" Source: {entry.source}." if entry.source else ""
    text = f"### {word} `{entry.name}`\n\n{entry.summary.rstrip('.')}.{source}\n\n"
    if example is not None:
        key = "" if family == "links" else f"{word}: "
        text += f"```yaml\n{key}{example.written}\n```\n\n"
        text += f"![{word} {entry.name}]({file_name(family, entry.name)})\n\n{example.shows}\n\n"
    text += short_form(entry)
    if entry.params:
        text += parameters(entry.params) + "\n"
    return text


def picture(family: str, name: str) -> str:
    """The picture of an entry, as SVG."""
    example = FAMILIES[family][name]
    title = f"{_KEYS[family]} {name}"
    if family == "traffic":
        return _traffic(example, title)
    if family == "rates":
        return _rate(example, title)
    return _packets(example, title, queue=family == "queues")


def _packets(example: Example, title: str, *, queue: bool) -> str:
    import numpy as np

    from narrows.reference.probe import play
    from narrows.reference.svg import Picture, round_up

    element = BOTTLENECK.replace("QUEUE", example.written) if queue else example.written
    packets = example.load.packets()
    fates = play(element, packets, example.changes)
    came = packets.time_ns.astype(np.float64) / 1e9
    spent = (fates.left_ns - packets.time_ns.astype(np.int64)) / 1e6
    out = fates.left_ns >= 0
    top = round_up(max(float(spent[out].max(initial=0.0)) * 1.02, 1.0))
    if example.view == "rate":
        bits = packets.size * 8e-6
        left_ns = np.concatenate([fates.left_ns[out], fates.copy_left_ns])
        edges, before = _means(packets.time_ns.astype(np.int64), bits, example)
        _, behind = _means(left_ns, np.concatenate([bits[out], bits[fates.copy_of]]), example)
        top = round_up(max(float(before.max()), float(behind.max())) * 1.1)
        drawn = Picture(example.seconds, top, "time (s)", "Mbit/s", title)
        drawn.steps(edges, before.tolist(), "two")
        drawn.steps(edges, behind.tolist(), "one")
    else:
        drawn = Picture(example.seconds, top, "time (s)", "inside (ms)", title)
        for flow, name in ((2, "two"), (1, "one")):
            mine = out & (packets.flow == flow)
            drawn.dots(zip(came[mine].tolist(), spent[mine].tolist(), strict=True), name)
    gone = fates.dropped_ns >= 0
    drawn.ticks((fates.dropped_ns[gone] / 1e9).tolist(), 0, "gone")
    touched = fates.marked | fates.corrupt | (out & (fates.dscp != packets.dscp))
    times = came[touched].tolist() + (fates.copy_left_ns / 1e9).tolist()
    drawn.ticks(times, 1, "touched")
    return drawn.text


def _means(
    times_ns: NDArray[np.int64], megabits: NDArray[np.floating[Any]], example: Example
) -> tuple[list[float], NDArray[np.floating[Any]]]:
    """Edges of bins (s) and mean rates in them (Mbit/s); a packet on an edge belongs to the later bin."""
    import numpy as np

    count = round(example.seconds * 1000 / example.bin_ms)
    bins = times_ns // (example.bin_ms * 1_000_000)
    inside = bins < count
    sums = np.bincount(bins[inside], weights=megabits[inside], minlength=count)
    edges = [index * example.bin_ms / 1000 for index in range(count + 1)]
    return edges, sums * (1000 / example.bin_ms)


def _rate(example: Example, title: str) -> str:
    import numpy as np

    from narrows.reference.probe import Packets, play
    from narrows.reference.svg import Picture, round_up

    # More than any of the examples can carry, all there from the start; small, so that bins are even.
    size, most_bps = 250, 25e6
    packets = Packets.at_once(round(most_bps * example.seconds / (8 * size)), size)
    left_ns = play(f"{{rate: {example.written}}}", packets).left_ns
    # Work is done before the instant at which it is seen: what leaves on an edge counts to the bin before.
    left_ns = left_ns[left_ns >= 0] - 1
    edges, rates = _means(left_ns, np.full(len(left_ns), size * 8e-6), example)
    drawn = Picture(example.seconds, round_up(float(rates.max()) * 1.05), "time (s)", "Mbit/s", title)
    drawn.steps(edges, rates.tolist(), "one")
    return drawn.text


def _traffic(example: Example, title: str) -> str:
    from narrows.reference.probe import simulate_load
    from narrows.reference.svg import Picture, round_up

    starts, rates = simulate_load(example.written, round(example.seconds), example.bin_ms)
    edges = [*starts.tolist(), float(starts[-1]) + example.bin_ms / 1000]
    top = round_up(float(rates.max()) / 1e6 * 1.05)
    drawn = Picture(example.seconds, top, "time (s)", "Mbit/s", title)
    drawn.steps(edges, (rates / 1e6).tolist(), "one")
    return drawn.text


def write(registry: Registry, folder: Path) -> list[Path]:
    """Writes the page and all pictures into a folder; pictures of what no longer exists are removed."""
    pictures = folder / "elements"
    pictures.mkdir(parents=True, exist_ok=True)
    files: dict[Path, Any] = {folder / "elements.md": markdown(registry)}
    for family in FAMILIES:
        for name in _family(registry, family):
            if name in FAMILIES[family]:
                files[folder / file_name(family, name)] = picture(family, name)
    for path in set(pictures.glob("*.svg")) - set(files):
        path.unlink()
    for path, text in files.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    return list(files)
