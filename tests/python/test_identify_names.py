"""The names that `narrows identify` finds: the library of references, probabilities, and the next probe."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import figures_kit as kit
from campaign_kit import narrows, simulate
from narrows.documents.identify import Card
from narrows.documents.reference import schema
from narrows.errors import DataError, ScenarioError
from narrows.identify import next_probe, overlays, references
from narrows.identify.calibration import Sums
from narrows.identify.features import ECN, LONG, PAUSE, PROBES, SHORT, TWO_RTTS
from narrows.identify.naming import NONE, Namer, best_of
from narrows.identify.naming_text import sentence
from narrows.identify.probe_paths import UNCHANGED, PathFactors, load_probe
from narrows.identify.reference_library import POINTS, Library, read_library, write_library
from narrows.identify.running import SIMULATE, Order, load_probes, name_cards, run_probes
from narrows.identify.scheme_families import FAMILIES, family_of, name_of
from narrows.identify.simulated_cards import simulate_card
from narrows.report.drawing import Options
from narrows.scenario import registry
from narrows.scenario.model import cells_of
from narrows.scenario.overrides import Override

#: A seed of a path and of runs that the library does not have.
OTHER_SEED = 77
#: A scenario other than the probes.
SMALL = """\
schema: narrows/scenario/1
name: small
path:
  forward: [{rate: 6 Mbit/s, queue: {droptail: 20 packets}}, {delay: 10 ms}]
schemes: [reno]
duration: 4 s
runs: 1
"""
SHAPES = {"cubic": "cubic", "bbr1": "bbr1", "copa": "copa", "scalable": "scalable"}


@pytest.fixture(scope="module")
def library() -> Library:
    return read_library()


@pytest.fixture(scope="module")
def namer(library: Library) -> Namer:
    return Namer(library)


@pytest.fixture(scope="module")
def cards() -> dict[str, Card]:
    """Cards of schemes on a path that the library does not have."""
    factors = PathFactors.from_seed(OTHER_SEED)
    return {scheme: simulate_card(scheme, OTHER_SEED, factors) for scheme in SHAPES}


def test_lines_that_depend_on_the_transport_do_not_count_for_another(
    namer: Namer, cards: dict[str, Card]
) -> None:
    from msgspec.structs import replace as with_members

    # As from a kernel that negotiates ECN for BBR: the reactions to marks are those of another sender.
    kept = [line for line in cards["bbr1"].lines if line.probe != ECN]
    marked = [line for line in cards["cubic"].lines if line.probe == ECN]
    native = with_members(cards["bbr1"], lines=kept + marked)
    kernel = with_members(native, scheme="linux:bbr", where="emulate")
    own, other = namer.name(native), namer.name(kernel)
    assert own is not None and other is not None
    assert other.candidates[0].name == "bbr1"
    assert float(other.none) < float(own.none)
    pauses = np.array([probe == PAUSE for _, probe in namer.model.keys])
    assert namer.know(native)[pauses].any() and not namer.know(kernel)[pauses].any()


def test_families_are_disjoint_and_name_schemes_that_exist() -> None:
    members = [member for family in FAMILIES for member in family.members]
    assert len(set(members)) == len(members)
    assert set(members) <= set(registry.load().schemes)
    assert all(family.name in family.members and family.reason for family in FAMILIES)


@pytest.mark.parametrize(
    ("scheme", "name", "family"),
    [
        ("linux:bbr", "bbr1", "bbr1"),
        ("linux:cubic", "cubic", "cubic"),
        ("bpf:cubic2008", "cubic2008", "cubic"),
        ("cubic-linux", "cubic", "cubic"),
        ("bpf:htcp", "htcp", "htcp"),
        ("newreno", "newreno", "reno"),
    ],
)
def test_implementations_of_an_algorithm_share_its_name(scheme: str, name: str, family: str) -> None:
    assert (name_of(scheme), family_of(name_of(scheme))) == (name, family)


def test_the_library_has_every_native_scheme_in_every_seed(library: Library) -> None:
    assert set(library.list_schemes()) == set(references.list_native())
    rows = {(row.scheme, row.seed) for row in library.references}
    assert rows == {(scheme, seed) for scheme in references.list_native() for seed in references.SEEDS}
    own = [row for row in library.references if row.seed == references.FIRST_SEED]
    assert {line.probe for line in library.header.lines} == set(PROBES)
    assert all({probe for probe, _ in row.series} == set(PROBES) for row in own)


def test_the_library_is_that_of_this_version(library: Library) -> None:
    """`python -m validation identify-library` rebuilds what is stale."""
    assert not list(references.list_stale(library, references.list_native()))


def test_other_packets_and_other_values_make_a_reference_stale(library: Library) -> None:
    def find(changed: Library) -> str:
        (item,) = (item for item in references.list_stale(changed, ["reno"]) if item.scheme == "reno")
        return item.reason

    from msgspec.structs import replace as with_members

    header = with_members(library.header, digests={**library.header.digests, "reno": "0"})
    assert find(replace(library, header=header)) == "it sends other packets"
    rows = [row for row in library.references if row.scheme != "reno"]
    assert find(replace(library, references=rows)) == "the library does not have it"
    first = next(
        row for row in library.references if row.scheme == "reno" and row.seed == references.FIRST_SEED
    )
    key = ("decrease", "probe-shallow-buffer")
    changed = replace(first, values={**first.values, key: 0.9})
    assert (
        find(replace(library, references=[changed, *rows]))
        == "decrease on probe-shallow-buffer has another value"
    )


def test_a_library_that_was_written_reads_the_same(library: Library, tmp_path: Path) -> None:
    write_library(library, tmp_path / "copy.parquet")
    copy = read_library(tmp_path / "copy.parquet")
    assert copy.header == library.header
    for row, same in zip(library.references, copy.references, strict=True):
        assert (row.scheme, row.seed, row.factors, row.values) == (
            same.scheme,
            same.seed,
            same.factors,
            same.values,
        )
        assert all(np.array_equal(row.series[key], same.series[key]) for key in row.series)


def test_files_that_are_not_a_library_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    for name in ("bad.parquet", "none.parquet"):
        with pytest.raises(DataError, match="is not a library of references"):
            read_library(tmp_path / name)


@pytest.mark.parametrize(("scheme", "name"), SHAPES.items())
def test_schemes_on_other_paths_have_their_names(
    namer: Namer, cards: dict[str, Card], scheme: str, name: str
) -> None:
    naming = namer.name(cards[scheme])
    assert naming is not None
    assert best_of(naming)[0] == name and best_of(naming)[1] > 0.6, sentence(naming)
    total = sum(float(candidate.probability) for candidate in naming.candidates) + float(naming.none)
    assert 0.9 < total <= 1.001


@pytest.mark.parametrize("scheme", SHAPES)
def test_schemes_that_the_library_lacks_have_no_certain_name(
    library: Library, cards: dict[str, Card], scheme: str
) -> None:
    family = family_of(name_of(scheme))
    rows = [row for row in library.references if family_of(name_of(row.scheme)) != family]
    naming = Namer(replace(library, references=rows)).name(cards[scheme])
    assert naming is not None
    assert float(naming.candidates[0].probability) <= 0.8, sentence(naming)


def test_fewer_probes_make_a_name_less_certain(namer: Namer, cards: dict[str, Card]) -> None:
    from msgspec.structs import replace as with_members

    certainty = {True: 0.0, False: 0.0}
    for whole in cards.values():
        part = with_members(whole, lines=[line for line in whole.lines if line.probe == SHORT])
        named, less = namer.name(whole), namer.name(part)
        assert named is not None and less is not None
        assert less.lines < named.lines and less.unknown > named.unknown
        certainty[True] += float(named.candidates[0].probability)
        certainty[False] += float(less.candidates[0].probability)
    assert certainty[False] < certainty[True]
    nothing = with_members(whole, lines=[])
    assert namer.name(nothing) is None


def test_the_next_probe_is_one_that_is_left_and_tells_something(namer: Namer, cards: dict[str, Card]) -> None:
    gains = next_probe.estimate_gains(namer, None, PROBES)
    assert all(gain > 0.5 for gain in gains.values())
    seconds = dict.fromkeys(PROBES, 30.0)
    assert next_probe.choose_probe(namer, None, PROBES, seconds) == max(gains, key=gains.__getitem__)
    # A long probe has to tell more.
    seconds[max(gains, key=gains.__getitem__)] = 3000.0
    assert next_probe.choose_probe(namer, None, PROBES, seconds) != max(gains, key=gains.__getitem__)
    after = next_probe.estimate_gains(namer, cards["bbr1"], PROBES)
    assert sum(after.values()) < sum(gains.values())
    assert next_probe.is_certain(namer, cards["bbr1"], 0.6)


def test_probes_move_to_other_paths() -> None:
    def bottleneck(factors: PathFactors) -> dict[str, Any]:
        (cell,) = cells_of(load_probe(LONG, factors, [Override("WHAT", "schemes", "[reno]")]).scenario)
        network = cell.to_json()["network"]
        return {**network["forward"][0], "delay": network["forward"][1]["delay"]}

    own, moved = bottleneck(UNCHANGED), bottleneck(PathFactors(1.1, 0.9, 1.2))
    assert moved["rate"]["rate"] == pytest.approx(1.1 * own["rate"]["rate"])
    assert moved["delay"] == pytest.approx(0.9 * own["delay"])
    # The queue is written in bandwidth-delay products, and resolved to bytes.
    assert moved["queue"]["bytes"] == pytest.approx(1.1 * 0.9 * 1.2 * own["queue"]["bytes"], rel=0.02)


def test_the_command_prints_the_name_and_its_evidence(tmp_path: Path) -> None:
    done = narrows("identify", "bbr1", "--runs", "1", "-o", tmp_path / "bbr1", "--no-report")
    assert done.exit_code == 0, done.output
    assert re.search(r"most like bbr1, (0\.[6-9]|> 0\.99)", done.output)
    assert "decided by" in done.output
    shown = narrows("identify", tmp_path / "bbr1", "--json")
    document = json.loads(shown.stdout)
    jsonschema.validate(document, schema("identify"))
    naming = document["cards"][0]["naming"]
    assert naming["nearest"] == "bbr1" and naming["decisive"]
    assert "**most like bbr1" in narrows("identify", tmp_path / "bbr1", "--markdown").stdout


@pytest.mark.parametrize("width", [88.0, 120.0])
def test_figures_beside_the_nearest_reference_show_all_their_data(
    tmp_path: Path, width: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlays, "OPTIONS", Options(width))
    card = run_probes("bbr1", tmp_path / "bbr1", Order(SIMULATE, 1, probes=(LONG, SHORT)))
    (named,) = name_cards([card])
    drawn = list(overlays.draw_overlays(named))
    assert [kind for kind, _, _ in drawn] == ["queue", "flight"]
    for _, figure, caption in drawn:
        assert kit.problems(figure) == []
        sender, reference = figure.axes[0].get_lines()[:2]
        assert np.size(sender.get_ydata()) > 100 and np.size(reference.get_ydata()) == POINTS
        assert "beside a run of" in caption
    assert list(overlays.draw_overlays(card)) == []


def test_a_certain_name_ends_the_probing(tmp_path: Path) -> None:
    done = narrows(
        "identify", "bbr1", "--runs", "1", "--certainty", "0.6", "-o", tmp_path / "b", "--no-report"
    )
    assert done.exit_code == 0, done.output
    assert "its probe was not needed for the name" in " ".join(done.output.split())
    assert len(list((tmp_path / "b").glob("probe-*"))) < len(PROBES)


def test_an_unknown_sender_does_not_end_the_probing(library: Library, namer: Namer) -> None:
    rows = [row for row in library.references if family_of(name_of(row.scheme)) != "cubic"]
    others = Namer(replace(library, references=rows))
    card = simulate_card("cubic", OTHER_SEED, probes=(SHORT, LONG))
    own, strange = namer.name(card), others.name(card)
    assert own is not None and strange is not None
    assert best_of(own)[0] == "cubic" and best_of(strange)[0] == NONE
    assert next_probe.is_certain(namer, card, best_of(own)[1])
    assert not next_probe.is_certain(others, card, best_of(strange)[1])


def test_a_campaign_of_another_scenario_has_no_name(tmp_path: Path) -> None:
    folder = simulate(tmp_path / "small", SMALL)
    (card,) = json.loads(narrows("identify", folder, "--json").stdout)["cards"]
    assert card.get("naming") is None


def test_a_program_has_no_card_of_the_probe_that_needs_other_traffic() -> None:
    changes = [Override("--where", "where", "emulate"), Override("WHAT", "schemes", "[iperf3:cubic]")]
    loaded, reasons = load_probes(PROBES, changes)
    assert set(loaded) == set(PROBES) - {PAUSE}
    assert reasons == {PAUSE: "its probe needs traffic that the sender can't be given"}
    with pytest.raises(ScenarioError):
        load_probes(PROBES, [Override("WHAT", "schemes", "[{scheme: reno, beta: 2}]")])


def test_jitter_and_a_further_round_trip_move_with_the_path() -> None:
    reno = [Override("WHAT", "schemes", "[reno]")]
    (cell,) = cells_of(load_probe(TWO_RTTS, PathFactors(rtt=0.5, jitter_ms=2), reno).scenario)
    first, second = cell.flows
    assert cell.network.rtt_ns(first) == 10e6
    assert cell.network.rtt_ns(second) == 50e6
    assert [element.kind for element in cell.network.forward or ()][-1] == "jitter"
    # Words such as on are no booleans in scenarios.
    (cell,) = cells_of(load_probe(PAUSE, PathFactors(rtt=0.5), reno).scenario)
    assert cell.flows[0].traffic_kind == "onoff"


def test_a_scheme_that_is_unusually_varied_is_less_suspicious(namer: Namer) -> None:
    """The odds of none of these fall with what is usual for the nearest scheme."""
    fit = namer.fit(np.ones(len(namer.model.keys), bool))
    count = len(namer.model.schemes)
    likelihoods = np.full((2, count), -100.0)
    calm, varied = int(fit.usual.argmin()), int(fit.usual.argmax())
    likelihoods[0, calm] = likelihoods[1, varied] = 50.0
    surprises = np.full((2, count), float(fit.usual[varied]))
    shares, none = fit.probabilities(Sums(likelihoods, surprises, len(namer.model.keys)))
    assert none[0] > none[1]
    assert np.allclose(shares.sum(axis=1) + none, 1)
