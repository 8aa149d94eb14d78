"""Indigo's and Muses' networks in the checkpoints published by their authors."""

from __future__ import annotations

import re
from pathlib import Path

from narrows.errors import DataError
from narrows.models.checkpoint import tensors
from narrows.models.format import Array

#: Kind of model by the inputs of its network: features and the last of five actions.
KINDS = {9: "indigo", 11: "muses"}

_LAYER = re.compile(r"(?:cell_(?P<index>[0-9]{1,2})/)?basic_lstm_cell/(?P<part>kernel|bias)$")
_OUTPUT = re.compile(r"fully_connected/(?P<part>weights|biases)$")
#: Checkpoints of several workers contain a network of each; this one is their common network.
_SHARED = "global/"


def arrays(prefix: Path) -> tuple[str, dict[str, Array]]:
    """Kind and arrays of the network in a checkpoint; raises `DataError` if there is none."""
    every = tensors(prefix)
    shared = {name: tensor for name, tensor in every.items() if name.startswith(_SHARED)} or every
    result: dict[str, Array] = {}
    for name, tensor in shared.items():
        if match := _OUTPUT.search(name):
            result["output_weights" if match["part"] == "weights" else "output_bias"] = tensor
        elif match := _LAYER.search(name):
            result[f"{match['part']}{int(match['index'] or 0)}"] = tensor
    if "kernel0" not in result or "output_weights" not in result:
        listed = ", ".join(sorted(every)) or "nothing"
        raise DataError(f"the checkpoint has no network of LSTM cells with an output; it has {listed}")
    units = result["output_weights"].shape[0]
    inputs = result["kernel0"].shape[0] - units
    if inputs not in KINDS:
        raise DataError(
            f"its network has {inputs} inputs; Indigo's have 9 and Muses' 11, and others are not known"
        )
    order = sorted(result, key=lambda name: (not name.startswith("output"), name[-1], name))
    return KINDS[inputs], {name: result[name] for name in order}
