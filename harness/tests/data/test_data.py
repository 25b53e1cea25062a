# SPDX-License-Identifier: Apache-2.0
"""A run as tables: for notebooks, and as files. The examples of docs/data.md are executed."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import sundial
from mutation import runs
from sundial.data.files import format_of, write
from sundial.data.tables import TABLES
from sundial.data.write import PAGE, with_columns
from sundial.errors import BadInput
from sundial.model.catalog import ROOT
from sundial.observe import SAMPLE_COLUMNS
from sundial.verify import run
from sundial.verify.findings import none
from tests.compare.test_runs import _octet, made
from tests.verify.bed import CLIENT, Bed


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a damaged payload, verified."""
    bed = Bed(tmp_path_factory.mktemp("data") / "one")
    bed.batch("echo-client", "udp", 100, 20049, 700)
    for number in range(3):
        bed.udp_call(100, 0x1000 + number)
    _octet(150)(bed)
    folder = bed.write()
    with pytest.MonkeyPatch.context() as patch:
        # A bed has neither a scenario nor jobs.
        for name in ("check_documents", "check_jobs", "check_plan"):
            patch.setattr(run, name, lambda *_: none())
        run.verify_run(folder)
    return folder


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_described(name: str) -> None:
    assert list(TABLES[name].columns) == list(TABLES[name].row.model_fields)


def test_the_page_has_the_columns_of_the_models() -> None:
    assert PAGE.read_text() == with_columns(PAGE.read_text()), "run python -m sundial.data.write"


def test_tables_have_their_columns(verified: Path) -> None:
    opened = sundial.open_run(verified)
    assert (opened.name, opened.verdict, opened.document["version"]) == ("one", "fail", 1)
    for name in ("samples", "frames", "findings"):
        assert opened.table(name).schema == pl.Schema(TABLES[name].columns)
    assert opened.samples.height == 3
    assert opened.findings.height == opened.verification["mismatches"] > 0


def test_frames_are_those_of_the_capture(verified: Path) -> None:
    frames = sundial.open_run(str(verified)).frames
    assert frames.height == 12
    first = frames.filter(pl.col("frame") == 1).row(0, named=True)
    assert first["time_ns"] == 1_000_000
    assert {name: first[name] for name in ("segment", "port", "direction", "source", "protocol", "fate")} == {
        "segment": "lan", "port": "client:eth0", "direction": "out", "source": CLIENT, "protocol": 17, "fate": None
    }  # fmt: skip
    assert first["frame_bytes"] == first["udp_bytes"] + 34


def test_fates_are_words(tmp_path: Path) -> None:
    def lose(bed: Bed) -> None:
        bed.send(CLIENT, bed.datagram(CLIENT, (700, 20049), b"x"), lose=(0,))

    frames = sundial.open_run(made(tmp_path / "a", lose)).frames
    (lost,) = frames.filter(pl.col("fate").is_not_null()).iter_rows(named=True)
    assert (lost["fate"], lost["port"], lost["direction"]) == ("lost", "lan:fate", None)


def test_what_a_run_does_not_have_is_one_line(tmp_path: Path) -> None:
    opened = sundial.open_run(made(tmp_path / "a"))
    for name, words in (
        ("findings", "the run is not verified"),
        ("steps", "has no steps"),
        ("calls", "no table 'calls'"),
    ):
        with pytest.raises(BadInput, match=words) as caught:
            opened.table(name)
        assert "\n" not in caught.value.message
    (tmp_path / "a" / "samples.parquet").write_bytes(b"PAR1")
    with pytest.raises(BadInput, match=r"samples\.parquet: is not readable"):
        sundial.open_run(tmp_path / "a").table("samples")
    (tmp_path / "a" / "samples.parquet").unlink()
    assert sundial.open_run(tmp_path / "a").samples.height == 3  # what the machines recorded
    (tmp_path / "a" / "wire" / "lan.pcapng").unlink()
    with pytest.raises(BadInput, match=r"lan\.pcapng is missing"):
        sundial.open_run(tmp_path / "a").table("frames")
    for folder in (tmp_path / "nothing", tmp_path):
        with pytest.raises(BadInput, match="is missing, so this is not a run directory"):
            sundial.open_run(folder)


def test_the_examples_of_the_page_run(verified: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    code = "".join(blocks).replace("captures/quickstart-two-hosts-10base-t-1-001", str(verified))
    code = code.replace('run.document["seed"]', 'run.document["version"]')  # a run made by hand has no seed
    names: dict[str, object] = {}
    exec(compile(code, "docs/data.md", "exec"), names)
    assert capsys.readouterr().out.startswith("fail 1 3\n")
    medians = names["medians"]
    assert isinstance(medians, pl.DataFrame)
    assert medians.columns == ["app", "transport", "size", "us"]


def test_importing_the_package_imports_nothing_slow() -> None:
    program = (
        "import sundial, sys; assert 'polars' not in sys.modules; sundial.open_run; assert 'polars' in sys.modules"
    )
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "harness")}
    subprocess.run([sys.executable, "-P", "-c", program], check=True, env=environment, cwd="/")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        sundial.nothing  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("asked", "output", "form"),
    [(None, "", "csv"), (None, "x.parquet", "parquet"), (None, "x.JSON", "json"), (None, "x.txt", "csv"),
     ("json", "x.csv", "json")],
)  # fmt: skip
def test_the_format_is_asked_for_or_the_files(asked: str | None, output: str, form: str) -> None:
    assert format_of(asked, output) == form
    with pytest.raises(BadInput, match="--format"):
        format_of("xml", output)


@pytest.mark.parametrize(("form", "read"), [("csv", pl.read_csv), ("parquet", pl.read_parquet), ("json", pl.read_json)])
def test_each_format_can_be_read_again(verified: Path, form: str, read: Callable[[io.BytesIO], pl.DataFrame]) -> None:
    opened = sundial.open_run(verified)
    for name in ("samples", "frames", "findings"):
        stream = io.BytesIO()
        write(opened.table(name), form, stream)
        stream.seek(0)
        found = read(stream)
        assert (found.columns, found.height) == (opened.table(name).columns, opened.table(name).height)
    assert found["field"].to_list() == opened.findings["field"].to_list()
    assert list(SAMPLE_COLUMNS) == opened.samples.columns
    assert json.loads(opened.findings.write_json())[0]["frames"] == opened.findings["frames"].to_list()[0]


@pytest.mark.parametrize(("name", "recorded"), [("sizes", "sunrpc-virtual"), ("loss", "link-virtual")])
def test_notebooks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, recorded: str) -> None:
    monkeypatch.setenv("MPLBACKEND", "svg")
    folder = runs.recorded(recorded, tmp_path)
    run.verify_run(folder)
    notebook = json.loads((PAGE.parent / "notebooks" / f"{name}.ipynb").read_text())
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "notebooks are kept without output"
            code = re.sub(r'^RUN = ".*"$', f"RUN = {str(folder)!r}", "".join(cell["source"]), flags=re.MULTILINE)
            exec(compile(code, f"{name}.ipynb, cell {cell['id']}", "exec"), names)
    table = names["datagrams" if name == "sizes" else "fates"]
    assert isinstance(table, pl.DataFrame)
    assert table.height > 0
