# SPDX-License-Identifier: Apache-2.0
"""A file is not read again while it cannot have changed, and is read again after any change."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sundial.errors import RunFailed
from sundial.machines import images, seals
from sundial.machines.seals import SETTLED_NS, Book, Known, look, read_summed, seal_of, sha256_of, write_summed

CONTENT = b"kernel" * 1000
Harm = Callable[[Path], None]


def ticked(path: Path) -> None:
    """Let the file system's clock go on, so that a change from now on shows."""
    beside = path.with_name("ticking")
    while True:
        beside.write_bytes(b"")
        if beside.stat().st_ctime_ns > path.stat().st_ctime_ns:
            return


class Reader:
    """Reads files and counts."""

    def __init__(self) -> None:
        self.times = 0

    def read(self, path: Path) -> str:
        self.times += 1
        return sha256_of(path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernel"
    path.write_bytes(CONTENT)
    return path


def long_known(path: Path) -> Known:
    """As if it had been read some time after its last change."""
    seal = seal_of(path)
    return Known(sha256_of(path), seal, seal[-1] + SETTLED_NS)


def change_a_byte(path: Path) -> None:
    """The contents alone: the size and the time of the last change are put back."""
    before = path.stat()
    with path.open("r+b") as opened:
        opened.seek(17)
        opened.write(b"!")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(path: Path) -> None:
    """By another file of the same size and times."""
    other = path.with_name("other")
    other.write_bytes(CONTENT[::-1])
    shutil.copystat(path, other)
    other.replace(path)


def truncate(path: Path) -> None:
    os.truncate(path, 100)


def test_a_file_that_nobody_touches_is_read_once(file: Path) -> None:
    known, reader = long_known(file), Reader()
    assert look(file, known, reader.read) == known
    assert reader.times == 0


@pytest.mark.parametrize("harm", [change_a_byte, replace, truncate])
def test_a_changed_file_is_read_again(file: Path, harm: Harm) -> None:
    known, reader = long_known(file), Reader()
    ticked(file)
    harm(file)
    found = look(file, known, reader.read)
    assert reader.times == 1
    assert found.value == sha256_of(file) != known.value


def test_what_was_read_too_soon_after_a_change_does_not_hold(file: Path) -> None:
    """A second change may come within the same step of the file system's clock."""
    settled, reader = long_known(file), Reader()
    early = Known(settled.value, settled.seal, settled.read_ns - 1)
    assert look(file, early, reader.read, now_ns=lambda: settled.read_ns) == settled
    assert reader.times == 1
    assert look(file, settled, reader.read) == settled
    assert reader.times == 1


def test_a_change_while_it_is_read_is_read_again(file: Path) -> None:
    def read(path: Path) -> str:
        value = sha256_of(path)
        ticked(path)
        change_a_byte(path)
        return value

    known = look(file, None, read, now_ns=lambda: seal_of(file)[-1] + SETTLED_NS)
    assert look(file, known, sha256_of).value == sha256_of(file) != known.value


def test_a_book_remembers(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "SETTLED_NS", 0)
    place, reader = file.with_name("book.json"), Reader()
    for _ in range(3):
        assert Book(place).value(file, reader.read) == sha256_of(file)
    assert reader.times == 1
    ticked(file)
    change_a_byte(file)
    assert Book(place).value(file, reader.read) == sha256_of(file)
    assert reader.times == 2
    gone = file.with_name("gone")
    gone.write_bytes(b"")
    Book(place).value(gone, reader.read)
    gone.unlink()
    ticked(file)
    truncate(file)
    Book(place).value(file, reader.read)
    assert list(read_summed(place)) == [str(file)]


def test_a_book_drops_what_cannot_be_looked_for(file: Path) -> None:
    """Such as a file in the home of the user whose checkout was copied, here one whose name is too long."""
    place = file.with_name("book.json")
    write_summed(place, {f"/{'x' * 5000}": long_known(file).to_json()})
    assert Book(place).value(file, sha256_of) == sha256_of(file)
    assert list(read_summed(place)) == [str(file)]


def test_a_book_that_was_tampered_with_is_not_believed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "SETTLED_NS", 0)
    place = file.with_name("book.json")
    truth = Book(place).value(file, sha256_of)
    place.write_text(place.read_text().replace(truth, "0" * 64))
    assert Book(place).value(file, sha256_of) == truth
    place.write_text("{")
    assert Book(place).value(file, sha256_of) == truth


def test_what_cannot_be_read_is_not_remembered(file: Path) -> None:
    def refuse(path: Path) -> str:
        raise ValueError("says nothing")

    place = file.with_name("book.json")
    with pytest.raises(ValueError, match="says nothing"):
        Book(place).value(file, refuse)
    assert not place.exists()


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"a": 1}', '{"a": 1, "meta_sha256": "00"}'])
def test_a_document_without_its_sum_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "document.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"cannot be read|another sha256"):
        read_summed(path)
    write_summed(path, {"a": 1})
    assert read_summed(path) == {"a": 1}


def test_parts_of_an_image_are_read_where_they_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "SETTLED_NS", 0)
    reader = Reader()
    monkeypatch.setattr(images, "sha256_of", reader.read)
    folder = tmp_path / "tiny"
    folder.mkdir()
    for part in images.PARTS:
        (folder / part).write_bytes(CONTENT)
    digest = sha256_of(folder / "kernel")
    manifest = {"cmdline": "", "sha256": dict.fromkeys(images.PARTS, digest)}
    (folder / images.MANIFEST).write_text(json.dumps(manifest))
    pinned = images.PinnedImages(tmp_path)
    image = pinned.ensure("tiny", print)
    assert pinned.ensure("tiny", print) == image
    assert reader.times == 2
    ticked(image.initrd)
    change_a_byte(image.initrd)
    with pytest.raises(RunFailed, match="its initrd has another sha256"):
        pinned.ensure("tiny", print)
    assert reader.times == 3
