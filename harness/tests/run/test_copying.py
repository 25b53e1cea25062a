# SPDX-License-Identifier: Apache-2.0
"""Copies to and from a machine. The machine is a folder of this host: its commands run here, with the same scripts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput, Interrupted, RunFailed
from sundial.machines.command import Ended, Output
from sundial.machines.foreground import Foreground
from sundial.plan.request import Kept, KeptMachine
from sundial.run import copying, keeper
from sundial.run.copying import Copy, Place, Remote, parse, target

NOTHING = Place("none", "folder", 0, "")


class Quiet:
    def say(self, text: str) -> None:
        return

    def share(self, done: float, text: str) -> None:
        assert 0 <= done <= 1


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is the machine's."""
    kept = Kept("lab", "real", tmp_path, tmp_path, 1, (KeptMachine("n1", "linux", "", ""),))

    def exec_(machine: str, argv: Sequence[str], given: Foreground, output: Output, topology: str | None) -> Ended:
        stdin = subprocess.DEVNULL if given.input_fd is None else given.input_fd
        with subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
            assert done.stdout is not None
            assert done.stderr is not None
            while data := done.stdout.read(1 << 16):
                output("stdout", data)
            output("stderr", done.stderr.read())
        status = done.wait()
        return Ended(status if status >= 0 else 128 - status)

    monkeypatch.setattr(keeper, "exec_", exec_)
    monkeypatch.setattr(keeper, "find_machine", lambda machine, topology: (kept, kept.machines[0]))
    place = tmp_path / "guest"
    place.mkdir()
    return place


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "x").write_bytes(os.urandom(300_000))
    (folder / "run").write_text("x")
    (folder / "run").chmod(0o755)
    return folder


def copy() -> Copy:
    return Copy("n1", None, Quiet())


def inside(path: Path, *, slash: bool = False) -> Remote:
    return Remote("n1", str(path), slash)


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("text", "remote"),
    [
        ("n1:/a/b", Remote("n1", "/a/b", False)),
        ("n1:a//b/", Remote("n1", "/a/b", True)),
        ("n1:/", Remote("n1", "/", True)),
        ("n1:/../a", Remote("n1", "/a", False)),
        ("n1:/a:b", Remote("n1", "/a:b", False)),
        ("a", None), ("./n1:a", None), ("/n1:a", None), ("-", None), (":a", None),
    ],
)  # fmt: skip
def test_paths_of_machines(text: str, remote: Remote | None) -> None:
    assert parse(text) == remote


@pytest.mark.parametrize("text", ["n1:", "n1:/a\nb", "n1:\x1b"])
def test_paths_that_are_none(text: str) -> None:
    with pytest.raises(BadInput, match="has no path"):
        parse(text)


@pytest.mark.parametrize(
    ("source", "at", "slash", "place"),
    [
        ("file", Place("folder", "folder", 0, ""), False, ("/d", "name")),
        ("folder", Place("folder", "folder", 0, ""), True, ("/d", "name")),
        ("file", NOTHING, False, ("/", "d")),
        ("folder", NOTHING, True, ("/", "d")),
        ("file", Place("file", "folder", 0, ""), False, ("/", "d")),
        ("folder", Place("file", "folder", 0, ""), False, "is a file"),
        ("file", Place("other", "folder", 0, ""), False, "is neither a file nor a folder"),
        ("file", Place("none", "none", 0, ""), False, "does not exist"),
        ("file", NOTHING, True, "is not a folder"),
        ("file", Place("file", "folder", 0, ""), True, "is not a folder"),
    ],
)
def test_where_a_copy_goes(source: Any, at: Place, slash: bool, place: Any) -> None:
    if isinstance(place, tuple):
        assert target("name", source, at, "/d", as_folder=slash) == place
    else:
        with pytest.raises(BadInput, match=place):
            target("name", source, at, "/d", as_folder=slash)


def test_a_folder_there_and_back(guest: Path, source: Path, tmp_path: Path) -> None:
    done = copy()
    done.put(source, inside(guest / "there"))
    assert names(guest) == ["there", "there/run", "there/sub", "there/sub/x"]
    assert os.access(guest / "there" / "run", os.X_OK)
    assert (done.copied.entries, done.copied.bytes, done.copied.left_out) == (4, 300_001, [])
    back = copy()
    back.get(inside(guest / "there"), tmp_path / "back", as_folder=False)
    assert names(tmp_path / "back") == ["run", "sub", "sub/x"]
    assert (tmp_path / "back" / "sub" / "x").read_bytes() == (source / "sub" / "x").read_bytes()
    assert back.copied.entries == 4
    # Again: into it, as into any folder that is there.
    copy().put(source, inside(guest / "there"))
    assert "there/source/sub/x" in names(guest)
    (guest / "there" / "source" / "own").write_text("stays")
    copy().put(source, inside(guest / "there"))
    assert (guest / "there" / "source" / "own").read_text() == "stays"
    assert list(guest.glob(".*")) == []


def test_bytes_there_and_back(guest: Path, source: Path) -> None:
    with (source / "sub" / "x").open("rb") as file:
        done = copy()
        done.put_bytes(file.fileno(), inside(guest / "x"))
    assert done.copied.bytes == 300_000
    (guest / "x").chmod(0o600)
    reading, writing = os.pipe()
    os.write(writing, b"new")
    os.close(writing)
    copy().put_bytes(reading, inside(guest / "x"))
    os.close(reading)
    assert ((guest / "x").read_bytes(), (guest / "x").stat().st_mode & 0o777) == (b"new", 0o600)
    reading, writing = os.pipe()
    copy().get_bytes(inside(guest / "x"), writing)
    assert os.read(reading, 100) == b"new"
    for folder in (guest, guest / "none" / "x"):
        with pytest.raises(BadInput):
            copy().put_bytes(reading, inside(folder))
    with pytest.raises(BadInput, match="is a folder") as caught:
        copy().get_bytes(inside(guest), writing)
    assert caught.value.hint is not None
    os.close(reading)
    os.close(writing)


def test_what_cannot_be_copied_is_refused(guest: Path, source: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="SRC: does not exist"):
        copy().put(tmp_path / "none", inside(guest))
    with pytest.raises(BadInput, match="SRC: is neither a file nor a folder"):
        copy().put(Path("/dev/null"), inside(guest))
    with pytest.raises(BadInput, match="SRC: does not exist"):
        copy().get(inside(guest / "none"), tmp_path, as_folder=True)
    with pytest.raises(BadInput, match="is the whole machine"):
        copy().get(Remote("n1", "/", True), tmp_path, as_folder=True)
    (tmp_path / "dst" / "guest").mkdir(parents=True)
    (guest / "f").write_text("x")
    (tmp_path / "dst" / "f").mkdir()
    with pytest.raises(BadInput, match="DST: is a folder"):
        copy().get(inside(guest / "f"), tmp_path / "dst", as_folder=False)
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match="DST: is a file"):
        copy().get(inside(guest), tmp_path / "file", as_folder=False)


def test_a_link_is_followed_and_keeps_the_name_that_was_asked_for(guest: Path, tmp_path: Path) -> None:
    (guest / "real").mkdir()
    (guest / "real" / "x").write_text("1")
    (guest / "link").symlink_to("real")
    copy().get(inside(guest / "link"), tmp_path, as_folder=True)
    assert (tmp_path / "link" / "x").read_text() == "1"
    assert not (tmp_path / "link").is_symlink()


def test_a_copy_that_does_not_fit_is_refused_before_it_begins(
    guest: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "LEFT_BYTES", 1 << 62)
    with pytest.raises(RunFailed, match=r"n1: has 0.0 MB left for files, .* has 0.3 MB") as caught:
        copy().put(source, inside(guest / "x"))
    assert caught.value.hint is not None
    reading, writing = os.pipe()
    os.write(writing, bytes(2000))
    os.close(writing)
    with pytest.raises(RunFailed):
        copy().put_bytes(reading, inside(guest / "x"))
    os.close(reading)
    assert names(guest) == []


@pytest.mark.parametrize(("status", "error"), [(130, Interrupted), (143, Interrupted), (1, RunFailed)])
def test_a_copy_that_ends_early_leaves_nothing(
    guest: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, error: type[Exception]
) -> None:
    copy().put(source, inside(guest / "there"))
    real = keeper.exec_

    def cut(machine: str, argv: Sequence[str], given: Foreground, output: Output, topology: str | None) -> Ended:
        if argv[0] == "tar":
            output("stdout", bytes(10))
        elif argv[2] == copying.LOOK:
            return real(machine, argv, given, output, topology)
        return Ended(status)

    monkeypatch.setattr(keeper, "exec_", cut)
    before = names(tmp_path)
    with pytest.raises(error):
        copy().get(inside(guest / "there"), tmp_path / "back", as_folder=False)
    with pytest.raises(error):
        copy().put(source, inside(guest / "again"))
    assert names(tmp_path) == before


def test_a_full_disk_here_is_the_reason(
    guest: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    copy().put(source, inside(guest / "there"))
    monkeypatch.setattr(copying.tarstream, "unpack", full)
    with pytest.raises(OSError, match="No space left"):
        copy().get(inside(guest / "there"), tmp_path / "back", as_folder=False)
    assert not (tmp_path / "back").exists()
