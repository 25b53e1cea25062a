# SPDX-License-Identifier: Apache-2.0
"""Trees as archives and as file system images, read back by readers of their own."""

from __future__ import annotations

import random
import stat
import struct
from pathlib import Path

import pytest

from sundial.machines.archives import cpio
from sundial.machines.packed import write_cpio, write_erofs
from sundial.machines.tree import BadTree, Entry, Slice, Tree, file, folder, link, with_folders

SUPER, BLOCK = 1024, 4096


def tree_of(seed: int) -> Tree:
    """A tree with files of all sizes about a block's, a folder of several blocks, hard links, owners and odd names."""
    chance = random.Random(seed)
    tree: Tree = {f"many/{'n' * chance.randint(1, 60)}{number}": file(b"") for number in range(300)}
    for size in (0, 1, 4095, 4096, 4097, 20_000):
        tree[f"sizes/{size}"] = file(chance.randbytes(size), 0o4755)
    tree["link"] = link("/sizes/../sizes/1")
    tree["owner"] = Entry(stat.S_IFREG | 0o640, 1000, 70_000, b"x")
    tree["same"] = tree["owner"]
    tree["tmp"] = folder(0o1777)
    tree["odd \udce4\n"] = file(b"odd")
    tree["null"] = Entry(stat.S_IFCHR | 0o666, device=(1, 3))
    with_folders(tree)
    return tree


def read_erofs(data: bytes) -> dict[str, tuple[int, int, int, int, bytes]]:
    """Mode, owner, group, links and content by path: of the format as the kernel documents it."""
    magic, _, features, bits, _, root, count = struct.unpack_from("<IIIBBHQ", data, SUPER)
    (blocks, meta) = struct.unpack_from("<II", data, SUPER + 36)
    (incompatible,) = struct.unpack_from("<I", data, SUPER + 80)
    assert (magic, features, bits, incompatible) == (0xE0F5E1E2, 0, 12, 0)
    assert blocks * BLOCK <= len(data)
    found = {}
    seen = set()

    def inode(number: int) -> tuple[int, int, int, int, bytes]:
        at = meta * BLOCK + number * 32
        layout, _, mode, _, size, block, _, uid, gid, _, _, links = struct.unpack_from("<HHHHQIIIIQII", data, at)
        assert layout == 1
        seen.add(number)
        if stat.S_ISCHR(mode):
            return mode, uid, gid, links, struct.pack("<I", block)
        content = data[block * BLOCK : block * BLOCK + size] if size else b""
        return mode, uid, gid, links, content

    def walk(number: int, path: str) -> None:
        found[path] = inode(number)
        content = found[path][4]
        names = []
        for begin in range(0, len(content), BLOCK):
            part = content[begin : begin + BLOCK]
            (_, first, _) = struct.unpack_from("<QHB", part)
            heads = [struct.unpack_from("<QHB", part, 12 * each) for each in range(first // 12)]
            ends = [head[1] for head in heads[1:]] + [len(part)]
            for (child, start, kind), end in zip(heads, ends, strict=True):
                name = part[start:end].rstrip(b"\0")
                names.append(name)
                mode = inode(child)[0]
                assert kind == {stat.S_IFDIR: 2, stat.S_IFREG: 1, stat.S_IFLNK: 7, stat.S_IFCHR: 3}[stat.S_IFMT(mode)]
                below = f"{path}/{name.decode(errors='surrogateescape')}".lstrip("/")
                if name not in (b".", b".."):
                    assert child != 0
                    if stat.S_ISDIR(mode):
                        walk(child, below)
                    else:
                        found[below] = inode(child)
        assert names == sorted(names)
        assert {b".", b".."} <= set(names)

    walk(root, "")
    assert len(seen) == count
    return found


@pytest.mark.parametrize("seed", range(3))
def test_an_image_of_erofs_has_the_tree(tmp_path: Path, seed: int) -> None:
    tree = tree_of(seed)
    write_erofs(tree, tmp_path / "root")
    data = (tmp_path / "root").read_bytes()
    assert len(data) % (2 << 20) == 0
    found = read_erofs(data)
    assert found.keys() == {"", *tree}
    for path, entry in tree.items():
        mode, uid, gid, links, content = found[path]
        assert (mode, uid, gid) == (entry.mode, entry.uid, entry.gid), path
        if stat.S_ISCHR(mode):
            assert content == b"\x03\x01\0\0"
        elif not entry.is_folder:
            assert content == entry.read(), path
        if entry.is_folder:
            folders = sum(each.is_folder for other, each in tree.items() if other.rpartition("/")[0] == path)
            assert links == 2 + folders
    assert found["owner"][3] == 2


def test_a_cpio_archive_has_the_tree(tmp_path: Path) -> None:
    tree = tree_of(1)
    write_cpio(tree, tmp_path / "root")
    entries, end = cpio.read((tmp_path / "root").read_bytes())
    assert end <= (tmp_path / "root").stat().st_size
    assert [entry.path for entry in entries] == sorted(tree, key=lambda path: path.encode(errors="surrogateescape"))
    # The content of hard links is in the first.
    assert {entry.path: (entry.mode, entry.data) for entry in entries} == {
        path: (entry.mode, b"" if path == "same" else entry.read()) for path, entry in tree.items()
    }


@pytest.mark.parametrize("write", [write_cpio, write_erofs])
def test_equal_trees_are_equal_bytes_however_they_were_made(tmp_path: Path, write) -> None:  # type: ignore[no-untyped-def]
    tree = tree_of(2)
    first = write(tree, tmp_path / "first")
    again = write(dict(reversed(tree.items())), tmp_path / "again")
    assert first == again
    assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()


def test_a_file_that_became_shorter_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"short")
    with pytest.raises(BadTree, match="was changed while it was read"):
        write_erofs({"a": file(Slice(tmp_path / "file", 0, 100))}, tmp_path / "root")
