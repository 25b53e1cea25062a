# SPDX-License-Identifier: Apache-2.0
"""A workload that is added as a folder, and nothing else, is known everywhere."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sundial import kinds

SUNDIAL = Path(kinds.__file__).parent

MODEL = '''
from typing import Annotated, Literal
from sundial.model.finding import Finding
from sundial.model.lists import Words
from sundial.model.workload import Transport, WorkloadBase

AIR = Transport("air", ("at_least_once",), reliable=False)

class Ping(WorkloadBase):
    """Pings."""
    app: Literal["ping"]
    """Echo requests."""
    transports: Annotated[tuple[str, ...], Words("air")] = ("air",)
    loudness: int = 3
    """How loud."""

class Kind:
    order = 9
    model = Ping
    transports = (AIR,)
    def runs_on(self, image):
        return image.platform == "linux"
    def check(self, workload, ends, path):
        if workload.loudness > 11:
            yield Finding((*path, "loudness"), "too loud", "up to 11")
    def resolve(self, workload, ends, path):
        return workload, []
    def check_all(self, workloads, network):
        return iter(())

KIND = Kind()
'''
PLAN = """
from sundial.plan.workload import Service, Step

class Plan:
    def services(self, workload, server):
        yield Service("ping-server", {}, bound=True)
    def steps(self, workload, way):
        yield Step("ping-client", {"server": str(way.server_address), "loudness": workload.loudness})
    def idle_services(self, host):
        yield Service("ping-server", {})

KIND = Plan()
"""
REPORT = """
from sundial.report.workload import Client, Line

class Report:
    clients = {"ping-client": Client("Ping", {"air": Line("ping-air", "#123456", "#654321", "x")})}
    def legs(self, setting, size):
        return None
    def moves(self, procedure):
        return 1
    def filters(self, transports):
        return iter(())
    def tables(self, records):
        return iter(())

KIND = Report()
"""
SCRIPT = """
import json, sys
from pathlib import Path
import sundial.workloads

folder = sys.argv[1]
sundial.workloads.__path__.append(folder)

from click.testing import CliRunner
from sundial.cli.main import sundial as command
from sundial.errors import BadInput
from sundial.model.load import load_experiments, load_topology
from sundial.model.network import build_network
from sundial.model.scenario import Scenario
from sundial.model.schema import schema_text
from sundial.plan.build import plan_run, plan_topology
from sundial.plan.paths import RunPaths
from sundial.report import palette, registry

paths = RunPaths(capture=Path("/run/wire"), sockets=Path("/run/s"), shm=Path("/dev/shm/x"))
scenario = folder + "/pings.yaml"

def refusal(**options):
    try:
        load_experiments(scenario, **options)
    except BadInput as error:
        return str(error)

curve = ("ping-client", "air", "ping")
print(json.dumps({
    "jobs": {
        name: job.document()
        for name, job in plan_run(load_experiments(scenario, overrides=["loudness=5"])[0], paths).jobs.items()
    },
    "idle": plan_topology(
        build_network(load_topology("two-hosts-10base-t")), paths, clock="real", seed=1
    ).jobs["server"].document()["services"],
    "schema": json.loads(schema_text(Scenario))["$defs"]["Ping"]["properties"],
    "help": CliRunner().invoke(command, ["run", "--help"]).output,
    "too loud": refusal(overrides=["loudness=12"]),
    "image": refusal(topology="sss-two-100base-tx"),
    "look": palette.looks([curve])[curve].label,
    "colour": palette.css_variables(dark=True),
    "moves": registry.moves("ping-client", "ping"),
}))
"""


@pytest.fixture(scope="module")
def with_ping(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What a Sundial with one more folder says; unions of models are built at import, hence a process of its own."""
    folder = tmp_path_factory.mktemp("more")
    (folder / "ping").mkdir()
    for name, text in (("__init__", ""), ("model", MODEL), ("plan", PLAN), ("report", REPORT)):
        (folder / "ping" / f"{name}.py").write_text(text)
    text = "description: Pings\ntopology: two-hosts-10base-t\nworkloads: [{app: ping}]\n"
    (folder / "pings.yaml").write_text(text)
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=SUNDIAL.parent, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_it_is_validated_with_file_and_line(with_ping: dict[str, object]) -> None:
    assert with_ping["too loud"] == "--set: loudness: too loud; allowed: up to 11"
    assert "image 'ssscore' of 'server' does not run ping" in str(with_ping["image"])


def test_it_is_planned(with_ping: dict[str, object]) -> None:
    jobs = with_ping["jobs"]
    assert isinstance(jobs, dict)
    assert jobs["client"]["steps"] == [{"app": "ping-client", "options": {"server": "10.0.0.2", "loudness": 5}}]
    assert [service["app"] for service in jobs["server"]["services"]] == ["rpcbind", "ping-server"]


def test_it_is_served_by_hosts_that_are_only_brought_up(with_ping: dict[str, object]) -> None:
    assert {"app": "ping-server", "options": {}} in with_ping["idle"]  # type: ignore[operator]


def test_it_is_in_the_schema_and_the_help(with_ping: dict[str, object]) -> None:
    assert with_ping["schema"]["loudness"]["description"] == "How loud."  # type: ignore[index]
    assert "ping: Echo requests. Over air." in str(with_ping["help"])


def test_it_is_drawn(with_ping: dict[str, object]) -> None:
    assert with_ping["look"] == "Ping / AIR"
    assert "--ping-air:#654321;" in str(with_ping["colour"])
    assert with_ping["moves"] == 1


WORDS = frozenset({*kinds.names("workloads"), *kinds.names("papers"), "mbcf3", "echo-client", "echo-server", "ssscore"})
ELSEWHERE = {"images.py"}
"""The declarations of images."""


@pytest.mark.parametrize("stage", ["model", "plan", "report"])
def test_no_stage_names_a_kind(stage: str) -> None:
    for path in (SUNDIAL / stage).glob("*.py"):
        tree = ast.parse(path.read_text())
        imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not [name for name in imported if name.startswith(("sundial.workloads", "sundial.papers"))], path
        words = {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert path.name in ELSEWHERE or not words & WORDS, path


def test_any_module_of_a_kind_can_be_imported_first() -> None:
    script = """
import sys
from importlib import import_module
from sundial import kinds

names = kinds.names("workloads")
for name in [f"sundial.workloads.{kind}.{stage}" for kind in names for stage in ("model", "plan", "report")]:
    for known in [known for known in sys.modules if known.partition(".")[0] == "sundial"]:
        del sys.modules[known]
    import_module(name)
"""
    subprocess.run([sys.executable, "-c", script], cwd=SUNDIAL.parent, check=True)
