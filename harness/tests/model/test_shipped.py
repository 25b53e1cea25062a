# SPDX-License-Identifier: Apache-2.0
"""Every shipped file is sound, for us and for an editor, and the schemas beside them are those of the models."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource
from ruamel.yaml import YAML

from sundial.model.catalog import FOLDERS, Kind, names
from sundial.model.load import load_experiments, load_topology
from sundial.model.schema import FILES, TOPOLOGY, schema_text

SCHEMAS: dict[Kind, Path] = {
    "topology": FOLDERS["topology"] / "topology.schema.json",
    "scenario": FOLDERS["scenario"] / "scenario.schema.json",
}
SHIPPED = [(kind, name) for kind in SCHEMAS for name in names(kind)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_schema_is_up_to_date(path: Path) -> None:
    assert path.read_text() == schema_text(FILES[path]), "run: python -m sundial.model.schema"


@pytest.mark.parametrize(("kind", "name"), SHIPPED)
def test_a_shipped_file_follows_its_schema(kind: Kind, name: str) -> None:
    path = FOLDERS[kind] / f"{name}.yaml"
    text = path.read_text()
    document = YAML(typ="safe", pure=True).load(text)
    schema = json.loads(SCHEMAS[kind].read_text())
    inside = Resource.from_contents(json.loads(SCHEMAS["topology"].read_text()))
    known: Registry[Any] = Registry().with_resource(TOPOLOGY, inside)
    jsonschema.Draft202012Validator(schema, registry=known).validate(json.loads(json.dumps(document)))
    assert text.splitlines()[0] == f"# yaml-language-server: $schema={SCHEMAS[kind].name}"


def test_every_topology_of_the_checkout_loads() -> None:
    for name in names("topology"):
        assert load_topology(name).description


ON_THEIR_OWN_TOPOLOGY = frozenset(
    {
        "atm-faults",
        "command",
        "dce-faults",
        "etcd",
        "grpc-languages",
        "grpc-lossy",
        "lane-contention",
        "lane-edges",
        "local",
        "partition",
        "loss",
        "nfs",
        "nfs-udp",
        "redis",
        "rpyc-nagle",
        "santos18-local",
        "santos18-remote",
        "shrimp-rpc-sweep",
        "sss-faults",
        "sss-mixed",
        "store",
        "vmmc-operations",
        "vrpc-sweep",
    }
)
"""Scenarios that name machines, segments or cells, and so run on their own topology alone."""


def topologies_with_its_guests(scenario: str) -> list[str]:
    """Those that a scenario that names no machine runs on."""
    sss = scenario.startswith(("sss-", "mbcf-"))
    fitting = [known for known in names("topology") if known.startswith("sss-") == sss and known != "sss-cluster"]
    if scenario in ("iperf3", "twelve-functions"):
        fitting.remove("one-host")
    if scenario == "twelve-functions":  # MBCF has an Ethernet type of its own
        fitting.remove("two-hosts-clip")
    if scenario in ("iperf3", "mbcf-operations"):  # its server has one client
        fitting = [
            name
            for name in fitting
            if sum(machine.role == "host" for machine in load_topology(name).machines.values()) == 2
        ]
    return fitting


@pytest.mark.parametrize("name", names("scenario"))
def test_every_scenario_loads_on_its_own_topology(name: str) -> None:
    assert load_experiments(name)


@pytest.mark.parametrize("scenario", ["quickstart", "mbcf-operations"])
def test_a_scenario_that_names_no_machine_loads_on_every_topology_with_its_guests(scenario: str) -> None:
    for topology in topologies_with_its_guests(scenario):
        assert load_experiments(scenario, topology=topology)


@pytest.mark.night
@pytest.mark.parametrize("name", [name for name in names("scenario") if name not in ON_THEIR_OWN_TOPOLOGY])
def test_every_scenario_loads_on_every_topology_that_has_its_guests(name: str) -> None:
    for topology in topologies_with_its_guests(name):
        assert load_experiments(name, topology=topology)


def test_what_was_asked_for_is_there() -> None:
    assert {"two-hosts-10base-t", "two-hosts-100base-tx", "two-hosts-switched", "two-hosts-wan", "two-hosts-netem",
            "office", "sss-two-10base-t", "sss-two-100base-tx", "sss-cluster"} <= set(names("topology"))  # fmt: skip
    assert {"two-hosts-lane", "two-hosts-lane-25", "two-hosts-clip", "pc-hub-lane", "lane-office"} <= set(
        names("topology")
    )
    assert {"lane-sweep", "lane-edges", "lane-control", "lane-contention", "atm-faults"} <= set(names("scenario"))
    assert {"one-host", "two-hosts-wifi", "two-hosts-lossy"} <= set(names("topology"))
    assert {"local"} <= set(names("scenario"))
    assert {"dce-sweep", "dce-edges", "dce-threads", "dce-faults"} <= set(names("scenario"))
    assert {"quickstart", "sunrpc-sweep", "raw-sweep", "iperf3", "loss"} <= set(names("scenario"))


def errors(kind: Kind, document: object) -> list[str]:
    schema = json.loads(SCHEMAS[kind].read_text())
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(document)]


@pytest.mark.parametrize(
    ("topology", "sound"),
    [("two-hosts-10base-t", True), ("mine.yaml", True), ("../lab/mine.yml", True), ("Two Hosts", False), (3, False)],
)
def test_an_editor_takes_a_name_or_a_file_as_topology(topology: object, sound: bool) -> None:
    document = {"description": "d", "topology": topology, "workloads": [{"app": "sunrpc", "transports": ["udp"]}]}
    assert (errors("scenario", document) == []) is sound


def test_an_editor_says_which_kinds_there_are() -> None:
    segments = {"lan": {"kind": "swich", "ports": ["a:eth0", "b:eth0"]}}
    said = errors("topology", {"description": "d", "machines": {}, "segments": segments})
    assert "'swich' is not one of ['atm', 'hub', 'link', 'switch', 'vmmc']" in said
