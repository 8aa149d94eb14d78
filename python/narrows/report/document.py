"""The content of a report, composed from a campaign."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from narrows.analysis import attempts
from narrows.analysis.checks import count_in_words
from narrows.documents.agent import MachineFacts
from narrows.documents.campaign import CellEntry
from narrows.documents.comparison import Comparison
from narrows.documents.data import to_data
from narrows.documents.run import HostFacts
from narrows.report import answers, imported, prose, real_path, sharing, tables, units, verification
from narrows.report.content import (
    Fact,
    Machine,
    OutcomeCount,
    PathSection,
    Report,
    ReportFigure,
    Reproduction,
    RunCaption,
    RunSection,
    VerdictSection,
    WordedTable,
)
from narrows.report.data import Campaign, Run
from narrows.text import plural

ORDER = ("ok", "degraded", "invalid", "failed", "pending", "skipped")


def compose(
    campaign: Campaign,
    figures: Mapping[str, ReportFigure],
    paper: Sequence[str] | None = None,
    *,
    side_by_side: bool = False,
    compared: Comparison | str | None = None,
) -> Report:
    """The whole report. `figures` maps `name` or `cell/name` to drawn figures (or the reasons for their
    absence), `paper` names the cells that the PDF shows (all without it), `side_by_side` pairs of figures are
    placed together or all with their numbers, and `compared` is the comparison of the campaign's rows, if it
    already exists.
    """
    answer = answers.answer(campaign, compared)
    return Report(
        title=campaign.name,
        subtitle=campaign.resolved.title or "",
        question=campaign.resolved.question,
        facts=_facts(campaign),
        answer=answer.sentences,
        leaders=answer.leaders,
        path=PathSection(
            figure=figures.get("path"),
            sentences=prose.path_sentences(campaign.settings) if campaign.settings else [],
            workload=prose.workload_sentences(campaign),
        ),
        verdicts=VerdictSection(
            counts=_counts(campaign),
            table=tables.verdicts(campaign),
            attempts=attempts.sentences(_entries(campaign), campaign.schemes),
        ),
        # Figures about traffic that the campaign lacks are omitted silently.
        figures=[
            figure
            for name, figure in figures.items()
            if "/" not in name and name != "path" and (figure.absent is None or name == "summary")
        ],
        tables=_more_tables(campaign),
        results=WordedTable(title="", table=tables.results(campaign), words=tables.results_words(campaign)),
        verification=verification.explain(campaign),
        run_captions=_run_captions(figures),
        runs=[
            _run(campaign, run, figures, paper is None or run.cell in paper)
            for run in _in_order(campaign)
            if run.record is not None
        ],
        side_by_side=side_by_side,
        system=_system(campaign),
        fingerprints=tables.fingerprints(campaign),
        reproduce=_reproduce(campaign),
        definitions=tables.definitions(campaign),
        made_by=f"Narrows {_version()}",
    )


def _more_tables(campaign: Campaign) -> list[WordedTable]:
    """Tables about traffic and expectations, if the campaign has them."""
    makers = {
        "flows": sharing.flows,
        "links": sharing.links,
        "pantheon": imported.pantheon,
        "expectations": tables.expectations,
    }
    made = (
        (entry, makers[name](campaign) if name in makers else tables.medians(campaign, name))
        for name, entry in tables.MORE.items()
    )
    return [WordedTable(title=entry.title, table=table, words=entry.words) for entry, table in made if table]


def _version() -> str:
    from narrows import __version__

    return str(__version__)


def _entries(campaign: Campaign) -> list[CellEntry]:
    return [run.entry for run in campaign.runs if run.entry]


def _in_order(campaign: Campaign) -> list[Run]:
    return [run for scheme in campaign.schemes for run in campaign.of_scheme(scheme)]


def moment(text: Any) -> str:
    """A time of day (UTC), rounded for readers."""
    value = str(text or "")
    return value[:19].replace("T", " ") + " UTC" if len(value) >= 19 and value.endswith("Z") else value


def _facts(campaign: Campaign) -> list[Fact]:
    header = campaign.header
    entries = [run.entry for run in campaign.runs if run.entry]
    starts = sorted(entry.started_at for entry in entries if entry.started_at)
    ends = sorted(entry.ended_at for entry in entries if entry.ended_at)
    start = header.created_at or (starts[0] if starts else None)
    end = header.ended_at or (ends[-1] if ends else None)
    if header.where == "import":
        # The campaign was created by the import, its runs long before.
        start, end = (starts[0] if starts else None), (ends[-1] if ends else None)
    measured = f"{moment(start)} to {moment(end)}" if start and end else moment(start)
    planes = {"simulate": "simulated", "emulate": "emulated", "hosts": "real hosts", "import": "imported"}
    facts = [
        ("Measured", measured),
        ("Plane", ", ".join(planes.get(p, p) for p in campaign.planes)),
        ("Runs", _count_words(campaign)),
        ("Scenario hash", header.hash[:12]),
    ]
    return [f for f in facts if f[1]]


def _outcomes(campaign: Campaign) -> dict[str, int]:
    outcomes: dict[str, int] = {}
    for run in campaign.runs:
        outcomes[run.outcome] = outcomes.get(run.outcome, 0) + 1
    return outcomes


def _count_words(campaign: Campaign) -> str:
    outcomes = _outcomes(campaign)
    known = [o for o in ORDER if o in outcomes] + [o for o in outcomes if o not in ORDER]
    parts = [f"{outcomes[o]} {o}" for o in known]
    if campaign.skipped:
        parts.append(f"{plural(len(campaign.skipped), 'scheme')} skipped")
    if failed := attempts.count(_entries(campaign)):
        parts.append(plural(failed, "failed attempt"))
    return ", ".join(parts) or "none"


def _counts(campaign: Campaign) -> list[OutcomeCount]:
    meaning = {
        "ok": "no objections",
        "degraded": "counted, with a warning",
        "invalid": "shown, never counted",
        "failed": "no record",
        "pending": "not run yet",
        "skipped": "schemes that can’t run here",
    }
    outcomes = _outcomes(campaign)
    if campaign.skipped:
        outcomes["skipped"] = len(campaign.skipped)
    always = ("ok", "degraded", "invalid", "failed")
    shown = [o for o in ORDER if o in outcomes or o in always] + [o for o in outcomes if o not in ORDER]
    return [OutcomeCount(outcome=o, count=outcomes.get(o, 0), meaning=meaning.get(o, "")) for o in shown]


def _run_captions(figures: Mapping[str, ReportFigure]) -> list[RunCaption]:
    """Captions of the figures of a run, once for all runs."""
    captions: dict[str, RunCaption] = {}
    for name, figure in figures.items():
        if "/" in name and figure.caption and figure.name not in captions:
            captions[figure.name] = RunCaption(title=figure.title, caption=figure.caption, note=figure.note)
    return list(captions.values())


def _run(campaign: Campaign, run: Run, figures: Mapping[str, ReportFigure], paper: bool) -> RunSection:
    return RunSection(
        cell=run.cell,
        scheme=run.scheme,
        number=run.number,
        outcome=run.outcome,
        reasons=[r.text for r in run.reasons],
        facts=_run_facts(run),
        figures=[figure for name, figure in figures.items() if name.startswith(f"{run.cell}/")],
        measured=bool(run.rows),
        table=tables.run_statistics(campaign, run) if run.rows and paper else None,
        paper=paper,
    )


def _run_facts(run: Run) -> list[Fact]:
    record = run.record
    assert record is not None
    facts: list[Fact] = []
    if run.settings.duration_ns:
        facts.append(("duration", units.span(run.settings.duration_ns)))
    seed = run.settings.seed or (run.entry and run.entry.seed)
    if seed is not None:
        facts.append(("seed", str(seed)))
    started = record.started_at or (run.entry and run.entry.started_at)
    if started:
        facts.append(("started", moment(started)))
    if late := record.lateness:
        shown = (("p50", late.p50_ns), ("p99", late.p99_ns), ("max", late.max_ns))
        words = ", ".join(f"{label} {units.span(float(value))}" for label, value in shown)
        facts.append(("emulator late", words))
    if record.rings:
        facts.append(("ring drops", str(sum(ring.dropped for ring in record.rings))))
    if record.cpu and record.cpu.busy_ratio is not None:
        facts.append(("CPU busy", f"{units.number(record.cpu.busy_ratio * 100, 0)} %"))
    facts += real_path.facts(run)
    if checks := record.checks:
        bad = [check.name for check in checks if not check.ok]
        counts = count_in_words(checks)
        facts.append(("checks", counts + (f" (failed: {', '.join(bad)})" if bad else "")))
    if ends := [process.name for process in record.processes if not process.expected]:
        facts.append(("ended unexpectedly", ", ".join(ends)))
    return facts


def _host_rows(host: HostFacts | MachineFacts) -> list[Fact]:
    rows = [
        ("kernel", host.kernel),
        ("architecture", host.machine),
        ("CPU", host.cpu_model),
        ("clock source", host.clocksource),
        ("CPUs", str(host.cpus or "")),
        ("memory", units.memory(float(host.memory_bytes)) if host.memory_bytes else ""),
        ("kernel's congestion controls", ", ".join(host.congestion_controls)),
        *((name, " ".join(str(value).split())) for name, value in sorted(host.sysctls.items())),
    ]
    return [(name, value) for name, value in rows if value]


def _machine(title: str, runs: list[Run], of: int, rows: Sequence[Fact]) -> Machine:
    """One machine in the state of `runs`, which are named if they are not all `of` their kind."""
    if len(runs) == of:
        return Machine(title=title, rows=list(rows))
    text = "As it was in " + ", ".join(run.cell for run in runs) + "."
    return Machine(title=f"{title}, {len(runs)} of {of}", rows=list(rows), text=text)


def _system(campaign: Campaign) -> list[Machine]:
    """Machines and versions from the records; runs that share them are listed together."""
    system: list[Machine] = []
    grouped: dict[tuple[Fact, ...], list[Run]] = {}
    pairs: dict[tuple[str, tuple[Fact, ...]], list[Run]] = {}
    simulated = []
    for run in campaign.runs:
        if run.record is None:
            continue
        for called, machine in real_path.hosts(run):
            rows = _host_rows(machine.facts) + machine.versions.facts
            pairs.setdefault((called, tuple(rows)), []).append(run)
        if real_path.is_real(run):
            continue
        own = run.record.host
        if own is None:
            # Logs of other tools do not describe their machines; their facts are in a separate table.
            if run.record.plane != "import":
                simulated.append(run)
            continue
        rows = _host_rows(own) + run.record.versions.facts
        grouped.setdefault(tuple(rows), []).append(run)
    known = {pair for key in grouped for pair in key} if len(grouped) == 1 else set()
    header = campaign.header
    rows = _host_rows(header.host) if header.host else []
    rows += [(name, units.parameter(None, value)) for name, value in to_data(header.versions or {}).items()]
    rows = [row for row in rows if row not in known]  # Statements of the runs are not repeated.
    if rows:
        system.append(Machine(title="When the campaign was started", rows=rows))
    emulated = sum(map(len, grouped.values()))
    for key, runs in grouped.items():
        system.append(_machine("Emulated runs", runs, emulated, key))
    between = sum(real_path.is_real(run) for run in campaign.runs)
    for (called, key), runs in pairs.items():
        system.append(_machine(f"{called[0].upper()}{called[1:]}", runs, between, key))
    system += imported.software(campaign)
    if simulated:
        versions = {str(run.record.versions.narrows) for run in simulated if run.record}
        text = (
            "Simulated runs depend on no machine: the same scenario, seed and version give the same record, "
            f"byte for byte. They were made by Narrows {', '.join(sorted(versions))}."
        )
        system.append(Machine(title="Simulated runs", rows=[], text=text))
    return system


def _reproduce(campaign: Campaign) -> Reproduction:
    header, scenario = campaign.header, campaign.header.scenario
    commands = [shlex.join(session.argv) for session in header.sessions if session.argv]
    main_seed = str(campaign.resolved.seed if campaign.resolved.is_planned else "")
    facts = [("scenario hash", header.hash), ("seed", main_seed)]
    seeds: dict[int, str] = {}
    for run in campaign.runs:
        seed = run.settings.seed or (run.entry and run.entry.seed)
        if seed is not None:
            seeds[run.number] = str(seed)
    if seeds:
        facts.append(("seed of each run", ", ".join(f"run {n}: {seeds[n]}" for n in sorted(seeds))))
    for change in scenario.overrides:
        facts.append((f"changed by {change.option}", f"{change.path} = {change.value}"))
    return Reproduction(
        commands=list(dict.fromkeys(commands)),
        file=scenario.file or "",
        written=scenario.written,
        facts=[f for f in facts if f[1]],
    )
