"""Modified folders of results: nothing leads out of them, and exchanged files are reported."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from campaign_kit import edited
from narrows.campaign import integrity, results
from narrows.campaign.store import CampaignFolder
from narrows.cli.all_commands import app
from narrows.errors import NarrowsError
from report_campaigns import Spec, write_campaign

BAD_IDS = [
    "../../../x",
    "..",
    ".",
    "",
    ".hidden",
    "a/b",
    "/etc",
    "a\nb",
    "x" * 300,
    7,
    None,
    ["a"],
    {},
]


def _call(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(done.exception, NarrowsError):
        return done.exception.exit_code, str(done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, " ".join(done.output.split())


def _edit(folder: Path, **entry: Any) -> None:
    path = folder / "campaign.json"
    document = json.loads(path.read_text())
    document["cells"][0].update(entry)
    path.write_text(json.dumps(document))


def _noted(folder: Path) -> None:
    """Records the digests, as a run does."""
    path = folder / "campaign.json"
    document = json.loads(path.read_text())
    for entry in document["cells"]:
        entry["digest"] = integrity.digest(folder / "cells" / entry["id"])
    path.write_text(json.dumps(document))
    opened = CampaignFolder.read(folder)
    results.write(opened, results.compute(opened))


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    folder = write_campaign(tmp_path / "deep" / "er" / "c", [Spec("cubic", 1), Spec("reno", 1, ("reno",))])
    _noted(folder)
    return folder


@pytest.mark.parametrize("bad", BAD_IDS, ids=repr)
@pytest.mark.parametrize("command", ["report", "show", "check", "export"])
def test_ids_are_names_of_folders(campaign: Path, tmp_path: Path, command: str, bad: Any) -> None:
    if isinstance(bad, str) and bad.startswith("../"):
        # The target of the link exists, and is a record.
        shutil.copytree(campaign / "cells" / "cubic-r1", campaign / "cells" / bad)
    _edit(campaign, id=bad)
    before = sorted(tmp_path.rglob("*"))
    words: Any = {"export": ["export", campaign, "--format", "pantheon", "-o", tmp_path / "out"]}.get(
        command, [command, campaign]
    )
    code, said = _call(*words)
    assert code == 3, said
    assert "is not a valid name of a folder" in said if isinstance(bad, str) else "id" in said, said
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"id": "reno-r1"}, "same id as an earlier one"),
        ({"run": "../../x"}, "run"),
        ({"run": True}, "run"),
        ({"scheme": ["x"]}, "scheme"),
        ({"state": "done"}, "has the state 'done'"),
        ({"digest": 5}, "digest"),
    ],
)
def test_entries_of_the_registry_are_complete(campaign: Path, entry: dict[str, Any], says: str) -> None:
    _edit(campaign, **entry)
    code, said = _call("show", campaign)
    assert (code, says in said) == (3, True), said


@pytest.mark.parametrize("part", ["cells", "files", "logs"])
def test_parts_that_lead_elsewhere_are_refused(campaign: Path, tmp_path: Path, part: str) -> None:
    elsewhere = tmp_path / "home"
    if part == "cells":
        (campaign / part).rename(elsewhere)
    else:
        elsewhere.mkdir()
    (elsewhere / ".ssh").mkdir()
    (campaign / part).symlink_to(elsewhere)
    for command in ("report", "show", "check"):
        code, said = _call(command, campaign)
        assert (code, "is a link to another place" in said) == (3, True), said
    assert (elsewhere / ".ssh").is_dir()


@pytest.mark.parametrize("name", ["run.json", "states.parquet", "queues.parquet", "packets.parquet"])
def test_files_of_another_cell_are_reported(campaign: Path, name: str) -> None:
    code, said = _call("check", campaign)
    assert code == 0, said
    ours, theirs = (campaign / "cells" / cell / name for cell in ("cubic-r1", "reno-r1"))
    keep, other = ours.read_bytes(), theirs.read_bytes()
    ours.write_bytes(other)
    theirs.write_bytes(keep)
    code, said = _call("check", campaign)
    assert code in (1, 3), said
    assert "its files are not those that the run left" in said
    code, said = _call("report", campaign)
    assert (code, "its files are not those that the run left" in said) == (3, True), said


def test_exchanged_cells_and_added_or_missing_files_are_reported(campaign: Path) -> None:
    cell = campaign / "cells" / "cubic-r1"
    (cell / "more").write_text("x")
    assert "not those" in _call("report", campaign)[1]
    (cell / "more").unlink()
    assert _call("check", campaign)[0] == 0
    cell.rename(campaign / "a")
    (campaign / "cells" / "reno-r1").rename(cell)
    (campaign / "a").rename(campaign / "cells" / "reno-r1")
    assert "not those" in _call("report", campaign)[1]


def test_links_and_pipes_in_records_are_refused(campaign: Path, tmp_path: Path) -> None:
    _edit(campaign, digest=None)
    cell = campaign / "cells" / "cubic-r1"
    (cell / "states.parquet").unlink()
    (cell / "states.parquet").symlink_to(tmp_path / "secret")
    code, said = _call("report", campaign)
    assert (code, "is not a plain file" in said) == (3, True), said
    cell.rename(tmp_path / "moved")
    cell.symlink_to(tmp_path / "moved")
    code, said = _call("report", campaign)
    assert (code, "is a link to another place" in said) == (3, True), said


def test_results_of_other_records_are_never_shown(campaign: Path) -> None:
    for change in ({"digests": {"cubic-r1": "sha256:0", "reno-r1": "sha256:1"}}, {"hash": "0"}):
        with edited(campaign / "results.json") as results:
            results.update(change)
        code, said = _call("show", campaign, "--json")
        assert (code, f"narrows report {campaign} makes it again" in said) == (3, True), said
        assert _call("report", campaign, "--report", "none")[0] == 0
        assert _call("show", campaign)[0] == 0


def test_a_digest_can_be_computed_by_hand(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "run.json").write_bytes(b"{}")
    (tmp_path / "logs" / "a").write_bytes(b"xyz")
    lines = [
        f"{hashlib.sha256(content).hexdigest()}  {len(content)}  {name}\n"
        for name, content in [("logs/a", b"xyz"), ("run.json", b"{}")]
    ]
    assert integrity.digest(tmp_path) == f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"
