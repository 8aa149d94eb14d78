"""The film of Chromium's fake camera: a moving texture, with new noise in each frame.

Chromium's test picture is so simple that its encoder needs a tenth of the permitted rate, which would show
nothing about a congestion control.
"""

from __future__ import annotations

import random
from pathlib import Path

#: The film has this length and is repeated.
FRAMES = 30
#: Pixels of a grain of the texture, and how many of them a frame moves.
GRAIN, STEP = 16, 3
#: The part of the brightness that is noise, a number of its low bits.
NOISE = 0x0F


def shoot(path: Path, width: int, height: int, frame_rate: float) -> None:
    """Writes the film as Y4M, with the same content each time. Raises `OSError`."""
    chance = random.Random(1)
    moved = FRAMES * STEP
    rows = [_row(chance, width + moved) for _ in range((height + moved) // GRAIN + 1)]
    grey = bytes([128]) * (-(-width // 2) * -(-height // 2) * 2)
    low = int.from_bytes(bytes([NOISE]) * (width * height), "little")
    with path.open("wb") as film:
        film.write(
            f"YUV4MPEG2 W{width} H{height} F{round(frame_rate * 1000)}:1000 Ip A1:1 C420jpeg\n".encode()
        )
        for number in range(FRAMES):
            at = number * STEP
            lines = (rows[(line + at) // GRAIN][at : at + width] for line in range(height))
            picture = int.from_bytes(b"".join(lines), "little")
            noise = int.from_bytes(chance.randbytes(width * height), "little") & low
            film.write(b"FRAME\n" + (picture | noise).to_bytes(width * height, "little") + grey)


def _row(chance: random.Random, width: int) -> bytes:
    """A row of grains, whose low bits are free for the noise."""
    grains = (0x30 + (chance.randrange(0x90) & ~NOISE) for _ in range(width // GRAIN + 1))
    return b"".join(bytes([grain]) * GRAIN for grain in grains)[:width]
