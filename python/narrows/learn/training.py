"""A training and its folder.

recipe.yaml        the recipe
training.json      seed, version
log.csv            one line for each round
state.bin, rows/   the state after the latest round, for --resume
model.safetensors  the best model so far
card.md, card.png  its model card with a map, at the end

Each file is replaced as a whole, so that a training killed at any moment loses one round.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from narrows import __version__
from narrows._native import Training
from narrows.documents.components import TRAINED_BY
from narrows.errors import DataError, NarrowsError, UsageError, reason
from narrows.files import read_whole
from narrows.learn.recipe import Recipe, read_recipe, with_rounds
from narrows.locks import FolderLock
from narrows.models.store import save

FORMAT = "narrows/training/1"
RECIPE, HEADER, LOG, STATE, ROWS = "recipe.yaml", "training.json", "log.csv", "state.bin", "rows"
MODEL, CARD = "model.safetensors", "card.md"
#: Meanings of the scores of schemes that are not trained by imitation.
_SCORES = {"aurora": "mean reward per decision", "remy": "log2 of the objective"}
#: Rows of one round are far below this.
_MOST_BYTES = 1 << 32


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """`training.json`."""

    format: str
    #: The name of the recipe.
    recipe: str
    seed: int
    #: The version of Narrows that began the training: others simulate slightly different paths.
    narrows: str
    #: The name of the trainer in the model's metadata.
    trained_by: str | None = None


class LogRow(msgspec.Struct, frozen=True):
    """The column of log.csv that all methods have."""

    round: int


@dataclass
class Run:
    """A training that makes rounds and keeps its files."""

    folder: Path
    recipe: Recipe
    header: Header
    threads: int
    inner: Training
    lock: FolderLock

    def close(self) -> None:
        """Lets others write to the folder."""
        self.lock.close()

    @property
    def score(self) -> str:
        """The score of the best model so far, in words."""
        score = self.inner.score
        if score is None:
            return "not validated"
        unit = _SCORES.get(self.recipe.scheme or "", "log2 of the expert's power")
        return f"{score:+.3f} {unit}"

    @property
    def notes(self) -> list[tuple[str, str]]:
        """Metadata of the model."""
        digest = hashlib.sha256(self.recipe.text.encode()).hexdigest()
        notes = [
            ("recipe", self.header.recipe),
            ("recipe_sha256", digest),
            ("score", self.score),
            ("seed", str(self.header.seed)),
            ("version", self.header.narrows),
        ]
        if self.header.trained_by:
            notes.append((TRAINED_BY, self.header.trained_by))
        return notes

    def train(self, watch: Callable[[int], None]) -> None:
        """Makes the rounds that are left; `watch` receives the number of each."""
        while not self.inner.complete:
            text = self.inner.round(self.threads)
            row = msgspec.json.decode(text, type=LogRow)
            self._keep(row.round, text)
            watch(row.round)
        save(self.folder / MODEL, self.inner.model(self.notes))

    def _keep(self, number: int, text: str) -> None:
        kept = self.inner.rounds_kept
        if kept:
            save(self._rows(number), self.inner.latest_rows())
        save(self.folder / MODEL, self.inner.model(self.notes))
        _append_row(self.folder / LOG, number, text)
        # Last: a round without a state is made again.
        save(self.folder / STATE, self.inner.state())
        if kept and number > kept:
            self._rows(number - kept).unlink(missing_ok=True)

    def _rows(self, number: int) -> Path:
        return self.folder / ROWS / f"{number:06}.bin"


def begin(folder: Path, recipe: Recipe, seed: int, rounds: int | None, threads: int,
          trained_by: str | None) -> Run:  # fmt: skip
    """Begins a training in `folder`, which must not have one.

    Raises `NarrowsError` while another process trains there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NarrowsError(f"{folder}: can't be made: {reason(error)}") from None
    with _lock(folder) as lock:
        if (folder / HEADER).exists():
            raise UsageError(
                f"{folder}: has a training already; resume it with --resume, or choose another folder"
            )
        text = recipe.text if rounds is None else with_rounds(recipe.text, rounds)
        changed = recipe if rounds is None else _reread(recipe, text)
        header = Header(
            format=FORMAT, recipe=recipe.path.stem, seed=seed, narrows=__version__, trained_by=trained_by
        )
        run = Run(folder, changed, header, threads, _inner(changed, seed, threads), lock)
        save(folder / RECIPE, text.encode())
        save(folder / HEADER, msgspec.json.encode(header) + b"\n")
        return run


def resume(folder: Path, rounds: int | None, threads: int) -> Run:
    """Resumes the training in `folder` after its latest round.

    Raises `NarrowsError` while another process trains there.
    """
    if not (folder / HEADER).is_file():
        raise UsageError(f"{folder}: has no training to resume; leave out --resume to begin one")
    with _lock(folder) as lock:
        try:
            header = msgspec.json.decode(read_whole(folder / HEADER, "training"), type=Header)
        except msgspec.DecodeError as error:
            raise DataError(f"{folder / HEADER}: {error}") from None
        recipe = read_recipe(folder / RECIPE)
        if rounds is not None and rounds != recipe.rounds:
            raise UsageError(
                f"--rounds {rounds}: the training has {recipe.rounds} rounds, and its schedule depends on"
                " them; begin another one"
            )
        state = rows = None
        if (folder / STATE).is_file():
            state = read_whole(folder / STATE, "state", _MOST_BYTES)
            paths = sorted((folder / ROWS).glob("*.bin")) if (folder / ROWS).is_dir() else []
            rows = [(int(path.stem), read_whole(path, "rows", _MOST_BYTES)) for path in paths]
        inner = _inner(recipe, header.seed, threads, state, rows)
        return Run(folder, recipe, header, threads, inner, lock)


@contextmanager
def _lock(folder: Path) -> Iterator[FolderLock]:
    """The lock of a folder, which is released if the block fails."""
    lock = FolderLock(folder, "training")
    try:
        yield lock
    except BaseException:
        lock.close()
        raise


def _reread(recipe: Recipe, text: str) -> Recipe:
    from narrows.scenario.yaml_tree import parse

    return Recipe(recipe.path, text, parse(text, str(recipe.path)))


def _inner(recipe: Recipe, seed: int, threads: int, state: bytes | None = None,
           rows: list[tuple[int, bytes]] | None = None) -> Training:  # fmt: skip
    try:
        return Training(recipe.to_json(), seed, threads, state, rows)
    except ValueError as error:
        raise DataError(recipe.locate(str(error))) from None


def _append_row(path: Path, number: int, text: str) -> None:
    """Adds the row of round `number`; a row that a killed training left for it is replaced."""
    columns: dict[str, float | None] = json.loads(text)
    lines = read_whole(path, "log").decode().splitlines() if path.exists() else [",".join(columns)]
    lines = lines[:number]
    lines.append(",".join("" if value is None else repr(value) for value in columns.values()))
    save(path, ("\n".join(lines) + "\n").encode())
