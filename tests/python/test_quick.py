"""Scenarios without a file, and the vocabulary of other tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrows.errors import ScenarioError, UsageError
from narrows.scenario import loads
from narrows.scenario.overrides import Override, split_list
from narrows.scenario.quantity import SPELLINGS, UNITS, parse
from narrows.scenario.quick import QuickPath, quick_scenario
from test_cli import call

BASE = """\
schema: narrows/scenario/1
path:
  forward: [{rate: 12 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 20 ms}]
schemes: [cubic]
duration: 10 s
"""


def refusals(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        loads(text)
    return str(caught.value).splitlines()


# -- scenarios -----------------------------------------------------------------------------------


def test_options_are_the_scenario_that_they_print() -> None:
    path = QuickPath(rate="12Mbps", delay="20 ms", queue="droptail 60 kB", loss="1%")
    changes = [
        Override("--schemes", "schemes", split_list("cubic,linux:bbr")),
        Override("--runs", "runs", "3"),
    ]
    loaded = quick_scenario(path, changes)
    again = loads(loaded.text)
    assert again.hash == loaded.scenario.hash
    assert "- {rate: 12Mbps, queue: {droptail: 60 kB}}\n    - {delay: 20 ms}\n    - {loss: 1%}" in loaded.text
    assert again.runs == 3
    assert [row.label for row in again.schemes] == ["cubic", "linux:bbr"]


def test_a_queue_is_a_word_an_amount_or_both() -> None:
    def queue(text: str | None) -> dict[str, object]:
        loaded = quick_scenario(QuickPath(rate="12 Mbit/s", delay="20 ms", queue=text), [])
        found: dict[str, object] = loaded.scenario.to_json()["network"]["forward"][0]["queue"]
        return found

    assert queue(None) == queue("1 bdp") == queue("60 kB") == queue("droptail: 60 kB")
    assert queue("codel")["kind"] == "codel"
    assert queue("{codel: {target: 10 ms}}")["target"] == 10_000_000


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (QuickPath(), "name a scenario"),
        (QuickPath(queue="1 bdp"), "--queue: a queue stands before a rate"),
        (QuickPath(rate="1 Mbit/s", trace="x"), "--trace: a trace takes the place of the rate"),
    ],
)
def test_options_that_make_no_path(path: QuickPath, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        quick_scenario(path, [])


def test_errors_in_an_option_name_it() -> None:
    path = QuickPath(rate="12 Mbs", delay="20", queue="droptail 60 KB")
    with pytest.raises(ScenarioError) as caught:
        quick_scenario(path, [Override("--time", "duration", "10 m")])
    said = str(caught.value)
    assert '--rate: unknown unit "Mbs"; did you mean "Mbit/s"?' in said
    assert "--delay: 20 has no unit" in said
    assert '--queue: path.forward.0.queue.droptail: unknown unit "KB"; write kB (1000 bytes)' in said
    assert '--time: duration: unknown unit "m"; write min or ms' in said


texts = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=12)


@given(st.lists(texts, min_size=1, max_size=4))
def test_arbitrary_text_is_preserved_in_scenarios(words: list[str]) -> None:
    from narrows.scenario.quick import text_of
    from narrows.scenario.yaml_tree import Mapping, Mark, Scalar, Sequence
    from narrows.scenario.yaml_tree import parse as read

    mark = Mark("test")
    items = Sequence(mark, [Mapping(mark, {word: Scalar(mark, word)}) for word in words])
    tree = read(text_of(Mapping(mark, {"list": items})), "test")
    found = tree.entries["list"]
    assert isinstance(found, Sequence)
    got = [next(iter(item.entries.items())) for item in found.items if isinstance(item, Mapping)]
    # Spaces at the ends of a value are ignored.
    assert [(key.strip(), getattr(value, "text", None)) for key, value in got] == [
        (word.strip(), word.strip()) for word in words
    ]


# -- the command line ----------------------------------------------------------------------------


def test_a_run_without_a_file(tmp_path: Path) -> None:
    options = ["--rate", "12 Mbit/s", "--delay", "20 ms", "--schemes", "cubic,reno", "-t", "2", "--no-report"]
    done = call("run", *options, "-o", "quick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("schema: narrows/scenario/1\n")
    assert "cubic" in done.stdout.rpartition("duration: 2 s")[2]
    document = json.loads((tmp_path / "quick" / "campaign.json").read_text())
    assert document["scenario"]["written"] in done.stdout
    assert document["scenario"]["resolved"]["question"] == ""


def test_a_scenario_from_standard_input(tmp_path: Path) -> None:
    import processes
    from test_cli import PROGRAM

    arguments = [PROGRAM, "run", "-", "--dry-run", "--json"]
    done = processes.run(arguments, cwd=tmp_path, text=BASE)
    assert done.returncode == 0, done.stderr
    assert [cell["id"] for cell in json.loads(done.stdout)["cells"]] == ["cubic-r1"]
    done = processes.run(arguments, cwd=tmp_path, text=BASE.replace("20 ms", "20"))
    assert done.returncode == 3
    assert done.stderr.startswith("standard input:3:")


def test_a_path_in_words_changes_no_scenario() -> None:
    done = call("run", "one-flow", "--rate", "5 Mbit/s", "--dry-run")
    assert done.returncode == 2
    assert "--set path.forward.0.rate" in done.stderr
    done = call("run")
    assert done.returncode == 2
    assert "narrows run --rate" in done.stderr


def test_init_writes_a_scenario_that_runs(tmp_path: Path) -> None:
    done = call("init", "mine.yaml", "--rate", "5 Mbps", "--schemes", "reno", "--flows", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = call("run", "mine.yaml", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "5 Mbit/s" in done.stdout
    assert "flows     2" in done.stdout
    before = (tmp_path / "mine.yaml").read_text()
    done = call("init", "mine.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert (tmp_path / "mine.yaml").read_text() == before


def test_events_describe_the_course_of_a_campaign(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(BASE.replace("10 s", "1 s"))
    done = call("run", "s.yaml", "--events", "--no-report", "--runs", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    names = [event["event"] for event in events if event["event"] != "progress"]
    assert names[0] == "campaign"
    assert names[-2:] == ["measure", "done"]
    assert sorted(names[1:-2]) == ["end", "end", "start", "start"]
    assert events[0]["format"] == "narrows/events/1"
    assert events[-1]["verdicts"] == {"ok": 2}
    assert events[-1]["exit_code"] == 0


def test_events_end_with_the_error(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(BASE.replace("[cubic]", "[linux:cubic]"))
    done = call("run", "s.yaml", "--events", cwd=tmp_path)
    assert done.returncode == 4
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["event"] == "error"
    assert last["exit_code"] == 4
    assert "needs a real kernel" in last["message"]


# -- habits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("duration:", "ecn: true\nduration:", ("ecn: unknown key; ", "transport: {ecn: true}", "tcp_ecn")),
        ("duration:", "rtt: 40 ms\nduration:", ("rtt: unknown key; ", "RTT of 40 ms")),
        ("duration:", "cross_traffic: []\nduration:", ("cross_traffic: unknown key; ", "background")),
        (
            "{delay: 20 ms}",
            "{trace: up.trace}",
            ("path.forward.1.trace: unknown key; ", "{rate: {trace: up.trace}}"),
        ),
        (
            "{delay: 20 ms}",
            "{trace: up.trace, queue: {droptail: 9 packets}}",
            (
                "path.forward.1.trace: unknown key; ",
                "{rate: {trace: up.trace}, queue: {droptail: 9 packets}}",
            ),
        ),
        ("{delay: 20 ms}", "{wifi: {rate: 14 Mbit/s}}", ("{rate: {wifi: {rate: 14 Mbit/s}}}",)),
        (
            "{delay: 20 ms}",
            "{bandwidth: 4 Mbit/s, queue: {codel: {}}}",
            ("path.forward.1.bandwidth: unknown key; the key is rate: {rate: 4 Mbit/s, queue: {codel: {}}}",),
        ),
        (
            "{delay: 20 ms}",
            "{droptail: 9 packets}",
            ("droptail is a queue, which stands before a rate", "queue: {droptail: 9 packets}}"),
        ),
        (
            "{delay: 20 ms}",
            "{rate: 9 Mbit/s, droptail: 9 packets}",
            ("droptail is a queue; write queue: {droptail: 9 packets}",),
        ),
        ("{delay: 20 ms}", "{rate: 9 Mbit/s, trace: a}", ("the rate is given twice",)),
        ("{delay: 20 ms}", "{queue: codel}", ("a queue belongs to a bottleneck", "queue: codel}")),
        ("{delay: 20 ms}", "{delay: 0.02}", ("0.02 has no unit; write a time, for example 20 ms or 20 us",)),
        ("{delay: 20 ms}", "{rate: 9 Mbit/s, queue: {droptail: 100}}", ("100 kB or 100 packets",)),
        ("{delay: 20 ms}", "{rate: 9 Mbit/s, queue: {droptail: 2}}", ("2 bdp, 2 kB or 2 packets",)),
        ("{delay: 20 ms}", "{rate: 12000000}", ("for example 12 Mbit/s",)),
        ("duration:", "warmup: 5 s\nduration:", ("warmup: unknown key; ", "measure: {from: 5 s}")),
        ("duration:", "measure: {warmup: 5 s}\nduration:", ("the key is from: measure: {from: 5 s}",)),
        ("duration:", "\tseed: 3\nduration:", ("a tab begins or separates", "spaces only")),
        ("duration:", "title: a: b\nduration:", ("put a text with a colon in it in quotes",)),
        ("[cubic]", "[{scheme: remy, model: }]", ("must be the name of a model",)),
        ("[cubic]", "[{linux: bbr}]", ("schemes.0: ", "linux:bbr")),
        ("[cubic]", "[bbr]", ('unknown scheme "bbr"; did you mean bbr1, bbr3 or linux:bbr?',)),
        ("[cubic]", "[{cubic: {beta: 0.8}}]", ("{scheme: cubic, ...}",)),
        ("  forward:", "  rate: 12 Mbit/s\n  forward:", ("path.rate: unknown key; ", "forward: [{rate:")),
    ],
)
def test_words_of_other_tools_are_answered_with_ours(before: str, after: str, words: tuple[str, ...]) -> None:
    (line,) = [one for one in refusals(BASE.replace(before, after, 1)) if "needs a constant" not in one]
    for word in words:
        assert word in line, line


def test_spellings_of_units_mean_ours() -> None:
    assert parse("12 Mbps").value == parse("12 Mbit/s").value == 12_000_000
    assert parse("12 Mbits/sec").kind == "rate"
    assert parse("1.5 seconds").value == parse("1500 msec").value
    # Each spelling has one meaning.
    assert not set(SPELLINGS) & {"m", "kb", "KB", "Mb"}
    assert set(UNITS) < set(SPELLINGS)


def test_a_question_is_not_required() -> None:
    assert loads(BASE).question == ""


# -- help ----------------------------------------------------------------------------------------


def test_every_command_stands_in_one_section_whole() -> None:
    from narrows.cli.all_commands import app

    commands = list(app.commands)
    lines = call("--help").stdout.partition("\nRun:\n")[2].splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ") and line.strip()]
    assert sorted(listed) == sorted(commands)
    assert not any(line.endswith("...") for line in lines)


def test_the_manual_page_has_every_command() -> None:
    done = call("man")
    assert done.returncode == 0
    for title in ("run", "trace make cellular", "hosts check", "compare"):
        assert f".SS {title}\n" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.startswith("'")]


def test_words_complete() -> None:
    from narrows.cli import completion

    assert completion.scenario_names("first-l") == ["first-look"]
    assert "cubic-linux" in completion.scheme_names("cubic")
    assert "reno,bbr1" in completion.scheme_lists("reno,bbr")
    assert "delay-cdf" in completion.figure_names("delay")


def test_a_folder_hides_no_shipped_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `narrows run first-look -o first-look`."""
    from narrows.scenario import shipped

    monkeypatch.chdir(tmp_path)
    known = {one.name: one.path for one in shipped.list_scenarios()}
    for name in ("first-look", "ncsu/rtt-fairness"):
        (tmp_path / name).mkdir(parents=True)
        assert shipped.find(name) == known[name.rpartition("/")[2]]
