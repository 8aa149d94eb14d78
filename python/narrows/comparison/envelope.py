"""The performance envelopes of two implementations of one scheme, and their overlap.

A run is divided into windows of ten round trips, and each window is a point of delay and throughput. The
convex hull of the points, without the 5 % that are farthest from their middle, is the performance envelope;
*conformance* is the share of the points of both implementations that lie in the envelope of the other one: 1
for the same behaviour and 0 for nothing in common. The measure is that of Mishra, Lim and Leong,
"Understanding Speciation in QUIC Congestion Control" (IMC 2022), and Mishra and Leong, "Containing the
Cambrian Explosion in QUIC Congestion Control" (IMC 2023), with the constants of their published code. Two
things differ: distances from the middle are measured in units of the standard deviation, since milliseconds
and Mbit/s can't be added, and the points of all valid runs are pooled. In addition, `overlap` is the area
that both envelopes share divided by the area of their union.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from narrows.comparison.sides import Pairing, Sample
from narrows.documents.comparison import Envelope, EnvelopeSide
from narrows.errors import DataError

Floats = NDArray[np.float64]

#: The length of a window in round trips.
ROUND_TRIPS = 10
#: The envelope surrounds this share of the points, those nearest to their middle.
KEPT = 0.95
#: With fewer points a hull is not meaningful.
FEWEST_POINTS = 10
#: The length of windows when no round trip is known.
_DEFAULT_WINDOW_NS = 500_000_000


def envelopes(pairing: Pairing, flow: int | None = None) -> Envelope:
    """The envelopes of both sides of a pairing, of one flow or of all flows under test: `conformance`,
    `overlap`, the middle and number of points of both sides, and their hulls as corners of delay (ns) and
    throughput (bit/s). If there is none, `absent` has the reason. Raises `DataError` if a record can't be
    read.
    """
    window = window_ns(pairing)

    def absent(why: str) -> Envelope:
        return Envelope(title=pairing.title, sides=_sides(pairing), schemes=_schemes(pairing), absent=why)

    clouds = [_points(sample, window, flow) for sample in (pairing.base, pairing.other)]
    for sample, cloud in zip((pairing.base, pairing.other), clouds, strict=True):
        if cloud is None:
            return absent(f"the records of {sample.scheme} in {sample.side.name} have no packets")
        if len(cloud) < FEWEST_POINTS:
            return absent(f"{len(cloud)} windows of {window / 1e6:g} ms are too few for an envelope")
    kept = [nearest(cloud) for cloud in clouds if cloud is not None]
    hulls = [hull(cloud) for cloud in kept]
    middles = [cloud.mean(axis=0) for cloud in kept]
    return Envelope(
        title=pairing.title,
        sides=_sides(pairing),
        schemes=_schemes(pairing),
        window_ns=window,
        conformance=conformance(*kept),
        overlap=overlap(*hulls),
        base=_side(kept[0], middles[0], hulls[0]),
        other=_side(kept[1], middles[1], hulls[1]),
    )


def _sides(pairing: Pairing) -> tuple[str, str]:
    return pairing.base.side.name, pairing.other.side.name


def _schemes(pairing: Pairing) -> tuple[str, str]:
    return pairing.base.scheme, pairing.other.scheme


def _side(points: Floats, middle: Floats, corners: Floats) -> EnvelopeSide:
    return EnvelopeSide(
        points=len(points),
        delay_ns=float(middle[0]),
        throughput_bps=float(middle[1]),
        hull=[(float(delay), float(rate)) for delay, rate in corners],
    )


def window_ns(pairing: Pairing) -> int:
    """Ten round trips of the base's path, without queueing."""
    settings = pairing.base.side.settings_of(pairing.base.scheme)
    extra = max((flow.extra_rtt_ns for flow in settings.flows), default=0)
    return ROUND_TRIPS * (settings.base_rtt_ns + extra) or _DEFAULT_WINDOW_NS


def windows(
    arrived_ns: NDArray[np.int64], sent_ns: NDArray[np.int64], size_bytes: Floats, window: int
) -> Floats:
    """The points of one flow, as columns of shape `(n, 2)`: mean one-way delay (ns) and throughput (bit/s) of
    the packets that arrived in each whole window between the first and the last arrival. Windows without an
    arrival have no delay and are omitted.
    """
    if not len(arrived_ns):
        return np.empty((0, 2))
    place = (arrived_ns - arrived_ns.min()) // window
    # The last window is incomplete.
    whole = place < place.max()
    place, count = place[whole], int(place.max())
    packets = np.bincount(place, minlength=count).astype(np.float64)
    delay = np.bincount(place, (arrived_ns - sent_ns)[whole].astype(np.float64), minlength=count)
    size = np.bincount(place, size_bytes[whole], minlength=count)
    there = packets > 0
    return np.column_stack([delay[there] / packets[there], size[there] * 8e9 / window])


def nearest(points: Floats) -> Floats:
    """The points without the 5 % farthest from their middle, in units of their standard deviation."""
    spread = points.std(axis=0)
    scaled = (points - points.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    order = np.argsort((scaled**2).sum(axis=1), kind="stable")
    return points[np.sort(order[: int(len(points) * KEPT)])]


def hull(points: Floats) -> Floats:
    """The corners of the convex hull of points of shape `(n, 2)`, counterclockwise, by Andrew's monotone
    chain (1979); one corner if all points are the same, two if they lie on a line."""
    ordered = np.unique(points, axis=0)
    if len(ordered) < 3:
        return ordered
    chains = [_chain(ordered), _chain(ordered[::-1])]
    return np.array([*chains[0][:-1], *chains[1][:-1]])


def _chain(ordered: Floats) -> list[Floats]:
    corners: list[Floats] = []
    for point in ordered:
        while len(corners) > 1 and _turn(corners[-2], corners[-1], point) <= 0:
            corners.pop()
        corners.append(point)
    return corners


def _turn(first: Floats, second: Floats, third: Floats) -> float:
    """Positive for a turn to the left."""
    one, two = second - first, third - first
    return float(one[0] * two[1] - one[1] * two[0])


def conformance(first: Floats, second: Floats) -> float:
    """The share of the points of both clouds that lie in the hull of the other one, or on its edge."""
    inside = int(_inside(first, hull(second)).sum()) + int(_inside(second, hull(first)).sum())
    return inside / (len(first) + len(second))


def _inside(points: Floats, corners: Floats) -> NDArray[np.bool_]:
    """True for points in a hull of any number of corners, up to rounding."""
    size = np.ptp(np.concatenate([points, corners]), axis=0)
    scale = np.where(size > 0, size, 1.0)
    scaled, edges = points / scale, corners / scale
    if len(edges) == 1:
        near: NDArray[np.bool_] = (np.abs(scaled - edges[0]) < 1e-12).all(axis=1)
        return near
    start, along = edges, np.roll(edges, -1, axis=0) - edges
    apart = scaled[:, None, :] - start[None, :, :]
    left = along[None, :, 0] * apart[:, :, 1] - along[None, :, 1] * apart[:, :, 0]
    length = np.maximum(np.hypot(along[:, 0], along[:, 1]), 1e-300)
    within = np.asarray((left / length >= -1e-12).all(axis=1))
    if len(edges) == 2:
        # A line segment has two sides, on which no point lies; points beyond its ends are outside.
        share = (apart[:, 0] * along[0]).sum(axis=1) / (along[0] ** 2).sum()
        within &= (share >= -1e-12) & (share <= 1 + 1e-12)
    return within


def overlap(first: Floats, second: Floats) -> float | None:
    """The area that two hulls share divided by the area of their union; None if one of them has no area."""
    areas = [area(first), area(second)]
    if not min(areas) > 0:
        return None
    shared = area(intersection(first, second))
    return float(shared / (sum(areas) - shared))


def area(corners: Floats) -> float:
    """The area of a polygon with its corners counterclockwise (the shoelace formula)."""
    if len(corners) < 3:
        return 0.0
    moved = corners - corners[0]
    x, y = moved[:, 0], moved[:, 1]
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2)


def intersection(first: Floats, second: Floats) -> Floats:
    """The corners of the intersection of two convex polygons (Sutherland and Hodgman, 1974); none if they are
    disjoint.
    """
    result = list(first)
    for start, end in zip(second, np.roll(second, -1, axis=0), strict=True):
        clipped: list[Floats] = []
        for here, there in zip(result, [*result[1:], *result[:1]], strict=True):
            at_here, at_there = _turn(start, end, here), _turn(start, end, there)
            if at_here >= 0:
                clipped.append(here)
            if (at_here > 0 > at_there) or (at_here < 0 < at_there):
                clipped.append(here + (there - here) * (at_here / (at_here - at_there)))
        result = clipped
    return np.array(result) if result else np.empty((0, 2))


def _points(sample: Sample, window: int, flow: int | None) -> Floats | None:
    """The points of all valid runs of a scheme; None if no record has packets."""
    tested = {
        item.number: not item.is_forward
        for item in sample.side.settings_of(sample.scheme).flows
        if not item.background and flow in (None, item.number)
    }
    from narrows.campaign.series import read_packets

    clouds = []
    for run in sample.runs.values():
        cell = sample.side.folder.record_dir(run.cell)
        try:
            packets = read_packets(cell)
        except (ValueError, OSError) as error:
            raise DataError(f"{cell}: its packets can't be read: {error}") from None
        if packets is None:
            continue
        for number, backward in tested.items():
            mine = packets.of_flow(number, "backward" if backward else "forward") & (packets.arrived_ns >= 0)
            sizes = packets.size_bytes[mine].astype(np.float64)
            clouds.append(windows(packets.arrived_ns[mine], packets.sent_ns[mine], sizes, window))
    return np.concatenate(clouds) if clouds else None
