"""Designs of experiments: the points of a sweep as shares of its laws.

A design returns `points x keys` shares in [0, 1). All randomness is SHA-256 of
`narrows/sweep/1:SEED:KEY:...`, so the same sweep has the same points with every version of every library, and
a larger number of `random` and `sobol` points includes the previous ones.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence

GRID, LIST, RANDOM, LATIN, SOBOL = "grid", "list", "random", "latin-hypercube", "sobol"
DESIGNS = (GRID, LIST, RANDOM, LATIN, SOBOL)


def chance(seed: int, key: str, number: int | str) -> float:
    """53 bits of the hash of these, in [0, 1)."""
    digest = hashlib.sha256(f"narrows/sweep/1:{seed}:{key}:{number}".encode()).digest()
    return float((int.from_bytes(digest[:8], "big") >> 11) / 2**53)


def random_points(keys: Sequence[str], seed: int) -> Iterator[tuple[float, ...]]:
    """An endless sequence of independent points."""
    for number in itertools.count():
        yield tuple(chance(seed, key, number) for key in keys)


def latin_hypercube(keys: Sequence[str], seed: int, count: int) -> Iterator[tuple[float, ...]]:
    """`count` points, such that each key has one in every `count`-th part of its range (McKay, Beckman and
    Conover 1979).
    """
    orders = {
        key: sorted(range(count), key=lambda item, key=key: chance(seed, key, f"order {item}"))  # type: ignore[misc]
        for key in keys
    }
    for number in range(count):
        yield tuple((orders[key][number] + chance(seed, key, number)) / count for key in keys)


def sobol(keys: Sequence[str], seed: int, most: int) -> Iterator[tuple[float, ...]]:
    """At most `most` points of Sobol's sequence (directions of Joe and Kuo 2008, from SciPy), shifted modulo
    1 by a vector of the seed (Cranley and Patterson 1976), which preserves the low discrepancy.

    Raises `UnavailableError` if SciPy is not installed, `ValueError` for more keys than SciPy has directions.
    """
    from narrows.errors import UnavailableError

    try:
        from scipy.stats import qmc
    except ImportError:
        raise UnavailableError(
            "Sobol's sequence needs SciPy, which is not installed; pip install 'narrows[sweep]', or choose"
            f" the design {LATIN}"
        ) from None
    sequence = qmc.Sobol(len(keys), scramble=False)
    shifts = [chance(seed, key, "shift") for key in keys]
    done = 0
    while done < most:
        # The sequence is balanced only in powers of two.
        block = sequence.random(min(1024, 1 << max(done - 1, 1).bit_length()) if done else 2)
        for point in block[: most - done]:
            yield tuple((float(share) + shift) % 1.0 for share, shift in zip(point, shifts, strict=True))
        done += len(block)
