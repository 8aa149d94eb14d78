"""`narrows cite`: the bibliography is complete, and BibTeX itself reads every entry."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from campaign_kit import simulate
from narrows.cite import bibliography
from narrows.cite.bibliography import cite_scheme, find_gaps, load, parse
from narrows.cite.bibtex import write_entries, write_entry
from narrows.cite.usage import list_names
from narrows.cli.all_commands import app
from narrows.documents.publications import Publication
from narrows.errors import DataError
from narrows.files import find_shipped_labs, find_shipped_programs
from narrows.scenario import registry
from narrows.traces.store import find_shipped_folder, list_traces

ROOT = Path(__file__).parents[2]
#: Every family has something in it, and the scheme of the background counts, too.
SCENARIO = """\
schema: narrows/scenario/1
name: cited
question: What is there to cite?
where: simulate
path:
  forward:
    - {rate: {trace: cellular-walk.csv}, queue: {codel: {}}}
    - {delay: 20 ms}
    - {gilbert: {p: 1 %, r: 50 %}}
schemes: [cubic, {remy: tao}]
background: [{scheme: reno, traffic: {web: 1 Mbit/s}}]
duration: 1 s
runs: 1
"""


def run(*words: str) -> str:
    """The output of a command that succeeds."""
    result = CliRunner().invoke(app, ["cite", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def cited(text: str) -> list[str]:
    """The keys of the entries, in order."""
    return re.findall(r"^@\w+\{([^,]+),$", text, re.MULTILINE)


def test_every_scheme_queue_trace_program_and_laboratory_has_an_entry() -> None:
    core = registry.load()
    labs = [path.parent.name for path in (find_shipped_labs() or ROOT / "labs").glob("*/lab.yaml")]
    programs = [f"{path.stem}:any" for path in (find_shipped_programs() or ROOT / "programs").glob("*.yaml")]
    traces = [path.name for path in list_traces(find_shipped_folder())]
    assert labs and programs and traces
    assert find_gaps([*core.schemes, *core.bpf, *programs], core.queues, traces, labs) == []


def test_a_scheme_without_an_entry_is_reported_with_the_place_of_the_missing_line() -> None:
    (sentence,) = find_gaps(["brand-new"])
    assert sentence == (
        "scheme brand-new has no publication: add a line to [schemes] in"
        ' python/narrows/cite/publications.toml, a list of keys or { unpublished = "why" }'
    )
    assert "[programs]" in find_gaps(["mine:fast"])[0]


def test_names_in_the_bibliography_exist() -> None:
    core, known = registry.load(), load()
    for family, there in (
        (known.schemes, core.schemes),
        (known.queues, core.queues),
        (known.rates, core.rates),
        (known.links, core.links),
        (known.traffic, core.traffic),
    ):
        assert family.keys() <= there.keys()


def test_every_publication_is_cited_by_something() -> None:
    known = load()
    families = bibliography._families(known).values()
    used = {key for family in families for keys in family.values() if isinstance(keys, list) for key in keys}
    assert used | {"narrows"} == set(known.publications)


def test_a_bibliography_that_names_an_unknown_publication_is_refused() -> None:
    text = (ROOT / "python/narrows/cite/publications.toml").read_text(encoding="utf-8")
    with pytest.raises(DataError, match=r"scheme bic: there is no publication xu2005"):
        parse(text.replace('bic = ["xu2004"]', 'bic = ["xu2005"]', 1))
    with pytest.raises(DataError, match=r"publications\.toml: .*type"):
        parse(text.replace('type = "article"', 'type = "novel"', 1))


def test_narrows_is_cited_as_its_citation_file_says() -> None:
    wanted = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    text = run()
    assert cited(text) == ["narrows"]
    assert f"title = {{{{{wanted['title']}}}}}," in text
    assert f"author = {{{{{wanted['authors'][0]['name']}}}}}," in text
    assert f"note = {{Version {wanted['version']}}}," in text


def test_dois_and_rfcs_have_their_form() -> None:
    for key, publication in load().publications.items():
        doi = publication.full_doi
        assert doi is None or re.fullmatch(r"10\.\d{4,5}/[A-Za-z0-9.]+", doi), key
        if publication.type == "rfc":
            assert key == f"rfc{publication.rfc}"
        if publication.type == "draft":
            assert (publication.number or "").startswith("draft-")


def test_a_campaign_cites_all_that_it_used(tmp_path: Path) -> None:
    simulate(tmp_path / "c", SCENARIO)
    document = json.loads(run(str(tmp_path / "c"), "--json"))
    used = {(entry["kind"], entry["name"]): entry for entry in document["used"]}
    assert set(used) == {
        ("narrows", "Narrows"),
        ("scheme", "cubic"),
        ("scheme", "remy"),
        ("scheme", "reno"),
        ("queue", "codel"),
        ("rate", "trace"),
        ("link", "gilbert"),
        ("traffic", "web"),
        ("trace", "cellular-walk.csv"),
    }
    assert used["trace", "cellular-walk.csv"]["keys"] == []
    assert "cellular model" in used["trace", "cellular-walk.csv"]["why_none"]
    assert cited(document["bibtex"]) == list(document["publications"])
    assert {"rfc9438", "winstein2013remy", "rfc8289", "gilbert1960"} <= set(document["publications"])
    # A cell stands for its campaign, and a file has the same text.
    cell = next((tmp_path / "c" / "cells").iterdir())
    assert run(str(cell)) == document["bibtex"]
    assert run(str(cell), "-o", str(tmp_path / "a.bib")) == f"citations: {tmp_path / 'a.bib'}\n"
    assert (tmp_path / "a.bib").read_text(encoding="ascii") == document["bibtex"]


def test_a_trace_of_the_users_is_named_and_not_taken_for_a_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "cellular-walk.csv").write_text("time_s,rate_mbps\n0,1\n1,2\n")
    simulate(tmp_path / "c", SCENARIO.replace("trace: cellular-walk", "trace: ./cellular-walk"))
    assert "% trace cellular-walk.csv: nothing to cite: it does not come with Narrows" in run(
        str(tmp_path / "c")
    )


def test_laboratories_are_cited_by_their_campaigns(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    simulate(tmp_path / "lab" / "fairness", SCENARIO)
    note = {"format": "narrows/lab-run/1", "lab": "ncsu", "family": "/x", "where": "simulate"}
    (tmp_path / "lab" / "lab.json").write_text(json.dumps(note))
    assert "% laboratory ncsu: ha2006, ha2008" in run(str(tmp_path / "lab"))
    assert run(str(tmp_path / "lab")) == run(str(tmp_path / "lab" / "fairness"))
    (tmp_path / "lab" / "lab.json").write_text(json.dumps({**note, "lab": 3}))
    result = CliRunner().invoke(app, ["cite", str(tmp_path / "lab")])
    assert isinstance(result.exception, DataError) and "lab.json: is damaged" in str(result.exception)


def test_names_are_cited_whatever_they_name() -> None:
    assert cited(run("copa")) == ["narrows", "arun2018", "generic-cc"]
    assert cited(run("bpf:copa")) == cited(run("copa"))
    assert cited(run("linux:bbr")) == ["narrows", "cardwell2016", "linux"]
    assert cited(run("linux:cdg")) == ["narrows", "linux"]
    assert cited(run("quiche:cubic")) == ["narrows", "quiche"]
    assert cited(run("ncsu")) == ["narrows", "ha2006", "ha2008"]
    assert "% scheme policy: nothing to cite: it runs a network of yours" in run("policy")
    for name in list_names():
        run(name)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("codell", 'there is neither a folder nor a thing "codell"; did you mean "codel"?'),
        ("wholly:other", 'there is neither a folder nor a thing "wholly:other"; name the folder'),
    ],
)
def test_an_unknown_name_is_refused_in_one_sentence(word: str, said: str) -> None:
    result = CliRunner().invoke(app, ["cite", word])
    assert isinstance(result.exception, DataError)
    assert str(result.exception).startswith(said)


def test_given_names_that_look_like_particles_stay_given_names() -> None:
    def author(name: str) -> str:
        entry = write_entry("x", Publication(type="misc", title="T", authors=[name]))
        return str(re.findall(r"author = \{(.*)\},", entry)[0])

    assert author("Van Jacobson") == "Jacobson, Van"
    assert author("Luca De Cicco") == "De Cicco, Luca"
    assert author("Thomas Pötsch") == 'P{\\"{o}}tsch, Thomas'


# -- read by BibTeX --------------------------------------------------------------------------------


def read_by_bibtex(text: str, folder: Path) -> str:
    """The list of references that BibTeX makes of all entries; it must not complain."""
    if shutil.which("bibtex") is None:
        pytest.skip("BibTeX is not installed")
    (folder / "all.bib").write_text(text, encoding="ascii")
    (folder / "all.aux").write_text("\\citation{*}\n\\bibstyle{alpha}\n\\bibdata{all}\n")
    done = subprocess.run(["bibtex", "all"], cwd=folder, capture_output=True, text=True, check=False)
    said = [line for line in done.stdout.splitlines() if line.startswith("Warning--") or "error" in line]
    # A number without a series is reported by the style for no entry; years are absent where unknown.
    assert done.returncode == 0, done.stdout
    assert [line for line in said if "empty year" not in line] == []
    return (folder / "all.bbl").read_text(encoding="ascii")


def test_bibtex_reads_every_publication_without_a_complaint(tmp_path: Path) -> None:
    known = load()
    used = [cite_scheme(name) for name in known.schemes]
    listed = read_by_bibtex(write_entries(known.publications, used), tmp_path)
    assert sorted(re.findall(r"\\bibitem\[[^\]]*\]\{([^}]*)\}", listed.replace("%\n", ""))) == sorted(
        known.publications
    )
    assert "Van Jacobson" in listed and r"P{\"{o}}tsch" in listed


@given(
    title=st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=20),
    name=st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=10),
)
def test_any_title_and_name_leave_braces_balanced(title: str, name: str) -> None:
    entry = write_entry("x", Publication(type="misc", title=title, authors=[name, f"A {name}"], year=2000))
    assert entry.isascii()
    depth = 0
    for letter in re.sub(r"\\[{}]", "", entry):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        assert depth >= 0
    assert depth == 0
