# SPDX-License-Identifier: Apache-2.0
"""`sundial try`: programs from the command line, ports from findings, and the scenario to keep."""

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from sundial.cli.try_ import document, learned, sections
from sundial.errors import BadInput
from sundial.model.load import load_experiments

GIVEN = ["server:", "httpd", "-f", "-p", "80", "--", "client:", "wget", "http://{server}/"]
OWNERS = {"10.0.0.1": "client", "10.0.0.2": "server"}
PROBLEMS = [
    {"field": "TCP to 10.0.0.2:80"},
    {"field": "ICMP echo"},
    {"field": "UDP to 10.0.0.2:53"},
    {"field": "program client on-client status"},
    {"field": "TCP to 10.0.0.2:80"},
]


def test_programs_are_separated_by_machine() -> None:
    expected = [("server", ["httpd", "-f", "-p", "80"]), ("client", ["wget", "http://{server}/"])]
    assert sections(GIVEN) == expected
    assert sections(["--", *GIVEN]) == expected
    assert sections(["client:ping", "-c", "1"]) == [("client", ["ping", "-c", "1"])]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no program is given"),
        (["server"], "'server' is not a machine with a program"),
        (["server:"], "'server:' is not a machine with a program"),
        (["a:", "x", "--", "a:", "y"], "'a' has two programs"),
    ],
)
def test_a_wrong_command_line_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(BadInput) as raised:
        sections(words)
    assert message in str(raised.value)


@pytest.mark.parametrize("problems", [[], PROBLEMS])
def test_the_scenario_to_keep_loads_as_it_is(problems: list[dict[str, str]], tmp_path: Path) -> None:
    scenario = document(sections(GIVEN), "two-hosts-switched", learned(problems), OWNERS)
    with (tmp_path / "kept.yaml").open("w") as file:
        YAML().dump(scenario, file)
    (experiment,) = load_experiments(str(tmp_path / "kept.yaml"))
    assert experiment.scenario.name == "kept"
    (workload,) = scenario["workloads"]
    assert ("at" in workload["programs"]["on-client"]) == (not problems)
    if problems:
        assert workload["ports"] == {"icmp": {"icmp": True}, "tcp-80": {"tcp": 80}, "udp-53": {"udp": 53}}
        assert workload["programs"]["on-server"]["ready"] == {"tcp": "tcp-80"}
