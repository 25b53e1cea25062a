# SPDX-License-Identifier: Apache-2.0
"""Every shipped file is sound, for us and for an editor, and the schemas beside them are those of the models."""

import json
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from sundial.model.catalog import FOLDERS, Kind, names
from sundial.model.load import load_experiments, load_topology
from sundial.model.schema import FILES, schema_text

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
    jsonschema.Draft202012Validator(schema).validate(json.loads(json.dumps(document)))
    assert text.splitlines()[0] == f"# yaml-language-server: $schema={SCHEMAS[kind].name}"


def test_every_topology_of_the_checkout_loads() -> None:
    for name in names("topology"):
        assert load_topology(name).description


OWN_TOPOLOGY = {
    "atm-faults": "lane-office",
    "dce-faults": "two-hosts-wan",
    "grpc-languages": "two-hosts-python",
    "grpc-lossy": "two-hosts-wan",
    "lane-contention": "lane-office",
    "lane-edges": "two-hosts-lane",
    "local": "one-host",
    "loss": "two-hosts-wan",
    "rpyc-nagle": "two-hosts-python",
    "santos18-local": "one-host",
    "santos18-remote": "two-hosts-wifi",
    "shrimp-rpc-sweep": "sss-two-vmmc",
    "sss-faults": "sss-two-lossy",
    "sss-mixed": "sss-cluster",
    "vmmc-operations": "sss-two-vmmc",
    "vrpc-sweep": "sss-two-vmmc",
}
"""Scenarios that name machines, segments or cells, and so run on their own topology alone."""


@pytest.mark.parametrize("name", names("scenario"))
def test_every_scenario_loads_on_every_topology_that_has_its_guests(name: str) -> None:
    sss = name.startswith(("sss-", "mbcf-"))
    fitting = [known for known in names("topology") if known.startswith("sss-") == sss and known != "sss-cluster"]
    if name in ("iperf3", "twelve-functions"):
        fitting.remove("one-host")
    for topology in [OWN_TOPOLOGY[name]] if name in OWN_TOPOLOGY else fitting:
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
