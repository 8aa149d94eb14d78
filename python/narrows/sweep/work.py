"""The work of a worker, wherever it runs: simulating cells and returning their summaries."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

from narrows import scratch

#: The default memory limit of a cell.
DEFAULT_MEMORY = 2_000_000_000


def simulate(
    texts: Sequence[str],
    files: Mapping[str, bytes],
    version: str,
    memory: int = DEFAULT_MEMORY,
    stop: Callable[[], bool] | None = None,
) -> list[str | None]:
    """The summary of each cell as JSON text (see `narrows._native.simulate_summaries`); `None` for cells
    skipped after `stop`. `files` are those that cells name. Raises `RuntimeError` on a worker of another
    version, whose numbers might differ.
    """
    from narrows import _native
    from narrows.scenario.registry import version_of_extensions

    if _native.version() != version.partition(" ")[0]:
        raise RuntimeError(
            f"the worker has narrows {_native.version()} and the sweep {version}; install that one there"
        )
    needed = " ".join(word for word in version.split() if "@" in word)
    if (own := version_of_extensions()) != needed:
        raise RuntimeError(
            f"the worker has the extensions {own or 'none'} and the sweep {needed or 'none'};"
            f" narrows extend add"
            " adds those of the sweep there"
        )
    words: list[str | None] = [None] * len(texts)

    def tell(index: int, text: str) -> None:
        words[index] = text

    with (
        scratch.working_folder("narrows-files") if files else contextlib.nullcontext() as folder,
    ):
        for name, content in files.items():
            assert folder is not None
            (folder / name).write_bytes(content)
        place = None if folder is None else str(folder)
        _native.simulate_summaries(list(texts), tell, memory=memory, threads=1, files_dir=place, stop=stop)
    return words
