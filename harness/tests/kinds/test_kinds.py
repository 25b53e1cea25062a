# SPDX-License-Identifier: Apache-2.0
"""One kind of each family is added as CONTRIBUTING.md says, without an edit of any file: every command knows it.

Machines and the fabric are fakes here; `test_kinds_vm.py` has real ones.
"""

from __future__ import annotations

import ast
import html
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sundial import kinds
from tests.kinds.tree import CHECKOUT, Tree

SUNDIAL = CHECKOUT / "harness" / "sundial"


HELPED = {
    ("topology", "--help"): "tube: Two ends and a fixed time between them.",
    ("run", "--help"): "toy: Toys that come back. Over udp.",
    ("images", "--help"): "toy: Linux, with the toys as its own",
    ("reproduce", "--help"): "bilas97, kamesawa98, kedziera98, khandker, santos18, toy.",
    ("verify", "--help"): "toy-udp",
}
OFFERED = {
    ("images", "build", "t"): "toy",
    ("run", "to"): "toy",
    ("run", "toy", "--topology", "two-to"): "two-toys",
    ("up", "two-to"): "two-toys",
    ("reproduce", "t"): "toy",
    ("verify", "--protocol", "t"): "toy-udp",
}


def test_help_shows_them(tree: Tree) -> None:
    for (words, line), answer in zip(HELPED.items(), tree.answers(*HELPED), strict=True):
        assert (line in answer.stdout, answer.status) == (True, 0), words


def test_the_shell_completes_them(tree: Tree) -> None:
    assert tree.offered(*OFFERED) == [[name] for name in OFFERED.values()]


def test_the_schemas_for_editors_have_them(tree: Tree) -> None:
    assert tree.python("-m", "sundial.model.schema").returncode == 0
    topology, scenario = (
        json.loads((tree.root / folder / name).read_text())
        for folder, name in (("topologies", "topology.schema.json"), ("harness/scenarios", "scenario.schema.json"))
    )
    assert topology["$defs"]["Tube"]["properties"]["kind"]["const"] == "tube"
    assert topology["$defs"]["Tube"]["properties"]["delay"]["description"].startswith("From end to end.")
    assert scenario["$defs"]["Toy"]["properties"]["app"]["const"] == "toy"
    assert "toy: the slower half of the series dropped" in scenario["properties"]["statistic"]["description"]


def test_the_image_is_built_and_a_topology_may_name_it(tree: Tree) -> None:
    listed, checked = tree.answers(["images", "list"], ["topology", "check", "two-toys"])
    lines = [line.split()[:4] for line in listed.stdout.splitlines()[1:]]
    assert ["toy", "own", "chosen", "built"] in lines
    assert ["linux", "distribution", "chosen", "missing"] in lines
    assert "6.1-toy" in listed.stdout.splitlines()[-1]
    assert checked.stdout.startswith("two-toys: valid: 2 machines")


REFUSED = {
    "defaults.image=tin": "there is no image 'tin'; allowed: linux, "
    "linux-python, linux-python-current, linux-python-paper, ssscore, toy",
    "defaults.memory=64 MiB": "64 MiB for 'client', which boots toy; allowed: a size in whole MiB from 96 MiB",
    "machines.client.role=bridge": "image 'toy' cannot be a bridge; allowed: host",
    "workloads.0.sizes=4": "4 bytes do not fit toy echo over udp; allowed: 8 to",
    "defaults.image=ssscore": "image 'ssscore' of 'server' does not run toy",
    "segments.lan.delay=1 s": "segments.lan.delay",
    'segments.lan.ports=["client:eth0","server:eth0","c:eth0"]': "a tube with 3 ends; allowed: 2",
}


def test_what_they_do_not_allow_is_refused(tree: Tree) -> None:
    answers = tree.answers(*(["run", "toy", "--dry-run", "--set", setting] for setting in REFUSED))
    for answer, message in zip(answers, REFUSED.values(), strict=True):
        assert answer.status == 2
        assert message in answer.stderr


def test_a_wrong_declaration_is_one_line_and_hurts_no_other_command(tree: Tree) -> None:
    tin = tree.root / "images" / "tin" / "image.toml"
    tin.parent.mkdir()
    tin.write_text((tree.root / "images" / "toy" / "image.toml").read_text() + 'colour = "red"\n')
    refused, helped = tree.answers(["images", "list"], ["images", "--help"])
    shutil.rmtree(tin.parent)
    assert (refused.status, refused.stdout) == (2, "")
    (line,) = (line for line in refused.stderr.splitlines() if "image.toml" in line)
    assert "colour: unknown field; allowed: name, description, platform" in line
    assert helped.status == 0


def test_they_are_planned(tree: Tree) -> None:
    (plan,) = json.loads(tree.sundial("run", "toy", "--dry-run").stdout)
    (segment,) = plan["fabric"]["segments"]
    assert (segment["kind"], segment["rate_bps"], segment["delay_ns"]) == ("tube", 10_000_000, 2000)
    client, server = plan["jobs"]["client"], plan["jobs"]["server"]
    options = {"server": "10.0.0.2", "series": 0, "sizes": [8, 2000], "calls": 3, "warmup": 1}
    assert client["steps"][0] == {"app": "toy-client", "options": options}
    assert server["services"] == [{"app": "toy-server", "options": {}}]


IDLE = """
from pathlib import Path
from sundial.model.load import load_topology
from sundial.model.network import build_network
from sundial.plan.build import plan_topology
from sundial.plan.paths import RunPaths
paths = RunPaths(capture=Path("/run/wire"), sockets=Path("/run/s"), shm=Path("/dev/shm/x"))
plan = plan_topology(build_network(load_topology("two-toys")), paths, clock="real", seed=1)
print(*(service["app"] for service in plan.jobs["server"].document()["services"]))
"""


def test_a_host_that_is_only_brought_up_serves_them(tree: Tree) -> None:
    assert "toy-server" in tree.python("-c", IDLE).stdout.split()


def fake(tree: Tree, *words: str) -> dict[str, Any]:
    """What a command answers whose machines are fakes."""
    done = tree.python("-m", "tests.kinds.fakes", *words, "--json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="module")
def made(tree: Tree) -> Path:
    """A run of the toys on the tube."""
    folder = tree.root / "captures" / "made"
    folder.parent.mkdir(exist_ok=True)
    result = fake(tree, "run", "toy", "--clock", "real", "--out", str(folder))
    # Two series of two sizes, three calls and one before them each.
    assert (result["verdict"], result["calls"], result["mismatches"]) == ("pass", 16, 0)
    return folder


def test_they_are_run_verified_and_reported(made: Path) -> None:
    run = json.loads((made / "run.json").read_text())
    assert run["topology"]["segments"]["lan"]["kind"] == "tube"
    assert list(run["images"]) == ["toy"]
    groups = json.loads((made / "verify.json").read_text())["groups"]
    assert [(group["app"], group["size"]) for group in groups] == [("toy-client", 8), ("toy-client", 2000)]
    page = html.unescape((made / "report.html").read_text())
    for words in ("Toy / UDP", "--toy-udp:", "a tube", "mean over the faster half", 'udp contains "TOY1"'):
        assert words in page, words


def test_a_toy_that_is_damaged_is_found(tree: Tree, made: Path, out: Path) -> None:
    shutil.copytree(made, out)
    capture = out / "wire" / "lan.pcapng"
    capture.write_bytes(capture.read_bytes().replace(b"TOY1", b"TIN1", 1))
    (verified,) = tree.answers(["verify", str(out), "--json"])
    assert verified.status == 1
    assert json.loads(verified.stdout)["verdict"] == "fail"


def test_the_paper_is_reproduced(tree: Tree, out: Path) -> None:
    result = fake(tree, "reproduce", "toy", "--quick", "--jobs", "1", "--out", str(out))
    assert (result["runs"], result["failed"], result["mismatched"]) == (1, [], [])
    assert (out / "toys.csv").read_text().splitlines()[0] == "size,printed_us,measured_us"
    assert "Round trip of a toy" in (out / "report.html").read_text()
    assert json.loads((out / "reproduce.json").read_text())["runs"][0]["verdict"] == "pass"


JUDGED = """
import sys
from pathlib import Path
from sundial.cli import rooms
run = Path(sys.argv[1])
print(rooms.verify_run(run)["verdict"], rooms.build_report(run, drawn=False).name)
"""


def test_a_segment_that_is_only_carried_needs_neither_verify_nor_report(tree: Tree, made: Path, out: Path) -> None:
    shutil.copytree(made, out)
    folder = tree.root / "harness" / "sundial" / "segments" / "tube"
    kept = {name: (folder / name).read_text() for name in ("verify.py", "report.py")}
    for name in kept:
        (folder / name).unlink()
    try:
        judged = tree.python("-c", JUDGED, str(out))
    finally:
        for name, text in kept.items():
            (folder / name).write_text(text)
    assert judged.stdout == "pass report.html\n", judged.stderr


WORDS = frozenset(
    {*kinds.names("workloads"), *kinds.names("papers"), *kinds.names("segments"), "mbcf3", "echo-client", "ssscore"}
)
STAGES = sorted(path.name for path in SUNDIAL.iterdir() if path.is_dir() and path.name not in {
    "segments", "workloads", "papers", "seams", "__pycache__", "draft",
})  # fmt: skip
"""But `draft`, whose texts are files of users, which name kinds."""
THEIRS = {"raw", "command"}
"""Are words of Python, of terminals and of run.json, too."""
ELSEWHERE = {"hpack.py": {"link"}, "language.py": {"switch"}}
"""Are words of HTTP's table of headers, and of XDR, too."""


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_names_a_kind(stage: str) -> None:
    for path in (SUNDIAL / stage).glob("*.py"):
        tree = ast.parse(path.read_text())
        imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        theirs = ("sundial.workloads.", "sundial.papers.", "sundial.segments.")
        assert not [name for name in imported if name.startswith(theirs)], path
        words = {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not words & WORDS - THEIRS - ELSEWHERE.get(path.name, set()), path
