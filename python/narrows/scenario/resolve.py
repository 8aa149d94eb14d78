"""From the scenario as written to the resolved one."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

from narrows.documents.resolved import (
    ALL_TRANSFERS,
    FORMAT,
    WHOLE_RUN,
    Change,
    Params,
    Report,
    SchemeRow,
)
from narrows.errors import IsSweep, Problem
from narrows.scenario import draws, matrix, pairs, real_path
from narrows.scenario.declarations.reader import note_missing, read_key
from narrows.scenario.declarations.value import Context
from narrows.scenario.elements import same_names
from narrows.scenario.expect import read_expectations
from narrows.scenario.feasibility import Check
from narrows.scenario.files import Files
from narrows.scenario.flows import Flow, FlowReader, Flows
from narrows.scenario.keys import KEYS
from narrows.scenario.measure import read_measure
from narrows.scenario.model import Scenario
from narrows.scenario.network import DUMBBELL, Network
from narrows.scenario.nodes import read_settings
from narrows.scenario.params import read_params
from narrows.scenario.prefixes import UDP
from narrows.scenario.problems import Problems
from narrows.scenario.quantity import NO_BDP
from narrows.scenario.registry import Registry
from narrows.scenario.schemes import (
    Scheme,
    check_settings,
    distinguish_models,
    read_scheme,
    read_schemes,
    with_settings,
)
from narrows.scenario.sections import ScenarioKeys
from narrows.scenario.slugs import Slugs, slug_of
from narrows.scenario.timeline import TimelineReader
from narrows.scenario.topologies import read_network
from narrows.scenario.words import check_visible, read_sentence
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar
from narrows.text import did_you_mean, shorten

_NAME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,59}")
_FLAG_PDF = "pdf"

__all__ = ["read_scheme", "resolve"]

#: The keys with a single value each.
_SINGLE = ("schema", "where", "duration", "runs", "seed", "record", "transfers", "bin", "sample")
#: The key of a space of parameters, which `narrows.sweep` reads.
SWEEP = "sweep"
#: More than any network of 2,000 hosts has; far larger ones take minutes to plan.
MOST_ELEMENTS = 10_000


def resolve(
    tree: Mapping,
    registry: Registry,
    file_name: str,
    base: Path | None = None,
    *,
    is_point: bool = False,
    is_combination: bool = False,
) -> Scenario:
    """Resolves a written scenario, or raises `ScenarioError` with all of its errors.

    Files that it names are relative to the folder `base`. At a point of a parameter space (`is_point`),
    contradictory values are a result like others, and cause only a warning; in a combination of a matrix
    (`is_combination`) this applies to amounts in bdp, which may fit other combinations.
    """
    if SWEEP in tree.entries:
        raise IsSweep([Problem(str(tree.key_marks[SWEEP]), SWEEP, "is run by narrows sweep run")])
    if matrix.KEY in tree.entries or real_path.asks_for_both(tree):
        return matrix.resolve_all(
            tree,
            lambda entry: resolve(entry, registry, file_name, base, is_point=is_point, is_combination=True),
        )
    if draws.KEY in tree.entries:
        return draws.resolve_all(
            tree,
            lambda entry, drawn: resolve(
                entry, registry, file_name, base, is_point=is_point or drawn, is_combination=is_combination
            ),
        )
    problems = Problems()
    files = Files(base or Path())
    keys = ScenarioKeys.from_mapping(tree)
    for _ in problems.check_keys(tree, KEYS):
        pass
    note_missing(tree, KEYS, problems)
    _, where, duration, runs, seed, record, transfers, bin_ns, sample_ns = (
        read_key(tree, KEYS[name], problems) for name in _SINGLE
    )
    between = real_path.read(tree, problems)
    topology, network = read_network(tree, registry, problems)
    if (count := sum(len(link.items) for link in network.links)) > MOST_ELEMENTS:
        text = f"the network has {count} elements on its links; there can be {MOST_ELEMENTS}"
        problems.add(tree.mark, text)
        problems.raise_if_any()
    for link in network.links:
        link.probe(registry, Context(problems, files=files))
    for link in network.links:
        if link.mirrors is not None:
            link.delay_ns = link.mirrors.delay_ns
    network.check_connected(problems)
    schemes = _schemes(keys, registry, files, problems)
    flows = _flows(keys, duration, network, registry, files, problems)
    if keys.hosts is not None:
        hosts = problems.expect_mapping(keys.hosts, KEYS["hosts"].example)
        only = flows.background_hosts
        read_settings(hosts or Mapping(tree.mark.at("hosts")), network, only, registry, problems)
    _check_extra_rtt(tree, flows, topology, network, problems)
    _elements(network, flows, registry, files, problems)
    timeline: list[Change] = []
    if keys.timeline is not None and duration is not None and not problems.entries:
        reader = TimelineReader(network, flows, duration, registry, Context(problems, files=files))
        timeline = reader.read(keys.timeline)
    if between:
        real_path.check(tree, network, between, problems)
    transport, written = _transport(keys.transport, registry, problems)
    schemes = [with_settings(scheme, written, registry) for scheme in schemes]
    for flow in flows.items:
        flow.scheme = flow.scheme and with_settings(flow.scheme, written, registry)
    rows = _rows(schemes, flows, keys, network, problems)
    report = _report(keys.report, problems)
    measure = WHOLE_RUN
    if keys.measure is not None:
        measure = read_measure(keys.measure, duration, network, problems)
    expect = [] if keys.expect is None else read_expectations(keys.expect, rows, problems)
    name = _name(keys.name, file_name, problems)
    question = _text(keys.question, problems)
    title = None if keys.title is None else _text(keys.title, problems)
    problems.raise_if_any()
    assert duration is not None
    warnings: list[Problem] = []
    if not between:
        check = Check(tree, network, flows, rows, duration, transport, timeline, registry, is_combination)
        findings = check.run(where, runs)
        if not is_point:
            problems.entries += findings.problems
        warnings = findings.warnings
        problems.raise_if_any()
    return Scenario(
        format=FORMAT,
        name=name,
        title=title,
        question=question,
        where=where,
        topology=topology,
        network=real_path.resolve_network(network, between) if between else network.resolve(flows.pairs),
        # Between two hosts it is unknown, and the path of other planes does not determine it.
        base_rtt_ns=0 if between else network.rtt_ns(flows.pairs[0]),
        schemes=rows,
        duration_ns=duration,
        runs=runs,
        seed=seed,
        record=record,
        bin_ns=bin_ns,
        sample_ns=sample_ns,
        transport=transport,
        report=report,
        timeline=timeline,
        measure=measure,
        # Values at their defaults are the same object, and not written.
        transfers=ALL_TRANSFERS if transfers == ALL_TRANSFERS else transfers,
        expect=expect,
        real_path=between,
        files=files,
        warnings=warnings,
    )


def _schemes(keys: ScenarioKeys, registry: Registry, files: Files, problems: Problems) -> list[Scheme]:
    """The schemes under test."""
    written = keys.schemes
    if keys.pairs is not None:
        written = keys.pairs
        pairs.check(written, keys, problems)
    return [] if written is None else read_schemes(written, registry, problems, files)


def _flows(
    keys: ScenarioKeys,
    duration: int | None,
    network: Network,
    registry: Registry,
    files: Files,
    problems: Problems,
) -> Flows:
    """The flows under test, then the background."""
    reader = FlowReader(duration, network, registry, problems, files)
    usual = Mapping(keys.mark.at("flows")) if keys.pairs is None else pairs.with_two_flows(keys.mark)
    reader.flows(usual if keys.flows is None else keys.flows)
    if keys.background is not None:
        reader.background(keys.background)
    return reader.result


def _elements(network: Network, flows: Flows, registry: Registry, files: Files, problems: Problems) -> None:
    """Reads the elements of all links; amounts in bdp depend on the routes of the flows."""
    plain = network.kind == DUMBBELL
    bdps = network.bdps(network.pairs if plain else flows.pairs)
    for link, (bdp, why) in zip(network.links, bdps, strict=True):
        link.resolve(registry, Context(problems, bdp, why or NO_BDP, files))
    same_names(network.links, problems)
    for link in network.links:
        link.mirror()
    # A wrong rate or delay makes the bdp unknown; reporting that as well would only confuse.
    places = ("path.", "topology.", "network.")
    others = [
        problem
        for problem in problems.entries
        if (problem.key.startswith(places) or problem.position.startswith("--"))
        and NO_BDP not in problem.text
    ]
    if others:
        problems.entries = [problem for problem in problems.entries if NO_BDP not in problem.text]


def _text(value: Node | None, problems: Problems) -> str:
    if value is None:
        return ""
    with problems.note():
        return read_sentence(value, "must be a sentence")
    return ""


def _name(value: Node | None, file_name: str, problems: Problems) -> str:
    if value is None:
        slug = slug_of(PurePath(file_name).stem)
        return slug if _NAME.fullmatch(slug) else "scenario"
    if not isinstance(value, Scalar) or not _NAME.fullmatch(value.text):
        text = value.text if isinstance(value, Scalar) else "this"
        hint = did_you_mean(text, [slug_of(text)]) if slug_of(text) else ""
        wrong = f'"{shorten(text)}" is not a name; use lower-case letters, digits, "-" and "."{hint}'
        problems.add(value.mark, wrong)
        return "scenario"
    return value.text


def _check_extra_rtt(
    tree: Mapping, flows: Flows, topology: str, network: Network, problems: Problems
) -> None:
    if not flows.extra_rtt_mark:
        return
    mark = flows.extra_rtt_mark.at("flows")
    if real_path.is_wanted(tree):
        problems.add(mark, "a real path has the round-trip time that it has; remove it")
    elif network.kind != DUMBBELL:
        text = (
            "an extra RTT is for flows over a single path; here write a delay on the link of the flow's host"
        )
        problems.add(mark, text)
    elif topology == "path":
        problems.add(mark, "an extra RTT needs separate hosts for each flow; write topology: dumbbell")


def _rows(
    schemes: list[Scheme], flows: Flows, keys: ScenarioKeys, network: Network, problems: Problems
) -> list[SchemeRow]:
    """The rows of the results: every scheme under test with all flows, or the written mix."""
    if not flows.items:
        return []
    if keys.pairs is not None:
        mark = keys.key_mark(keys.pairs)
        flows_mark = mark if keys.flows is None else keys.key_mark(keys.flows)
        tests = pairs.tests(schemes, flows.items, flows_mark, problems)
        return _list_rows([(labels, labels, used) for labels, used in tests], network, mark, problems)
    need = any(flow.scheme is None for flow in flows.items)
    if keys.schemes is not None and not need:
        text = "has no effect because every flow names its own scheme; remove it, or remove scheme from the"
        problems.add(keys.key_mark(keys.schemes), f"{text} flows that shall run the schemes under test")
        return []
    if need and keys.schemes is None:
        problems.add(keys.mark, "the key schemes is missing; write for example schemes: [cubic, reno]")
        return []
    tested: list[Scheme | None] = list(schemes) if need else [None]
    rows: list[tuple[list[str], list[str], list[tuple[Flow, Scheme]]]] = []
    for scheme in tested:
        used = [(flow, one) for flow in flows.items if (one := flow.scheme or scheme) is not None]
        tests_of = [item for flow, item in used if not flow.background]
        # Datagrams have no scheme that could be under test.
        labels = list(
            dict.fromkeys(model.label for model in distinguish_models(tests_of) if model.name != UDP)
        ) or [UDP]
        rows.append((labels, [], used))
    mark = keys.written.key_marks["schemes" if need else "flows"]
    return _list_rows(rows, network, mark, problems)


def _list_rows(
    pairs: list[tuple[list[str], list[str], list[tuple[Flow, Scheme]]]],
    network: Network,
    mark: Mark,
    problems: Problems,
) -> list[SchemeRow]:
    """Rows given by the labels of their schemes, those of the flows of a pair, and the flows with their
    schemes.
    """
    rows: list[SchemeRow] = []
    slugs = Slugs()
    for labels, pair, used in pairs:
        for flow, scheme in used:
            if scheme.media or scheme.program:
                _check_special(scheme, flow, problems)
        label = " + ".join(labels)
        if not any(problem.key.startswith(f"{mark.path}.") for problem in problems.entries):
            with problems.note():
                # Names of files and values of parameters may be part of a label; their problems have been
                # noted already.
                check_visible(mark, label)
        slug = slugs.add("+".join(slug_of(text) for text in labels))
        listed = [flow.resolve(number, scheme, network) for number, (flow, scheme) in enumerate(used, 1)]
        rows.append(SchemeRow(label=label, slug=slug, flows=listed, pair=pair))
    return rows


def _check_special(scheme: Scheme, flow: Flow, problems: Problems) -> None:
    """A real-time scheme is also the application: it carries no other traffic over its only connection. A
    program defines its own traffic.
    """
    ours = {"connections": "one connection", "traffic": "no traffic but its own media"}
    whose = dict.fromkeys(("connections", "traffic", "dscp"), "what it sends from its own program")
    known = whose if scheme.program else ours
    for key, mark in flow.special.items():
        if key not in known:
            continue
        text = f"{scheme.name} has {known[key]}; remove {key}, or give the flow another scheme"
        if not any(known.key == mark.path and known.text == text for known in problems.entries):
            problems.add(mark, text)


def _transport(value: Node | None, registry: Registry, problems: Problems) -> tuple[Params, Params]:
    """All settings of the transport, and the written ones."""
    value = Mapping(Mark("", path="transport")) if value is None else value
    mapping = problems.expect_mapping(value, KEYS["transport"].example)
    if mapping is None:
        return {}, {}
    every = read_params(mapping, registry.transport, "the transport", Context(problems))
    check_settings(mapping, every, problems)
    return every, {name: value for name, value in every.items() if name in mapping.entries}


def _report(value: Node | None, problems: Problems) -> Report:
    value = Mapping(Mark("", path="report")) if value is None else value
    mapping = problems.expect_mapping(value, KEYS["report"].example)
    pdf = True
    for _, item in problems.check_keys(mapping, (_FLAG_PDF,)):
        flag = item.flag if isinstance(item, Scalar) else None
        if flag is None:
            problems.add(item.mark, "must be true or false")
        else:
            pdf = flag
    return Report(pdf=pdf)
