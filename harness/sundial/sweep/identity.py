# SPDX-License-Identifier: Apache-2.0
"""The key of a run: equal keys, equal bytes. Pure.

It is the sha256 of a canonical JSON object that names each part by its own digest. What the sources of the harness
decide is in the plan, so changes of the harness that change no plan keep all keys.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.model.experiment import Experiment
from sundial.model.network import Node
from sundial.plan.build import Boot, MachineFiles, Plan, domain_spec
from sundial.plan.domain import domain_xml

FORMAT = 1
"""Change when equal keys may mean other runs than before."""
_NOWHERE = Path("/")

PROSE = frozenset({"description", "scale", "topology", "variant"})
"""Fields of a resolved scenario that do not change its run: `scale` and `variant` name what other fields have, and the
topology is a part by itself."""
TOPOLOGY_PROSE = frozenset({"description", "name"})
BY_CONTENT = frozenset({"kernel", "initrd", "files", "root"})
"""Fields of `defaults` and of machines that name files of the host: what was read from them is in `machines`."""


@dataclass(frozen=True)
class Identity:
    """The key of a run, and the digest of each part that it is over."""

    over: Mapping[str, Any]

    @property
    def key(self) -> str:
        """64 hexadecimal digits."""
        return digest(self.over)

    def to_json(self) -> dict[str, Any]:
        """As `run --dry-run` prints it."""
        return {"key": self.key, "over": dict(self.over)}


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def digest(value: Any) -> str:
    """sha256 of a value's canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()


def stated(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """The resolved scenario and topology without prose, and without the host's names of files."""
    scenario = {name: value for name, value in experiment.scenario_json().items() if name not in PROSE}
    topology = {name: value for name, value in experiment.topology_json().items() if name not in TOPOLOGY_PROSE}
    topology["defaults"] = _without_files(topology["defaults"])
    topology["machines"] = {name: _without_files(each) for name, each in topology["machines"].items()}
    return {"scenario": scenario, "topology": topology}


def identity(experiment: Experiment, plan: Plan, boots: Mapping[str, Boot], programs: Mapping[str, str]) -> Identity:
    """`plan`: with the paths `plan.paths.DRY`. `boots`: by machine, of which digests and the command line count.
    `programs`: sha256 of emulator, plugin and fabric."""
    machines = {
        node.name: {
            "kernel": boots[node.name].kernel_sha256,
            "initrd": boots[node.name].initrd_sha256,
            "cmdline": boots[node.name].cmdline,
            "disk": None if (disk := boots[node.name].disk) is None else disk.path.name,
            "domain": hashlib.sha256(_domain(plan, node, boots[node.name]).encode()).hexdigest(),
        }
        for node in plan.network.nodes
    }
    over = {
        "format": FORMAT,
        **{name: digest(value) for name, value in stated(experiment).items()},
        "fabric": digest(plan.fabric),
        "jobs": {name: digest(job.document()) for name, job in plan.jobs.items()},
        "machines": machines,
        "programs": dict(programs),
    }
    return Identity(over)


def _without_files(machine: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in machine.items() if name not in BY_CONTENT}


def _domain(plan: Plan, node: Node, boot: Boot) -> str:
    """The machine as libvirt would be given it, without what differs between runs: paths and names."""
    files = MachineFiles(_NOWHERE, _NOWHERE, _NOWHERE, loopback=_NOWHERE if node.inner else None)
    nowhere = Boot(_NOWHERE, _NOWHERE, _NOWHERE, boot.cmdline, "", "")
    spec = domain_spec(plan, node, "-", nowhere, files)
    return domain_xml(spec)
