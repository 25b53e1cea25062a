# SPDX-License-Identifier: Apache-2.0
"""Trees from layers and folders: whiteouts, links, owners, and what is refused."""

from __future__ import annotations

import os
import re
import tarfile
from pathlib import Path

import pytest

from sundial.machines.layers import read_layers
from sundial.machines.tree import BadTree, Tree, add_layer, place, read_folder, size_of
from sundial.model.oci import read_image
from tests.machines.containers import archive, folder, layer, layout, link, member, saved


def laid(tmp_path: Path, *layers: bytes) -> Tree:
    tree: Tree = {}
    for number, data in enumerate(layers):
        (tmp_path / f"{number}.tar").write_bytes(data)
        add_layer(tree, tmp_path / f"{number}.tar", f"layer {number}")
    return tree


def contents(tree: Tree) -> dict[str, bytes]:
    return {path: entry.read() for path, entry in sorted(tree.items()) if not entry.is_folder}


def test_a_whiteout_hides_what_is_below_and_not_what_is_beside(tmp_path: Path) -> None:
    lower = layer(*(member(name, content=name.encode()) for name in ("a/x", "a/y", "b/x", "b/deep/y", "c")))
    upper = layer(
        member("a/x", content=b"new"),
        member("a/.wh.y"),
        member("b/new", content=b"new"),
        member("b/.wh..wh..opq"),
        member(".wh.c"),
        member(".wh.never"),
        # Of Docker's storage driver, not of the image.
        member(".wh..wh.plnk/1"),
    )
    assert contents(laid(tmp_path, lower, upper)) == {"a/x": b"new", "b/new": b"new"}


def test_a_file_takes_the_place_of_a_folder_and_the_other_way_round(tmp_path: Path) -> None:
    lower = layer(folder("a"), member("a/x", content=b"x"), member("b", content=b"b"), link("c", "a"))
    upper = layer(member("a", content=b"a"), member("b/y", content=b"y"), folder("c"))
    tree = laid(tmp_path, lower, upper)
    assert contents(tree) == {"a": b"a", "b/y": b"y"}
    assert tree["b"].is_folder
    assert tree["c"].is_folder


def test_a_path_goes_through_links_of_lower_layers_and_stays_inside(tmp_path: Path) -> None:
    lower = layer(folder("usr/bin"), link("bin", "usr/bin"), link("out", "../../../../../etc"), link("abs", "/usr"))
    upper = layer(
        member("bin/x", content=b"x"), member("out/passwd", content=b"mine"), member("abs/bin/y", content=b"y")
    )
    tree = laid(tmp_path, lower, upper)
    files = {path: data for path, data in contents(tree).items() if not tree[path].is_link}
    assert files == {"usr/bin/x": b"x", "etc/passwd": b"mine", "usr/bin/y": b"y"}


def test_a_hard_link_is_the_same_file(tmp_path: Path) -> None:
    tree = laid(tmp_path, layer(member("a", content=b"12345"), member("b/c", tarfile.LNKTYPE, linkname="./a")))
    assert tree["a"] is tree["b/c"]
    assert size_of(tree) == 5


def test_modes_and_owners_are_kept(tmp_path: Path) -> None:
    tree = laid(tmp_path, layer(member("su", mode=0o4755, uid=5, gid=70_000), folder("tmp", 0o1777)))
    assert (tree["su"].mode, tree["su"].uid, tree["su"].gid) == (0o104755, 5, 70_000)
    assert tree["tmp"].mode == 0o41777


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (member("dev/sda", tarfile.BLKTYPE), "/dev/sda is a device, which a root cannot have"),
        (member("dev/tty", tarfile.CHRTYPE), "/dev/tty is a device, which a root cannot have"),
        (member("run/pipe", tarfile.FIFOTYPE), "/run/pipe is a pipe, which a root cannot have"),
        (member("../etc/passwd"), "path '../etc/passwd' leads out of the root"),
        (member("a/../../b"), "path 'a/../../b' leads out of the root"),
        (member("hard", tarfile.LNKTYPE, linkname="none"), "hard link /hard leads to /none, which is not a file"),
        (member("hard", tarfile.LNKTYPE, linkname="../../etc/passwd"), "leads out of the root"),
        (member("n" * 256), "is not valid in a root"),
        (member("TRAILER!!!"), "is not valid in a root"),
        (link("empty", ""), "link /empty has an invalid target"),
        (member("much", uid=1 << 33), "has an owner that is not a number of Linux"),
    ],
)
def test_an_entry_that_a_root_cannot_have_is_one_line(
    tmp_path: Path, entry: tuple[tarfile.TarInfo, bytes], said: str
) -> None:
    with pytest.raises(BadTree, match=r"layer 0: .*" + re.escape(said)) as refused:
        laid(tmp_path, layer(entry))
    assert "\n" not in str(refused.value)


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    circle = layer(link("a", "b"), link("b", "a"))
    with pytest.raises(BadTree, match="is a link that leads to itself"):
        laid(tmp_path, circle, layer(member("a/x")))


def test_a_layer_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    data = layer(member("a", content=bytes(5000)))
    for size in (3000, 700, 100):
        with pytest.raises(BadTree, match=r"layer 0 is (damaged|cut off)"):
            laid(tmp_path, data[:size])


def test_each_form_of_an_image_gives_the_same_tree(tmp_path: Path) -> None:
    layers = [layer(member("etc/a", content=b"a"), member("etc/b", content=b"b")), layer(member("etc/.wh.a"))]
    plain = layout(tmp_path / "plain", *layers, packed=False)
    forms = [layout(tmp_path / "packed", *layers), plain, archive(tmp_path / "plain.tar", plain)]
    forms.append(saved(tmp_path / "saved.tar", *layers))
    for number, form in enumerate(forms):
        scratch = tmp_path / str(number)
        scratch.mkdir()
        assert contents(read_layers(form, read_image(form), scratch)) == {"etc/b": b"b"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data[:-20], "is damaged|is cut off"),
        (lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], "is damaged"),
        (lambda data: data + b"junk", "is damaged"),
        (lambda data: b"", "is damaged"),
    ],
)
def test_a_damaged_layer_is_refused(tmp_path: Path, change, said: str) -> None:  # type: ignore[no-untyped-def]
    path = layout(tmp_path / "image", layer(member("a", content=os.urandom(3000))))
    image = read_image(path)
    blob = path / image.layers[0].name
    blob.write_bytes(change(blob.read_bytes()))
    with pytest.raises(BadTree, match=said):
        read_layers(path, image, tmp_path)


def test_a_folder_has_files_links_and_modes_and_belongs_to_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "usr" / "bin").mkdir(parents=True)
    (root / "usr" / "bin" / "x").write_bytes(b"program")
    (root / "usr" / "bin" / "x").chmod(0o755)
    os.link(root / "usr" / "bin" / "x", root / "usr" / "bin" / "same")
    (root / "abs").symlink_to("/usr/bin")
    (root / "up").symlink_to("../../../outside")
    tree = read_folder(root)
    assert sorted(tree) == ["abs", "up", "usr", "usr/bin", "usr/bin/same", "usr/bin/x"]
    assert tree["usr/bin/x"] is tree["usr/bin/same"]
    assert (tree["usr/bin/x"].mode & 0o777, tree["usr/bin/x"].uid) == (0o755, 0)
    assert tree["up"].target == "../../../outside"
    assert place(tree, "abs/x") == "usr/bin/x"
    os.mkfifo(root / "pipe")
    with pytest.raises(BadTree, match="pipe is a pipe, which a root cannot have"):
        read_folder(root)
