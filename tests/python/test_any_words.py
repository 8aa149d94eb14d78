"""Names, titles, questions and labels over all of Unicode: everything that can be planned can be read back.

`NARROWS_SCENARIOS=10000 pytest tests/python/test_any_words.py` tries that many scenarios.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import narrows as api
from campaign_kit import narrows
from narrows.campaign.plan import make_plan
from narrows.campaign.store import CampaignFolder
from narrows.documents.agent import MachineFacts
from narrows.documents.campaign import Versions
from narrows.errors import DataError, ScenarioError
from narrows.scenario import loads
from narrows.scenario.loading import load_text
from narrows.scenario.slugs import LONGEST, Slugs, slug_of
from narrows.text import is_hidden

SCENARIOS = int(os.environ.get("NARROWS_SCENARIOS", "200"))
#: One scenario in this many is run as well.
RUN = 50
#: Known and likely trouble makers.
ODD = [
    *(
        "日本",
        "Δ",
        "+",
        "...",
        "-r1",
        ".",
        "..",
        ".hidden",
        "a/b",
        "a\\b",
        "~",
        "null",
        "true",
        "1",
        "=1+1",
        "@x",
    ),
    *(
        "\u200c",
        "\u200d",
        "\u202e",
        "\u2066",
        "\ufeff",
        "\u00a0",
        "\u00ad",
        "\u2028",
        "\u0085",
        "\u3164",
        "\ufe0f",
    ),
    *(
        "\U000e0041",
        "\U000e0100",
        "\U0001f600",
        "\U0001f468\u200d\U0001f469",
        "\ue000",
        "\ufdd0",
        "\uffff",
        "\u0378",
    ),
    *(
        "\ud800",
        "\udfff",
        "\t",
        "\n",
        "\r",
        "\0",
        "\x1b[31m",
        "\x7f",
        "a\u0301",
        "\u0301",
        "ﬁ",
        "Ⅳ",
        "ß",
        "İ",
    ),
    *(
        "<script>",
        "[red]x[/]",
        ":smile:",
        "%s",
        "{x}",
        "$x$",
        "'",
        '"',
        "#",
        "a: b",
        "- a",
        "&a",
        "*a",
        "!a",
        "|",
    ),
]
ANY_TEXT = st.one_of(
    st.sampled_from(ODD),
    st.text(st.characters(), min_size=1, max_size=12),
    st.lists(st.one_of(st.sampled_from(ODD), st.sampled_from("ab Z09é-.")), min_size=1, max_size=6).map(
        "".join
    ),
    st.text("abcXYZ019 .+-_äλж", min_size=1, max_size=45),
)


def quoted(text: str) -> str:
    """A text as a YAML scalar, whatever it contains."""
    plain = re.compile(r"[ !#-\[\]-~\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
    return '"' + "".join(x if plain.fullmatch(x) else f"\\U{ord(x):08x}" for x in text) + '"'


@st.composite
def scenarios(draw: st.DrawFn) -> str:
    """A scenario that takes some hundredths of a second, with arbitrary texts wherever a text is allowed."""

    def word() -> str:
        return quoted(draw(ANY_TEXT))

    lines = ["schema: narrows/scenario/1", "where: simulate", "duration: 150 ms"]
    lines.append("# " + draw(st.text("ab\tc\u00a0\u200d", max_size=5)))
    lines += [f"{key}: {word()}" for key in ("title", "question") if draw(st.booleans()) or key == "question"]
    names = [word() for _ in range(draw(st.integers(1, 3)))]
    known = draw(st.sampled_from(("reno", "cubic")))
    lines.append(f"schemes: [{', '.join(f'{{scheme: {known}, name: {name}}}' for name in names)}, vegas]")
    if draw(st.booleans()):
        lines.append(f"flows: [{{label: {word()}}}, {{label: {word()}, count: 2}}]")
    elements = "[{rate: 10 Mbit/s, queue: {droptail: 60 kB}}, {delay: 5 ms}]"
    network = draw(st.sampled_from(("path", "path", "network", "star")))
    if network == "path":
        lines.append(f"path: {{forward: {elements}}}")
    elif network == "network":
        link = f"{{between: [a, b], name: {word()}, forward: {elements}}}"
        lines.append(f"network: {{hosts: [a, b], links: [{link}]}}")
    else:
        lines.append(f"topology: {{star: {{center: {word()}, hosts: [a, b], up: {elements}}}}}")
    if network == "path" and draw(st.booleans()):
        lines.append(f"matrix: {{path.forward.0.rate: {{label: {word()}, values: [4 Mbit/s, 8 Mbit/s]}}}}")
    return "\n".join(lines) + "\n"


def any_number(examples: int) -> settings:
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        # Shrinking would run campaigns for minutes.
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def words_of(document: dict[str, Any]) -> list[str]:
    """The texts for people in a resolved scenario."""
    values = [word for row in document["schemes"] for word in row.get("values", {})]
    return [
        document["question"],
        document["title"] or "",
        *(row["label"] for row in document["schemes"]),
        *values,
    ]


@pytest.mark.timeout(60 + SCENARIOS)
@any_number(SCENARIOS)
@given(scenarios())
def test_a_campaign_that_is_planned_can_be_read_again(text: str) -> None:
    try:
        loaded = load_text(text)
    except ScenarioError as error:
        assert error.exit_code == 3 and all(one.position and one.text for one in error.problems)
        assert "\n" not in error.problems[0].text
        return
    plan = make_plan(loaded.scenario, MachineFacts())
    ids = [cell.id for cell in plan.cells]
    assert len({one.casefold() for one in ids}) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.+-]*-r1", one) and len(one) < 128 for one in ids), ids
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "campaign"
        CampaignFolder.create(path, loaded, plan, MachineFacts(), Versions(), ["narrows", "run"]).close()
        read = CampaignFolder.read(path)
    resolved = loaded.scenario.to_json()
    assert read.document["scenario"]["resolved"] == json.loads(json.dumps(resolved))
    assert read.document["scenario"]["written"] == text
    assert [(entry.id, entry.scheme) for entry in read.cells] == [
        (cell.id, cell.scheme) for cell in plan.cells
    ]
    assert all(word.strip() == word and not any(map(is_hidden, word)) for word in words_of(resolved))


# Letters that the fonts lack are drawn as boxes.
@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.timeout(240 + SCENARIOS)
@any_number(max(SCENARIOS // RUN, 4))
@given(scenarios())
def test_a_campaign_that_is_run_can_be_shown_checked_and_exported(text: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        file, folder = Path(place) / "any.yaml", Path(place) / "any"
        file.write_text(text, encoding="utf-8", newline="")
        done = narrows("run", file, "-o", folder, "--report", "html")
        if isinstance(done.exception, DataError):
            assert done.exception.exit_code == 3 and not folder.exists()
            return
        assert done.exit_code in (0, 6), (done.output, done.exception)
        for command in (
            ("show", folder),
            ("show", folder, "--json"),
            ("check", folder),
            ("ls", place),
            ("export", folder, "--format", "csv", "-o", Path(place) / "csv"),
            ("plot", "--figure", "throughput", folder, "-o", Path(place) / "figure.svg"),
            ("site", place, "-o", Path(place) / "site"),
            ("query", "select scheme from results", folder),
        ):
            result = narrows(*command)
            assert result.exit_code == 0, (command, result.output, result.exception)
        campaign = api.load(folder)
        planned = loads(text, "any.yaml")
        assert campaign.question == planned.question
        rows = campaign.results.to_pylist()
        assert {one.get("row") or one["scheme"] for one in rows} == {row.label for row in planned.schemes}


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("cubic beta=0.8", "cubic-beta-0.8"),
        ("linux:BBR", "linux-bbr"),
        ("über", "ber"),
        ("日本", "u65e5-u672c"),
        ("Δ", "u0394"),
        ("+", "u002b"),
        ("...", "u002e-u002e-u002e"),
        ("Ⅳ", "iv"),
        ("é", "e"),
        ("😀" * 9, "-".join(["u1f600"] * 8) + "-etc"),
    ],
)
def test_ordinary_names_keep_their_ids_and_others_are_spelt(text: str, slug: str) -> None:
    assert slug_of(text) == slug


def test_equal_slugs_are_numbered_past_those_that_are_taken() -> None:
    slugs = Slugs()
    made = [slugs.add("Δ") for _ in range(2000)]
    assert made[:3] == ["Δ", "Δ.2", "Δ.3"] and len(set(made)) == 2000
    again = Slugs()
    assert [again.add(one) for one in ("a", "a.2", "a", "a")] == ["a", "a.2", "a.3", "a.4"]
    assert len(again.add("x" * 200)) == LONGEST


@pytest.mark.parametrize(
    ("key", "value", "position", "letter"),
    [
        ("question", "a\u200cb", 2, "U+200C (ZERO WIDTH NON-JOINER)"),
        ("title", "ab\u202ec", 3, "U+202E (RIGHT-TO-LEFT OVERRIDE)"),
        ("question", "a\ufeffb", 2, "U+FEFF (ZERO WIDTH NO-BREAK SPACE)"),
        ("title", "a\u00a0b", 2, "U+00A0 (NO-BREAK SPACE)"),
        ("question", "a\U000e0041b", 2, "U+E0041 (TAG LATIN CAPITAL LETTER A)"),
        ("schemes", "a\u2066b", 2, "U+2066 (LEFT-TO-RIGHT ISOLATE)"),
        ("flows", "a\u3164b", 2, "U+3164 (HANGUL FILLER)"),
        ("matrix", "a\u00adb", 2, "U+00AD (SOFT HYPHEN)"),
    ],
)
def test_invisible_characters_are_refused_with_place_and_code(
    key: str, value: str, position: int, letter: str
) -> None:
    forms = {
        "schemes": f"schemes: [{{scheme: reno, name: {quoted(value)}}}]",
        "flows": f"flows: [{{label: {quoted(value)}}}]",
        "matrix": f"matrix: {{path.forward.0.rate: {{label: {quoted(value)}, values: [1 Mbit/s]}}}}",
    }
    text = "schema: narrows/scenario/1\nduration: 1 s\n"
    text += forms.get(key, f"{key}: {quoted(value)}") + "\n"
    text += "" if key == "question" else "question: Why?\n"
    text += "" if key == "schemes" else "schemes: [reno]\n"
    text += "path: {forward: [{rate: 10 Mbit/s}, {delay: 5 ms}]}\n"
    with pytest.raises(ScenarioError) as error:
        loads(text, "test.yaml")
    (problem,) = error.value.problems
    assert problem.position.startswith("test.yaml:3:")
    assert problem.text.startswith(f"character {position} is {letter}, which can't be seen")
