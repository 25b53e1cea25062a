# SPDX-License-Identifier: Apache-2.0
"""The key of a run: what changes the run changes it, and prose does not. Every field of both schemas is walked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments
from sundial.model.scenario import Scenario
from sundial.model.source import parse, validate
from sundial.model.topology import Topology
from sundial.plan.build import Boot, plan_run
from sundial.plan.domain import RootDisk
from sundial.plan.paths import DRY
from sundial.run.places import Places
from sundial.sweep.identity import BY_CONTENT, PROSE, TOPOLOGY_PROSE, digest, identity, stated
from sundial.sweep.known import Identities, Lacking
from tests.model.test_every_field import DOCUMENTS, MODELS, Document, changed, schema
from tests.model.wrong import allowed_values, emit, holds

RESOLVED = {("default_scale",), ("vary",), ("scale",)}
"""Fields of a scenario that are other fields once it is resolved."""
PROGRAMS = {"plugin": "1", "fabric": "2", "qemu": "3"}
BOOT = Boot(Path("/e"), Path("/k"), Path("/i"), "quiet", "4", "5")


def experiment_of(document: Document, data: Any) -> Experiment:
    """The document's model in an experiment, resolved or not."""
    (whole,) = load_experiments("quickstart")
    read = validate(parse(emit({**data, "name": "mine"})[0], "mine", "mine.yaml"), MODELS[document.format])
    if isinstance(read, Topology):
        return replace(whole, topology=read, clock=read.clock)
    assert isinstance(read, Scenario)
    return replace(whole, scenario=read, seed=read.seed)


def is_prose(document: Document, path: tuple[str | int, ...]) -> bool:
    if document.format == "scenario":
        return path[:1] in RESOLVED or (len(path) >= 1 and path[0] in PROSE and path[0] not in ("scale", "variant"))
    owner = 1 if path[:1] == ("defaults",) else 2
    by_content = path[0] in ("defaults", "machines") and len(path) > owner and path[owner] in BY_CONTENT
    return path[:1] in {(name,) for name in TOPOLOGY_PROSE} or by_content


def other_values(document: Document, data: Any) -> Iterator[tuple[tuple[str | int, ...], Experiment]]:
    """The document with another value at one field, for each field and each value that the schema names."""
    whole = schema(document.format)
    for path, spec, _ in document.places:
        within = whole.inner(spec)
        if holds(within):
            continue
        for value in allowed_values(within):
            if whole.valid(spec, value):
                try:
                    yield path, experiment_of(document, changed(data, path, value))
                except BadInput:
                    continue


GATE = ("atm", "scenario", "sunrpc-calls", "topology")
"""Documents that are walked in the gate: of each kind of document one, with its nested models."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in GATE else pytest.mark.night) for name in sorted(DOCUMENTS)]
)
def test_each_value_that_is_another_has_another_key(name: str) -> None:
    document = DOCUMENTS[name]
    base = experiment_of(document, document.data)
    seen = set()
    for path, other in other_values(document, document.data):
        if (other.scenario, other.topology) == (base.scenario, base.topology):
            continue  # written in another way
        seen.add(path)
        equal = digest(stated(other)) == digest(stated(base))
        assert equal == is_prose(document, path), path
    assert len(seen) > len(document.places) / 5, "fields without another value"


def key(boot: Boot = BOOT, programs: Mapping[str, str] = PROGRAMS, **loaded: Any) -> str:
    """Of quickstart with these changes."""
    overrides = [f"{name}={value}" for name, value in loaded.pop("changes", {}).items()]
    (experiment,) = load_experiments(loaded.pop("scenario", "quickstart"), overrides=overrides, **loaded)
    boots = dict.fromkeys((node.name for node in experiment.network.nodes), boot)
    return identity(experiment, plan_run(experiment, DRY), boots, programs).key


def test_what_a_run_is_made_of_is_in_its_key() -> None:
    disk = RootDisk(Path("/roots/6"), 1 << 20)
    changed_ones = [
        key(),
        key(seed=2),
        key(topology="two-hosts-wan"),
        *(key(replace(BOOT, **{name: "9"})) for name in ("kernel_sha256", "initrd_sha256", "cmdline")),
        key(replace(BOOT, disk=disk)),
        key(replace(BOOT, disk=replace(disk, path=Path("/roots/7")))),
        *(key(programs={**PROGRAMS, name: "9"}) for name in PROGRAMS),
        key(changes={"calls": 4}),
        key(changes={"machines.server.memory": "128 MiB"}),
        key(changes={"defaults.mips": 250}),
        key(changes={"timeline": "[{at: 1 s, cut: 'client:eth0'}]"}, topology="two-hosts-wan"),
    ]
    assert len(set(changed_ones)) == len(changed_ones)


def test_paths_of_files_and_of_programs_are_not_in_it() -> None:
    elsewhere = replace(BOOT, emulator=Path("/x"), kernel=Path("/y"), initrd=Path("/z"), qemu="9.9")
    assert key(elsewhere) == key()


def test_prose_and_the_way_in_which_a_value_came_are_not_in_it(tmp_path: Path) -> None:
    work = "{app: sunrpc, transports: [udp], procedures: [echo], sizes: [64], calls: 5}"
    text = f"topology: two-hosts-10base-t\nworkloads: [{work}]\n"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = tmp_path / "a" / "mine.yaml", tmp_path / "b" / "mine.yaml"
    one.write_text(text)
    other.write_text(f"description: Another sentence\n{text.replace('calls: 5', 'calls: 6')}vary: [{{calls: 5}}]\n")
    assert key(scenario=str(one)) == key(scenario=str(other))
    assert key(scenario=str(one)) != key(scenario=str(other), changes={"calls": 6})


def test_what_is_not_built_is_named(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (experiment,) = load_experiments("quickstart")
    found = Identities(places=Places.beneath(tmp_path)).of(experiment)
    assert isinstance(found, Lacking)
    assert found.to_json() == {"key": None, "lacking": found.what}
    assert "is not built" in found.what
