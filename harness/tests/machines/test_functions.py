# SPDX-License-Identifier: Apache-2.0
"""Tables of functions: an image's own and no other's, and what a kernel says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput, RunFailed
from sundial.machines.functions import (
    KALLSYMS,
    SYMBOLS,
    image_tables,
    keep_kernel,
    kept_kernel,
    kernel_table,
    parse_kallsyms,
)
from sundial.machines.images import Image
from sundial.plan.points import Place

TEXT = {"apps": "a" * 64}
FUNCTIONS = [["401000", "20", "ab", "f"], ["401020", "8", "cd", "g"]]
WRITTEN: dict[str, Any] = {
    "version": 2,
    "applications": {"client": "apps", "other": "elsewhere"},
    "kernel": None,
    "programs": {"apps": {"text_sha256": "a" * 64, "functions": FUNCTIONS}},
}


def image(folder: Path, written: Any = WRITTEN, programs: Any = TEXT) -> Image:
    if written is not None:
        (folder / SYMBOLS).write_text(written if isinstance(written, str) else json.dumps(written))
    manifest = {"recipe": "distribution", **({"programs": programs} if programs else {})}
    return Image("linux", folder / "kernel", folder / "initrd", "1", "2", manifest)


def test_programs_of_an_image(tmp_path: Path) -> None:
    tables = image_tables(image(tmp_path))
    assert (tables.applications, tables.kernel) == ({"client": "apps"}, None)
    assert tables.programs["apps"].functions == {"f": (Place(0x401000, 0x20, 0xAB),), "g": (Place(0x401020, 8, 0xCD),)}


def test_a_kernel_may_be_a_program_of_the_image(tmp_path: Path) -> None:
    digests = {**TEXT, "core": "c" * 64}
    core = {"text_sha256": "c" * 64, "functions": [["ffffffff80100000", "9", "0", "start"]]}
    programs = {**WRITTEN["programs"], "core": core}
    tables = image_tables(image(tmp_path, {**WRITTEN, "kernel": "core", "programs": programs}, digests))
    assert list(tables.programs) == ["apps"]
    assert tables.kernel is not None
    assert (tables.kernel.name, list(tables.kernel.functions)) == ("the kernel", ["start"])


def test_a_table_of_other_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="does not belong to it: its apps is of other code"):
        image_tables(image(tmp_path, programs={"apps": "b" * 64}))


@pytest.mark.parametrize(
    "written", ["", "{}", "[]", '{"programs": {"apps": {}}}', "[" * 100_000, {**WRITTEN, "version": 1}]
)
def test_a_damaged_table_is_refused(tmp_path: Path, written: Any) -> None:
    with pytest.raises(RunFailed, match=r"symbols\.json of image linux cannot be read"):
        image_tables(image(tmp_path, written))


def test_an_image_without_a_table_is_bad_input(tmp_path: Path) -> None:
    words = r"image linux \(recipe distribution\) has no table of its programs' functions"
    with pytest.raises(BadInput, match=words):
        image_tables(image(tmp_path, None))
    with pytest.raises(BadInput, match=words):
        image_tables(image(tmp_path, programs=None))


SAID = """\
ffffffff81000000 T _text
ffffffff81000040 t static
ffffffff81000040 T alias
ffffffff81000100 D data
ffffffffc0000000 t static	[virtio_net]
{"type":"step","step":0,"app":"echo-client","status":0}
0000 T short
"""


def test_a_kernel_says_where_its_functions_are(tmp_path: Path) -> None:
    functions = parse_kallsyms(SAID.splitlines())
    table = kernel_table(functions).functions
    assert table["_text"] == (Place(0xFFFFFFFF81000000, 0x40),)
    assert table["alias"] == (Place(0xFFFFFFFF81000040, 1 << 16),)  # the next is far away
    assert [place.address for place in table["static"]] == [0xFFFFFFFF81000040, 0xFFFFFFFFC0000000]
    assert "data" not in table
    keep_kernel(tmp_path, functions)
    assert kept_kernel(tmp_path) == functions


def test_what_is_kept_of_a_kernel_is_whole_or_asked_for_again(tmp_path: Path) -> None:
    assert kept_kernel(tmp_path) is None
    keep_kernel(tmp_path, [(1, "f")])
    kept = tmp_path / KALLSYMS
    kept.write_text(kept.read_text().replace("1 f", "2 f"))
    assert kept_kernel(tmp_path) is None
