"""Models that come with Narrows behind those of the user, and lists of models in scenarios."""

from __future__ import annotations

import json
import os
import re
import shutil
import string
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import forked_commands
import lab_kit
import model_kit
from narrows.campaign.plan import make_plan
from narrows.documents.agent import MachineFacts
from narrows.errors import DataError, ScenarioError, UnavailableError
from narrows.files import SHIPPED, USERS
from narrows.models import store
from narrows.scenario import load
from narrows.scenario.shipped import list_scenarios
from test_models import SCENARIO, scenario


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of models, empty, and a folder of shipped ones."""
    monkeypatch.delenv("NARROWS_MODELS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    shipped = model_kit.ship(tmp_path / "shipped")
    monkeypatch.setenv("TEST_SHIPPED", str(shipped))
    monkeypatch.setattr(store, "find_shipped_folder", lambda: shipped)
    folder = store.user_folder()
    folder.mkdir(parents=True)
    return folder


def narrows(*arguments: str | Path, cwd: Path) -> Any:
    variables = {**os.environ, "COLUMNS": "200"}
    done = forked_commands.run_in(variables, arguments, cwd, program="shipped_cli")
    assert "Traceback" not in done.stderr, done.stderr
    return done


def add(home: Path, name: str, content: bytes | None = None) -> None:
    (home / f"{name}.safetensors").write_bytes(content or model_kit.small_network(units=7))


def chosen(schemes: str, folder: Path | None = None) -> list[tuple[str, str]]:
    """The label and the file of the model of each row."""
    rows = scenario(schemes, folder).schemes
    params = [(row.label, row.flows[0].params.get("model")) for row in rows]
    return [(label, str(model["name"]) if isinstance(model, dict) else "") for label, model in params]


def refusal(schemes: str, folder: Path | None = None) -> str:
    with pytest.raises(ScenarioError) as error:
        scenario(schemes, folder)
    assert error.value.exit_code == 3
    assert "\n" not in str(error.value)
    return str(error.value)


# -- the folders -------------------------------------------------------------------------------------


def test_both_folders_are_listed_with_their_origins(tmp_path: Path, home: Path) -> None:
    add(home, "mine")
    add(home, "indigo")
    models = json.loads(narrows("models", "list", "--json", cwd=tmp_path).stdout)["models"]
    told = [(one["name"], one["origin"], one["hides_shipped"], one["hidden"]) for one in models]
    assert told == [
        ("aurora", SHIPPED, False, False),
        ("indigo", USERS, True, False),
        ("indigo", SHIPPED, False, True),
        ("indigo-1-128", SHIPPED, False, False),
        ("indigo-no-calib", SHIPPED, False, False),
        ("mine", USERS, False, False),
        ("muses", SHIPPED, False, False),
        ("tao", SHIPPED, False, False),
    ]
    text = narrows("models", "list", cwd=tmp_path).stdout
    assert "yours; hides the model that comes with Narrows" in text
    assert "trained by Narrows; yours is used" in text
    assert "no models are installed" not in text


def test_the_card_of_a_shipped_model_is_shown(tmp_path: Path) -> None:
    shown = narrows("models", "show", "indigo", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for fact in (
        "trained by Narrows",
        "trained_by Narrows",
        "recipe     test",
        "seed       1",
        "score      0.95",
    ):
        assert fact in shown.stdout, (fact, shown.stdout)
    assert re.search(r"card +.*indigo\.md", shown.stdout)


def test_a_shipped_model_is_not_removed(tmp_path: Path, home: Path) -> None:
    kept = sorted((tmp_path / "shipped").iterdir())
    done = narrows("models", "remove", "tao", cwd=tmp_path)
    assert done.returncode == 3
    assert (
        done.stderr.count("\n") == 1
        and "the model tao comes with Narrows and can't be removed" in done.stderr
    )
    assert sorted((tmp_path / "shipped").iterdir()) == kept
    add(home, "tao", model_kit.small_table())
    assert narrows("models", "remove", "tao", cwd=tmp_path).returncode == 0
    assert not (home / "tao.safetensors").exists()
    assert store.find_installed("tao") == tmp_path / "shipped" / "tao.safetensors"


def test_a_model_of_the_same_name_is_used_in_place_of_the_shipped_one(tmp_path: Path, home: Path) -> None:
    (tmp_path / "mine.safetensors").write_bytes(model_kit.small_network(units=7))
    before = scenario("[{indigo: indigo}]")
    done = narrows("models", "add", "indigo", "mine.safetensors", cwd=tmp_path)
    assert done.returncode == 0 and "in place of the model of that name" in done.stdout, done.stderr
    after = scenario("[{indigo: indigo}]")
    assert before.schemes[0].flows[0].has_own_model
    assert after.schemes[0].flows[0].has_own_model is False
    assert store.names_of_kind("indigo") == ("indigo", "indigo-1-128", "indigo-no-calib")


def test_a_damaged_model_of_the_user_is_reported_and_not_replaced(home: Path) -> None:
    add(home, "indigo", b"?")
    assert "not a model file" in refusal("[{indigo: indigo}]")


def test_a_suggestion_names_shipped_models() -> None:
    with pytest.raises(DataError, match='did you mean "muses"'):
        store.remove("musas")
    assert 'did you mean "indigo-1-128"' in store.how_to_add("indigo-1-12")


# -- lists -------------------------------------------------------------------------------------------


def test_the_first_model_at_hand_runs_and_names_the_row(home: Path) -> None:
    schemes = "[{indigo: [indigo-1-32, indigo]}, {remy: [tao-100x, tao], slack: 0}]"
    assert chosen(schemes) == [
        ("indigo model=indigo", "indigo.safetensors"),
        ("remy model=tao slack=0", "tao.safetensors"),
    ]
    add(home, "indigo-1-32")
    assert chosen(schemes)[0] == ("indigo model=indigo-1-32", "indigo-1-32.safetensors")
    assert chosen("[{scheme: indigo, model: [none, indigo]}]")[0][0] == "indigo model=indigo"


def test_files_are_at_hand_if_they_exist(tmp_path: Path) -> None:
    schemes = "[{remy: [t.dna, tao]}]"
    assert chosen(schemes, tmp_path)[0][1] == "tao.safetensors"
    (tmp_path / "t.dna").write_bytes(model_kit.table(4))
    assert chosen(schemes, tmp_path) == [("remy model=t.dna", "t.safetensors")]
    model_kit.checkpoint(tmp_path / "net", model_kit.tensors(9, 3, 1))
    assert chosen("[{indigo: [net/model, indigo]}]", tmp_path)[0][1] == "model.safetensors"


def test_the_choice_is_explained_and_not_part_of_the_scenario(home: Path) -> None:
    made = scenario("[{indigo: [a, b, indigo]}]")
    assert made.hash == scenario("[{indigo: indigo}]").hash
    plan = make_plan(made, MachineFacts())
    (note,) = plan.notes
    where, _, text = note.partition(" schemes.0.model: ")
    assert where == "test.yaml:9:20:"
    assert text == "indigo (trained by Narrows) is used, since neither a nor b is at hand"
    add(home, "b")
    (note,) = make_plan(scenario("[{indigo: [a, b, indigo]}]"), MachineFacts()).notes
    assert note.endswith("b is used, since a is not at hand")
    add(home, "a")
    assert make_plan(scenario("[{indigo: [a, b, indigo]}]"), MachineFacts()).notes == []


def test_a_list_without_a_model_at_hand_is_skipped_like_its_first_name() -> None:
    plan = make_plan(scenario("[reno, {indigo: [x.safetensors, a, b]}]"), MachineFacts())
    (skipped,) = plan.skipped
    assert skipped.scheme == "indigo model=a" and "narrows models add a PATH" in skipped.reason
    (note,) = plan.notes
    assert "none of x.safetensors, a and b is at hand" in note
    with pytest.raises(UnavailableError, match="narrows models add a PATH"):
        make_plan(scenario("[{indigo: [a, b]}]"), MachineFacts())
    assert 'file "x.dna" does not exist' in refusal("[{remy: [x.dna, y.dna]}]")


@pytest.mark.parametrize(
    "schemes",
    [
        "[{indigo: [indigo-2-256, indigo-1-128]}, {indigo: indigo-1-128}]",
        "[{indigo: indigo-1-128}, {indigo: [indigo-2-256, indigo-1-128]}]",
        "[{indigo: indigo-1-128}, {indigo: [indigo-2-256, indigo-1-128], name: big}]",
        "[{indigo: [a, indigo-1-128]}, {indigo: [indigo-2-256, indigo-1-128]}]",
    ],
)
def test_a_row_whose_choice_is_a_row_already_is_left_out(schemes: str, home: Path) -> None:
    made = scenario(schemes)
    assert [row.label for row in made.schemes] == ["indigo model=indigo-1-128"]
    notes = make_plan(made, MachineFacts()).notes
    (told,) = [note for note in notes if "is left out" in note]
    assert "not at hand, and indigo model=indigo-1-128 is in the list already" in told
    add(home, "indigo-2-256")
    assert len(scenario(schemes).schemes) == 2


def test_other_parameters_make_another_row() -> None:
    schemes = "[{indigo: indigo-1-128}, {indigo: [a, indigo-1-128], header: 0 B}]"
    assert len(scenario(schemes).schemes) == 2
    # Without a list it is a mistake.
    assert "in the list already" in refusal("[{indigo: indigo}, {indigo: indigo}]")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("[]", "test.yaml:9:20: schemes.0.model: is an empty list"),
        ("[indigo, indigo]", "test.yaml:9:29: schemes.0.model.1: indigo is in the list already"),
        ("[1, indigo]", "test.yaml:9:21: schemes.0.model.0: must be the name of a model"),
        ("[indigo, true]", "schemes.0.model.1: must be the name of a model"),
        ("[indigo, ]", None),
        ("[indigo, ~]", "schemes.0.model.1: must be the name of a model"),
        ("['', indigo]", "schemes.0.model.0: must be the name of a model"),
        ("[[indigo]]", "schemes.0.model.0: must be the name of a model"),
        ("[{indigo: indigo}]", "schemes.0.model.0: must be the name of a model"),
        ("[tao, indigo]", "is of the kind remy, where a model of the kind indigo is needed"),
        (
            "[indigo, tao]",
            "schemes.0.model.1: tao is of the kind remy, where a model of the kind indigo is needed",
        ),
        ("[none, muses, indigo]", "is of the kind muses, where a model of the kind indigo is needed"),
        ("[junk.dna, indigo]", "is neither a model file"),
    ],
)
def test_bad_lists_are_refused_in_one_sentence(tmp_path: Path, written: str, told: str | None) -> None:
    (tmp_path / "junk.dna").write_bytes(b"\xff\xfe")
    if told is None:
        assert chosen(f"[{{indigo: {written}}}]", tmp_path)[0][1] == "indigo.safetensors"
    else:
        assert told in refusal(f"[{{indigo: {written}}}]", tmp_path)


NAMES = st.lists(
    st.text(string.ascii_letters + string.digits + "-", min_size=1, max_size=12).filter(
        lambda text: text[0].isalpha() and text.lower() not in ("true", "false", "null")
    ),
    min_size=1,
    max_size=6,
    unique=True,
)


@given(NAMES, st.sets(st.integers(0, 5)), st.sets(st.integers(0, 5)))
def test_any_list_means_its_first_model_at_hand(names: list[str], users: set[int], shipped: set[int]) -> None:
    with tempfile.TemporaryDirectory() as text, pytest.MonkeyPatch.context() as patch:
        folders = Path(text) / "users", Path(text) / "shipped"
        patch.setenv("NARROWS_MODELS", str(folders[0]))
        patch.setattr(store, "find_shipped_folder", lambda: folders[1])
        for folder, places in zip(folders, (users, shipped), strict=True):
            folder.mkdir()
            for place in places & set(range(len(names))):
                notes = {"trained_by": "Narrows"} if folder is folders[1] else {}
                add(folder, names[place], model_kit.small_network(notes=notes))
        at_hand = [place for place in range(len(names)) if place in users | shipped]
        listed = scenario(f"[reno, {{indigo: [{', '.join(names)}]}}]")
        expected = names[at_hand[0]] if at_hand else names[0]
        alone = scenario(f"[reno, {{indigo: {expected}}}]")
        assert listed.to_json() == alone.to_json()
        assert listed.schemes[1].label == f"indigo model={expected}"
        assert listed.schemes[1].flows[0].has_own_model == bool(at_hand and at_hand[0] not in users)
        assert bool(listed.files.choices) == (at_hand[0] > 0 if at_hand else len(names) > 1)


# -- everywhere --------------------------------------------------------------------------------------


def test_a_campaign_records_its_choice(tmp_path: Path, home: Path) -> None:
    add(home, "mine")
    text = SCENARIO.replace("SCHEMES", "[{indigo: [indigo-1-32, indigo]}, {indigo: mine}]")
    (tmp_path / "s.yaml").write_text(text)
    planned = narrows("run", "s.yaml", "--dry-run", cwd=tmp_path)
    assert "note: s.yaml:9:20: schemes.0.model: indigo (trained by Narrows) is used" in planned.stdout
    done = narrows("run", "s.yaml", "--where", "simulate", "--no-report", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "indigo (trained by Narrows) is used, since indigo-1-32 is not at hand" in done.stderr
    campaign = json.loads((tmp_path / "out/campaign.json").read_text())
    assert campaign["choices"] == [
        "schemes.0.model: indigo (trained by Narrows) is used, since indigo-1-32 is not at hand"
    ]
    shutil.rmtree(home)
    shutil.rmtree(tmp_path / "shipped")
    again = narrows("check", "out", cwd=tmp_path)
    assert again.returncode == 0, again.stdout
    assert "indigo (trained by Narrows) is used, since indigo-1-32 is not at hand" in again.stdout


def test_flows_and_backgrounds_name_lists_as_well(tmp_path: Path) -> None:
    text = SCENARIO.replace("schemes: SCHEMES", "flows: [{scheme: reno}, {scheme: {indigo: [a, indigo]}}]")
    text += "background: [{scheme: {muses: [b, muses]}}]\n"
    (tmp_path / "s.yaml").write_text(text)
    done = narrows("run", "s.yaml", "--where", "simulate", "--dry-run", "--json", cwd=tmp_path)
    plan = json.loads(done.stdout)
    assert plan["cells"][0]["scheme"] == "reno + indigo model=indigo"
    assert [note.partition("model: ")[2].partition(",")[0] for note in plan["notes"]] == [
        "indigo (trained by Narrows) is used",
        "muses (trained by Narrows) is used",
    ]


def test_results_say_which_models_narrows_trained(tmp_path: Path, home: Path) -> None:
    add(home, "mine")
    schemes = "[{indigo: [indigo-1-32, indigo]}, {indigo: mine}, {remy: tao}]"
    text = SCENARIO.replace("SCHEMES", schemes) + "runs: 2\n"
    (tmp_path / "s.yaml").write_text(text)
    done = narrows("run", "s.yaml", "--where", "simulate", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # The place of a file says nothing about its origin.
    shutil.rmtree(home)
    shutil.rmtree(tmp_path / "shipped")
    told = "indigo model=indigo, remy model=tao: model trained by Narrows"
    assert told in done.stdout
    for words in (["show"], ["compare"], ["check"], ["compare", "--markdown"], ["compare", "--html"]):
        shown = narrows(*words, "out", cwd=tmp_path).stdout
        assert told.replace("=", "=") in shown.replace("\\", ""), (words, shown)
        assert "mine: model" not in shown
    document = json.loads(narrows("compare", "--json", "out", cwd=tmp_path).stdout)
    assert document["own_models"] == ["indigo model=indigo", "remy model=tao"]
    checked = json.loads(narrows("check", "--json", "out", cwd=tmp_path).stdout)
    assert checked["campaigns"][0]["notes"][-1] == told
    page = (tmp_path / "out/report.html").read_text()
    assert told in page
    assert "model indigo.safetensors (model trained by Narrows)" in page.replace(", header 24 B", "")
    assert "model mine.safetensors (model" not in page.replace(", header 24 B", "")


def test_a_model_of_the_user_is_named_as_trained_by_narrows_if_it_says_so(home: Path) -> None:
    add(home, "mine", model_kit.small_network(notes={"trained_by": "Narrows"}))
    add(home, "other", model_kit.small_network(notes={"trained_by": "Somebody"}))
    rows = scenario("[{indigo: mine}, {indigo: other}]").schemes
    assert [row.has_own_model for row in rows] == [True, False]


def test_all_schemes_of_pantheon_run_without_the_files_of_the_authors(home: Path) -> None:
    loaded = load(next(item.path for item in list_scenarios() if item.name == "all-schemes"))
    plan = make_plan(loaded.scenario, MachineFacts())
    assert plan.skipped == []
    labels = [row.label.removesuffix(" profile=pantheon") for row in plan.scenario.schemes]
    learned = ["remy model=tao", "indigo model=indigo", "indigo model=indigo-no-calib"]
    learned += ["indigo model=indigo-1-128", "muses model=muses"]
    assert labels[17:] == learned
    assert [row.has_own_model for row in plan.scenario.schemes[17:]] == [True] * 5
    assert sum("is left out" in note for note in plan.notes) == 2
    for name in ("indigo-1-32", "indigo-2-256", "indigo-2-256-no-calib", "muses"):
        kind = "muses" if name == "muses" else "indigo"
        add(home, name, model_kit.small_network(kind, units=len(name)))
    labels = [row.label for row in load(loaded.path).scenario.schemes]
    assert len(labels) == 24
    assert {"indigo model=indigo-1-32 profile=pantheon", "indigo model=indigo-2-256 profile=pantheon"} <= set(
        labels
    )


def test_a_laboratory_whose_schemes_come_to_one_model_is_refused(tmp_path: Path, home: Path) -> None:
    from narrows.lab.reading import read
    from narrows.lab.running import check

    schemes = '{NewReno: "{indigo: indigo}", CUBIC: "{indigo: [x, indigo]}"}'
    text = lab_kit.LAB.replace('{NewReno: reno, CUBIC: "{scheme: cubic, beta: 0.8}"}', schemes)
    lab = read(lab_kit.family(tmp_path / "lab", text))
    with pytest.raises(
        DataError, match=r"two schemes of experiment buffers run the same model: .*x is not at hand"
    ):
        check(lab, "simulate", False, [])
    add(home, "x")
    assert len(check(lab, "simulate", False, [])["buffers"].scenario.schemes) == 4
    done = narrows("lab", "run", tmp_path / "lab", "--quick", "-o", "out", cwd=tmp_path)
    assert (
        "indigo model=indigo (droptail 1 bdp), indigo model=indigo (droptail 2 bdp): model trained"
        in " ".join(done.stdout.split())
    ), done.stdout + done.stderr


def test_a_sweep_chooses_from_lists_and_leaves_missing_models_out(tmp_path: Path) -> None:
    text = SCENARIO.replace("SCHEMES", "[{indigo: [x, indigo]}, {muses: [y, z]}]")
    text += "where: simulate\nsweep: {path.forward.0.rate: [5 Mbit/s, 10 Mbit/s]}\n"
    (tmp_path / "s.yaml").write_text(text)
    planned = narrows("sweep", "run", "s.yaml", "--dry-run", cwd=tmp_path)
    done = narrows("sweep", "run", "s.yaml", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for told in (planned.stdout, done.stderr):
        assert "indigo (trained by Narrows) is used, since x is not at hand" in told, told
        assert "skipped muses model=y: the model y is not installed" in told
    assert "2 points (grid) x 1 schemes x 1 runs = 2 cells" in planned.stdout


def test_a_matrix_and_pairs_choose_from_lists(tmp_path: Path) -> None:
    matrix = "matrix: {flows.1.scheme: [{indigo: [x, indigo]}, {muses: [y, muses]}]}\n"
    text = SCENARIO.replace("schemes: SCHEMES", "flows: [{scheme: reno}, {scheme: cubic}]") + matrix
    (tmp_path / "m.yaml").write_text(text)
    plan = json.loads(
        narrows("run", "m.yaml", "--dry-run", "--json", "--where", "simulate", cwd=tmp_path).stdout
    )
    assert [cell["scheme"].partition(" [")[0] for cell in plan["cells"]]
    assert {cell["scheme"].split(" model=")[0] for cell in plan["cells"]} == {"reno + indigo", "reno + muses"}
    assert len(plan["notes"]) == 2
    text = SCENARIO.replace("schemes: SCHEMES", "pairs: [{indigo: [x, indigo]}, cubic]")
    (tmp_path / "p.yaml").write_text(text)
    plan = json.loads(
        narrows("run", "p.yaml", "--dry-run", "--json", "--where", "simulate", cwd=tmp_path).stdout
    )
    assert "indigo model=indigo + cubic" in {cell["scheme"] for cell in plan["cells"]}


# -- the package -------------------------------------------------------------------------------------


def test_shipped_models_are_small_have_cards_and_can_be_used() -> None:
    from narrows.files import read_bytes
    from narrows.scenario import registry

    folder = Path(store.__file__).parent.parent / "_models"
    files = list(folder.iterdir())
    assert sum(path.stat().st_size for path in files) < 500_000
    known = registry.load()
    for path in (path for path in files if path.suffix == ".safetensors"):
        model = store.describe(path, SHIPPED)
        assert model.card is not None, path
        assert model.summary is not None and model.summary.is_ours, path
        assert model.summary.notes.keys() >= {"recipe", "seed", "version", "score"}, path
        params = {"model": {"name": path.name, "sha256": model.sha256}}
        kind = model.summary.kind
        assert known.scheme_refusal(kind, params, {model.sha256: read_bytes(path)}) is None, path
