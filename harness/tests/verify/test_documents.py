# SPDX-License-Identifier: Apache-2.0
"""run.json, guests' records and domain.xml: each of its format, and none contradicts another."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mutation.runs import recorded
from sundial.observe import open_run
from sundial.verify.documents import check_documents
from sundial.verify.samples import load_samples


def frames(*times_ns: int, interface: str = "client:eth0", direction: int = 2) -> pl.DataFrame:
    """What a machine sent, or was sent, at some times."""
    number = len(times_ns)
    return pl.DataFrame(
        {
            "row": range(number), "interface": [interface] * number, "direction": [direction] * number,
            "fate": [None] * number, "time_ns": times_ns,
        },
        schema={
            "row": pl.UInt32, "interface": pl.String, "direction": pl.UInt8, "fate": pl.String, "time_ns": pl.Int64,
        },
    )  # fmt: skip


BINDING_NS = 301_070_040
"""When the client of the stored run began."""
FRAMES = frames(BINDING_NS, 400_000_000)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded("sunrpc-virtual", tmp_path_factory.mktemp("documents"))


@pytest.fixture
def run(stored: Path, tmp_path: Path) -> Path:
    for file in stored.rglob("*"):
        if file.is_file():
            copy = tmp_path / file.relative_to(stored)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    return tmp_path


def fields(path: Path, seen: pl.DataFrame = FRAMES) -> list[str]:
    run = open_run(path)
    return check_documents(run, load_samples(run), seen)["field"].to_list()


def replace(file: Path, pattern: str, changed: str) -> None:
    file.write_text(re.sub(pattern, changed, file.read_text(), count=1))


def test_a_sound_run_has_no_findings(run: Path) -> None:
    assert fields(run) == []


def other(value: Any, *names: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for name in names[:-1]:
            document = document[name]
        document[names[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (other({"error": "x", "exit_code": 1, "message": "x", "hint": None}, "error"), "run.json error"),
        (other(0, "epoch_ns"), "run.json epoch_ns"),
        (other("x", "more"), "run.json more"),
        (other(1, "scenario", "scale"), "run.json scenario.scale"),
        (other("1 s", "scenario", "linger"), "run.json time.virtual_ns"),
        (other("1 ms", "scenario", "deadline"), "run.json time.virtual_ns"),
        (other(399_999_999, "time", "virtual_ns"), "frames"),
        (other("kvm", "accelerator"), "nodes/client/domain.xml type"),
    ],
)
def test_a_run_record_of_another_form_is_named(run: Path, change: Callable[[dict[str, Any]], None], field: str) -> None:
    file = run / "run.json"
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))
    assert field in fields(run)


def test_a_frame_before_the_run_is_named(run: Path) -> None:
    assert fields(run, frames(-1, interface="server:eth0")) == ["frames"]


def test_a_frame_before_the_first_thing_that_a_machine_records_is_named(run: Path) -> None:
    assert fields(run, frames(BINDING_NS - 1, BINDING_NS)) == ["first frame"]
    assert fields(run, frames(BINDING_NS - 1, direction=1)) == []
    assert fields(run, frames(BINDING_NS - 1, interface="server:eth0")) == []


@pytest.mark.parametrize(("tries", "found"), [(1, ["first frame"]), (2, [])])
def test_what_is_recorded_of_the_last_of_several_tries_says_nothing_of_the_first(
    run: Path, tries: int, found: list[str]
) -> None:
    records = run / "nodes/client/samples.jsonl"
    line = {"type": "iperf3", "start": 1 << 60, "end": 1 << 61, "tries": tries}
    records.write_text(f"{records.read_text().partition(chr(10))[0]}\n{json.dumps(line)}\n")
    named = fields(run, frames(BINDING_NS))
    assert [each for each in named if each == "first frame"] == found


@pytest.mark.parametrize(
    ("pattern", "changed", "field"),
    [
        ('"kernel":"[^"]*",', "", "hello hello.kernel"),
        ('"attempts":1,', "", "binding binding.attempts"),
        ('"attempts":1,', '"attempts":1,"more":1,', "binding binding.more"),
        ('"tcp_retransmits":0', '"tcp_retransmits":"0"', "batch batch.tcp_retransmits"),
        ('"type":"step",', '"type":"pace",', "pace "),
    ],
)
def test_a_record_of_another_form_is_named(run: Path, pattern: str, changed: str, field: str) -> None:
    replace(run / "nodes" / "client" / "samples.jsonl", pattern, changed)
    assert f"nodes/client/samples.jsonl {field}" in fields(run)


@pytest.mark.parametrize(
    ("pattern", "changed", "field"),
    [
        (r"(?s)<os>.*", "", ""),
        (r"\A", "<!DOCTYPE domain>", ""),
        ("-client</name>", "-another</name>", " name"),
        (r"(<memory[^>]*>)\d+", r"\g<1>1", " memory"),
        (r"(<vcpu[^>]*>)1", r"\g<1>2", " vcpu"),
        (r'value="shift=3,', 'value="shift=4,', " QEMU's arguments"),
        (r"zero=\d+", "zero=1", " plugin zero"),
        ("machine=0", "machine=1", " plugin machine"),
        ("id=n0,local", "id=n1,local", " netdevs"),
    ],
)
def test_a_domain_that_was_not_planned_is_named(run: Path, pattern: str, changed: str, field: str) -> None:
    replace(run / "nodes" / "client" / "domain.xml", pattern, changed)
    assert fields(run) == [f"nodes/client/domain.xml{field}"]


@pytest.mark.parametrize(("memory", "named"), [(96, ["client", "server"]), (120, [])])
def test_memory_of_a_machine_is_that_of_its_qemu(run: Path, memory: int, named: list[str]) -> None:
    document = json.loads((run / "run.json").read_text())
    document["versions"]["qemu"] = "10.0.13 Debian"
    (run / "run.json").write_text(json.dumps(document))
    for machine in ("client", "server"):
        replace(run / "nodes" / machine / "domain.xml", r"(<memory[^>]*>)\d+", rf"\g<1>{memory << 20}")
    assert fields(run) == [f"nodes/{machine}/domain.xml memory" for machine in named]


OF_B = {"connect": "qemu+ssh://me@b/session", "machines": ["server"], "qemu": "7.2", "libvirt": "9.0", "frames": {}}


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ((), None, []),
        (("b", "machines"), ["client"], ["b"]),
        (("b", "connect"), "qemu+ssh://me@c/session", ["b"]),
        (("c",), {**OF_B, "machines": []}, ["c"]),
        (("b",), None, ["b"]),
    ],
)
def test_machines_ran_on_the_hosts_that_were_planned(
    run: Path, path: tuple[str, ...], value: object, named: list[str]
) -> None:
    document = json.loads((run / "run.json").read_text())
    document["topology"]["hosts"] = {"b": {"connect": OF_B["connect"]}}
    document["topology"]["machines"]["server"]["on"] = "b"
    document["hosts"] = {"b": dict(OF_B)}
    if path:
        at = document["hosts"] if len(path) == 1 else document["hosts"][path[0]]
        at[path[-1]] = value
    (run / "run.json").write_text(json.dumps(document))
    found = [field for field in fields(run) if field.startswith("run.json hosts.") and field.count(".") == 2]
    assert set(found) == {f"run.json hosts.{name}" for name in named}
