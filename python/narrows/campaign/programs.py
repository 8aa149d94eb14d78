"""BPF programs of a campaign, loaded once for a moment before it begins.

A program that the kernel refuses is so found at once, and not when half of the cells have run.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from narrows.campaign import agent as agents
from narrows.campaign.plan import Plan
from narrows.errors import DataError, UnavailableError
from narrows.scenario.schemes import BPF_PREFIX


def check_programs(plan: Plan, agent: Path) -> None:
    """Tries every program that the cells use; raises what the agent says of the first that fails."""
    names: dict[str, None] = {}
    files: dict[str, str] = {}
    for cell in plan.cells:
        for flow in cell.content["flows"]:
            if "object" in flow:
                files[flow["object"]["sha256"]] = flow["object"]["name"]
            elif flow["scheme"].startswith(BPF_PREFIX):
                names[flow["scheme"].removeprefix(BPF_PREFIX)] = None
    if not names and not files:
        return
    with tempfile.TemporaryDirectory(prefix="narrows-") as folder:
        options: list[str | Path] = []
        for name in names:
            options += ["--program", name]
        for sha256, name in files.items():
            # Each in a folder of its own: messages call the file by its name.
            path = Path(folder) / sha256 / name
            path.parent.mkdir()
            path.write_bytes(plan.scenario.files.contents[sha256])
            options += ["--object", path]
        results = agents.ask(agent, "bpf", *options).get("results") or []
    for result in results:
        if not result.get("ok"):
            kind = DataError if result.get("kind") == "input" else UnavailableError
            raise kind(str(result.get("message")))
