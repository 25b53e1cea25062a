# SPDX-License-Identifier: Apache-2.0
"""What a run needs of the host's limits and of its images, which is found out before anything starts."""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Iterator, Mapping

from sundial import limits
from sundial.errors import BadInput, Problem
from sundial.machines.images import Image
from sundial.model.experiment import Experiment
from sundial.model.images import IMAGES
from sundial.model.network import Network

FILES = 32
FILES_A_MACHINE = 8
"""Measured in the process of the harness: 25 for two machines, 46 for six."""
QEMU_BYTES = 512 << 20
"""Of a QEMU's address space, without what is the guest's: measured 450 MiB."""


def require_for(network: Network) -> None:
    """Returns where the limits let this topology run. Raises HostLacks."""
    local = [node for node in network.nodes if node.host is None]
    machines = (node.memory + (IMAGES[node.image].translations_mib << 20) + QEMU_BYTES for node in local)
    files = FILES + FILES_A_MACHINE * len(network.nodes)
    limits.require(files, max(limits.LEAST_ADDRESS_BYTES, *machines, 0))


def require_of_images(experiment: Experiment, images: Mapping[str, Image]) -> None:
    """Returns where images have the programs that workloads start by a name, as far as both are known, and file systems
    that an event can fill. Raises BadInput."""
    problems = [*_unknown(experiment, images), *_sizeless(experiment, images)]
    if problems:
        raise BadInput.many(problems)


def _unknown(experiment: Experiment, images: Mapping[str, Image]) -> Iterator[Problem]:
    """Programs that are not there. What a workload before has written is not known."""
    begun: set[str] = set()
    for number, workload in enumerate(experiment.workloads):
        for each in workload.commands:
            node = experiment.network.node(each.machine)
            known = images[node.image].manifest.get("commands")
            if each.machine in begun or known is None or node.initrd is not None or node.root is not None:
                continue
            names = [*known, *(posixpath.basename(path) for path, _ in node.files)]
            if each.name not in names:
                field = ".".join(map(str, ("workloads", number, *each.path)))
                what = f"image {node.image} of machine {each.machine!r} has no program {each.name!r}"
                near = difflib.get_close_matches(each.name, sorted(names), 1, 0.7)
                others = "another that it has, its path, or `root` of the machine with more"
                yield Problem(what, field=field, allowed=", ".join([*near, others]))
        begun |= set(workload.parties)


def _sizeless(experiment: Experiment, images: Mapping[str, Image]) -> Iterator[Problem]:
    """Roots to fill that are never full: a ramfs has no size."""
    for number, event in enumerate(experiment.scenario.timeline):
        if event.fill_disk is None or event.path is not None:
            continue
        node = experiment.network.node(event.fill_disk)
        if node.root is not None and node.root.held == "disk":
            continue
        words = f"{images[node.image].manifest['cmdline']} {node.cmdline or ''}".split()
        if [word for word in words if word.startswith("rootfstype=")][-1:] == ["rootfstype=ramfs"]:
            what = f"the root of {node.name!r} is a ramfs, which has no size"
            allowed = "`cmdline: rootfstype=tmpfs` and `memory: 192 MiB` of the machine: half of the memory is its size"
            yield Problem(what, field=f"timeline.{number}.fill_disk", allowed=allowed)
