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
    keep_kernel,
    kept_kernel,
    kernel_table,
    parse_kallsyms,
    program_tables,
)
from sundial.machines.images import Image

TEXT = {"apps": "a" * 64}
WRITTEN = {
    "version": 1,
    "applications": {"client": "apps", "other": "elsewhere"},
    "programs": {"apps": {"text_sha256": "a" * 64, "functions": [["401000", "20", "f"], ["401020", "8", "g"]]}},
}


def image(folder: Path, written: Any = WRITTEN, programs: Any = TEXT) -> Image:
    if written is not None:
        (folder / SYMBOLS).write_text(written if isinstance(written, str) else json.dumps(written))
    manifest = {"recipe": "distribution", **({"programs": programs} if programs else {})}
    return Image("linux", folder / "kernel", folder / "initrd", "1", "2", manifest)


def test_programs_of_an_image(tmp_path: Path) -> None:
    applications, tables = program_tables(image(tmp_path))
    assert applications == {"client": "apps"}
    assert tables["apps"].functions == {"f": ((0x401000, 0x20),), "g": ((0x401020, 8),)}


def test_a_table_of_other_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="does not belong to it: its apps is of other code"):
        program_tables(image(tmp_path, programs={"apps": "b" * 64}))


@pytest.mark.parametrize("written", ["", "{}", "[]", '{"programs": {"apps": {}}}', "[" * 100_000])
def test_a_damaged_table_is_refused(tmp_path: Path, written: str) -> None:
    with pytest.raises(RunFailed, match=r"symbols\.json of image linux cannot be read"):
        program_tables(image(tmp_path, written))


def test_an_image_without_a_table_is_bad_input(tmp_path: Path) -> None:
    words = r"image linux \(recipe distribution\) has no table of its programs' functions"
    with pytest.raises(BadInput, match=words):
        program_tables(image(tmp_path, None))
    with pytest.raises(BadInput, match=words):
        program_tables(image(tmp_path, programs=None))


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
    assert table["_text"] == ((0xFFFFFFFF81000000, 0x40),)
    assert table["alias"] == ((0xFFFFFFFF81000040, 1 << 16),)  # the next is far away
    assert [address for address, _ in table["static"]] == [0xFFFFFFFF81000040, 0xFFFFFFFFC0000000]
    assert "data" not in table
    keep_kernel(tmp_path, functions)
    assert kept_kernel(tmp_path) == functions


def test_what_is_kept_of_a_kernel_is_whole_or_asked_for_again(tmp_path: Path) -> None:
    assert kept_kernel(tmp_path) is None
    keep_kernel(tmp_path, [(1, "f")])
    kept = tmp_path / KALLSYMS
    kept.write_text(kept.read_text().replace("1 f", "2 f"))
    assert kept_kernel(tmp_path) is None
