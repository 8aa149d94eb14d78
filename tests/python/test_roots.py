"""Roots of programs: digests of folders, images in archives, and archives that would do harm."""

from __future__ import annotations

import os
import random
import stat
import struct
from pathlib import Path
from typing import Any

import pytest

from narrows.errors import DataError
from narrows.roots import binary, layers
from narrows.roots.archive import unpack
from narrows.roots.digest import digest_of
from narrows.roots.inside import follow
from root_kit import Image, here, layer, zstd


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "narrows" / "roots"


def refuse(path: Path) -> str:
    with pytest.raises(DataError) as refused:
        unpack(path)
    return str(refused.value)


def refuse_layer(tmp_path: Path, *contents: bytes) -> str:
    """The refusal of an image, which leaves nothing behind."""
    images = tmp_path / "cache" / "narrows" / "roots" / "images"
    images.mkdir(parents=True, exist_ok=True)
    before = set(images.iterdir())
    Image(*contents).write(tmp_path / "bad.tar")
    said = refuse(tmp_path / "bad.tar")
    assert set(images.iterdir()) == before
    return said


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_layers_lie_over_each_other_and_whiteouts_delete_what_is_below(tmp_path: Path) -> None:
    first = layer(
        ("usr/bin/tool", "program", b"one"), ("bin", "link", "usr/bin"), ("etc/a", "file", b"a"),
        ("etc/b", "file", b"b"), ("opt/old/x", "file", b"x"), ("opt/old/y", "file", b"y"),
        ("gone", "folder", ""), ("gone/deep/file", "file", b"1"),
    )  # fmt: skip
    # The whiteout of etc/a comes after a new etc/a of the same layer, which stays.
    second = layer(
        ("etc/a", "file", b"new"), ("etc/.wh.a", "file", b""), ("etc/.wh.b", "file", b""),
        (".wh.gone", "file", b""), ("opt/old/z", "file", b"z"), ("opt/old/.wh..wh..opq", "file", b""),
        ("bin/other", "program", b"two"), ("usr/bin/same", "name", "usr/bin/tool"),
    )  # fmt: skip
    for number, packed in enumerate((lambda content: content, zstd, None)):
        image = Image(first, second) if packed is None else Image(first, second, packed=packed)
        manifest = image.write(tmp_path / f"{number}.tar")
        root = unpack(tmp_path / f"{number}.tar")
        assert root.digest == manifest
        assert root.env == {"IMAGE": "yes", "PATH": "/bin"}
        assert names(root.folder) == [
            "bin", "etc", "etc/a", "opt", "opt/old", "opt/old/z", "usr", "usr/bin", "usr/bin/other",
            "usr/bin/same", "usr/bin/tool",
        ]  # fmt: skip
        assert (root.folder / "etc/a").read_bytes() == b"new"
        assert (root.folder / "bin").is_symlink()
        paths = ("etc/a", "bin/other", "etc")
        modes = {path: stat.S_IMODE((root.folder / path).stat().st_mode) for path in paths}
        assert modes == {"etc/a": 0o644, "bin/other": 0o755, "etc": 0o755}


def test_an_image_is_unpacked_once_and_a_changed_one_is_refused(tmp_path: Path, cache: Path) -> None:
    Image(layer(("etc/a", "file", b"a"))).write(tmp_path / "image.tar")
    first = unpack(tmp_path / "image.tar")
    changed = (first.folder / "etc").stat().st_ctime_ns
    assert unpack(tmp_path / "image.tar") == first
    assert (first.folder / "etc").stat().st_ctime_ns == changed
    assert first.folder.is_relative_to(cache)
    (first.folder / "etc/a").write_text("b")
    assert "something has changed since; remove that folder" in refuse(tmp_path / "image.tar")


def test_no_path_of_an_archive_leaves_its_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    for name in ("../evil", "a/../../evil", "/../evil"):
        said = refuse_layer(tmp_path, layer((name, "file", b"x")))
        assert said == f"can't be unpacked: layer 1 has the path {name}, which leaves the root"
    assert "leaves the root" in refuse_layer(tmp_path, layer(("a", "name", "../outside/file")))
    assert "leaves the root" in refuse_layer(tmp_path, layer(("a/.wh...", "file", b"")))
    assert "leaves the root" in refuse_layer(tmp_path, layer(("../.wh.outside", "file", b"")))
    # Absolute paths and links start at the root, through which all that follows goes.
    contents = layer(
        ("/etc/passwd", "file", b"ours"),
        ("way", "link", str(outside)), ("way/file", "file", b"written through the link"),
        ("climb", "link", "../../../../../../../.." + str(outside)), ("climb/other", "file", b"x"),
        ("way/.wh.gone", "file", b""), ("stolen", "link", str(outside / "file")),
    )  # fmt: skip
    Image(contents, layer(("stolen", "file", b"replaced"))).write(tmp_path / "image.tar")
    root = unpack(tmp_path / "image.tar").folder
    assert (outside / "file").read_text() == "mine"
    assert names(outside) == ["file"]
    inside = str(outside).lstrip("/")
    assert (root / inside / "file").read_bytes() == b"written through the link"
    assert (root / inside / "other").read_bytes() == b"x"
    assert (root / "stolen").read_bytes() == b"replaced"
    assert (root / "etc/passwd").read_bytes() == b"ours"
    # A hard link to a link that leads out is not followed either.
    linked = layer(("out", "link", str(outside / "file")), ("a", "name", "out"))
    assert "which is not a file in it" in refuse_layer(tmp_path, linked)
    circle = layer(("a", "link", "b"), ("b", "link", "a"), ("a/x", "file", b""))
    assert "below a file or a circle of links" in refuse_layer(tmp_path, circle)
    assert "below a file or" in refuse_layer(tmp_path, layer(("a", "file", b""), ("a/x", "file", b"")))


def test_devices_and_pipes_are_left_out(tmp_path: Path) -> None:
    contents = layer(("dev/sda", "block", ""), ("pipe", "pipe", ""), ("etc/a", "file", b"a"))
    Image(contents).write(tmp_path / "image.tar")
    assert names(unpack(tmp_path / "image.tar").folder) == ["etc", "etc/a"]


def test_bombs_end_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "MOST_BYTES", 1_000_000_000)
    monkeypatch.setattr(layers.Budget.__init__, "__defaults__", (2_000_000, 50))
    large = layer(("zeros", "file", bytes(3_000_000)))
    assert refuse_layer(tmp_path, large) == "can't be unpacked: layer 1 holds more than 1 GB when unpacked"
    many = layer(*((f"f{number}", "file", b"") for number in range(60)))
    assert "layer 1 holds more than" in refuse_layer(tmp_path, many)
    # Several layers count together.
    half = layer(("zeros", "file", bytes(1_200_000)))
    assert "layer 2 holds more than" in refuse_layer(
        tmp_path, half, layer(("more", "file", bytes(1_200_000)))
    )
    # A sparse file says that it is larger than the archive (GNU tar, 1 TB of holes).
    header = bytearray(layer(("hole", "file", b""))[:512])
    header[156:157] = b"S"
    header[483:495] = b"%011o\0" % (1 << 32)
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    assert "layer 1 holds more than" in refuse_layer(tmp_path, bytes(header) + bytes(1024))
    # A header of attributes is not read into memory whatever its size.
    header = bytearray(layer(("x", "file", b""))[:512])
    header[156:157] = b"x"
    header[124:136] = b"%011o\0" % (1 << 30)
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    assert "impossible size" in refuse_layer(tmp_path, bytes(header) + bytes(1024))


def test_damaged_archives_are_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    contents = layer(("etc/a", "file", b"a" * 5000))

    def written(change: Any) -> str:
        image = Image(contents)
        change(image)
        image.write(path)
        return refuse(path)

    path.write_bytes(b"not an archive")
    assert refuse(path) == "is not an OCI archive: it is not a tar file without compression"
    path.write_bytes(layer(("manifest.json", "file", b"[]")))
    assert "it has no index.json; it is one of docker" in refuse(path)
    path.write_bytes(layer(("index.json", "file", b"{")))
    assert "its index.json can't be read" in refuse(path)
    assert written(lambda image: image.config.update(architecture="z80")) == (
        f"is an image for linux on z80, and this machine is linux on {here()}"
    )
    assert "other layers" in written(lambda image: image.config["rootfs"].update(diff_ids=[]))
    other = {"diff_ids": ["sha256:" + "0" * 64]}
    assert "does not have the content that the configuration names" in written(
        lambda image: image.config["rootfs"].update(other)
    )
    missing = {"digest": "sha256:" + "0" * 64}
    assert "it has no blobs/sha256/0" in written(lambda image: setattr(image, "index", [missing]))
    evil = {"digest": "sha256:../../etc/passwd"}
    assert "is not a digest" in written(lambda image: setattr(image, "index", [evil]))
    two = [{"digest": "x"}, {"digest": "y"}]
    assert "no single image" in written(lambda image: setattr(image, "index", two))
    # Cut off, and with one bit changed, anywhere.
    Image(contents).write(path)
    whole = path.read_bytes()
    choose = random.Random(1)
    for number in range(60):
        at = choose.randrange(512, len(whole) - 1024)
        changed = bytes([whole[at] ^ (1 << choose.randrange(8))])
        path.write_bytes(whole[:at] + (changed + whole[at + 1 :] if number % 2 else b""))
        try:
            # Not all bytes count: there are those between members, and at the end.
            assert names(unpack(path).folder) == ["etc", "etc/a"]
        except DataError as error:
            assert "\n" not in str(error) and len(str(error)) < 300


def test_of_several_images_that_of_this_machine_is_taken(tmp_path: Path) -> None:
    image = Image(layer(("etc/a", "file", b"a")))
    manifest = {**image.manifest(), "platform": {"os": "linux", "architecture": here()}}
    foreign = {"digest": "sha256:" + "1" * 64, "platform": {"os": "linux", "architecture": "z80"}}
    image.index = [foreign, manifest]
    image.write(tmp_path / "image.tar")
    assert unpack(tmp_path / "image.tar").digest == manifest["digest"]


def test_the_digest_of_a_folder_shows_every_change(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/a").write_text("a")
    (root / "link").symlink_to("etc/a")
    digests = [digest_of(root)]

    def step(change: Any) -> None:
        change()
        digests.append(digest_of(root))

    step(lambda: (root / "etc/a").write_text("b"))
    step(lambda: (root / "etc/a").chmod(0o755))
    step(lambda: (root / "etc/a").rename(root / "etc/b"))
    (root / "link").unlink()
    step(lambda: (root / "link").symlink_to("etc/b"))
    step((root / "empty").mkdir)
    assert len(set(digests)) == len(digests)
    before = digests[-1]
    # Entries that programs don't see do not count; neither do times.
    (root / "tmp").mkdir()
    (root / "tmp/x").write_text("x")
    os.utime(root / "etc/b", (1, 1))
    assert digest_of(root) == before


def test_a_change_that_restores_size_and_time_is_seen_although_the_digest_was_kept(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    file = root / "a"
    file.write_text("a")
    os.utime(file, (1, 1))
    monkeypatch.setattr("narrows.roots.digest._SETTLED_NS", -(10**18))
    before = digest_of(root)
    assert len(list((cache / "digests").iterdir())) == 1
    assert digest_of(root) == before
    tick = file.stat().st_ctime_ns
    while file.stat().st_ctime_ns == tick:
        file.write_text("b")
        os.utime(file, (1, 1))
    assert digest_of(root) != before


def test_links_are_followed_as_the_kernel_follows_them_in_a_root(tmp_path: Path) -> None:
    """Against paths that were resolved by hand."""
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/x").write_text("")
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "absolute").symlink_to("/bin/x")
    (tmp_path / "climb").symlink_to("../../../../bin/x")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "out").symlink_to("/etc/passwd")
    place = tmp_path / "usr/bin/x"
    for path in ("/bin/x", "/usr/../bin/./x", "/absolute", "/climb", "/../../bin/x", "//usr//bin//x"):
        assert follow(tmp_path, path) == place, path
    for path in ("/out", "/loop", "/bin/x/y", "/no", "/no/x", "/loop/x"):
        assert follow(tmp_path, path) is None, path
    assert follow(tmp_path, "/bin/..") == tmp_path / "usr"


def test_programs_of_other_machines_and_without_their_loader_are_named(tmp_path: Path) -> None:
    def elf(machine: int, loader: bytes) -> bytes:
        numbers = (2, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        start = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", *numbers)
        return start + struct.pack("<IIQQQQQQ", 3, 4, 120, 0, 0, len(loader), 0, 0) + loader

    path = tmp_path / "bin"
    path.mkdir()
    own = next(number for number, name in binary.MACHINES.items() if name == binary.this_machine())
    other = 183 if own != 183 else 62
    for name, content in {
        "foreign": elf(other, b"/lib/ld.so\0"), "own": elf(own, b"/lib/ld.so\0"),
        "script": b"#!/bin/lua -x\n", "cut": b"\x7fELF\x02\x01", "text": b"hello",
    }.items():  # fmt: skip
        (path / name).write_bytes(content)
        (path / name).chmod(0o755)
    (path / "data").write_text("")
    said = {
        name: binary.why_not(tmp_path, f"/bin/{name}") for name in ("foreign", "own", "script", "cut", "text")
    }
    assert said == {
        "foreign": f"/bin/foreign is a program for {binary.MACHINES[other]}, and this machine is"
        f" {binary.this_machine()}",
        "own": f"/bin/own needs /lib/ld.so, which does not exist in {tmp_path}",
        "script": f"/bin/script is a script for /bin/lua, which does not exist in {tmp_path}",
        "cut": None,
        "text": None,
    }
    assert (binary.why_not(tmp_path, "data") or "").startswith("there is no program data in")
    shell = binary.read_binary(Path("/bin/sh").resolve())
    assert shell is not None and shell.machine == binary.this_machine()
    assert shell.loader is not None and Path(shell.loader).exists()
