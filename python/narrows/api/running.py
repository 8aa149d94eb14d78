"""Running scenarios from a program or notebook: `narrows.run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows.errors import UsageError

if TYPE_CHECKING:
    from narrows.api.campaign import Campaign
    from narrows.scenario import Loaded, Override


def run(
    scenario: str | PathLike[str] | Mapping[str, Any],
    output: str | PathLike[str] | None = None,
    *,
    where: str | None = None,
    schemes: Sequence[str | Mapping[str, Any]] | str | None = None,
    runs: int | None = None,
    seed: int | None = None,
    time: str | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as on the command line
    resume: bool = False,
    report: bool = False,
    progress: bool = True,
) -> Campaign:
    """Runs a scenario, or its missing cells, and returns the campaign.

    `scenario` is a file, the name of a shipped scenario, its text, or the same as a dictionary. The other
    arguments are those of `narrows run`: the folder of the results (by default a new one below `results/`; a
    folder that contains this campaign is completed), the plane, schemes, number of runs, seed and duration
    (`"30 s"`), and `set`, other keys by their addresses (`{"path.forward.0.rate": "5 Mbit/s"}`). `report`
    writes report.html and report.pdf as well. `progress` shows the progress on standard error.

    Raises `narrows.NarrowsError` with one sentence if the scenario is wrong, the machine can't run it, or it
    is interrupted (finished cells are kept). Runs that fail or are invalid, and expectations that don't hold,
    raise nothing; `Campaign.verdicts` and `Campaign.expectations` have them.
    """
    import io

    from rich.console import Console

    from narrows.api.campaign import Campaign
    from narrows.campaign.run import run_campaign
    from narrows.console import stderr_console

    changes = _changes(where, schemes, runs, seed, time, set or {})
    console = stderr_console() if progress else Console(file=io.StringIO())
    finished = run_campaign(
        _load(scenario, changes),
        None if output is None else Path(output),
        resume=resume,
        argv=["narrows.run"],
        console=console,
        quiet=not progress,
    )
    if report:
        from narrows.report import build

        build(finished.folder.path, pdf=True)
    return Campaign(finished.folder.path)


def _load(scenario: str | PathLike[str] | Mapping[str, Any], changes: list[Override]) -> Loaded:
    from narrows.scenario.loading import load, load_text

    if isinstance(scenario, Mapping):
        import yaml

        try:
            text = yaml.safe_dump(_plain(scenario), sort_keys=False, allow_unicode=True)
        except yaml.YAMLError:
            raise UsageError("a scenario has keys, lists, texts and numbers only") from None
        return load_text(text, changes)
    if isinstance(scenario, str) and "\n" in scenario:
        return load_text(scenario, changes)
    return load(str(scenario), changes)


def _plain(value: Any) -> Any:
    """The value with plain dictionaries and lists in place of other mappings, tuples and paths."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, PathLike):
        return str(value)
    return value


def _changes(
    where: str | None,
    schemes: Sequence[str | Mapping[str, Any]] | str | None,
    runs: int | None,
    seed: int | None,
    time: str | None,
    given: Mapping[str, Any],
) -> list[Override]:
    from narrows.scenario.overrides import Override, split_list

    changes = []
    for path, value in given.items():
        changes.append(Override(f"set {path}", path, value if isinstance(value, str) else _yaml(value)))
    for name, path, value in (
        ("where", "where", where),
        ("runs", "runs", runs),
        ("seed", "seed", seed),
        ("time", "duration", time),
    ):
        if value is not None:
            changes.append(Override(name, path, str(value)))
    if schemes is not None:
        listed = split_list(schemes) if isinstance(schemes, str) else _yaml(schemes)
        changes.append(Override("schemes", "schemes", listed))
    return changes


def _yaml(value: Any) -> str:
    """A value on one line, in the notation of scenarios."""
    import yaml

    text = yaml.safe_dump(_plain(value), default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
