"""Sentences about an imported run: its path, its clocks, its software."""

from __future__ import annotations

import re

from narrows.pantheon.source import Run, Source

#: Options of a test that describe the path of each direction. The sender is behind the emulated uplink.
PATHS = {
    "forward": ("uplink_trace", "prepend_mm_cmds", "extra_mm_link_args", "append_mm_cmds"),
    "backward": ("downlink_trace", "prepend_mm_cmds", "extra_mm_link_args", "append_mm_cmds"),
}
_BRANCH = re.compile(r"branch: (\S+) @ ([0-9a-f]{7,40})")
_MODULE = re.compile(r"(\S+) @ ([0-9a-f]{7,40})")
#: Digits of a git hash that are shown.
_DIGITS = 12


def question(source: Source) -> str:
    """The question of the campaign, from the metadata."""
    if source.remote:
        ends = [str(source.metadata.get(key) or key.split("_")[0]) for key in ("local_desc", "remote_desc")]
        here, there = ends[::-1] if source.sender_is_remote else ends
        return f"How did the schemes do from {here} to {there}? (imported from Pantheon)"
    if source.metadata.get("mode") == "local":
        return "How did the schemes do behind mahimahi? (imported from Pantheon)"
    return "How did the schemes do? (imported from Pantheon)"


def git_rows(source: Source) -> dict[str, str]:
    """The commits in the git summary: of Pantheon itself, and of its modules."""
    rows: dict[str, str] = {}
    for line in str(source.metadata.get("git_summary") or "").splitlines():
        if match := _BRANCH.match(line.strip()):
            rows["pantheon"] = match[2][:_DIGITS]
        elif match := _MODULE.match(line.strip()):
            rows[match[1]] = match[2][:_DIGITS]
    return rows


def clocks(source: Source, run: Run) -> tuple[list[dict[str, str]], dict[str, int]]:
    """Remarks about the clocks of a run, and the applied offset (receiver minus sender)."""
    if not source.remote:
        return [], {"offset_ns": 0, "error_ns": 0}
    offsets = run.stats.offsets
    if offsets is None:
        text = "The clocks of the two hosts were not compared, so one-way delays contain their difference."
        return [{"code": "clock", "severity": "degraded", "text": text}], {"offset_ns": 0, "error_ns": 0}
    local, remote = offsets["local"], offsets["remote"]
    text = (
        f"The clocks were corrected by one NTP reading per side (local {local / 1e6:+.3f} ms, remote"
        f" {remote / 1e6:+.3f} ms); how far off that was is not recorded, and drift is not corrected."
    )
    # The amount added to a clock is the amount by which it is behind.
    ahead = local - remote if not source.sender_is_remote else remote - local
    return [{"code": "clock", "severity": "note", "text": text}], {"offset_ns": ahead, "error_ns": 0}
