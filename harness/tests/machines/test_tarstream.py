# SPDX-License-Identifier: Apache-2.0
"""What goes into an archive, and what of an archive of a guest is written: nothing outside its folder."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.machines import tarstream
from sundial.machines.tarstream import Copied

Entry = tuple[str, bytes, dict[str, Any]]


def archive(entries: Sequence[Entry]) -> io.BytesIO:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w|") as tar:
        for name, data, fields in entries:
            info = tarfile.TarInfo(name)
            for field, value in fields.items():
                setattr(info, field, value)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    stream.seek(0)
    return stream


def folder(name: str = "./top", mode: int = 0o755) -> Entry:
    return name, b"", {"type": tarfile.DIRTYPE, "mode": mode}


def link(name: str, to: str) -> Entry:
    return name, b"", {"type": tarfile.SYMTYPE, "linkname": to}


def unpacked(tmp_path: Path, *entries: Entry) -> tuple[Path, Copied]:
    place, copied = tmp_path / "here", Copied()
    place.mkdir(exist_ok=True)
    tarstream.unpack(archive(entries), "top", place / "new", copied, lambda _: None)
    return place / "new", copied


def test_modes_links_and_content_are_kept(tmp_path: Path) -> None:
    found, copied = unpacked(
        tmp_path,
        folder(mode=0o750),
        ("top/run", b"#!", {"mode": 0o4755}),
        folder("top/closed", 0o500),
        ("top/closed/x", b"1", {"mode": 0o400}),
        link("top/link", "closed/x"),
    )
    assert stat.S_IMODE(found.stat().st_mode) == 0o750
    assert stat.S_IMODE((found / "run").stat().st_mode) == 0o755
    assert stat.S_IMODE((found / "closed").stat().st_mode) == 0o500
    assert (found / "link").read_bytes() == b"1"
    assert (copied.entries, copied.bytes, copied.left_out) == (5, 3, [])
    tarstream.discard(found)
    assert not found.exists()


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (("top/../../x", b"1", {}), "its name leads out of the folder"),
        (("/top/x", b"1", {}), "its name leads out of the folder"),
        (("other", b"1", {}), "it is not below what was asked for"),
        ((".", b"", {"type": tarfile.DIRTYPE}), "it is not below what was asked for"),
        (("top/dev", b"", {"type": tarfile.CHRTYPE}), "a device or pipe"),
        (("top/pipe", b"", {"type": tarfile.FIFOTYPE}), "a device or pipe"),
        (("top/hard", b"", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}), "a second name of a file"),
        (link("top/a", "/etc"), "a link that leads out of the folder"),
        (link("top/a", "../x"), "a link that leads out of the folder"),
        (link("top/sub/a", "../../x"), "a link that leads out of the folder"),
    ],
)
def test_what_may_harm_is_left_out_and_named(tmp_path: Path, entry: Entry, why: str) -> None:
    found, copied = unpacked(tmp_path, folder(), entry, ("top/ok", b"1", {}))
    assert [reason for _, reason in copied.left_out] == [why]
    assert sorted(path.name for path in found.iterdir()) == ["ok"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here"]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    found, copied = unpacked(
        tmp_path, folder(), folder("top/in"), link("top/l", "in"), ("top/l/x", b"1", {}), ("top/l", b"2", {})
    )
    assert copied.left_out == [("top/l/x", "it is behind a link")]
    assert ((found / "l").read_bytes(), (found / "l").is_symlink()) == (b"2", False)
    assert list((found / "in").iterdir()) == []


def test_links_that_lead_out_together_are_removed(tmp_path: Path) -> None:
    """Each alone stays inside."""
    found, copied = unpacked(
        tmp_path,
        folder(),
        folder("top/a"),
        folder("top/a/b"),
        link("top/a/b/out", "up/../x"),
        link("top/a/b/up", "../.."),
    )
    assert copied.left_out == [("top/a/b/out", "a link that leads out of the folder")]
    assert not (found / "a/b/out").is_symlink()
    assert (found / "a/b/up").is_symlink()


def test_a_file_in_the_way_of_a_folder_is_named(tmp_path: Path) -> None:
    _, copied = unpacked(tmp_path, folder(), ("top/f", b"1", {}), ("top/f/x", b"2", {}), folder("top/f"))
    assert [name for name, _ in copied.left_out] == ["top/f/x", "top/f"]


@pytest.mark.parametrize("cut", [1, 511, 1024 + 600])
def test_half_an_archive_is_an_error(tmp_path: Path, cut: int) -> None:
    data = archive([folder(), ("top/x", bytes(3000), {})]).getvalue()[:cut]
    with pytest.raises(tarfile.TarError):
        tarstream.unpack(io.BytesIO(data), "top", tmp_path / "new", Copied(), lambda _: None)


def test_a_folder_there_and_back(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "x").write_bytes(bytes(200_000))
    (source / "run").write_text("x")
    (source / "run").chmod(0o755)
    (source / "link").symlink_to("sub/x")
    os.mkfifo(source / "pipe")
    os.link(source / "run", source / "twice")
    packed, sent, got, counted = io.BytesIO(), Copied(), Copied(), []
    tarstream.pack(source, "top", packed, sent, counted.append)
    assert sent.left_out == [("top/pipe", "a socket, pipe or device")]
    assert sum(counted) == sent.bytes == tarstream.size_of(source) == 200_002
    packed.seek(0)
    tarstream.unpack(packed, "top", tmp_path / "new", got, lambda _: None)
    assert (got.entries, got.bytes, got.left_out) == (sent.entries, sent.bytes, [])
    assert (tmp_path / "new" / "sub" / "x").read_bytes() == bytes(200_000)
    assert (tmp_path / "new" / "link").readlink() == Path("sub/x")
    assert (tmp_path / "new" / "twice").read_text() == "x"
    (tmp_path / "to").symlink_to(source / "run")
    packed = io.BytesIO()
    tarstream.pack(tmp_path / "to", "name", packed, Copied(), lambda _: None)
    packed.seek(0)
    with tarfile.open(fileobj=packed) as tar:
        assert [(each.name, each.isreg()) for each in tar] == [("name", True)]


def test_merging_replaces_files_and_keeps_others(tmp_path: Path) -> None:
    for name, text in (("new/a", "1"), ("new/sub/b", "2"), ("old/a", "0"), ("old/sub/c", "3")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    tarstream.merge(tmp_path / "new", tmp_path / "old")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    found = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in files}
    assert found == {"old/a": "1", "old/sub/b": "2", "old/sub/c": "3"}


PARTS = st.sampled_from(["top", "a", "b", "..", ".", "", "/"])
NAMES = st.lists(PARTS, min_size=1, max_size=5).map("/".join)
ENTRIES = st.tuples(
    NAMES,
    st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE]),
    NAMES,
)


@given(st.lists(ENTRIES, max_size=8))
def test_no_archive_writes_outside_or_leaves_a_way_out(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, bytes, str]]
) -> None:
    place = tmp_path_factory.mktemp("any")
    made = [
        (name, b"", {"type": kind, "linkname": target if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""})
        for name, kind, target in entries
    ]
    stream = archive([folder(), *made])
    tarstream.unpack(stream, "top", place / "new", Copied(), lambda _: None)
    assert [path.name for path in place.iterdir()] == ["new"]
    inside = str(place / "new")
    for path in (place / "new").rglob("*"):
        assert path.is_symlink() or path.is_dir() or path.is_file()
        real = os.path.realpath(path)
        assert real == inside or real.startswith(inside + "/")
