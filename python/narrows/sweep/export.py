"""Scripts for batch systems."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from narrows.campaign.json_files import write_atomically
from narrows.errors import NarrowsError, reason
from narrows.scenario.overrides import Override
from narrows.sweep.loading import LoadedSweep

_SLURM = """\
#!/bin/bash
# {name} ({hash}): a sweep in {tasks} tasks, written by narrows sweep export.
# When all tasks have ended:  narrows merge {folder}/task-* -o {folder}/merged
# A task that failed or was preempted is completed by running it again:  sbatch --array=K {script}
#SBATCH --job-name={name}
#SBATCH --array=1-{tasks}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={processors}
#SBATCH --output={folder}/task-%a.log
#SBATCH --open-mode=append
set -euo pipefail
exec {python} -m narrows sweep run {scenario} \\
    --on local:{processors} --share "$SLURM_ARRAY_TASK_ID/{tasks}" \\
    -o {folder}/"task-$SLURM_ARRAY_TASK_ID"{more}
"""


def write_slurm(loaded: LoadedSweep, folder: Path, tasks: int, processors: int) -> Path:
    """Writes a copy of the scenario and the script of a job array into a folder; returns the
    script's path.
    """
    folder = folder.absolute()
    scenario, script = folder / "scenario" / loaded.path.name, folder / "sweep.sbatch"
    try:
        scenario.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NarrowsError(f"{folder}: can't be created: {reason(error)}") from None
    write_atomically(scenario, loaded.text)
    # Files that the scenario names are resolved relative to its original folder.
    source = loaded.path.absolute() if loaded.files else scenario
    text = _SLURM.format(
        name=loaded.first.name,
        hash=loaded.hash,
        tasks=tasks,
        processors=processors,
        folder=shlex.quote(str(folder)),
        script=shlex.quote(str(script)),
        python=shlex.quote(sys.executable),
        scenario=shlex.quote(str(source)),
        more="".join(f" \\\n    {_option(change)}" for change in loaded.changes),
    )
    write_atomically(script, text)
    return script


def _option(change: Override) -> str:
    """A change in the form of a command-line option."""
    return f"--set {shlex.quote(f'{change.path}={change.text}')}"
