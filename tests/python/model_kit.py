"""Small synthetic models in published formats: rule tables in Remy's format, checkpoints in TensorFlow's."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from narrows.models import remy
from narrows.models.checkpoint import crc32c, mask_checksum
from narrows.models.format import Array, write

#: The upper end of every signal.
END = 163_840.0


def varint(value: int) -> bytes:
    """A variable-length number."""
    found = b""
    while value >= 0x80:
        found, value = found + bytes([value & 0x7F | 0x80]), value >> 7
    return found + bytes([value])


def field(number: int, content: bytes) -> bytes:
    """A message, or a word, inside a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def box(number: int, lower: list[float], upper: list[float]) -> bytes:
    """A domain with as many signals as bounds."""
    points = (b"".join(double(21 + k, value) for k, value in enumerate(point)) for point in (lower, upper))
    return field(number, b"".join(field(11 + k, point) for k, point in enumerate(points)))


def leaf(lower: list[float], upper: list[float], increment: int, multiple: float, spacing: float) -> bytes:
    """A node of the tree with one rule."""
    zigzag = increment << 1 if increment >= 0 else (-increment << 1) - 1
    rule = varint(31 << 3) + varint(zigzag) + double(32, multiple) + double(33, spacing)
    return field(3, rule + box(34, lower, upper))


def table(signals: int) -> bytes:
    """Two rules: round trips below twice the smallest, and others."""
    low, high = [0.0] * signals, [END] * signals
    middle = [*high[:2], 2.0, *high[3:]]
    tree = field(2, leaf(low, middle, 7, 0.5, 0.25))
    tree += field(2, box(1, low, high) + leaf([0.0, 0.0, 2.0, *low[3:]], high, -3, 1.0, 1.5))
    # Settings of the optimiser, which the importer ignores.
    return box(1, low, high) + tree + field(5, field(51, double(41, 0.0)))


TEXT = """# a table in the text form
domain { lower { rec_send_ewma: 0 rec_rec_ewma: 0 rtt_ratio: 0 slow_rec_rec_ewma: 0 }
         upper { rec_send_ewma: 163840 rec_rec_ewma: 163840 rtt_ratio: 163840 slow_rec_rec_ewma: 163840 } }
children {
  leaf { window_increment: 7 window_multiple: 0.5 intersend: 0.25
    domain { lower { rec_send_ewma: 0 rec_rec_ewma: 0 rtt_ratio: 0 slow_rec_rec_ewma: 0 }
             upper { rec_send_ewma: 163840 rec_rec_ewma: 163840 rtt_ratio: 2 slow_rec_rec_ewma: 163840 } } }
}
children {
  leaf { window_increment: -3 window_multiple: 1 intersend: 1.5
    domain { lower { rec_send_ewma: 0 rec_rec_ewma: 0 rtt_ratio: 2 slow_rec_rec_ewma: 0 }
             upper { rec_send_ewma: 163840 rec_rec_ewma: 163840 rtt_ratio: 163840
                     slow_rec_rec_ewma: 163840 } } }
}
optimizer { window_increment { min_value: 0 max_value: 256 } }
"""


def tensors(inputs: int, units: int, layers: int) -> dict[str, Array]:
    """A network with TensorFlow's names for its parts; all numbers differ."""
    chance = np.random.default_rng(inputs * 100 + layers)
    shapes: dict[str, tuple[int, ...]] = {
        "cnt": (),
        "fully_connected/biases": (5,),
        "fully_connected/weights": (units, 5),
    }
    for layer in range(layers):
        cell = f"rnn/multi_rnn_cell/cell_{layer}/basic_lstm_cell"
        shapes[f"{cell}/bias"] = (4 * units,)
        shapes[f"{cell}/kernel"] = ((units if layer else inputs) + units, 4 * units)
    return {name: chance.standard_normal(shape).astype("<f4") for name, shape in shapes.items()}


def _block(pairs: list[tuple[bytes, bytes]]) -> bytes:
    """Keys share a prefix with the previous one; there is a single restart at the beginning."""
    content, before = b"", b""
    for key, value in pairs:
        shared = 0
        while shared < min(len(key), len(before)) and key[shared] == before[shared]:
            shared += 1
        content += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        before = key
    return content + struct.pack("<II", 0, 1)


def checkpoint(folder: Path, parts: dict[str, Array], prefix: str = "global/", blocks: int = 2) -> Path:
    """Writes a checkpoint named `model` and returns its index."""
    folder.mkdir(parents=True, exist_ok=True)
    data, entries = b"", [(b"", varint(1 << 3) + varint(1))]
    for name in sorted(parts):
        content = parts[name].tobytes()
        shape = b"".join(field(2, varint(1 << 3) + varint(length)) for length in parts[name].shape)
        entry = varint(1 << 3) + varint(1) + field(2, shape)
        entry += varint(4 << 3) + varint(len(data)) + varint(5 << 3) + varint(len(content))
        entry += varint(6 << 3 | 5) + struct.pack("<I", mask_checksum(crc32c(content)))
        entries.append(((prefix + name).encode(), entry))
        data += content
    index, handles = b"", []

    def place(block: bytes) -> bytes:
        nonlocal index
        handle = varint(len(index)) + varint(len(block))
        index += block + b"\0" + struct.pack("<I", mask_checksum(crc32c(block + b"\0")))
        return handle

    size = -(-len(entries) // blocks)
    for start in range(0, len(entries), size):
        chunk = entries[start : start + size]
        handles.append((chunk[-1][0] + b"~", place(_block(chunk))))
    footer = place(_block([])) + place(_block(handles))
    index += footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
    (folder / "model.data-00000-of-00001").write_bytes(data)
    (folder / "model.index").write_bytes(index)
    return folder / "model.index"


def small_network(kind: str = "indigo", units: int = 2, notes: Mapping[str, str] | None = None) -> bytes:
    """A model file for Indigo or Muses that keeps its window: all scores are equal except that of "hold"."""
    inputs = {"indigo": 9, "muses": 11}[kind]
    return write(
        kind,
        {
            "output_bias": np.array([0, 0, 1, 0, 0], dtype="<f4"),
            "output_weights": np.zeros((units, 5), dtype="<f4"),
            "bias0": np.zeros(4 * units, dtype="<f4"),
            "kernel0": np.zeros((inputs + units, 4 * units), dtype="<f4"),
        },
        notes or {},
    )


def small_table(notes: Mapping[str, str] | None = None) -> bytes:
    """A model file for Remy with two rules."""
    return write(remy.KIND, remy.arrays(table(4)), notes or {})


def small_policy(notes: Mapping[str, str] | None = None) -> bytes:
    """A model file for Aurora that never changes its rate."""
    design = {"observation": "aurora", "step": "rtt", "action": "rate-factor", "layers": [{"kind": "dense"}]}
    arrays = {"kernel0": np.zeros((30, 1), dtype="<f4"), "bias0": np.zeros(1, dtype="<f4")}
    return write("aurora", arrays, {**(notes or {}), "policy": json.dumps(design)})


def small_model(scheme: str) -> bytes:
    """A model file for a scheme whose parameters have a default model."""
    return {"aurora": small_policy, "remy": small_table}.get(scheme, lambda: small_network(scheme))()


def ship(folder: Path) -> Path:
    """Writes small models under the names of those that come with Narrows."""
    folder.mkdir(parents=True)
    notes = {"trained_by": "Narrows", "recipe": "test", "seed": "1", "version": "0.1", "score": "0.95"}
    # The number of units tells them apart.
    for units, name in enumerate(("indigo", "indigo-1-128", "indigo-no-calib"), 2):
        (folder / f"{name}.safetensors").write_bytes(small_network(units=units, notes=notes))
    (folder / "muses.safetensors").write_bytes(small_network("muses", notes=notes))
    (folder / "aurora.safetensors").write_bytes(small_policy(notes))
    (folder / "tao.safetensors").write_bytes(small_table(notes))
    (folder / "indigo.md").write_text("# A card\n")
    return folder
