# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole or not at all."""

from __future__ import annotations

import ast
import errno
from pathlib import Path

import polars as pl
import pytest

from sundial.whole import whole


def test_what_was_written_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "verify.json"
    path.write_text("old")
    with whole(path) as beside:
        beside.write_text("new")
        assert path.read_text() == "old"
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"verify.json": "new"}


@pytest.mark.parametrize("there", [True, False])
def test_a_full_disk_leaves_what_was_there_before(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "verify.json"
    if there:
        path.write_text("old")

    def write() -> None:
        with whole(path) as beside:
            beside.write_text("half of the n")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write()
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == ({"verify.json": "old"} if there else {})


def test_a_full_disk_is_the_hosts_error_also_where_polars_finds_it(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as raised, whole(tmp_path / "observed.parquet"):
        raise pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)")
    assert raised.value.errno == errno.ENOSPC


SUNDIAL = Path(__file__).parents[1] / "sundial"
RESULTS = [
    *(path for room in ("verify", "report", "reproduce", "papers") for path in (SUNDIAL / room).rglob("*.py")),
    SUNDIAL / "run" / "collect.py",
    SUNDIAL / "run" / "loopback.py",
]
WRITERS = {"write_text", "write_bytes", "write_parquet", "write_csv", "savefig"}
INTO_MEMORY = {"figure.savefig(text, format='svg', metadata={'Date': None, 'Creator': None})"}


def written(path: Path) -> list[str]:
    """Calls that write a file in place."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    writing = [node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr in WRITERS]
    places = {node: [node.func.value, *node.args] for node in writing if isinstance(node.func, ast.Attribute)}
    texts = [
        ast.unparse(node)
        for node, names in places.items()
        if not any(isinstance(name, ast.Name) and name.id == "beside" for name in names)
    ]
    return [text for text in texts if text not in INTO_MEMORY]


def test_every_result_is_written_beside_its_place() -> None:
    assert {str(path.relative_to(SUNDIAL)): calls for path in RESULTS if (calls := written(path))} == {}
