"""Writes a copy of the sources of Narrows with the user's crates inside.

```text
Cargo.toml                     the workspace of Narrows, with the members below
narrows/core/net/src/queues/   the sources of Narrows, with the entries of the crates beside ours
extensions/own-queue/          each crate whole, for its tests
extended/tests/conformance.rs  the conformance kits, for each entry
```

An entry is a file of its crate. Inside Narrows it still finds what it uses under the names of our crates,
since each crate that gets entries is known to itself by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from narrows.errors import DataError
from narrows.extend.crates import Crate
from narrows.extend.kinds import KINDS
from narrows.extend.sources import ROOT_MANIFEST, members

#: Folder of our crates in the copy. Cargo identifies a crate by its path in the workspace: with one target
#: folder for
#: both, crates of the copy would otherwise be mistaken for those of a source tree.
INSIDE = "narrows"
EXTENSIONS, EXTENDED = "extensions", "extended"
#: The crates that the conformance kits use.
_KITS = ("narrows-cc", "narrows-net", "narrows-record", "narrows-traffic")


def compose(sources: Mapping[str, bytes], crates: Iterable[Crate]) -> dict[str, bytes]:
    """The files of the copy by their paths. Raises `DataError` if Narrows has an entry of a crate already."""
    crates = list(crates)
    manifest = sources[ROOT_MANIFEST].decode()
    ours = members(manifest)
    files: dict[str, bytes] = {}
    for path, content in sources.items():
        if not any(path.startswith(f"{member}/") for member in ours):
            files[path] = content
        elif path.endswith("/Cargo.toml"):
            files[f"{INSIDE}/{path}"] = _without_tests(content.decode()).encode()
        else:
            files[f"{INSIDE}/{path}"] = content
    files[ROOT_MANIFEST] = _root_manifest(manifest, ours, crates).encode()
    for crate in crates:
        files.update({f"{EXTENSIONS}/{crate.name}/{path}": content for path, content in crate.files.items()})
        for kind, entry in crate.entries():
            _add_entry(files, crate, kind, entry)
    for kind in {kind for crate in crates for kind, _ in crate.entries()}:
        path = f"{INSIDE}/{KINDS[kind].folder}/src/lib.rs"
        known = f"\nextern crate self as {KINDS[kind].rust_name};\n".encode()
        if not files[path].endswith(known):
            files[path] += known
    files.update(_conformance(crates))
    return files


def _root_manifest(manifest: str, ours: list[str], crates: list[Crate]) -> str:
    moved = [f"{INSIDE}/{member}" for member in ours]
    moved += [f"{EXTENSIONS}/{crate.name}" for crate in crates] + [EXTENDED]
    listed = ", ".join(f'"{member}"' for member in moved)
    text = re.sub(r"^members = \[.*?\]", f"members = [{listed}]", manifest, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^exclude = \[.*?\]\n", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^narrows-skips = .*\n", "", text, flags=re.MULTILINE)
    return text.replace('path = "', f'path = "{INSIDE}/')


def _without_tests(manifest: str) -> str:
    """One of our manifests without the parts for tests, whose files are not among the sources."""
    parts = re.split(r"^(?=\[)", manifest, flags=re.MULTILINE)
    tests = ("[dev-dependencies", "[[test", "[[bench", "[[example")
    return "".join(
        part for part in parts if not part.startswith(tests) and "dev-dependencies]" not in part[:80]
    )


def _add_entry(files: dict[str, bytes], crate: Crate, kind: str, entry: str) -> None:
    place = KINDS[kind]
    for path, content in crate.files_of(entry).items():
        target = f"{INSIDE}/{place.into}/{path}"
        if target in files:
            raise DataError(
                f"{crate.name}: Narrows has a {place.what} {entry} already; choose another name"
                f" for src/{entry}.rs"
            )
        files[target] = content
    registry = f"{INSIDE}/{place.registry}"
    text = files[registry].decode()
    assert place.behind in text, f"{place.registry} has no line '{place.behind}'"
    files[registry] = text.replace(place.behind, f"{place.behind}\n    {entry},", 1).encode()
    manifest = f"{INSIDE}/{place.folder}/Cargo.toml"
    text = files[manifest].decode()
    source = b"\n".join(crate.files_of(entry).values()).decode(errors="replace")
    for name, value in crate.dependencies.items():
        used = re.search(rf"\b{re.escape(name.replace('-', '_'))}\b", source)
        if used and not re.search(rf'^"?{re.escape(name)}"?[ .]', text, re.MULTILINE):
            text = text.replace("\n[dependencies]\n", f'\n[dependencies]\n"{name}" = {value}\n', 1)
    files[manifest] = text.encode()


def _conformance(crates: list[Crate]) -> dict[str, bytes]:
    lines = ["[package]", f'name = "{EXTENDED}"', 'version = "0.0.0"', 'edition = "2024"', "publish = false"]
    lines += ["", "[dev-dependencies]", *(f"{name} = {{ workspace = true }}" for name in _KITS)]
    tests = ["//! The conformance kits on all entries of extensions.", ""]
    for crate in crates:
        for kind, entry in crate.entries():
            check = KINDS[kind].check.format(name=entry)
            tests += ["#[test]", f"fn {kind}_{entry}() {{ {check} }}", ""]
    return {
        f"{EXTENDED}/Cargo.toml": ("\n".join(lines) + "\n").encode(),
        f"{EXTENDED}/src/lib.rs": b"//! Nothing but tests.\n",
        f"{EXTENDED}/tests/conformance.rs": "\n".join(tests).encode(),
    }
