"""The documents as a web site, and the files that describe the project to others."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from browser import PROGRAM, Browser

ROOT = Path(__file__).resolve().parents[2]


def build(tree: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(tree / ".ci" / "site"), str(site)], capture_output=True, text=True, check=False
    )


def a_small_tree(folder: Path, text: str) -> Path:
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "site", folder / ".ci" / "site")
    (folder / "docs").mkdir()
    (folder / "docs" / "README.md").write_text("# Documentation\n\n## Start\n\n- [Page](page.md): a page\n")
    (folder / "docs" / "page.md").write_text(text)
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"):
        (folder / name).write_text(f"# {name}\n")
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents") / "site"
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_document_is_a_page_of_the_site_and_is_in_the_index_of_the_search(site: Path) -> None:
    documents = sorted((ROOT / "docs").rglob("*.md"))
    for document in documents:
        page = document.relative_to(ROOT).with_suffix(".html")
        page = page.with_name("index.html") if page.name == "README.html" else page
        assert (site / page).is_file(), page
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"] for entry in index["docs"] if "Hodges and Lehmann" in entry["text"]}
    assert any(place.startswith("docs/guide/comparing.html") for place in places), places
    for page in site.rglob("*.html"):
        foreign = re.findall(
            r'<(?:script|img|iframe)[^>]*src="https?:[^"]*"|<link[^>]*stylesheet[^>]*https?:',
            page.read_text(),
        )
        assert not foreign, f"{page} loads {foreign}"


@pytest.mark.skipif(
    PROGRAM is None and os.environ.get("CI") != "true",
    reason="no Chromium is installed, so the site is not tried in a browser (Debian package: chromium)",
)
def test_pages_opened_as_files_fit_phones_and_load_nothing_from_the_network(
    site: Path, tmp_path: Path
) -> None:
    with Browser(tmp_path / "profile") as browser:
        for width in (390, 1200):
            browser.open(site / "docs" / "guide" / "real-paths.html", width=width)
            assert browser.run("document.documentElement.scrollWidth <= innerWidth"), width
        assert not [address for address in browser.requests if address.startswith("http")]


def test_a_link_to_a_page_that_does_not_exist_fails_the_build(tmp_path: Path) -> None:
    right = a_small_tree(tmp_path / "right", "# Page\n\nSee [itself](page.md#part).\n\n## Part\n")
    assert build(right, tmp_path / "right-site").returncode == 0
    wrong = a_small_tree(tmp_path / "wrong", "# Page\n\nSee [another](other.md).\n")
    done = build(wrong, tmp_path / "wrong-site")
    assert done.returncode != 0
    assert "other.md" in done.stderr + done.stdout


def test_a_link_to_a_heading_that_does_not_exist_fails_the_build(tmp_path: Path) -> None:
    wrong = a_small_tree(tmp_path / "wrong", "# Page\n\nSee [itself](page.md#no-part).\n\n## Part\n")
    done = build(wrong, tmp_path / "site")
    assert done.returncode != 0
    assert "no-part" in done.stderr + done.stdout


def test_the_citation_has_the_version_and_licence_of_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    package = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    assert (citation["version"], citation["license"]) == (package["version"], package["license"])


def test_the_workflow_runs_the_command_that_developers_run() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    steps = [step.get("run") for job in workflow["jobs"].values() for step in job["steps"]]
    assert ".ci/run" in steps
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_every_issue_template_has_a_name_and_a_body() -> None:
    for file in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        template = yaml.safe_load(file.read_text(encoding="utf-8"))
        if file.name != "config.yml":
            assert {"name", "description", "body"} <= set(template), file
