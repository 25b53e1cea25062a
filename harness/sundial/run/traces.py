# SPDX-License-Identifier: Apache-2.0
"""Traces of a run: the points of each machine before its start, and its stamps in the run directory after its end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sundial.errors import BadInput, RunFailed
from sundial.machines.functions import ImageTables, image_tables, kernel_table
from sundial.machines.images import Image
from sundial.machines.snapshots import Snapshot
from sundial.model.network import Node
from sundial.plan.build import Boot, Plan, TraceFiles
from sundial.plan.points import Table, Tables, points_of
from sundial.run.kernel_functions import APPLICATIONS, KernelReader
from sundial.run.session import Session
from sundial.seams.trace import HEADER_BYTES, STAMP_BYTES
from sundial.whole import whole

TRACE, POINTS = "trace.bin", "points.json"
Say = Callable[[str], None]


class Traces:
    """Traces of all machines of one run."""

    def __init__(self, plan: Plan, images: Mapping[str, Image], folder: Path) -> None:
        """`folder`: where machines may write. Raises BadInput for a machine whose programs are not known."""
        self._plan = plan
        self._folder = folder
        nodes = [node for node in plan.network.nodes if node.name in plan.traced]
        self._images = {image: image_tables(images[image]) for image in {node.image: None for node in nodes}}
        for node in nodes:
            _check_boots(node, self._images[node.image])
        self._kernels: dict[str, Table] = {}
        """Symbol tables by snapshot; machines restored from one share a table."""

    def files(self, machine: str) -> TraceFiles | None:
        """Arguments of the plugin; None for a machine without trace."""
        if machine not in self._plan.traced:
            return None
        return TraceFiles(self._folder / f"trace-{machine}", self._folder / f"points-{machine}")

    def prepare(
        self, session: Session, node: Node, boot: Boot, snapshot: Snapshot, interactive: bool, target: Path, say: Say
    ) -> None:
        """Find the functions of a traced machine; its points for the plugin, and for readers into `target`.

        Raises BadInput for functions that are not there, RunFailed.
        """
        files = self.files(node.name)
        if files is None:
            return
        image = self._images[node.image]
        kernel = image.kernel
        if kernel is None and snapshot.key not in self._kernels:
            reader = KernelReader(session, self._plan, node, boot, interactive, snapshot)
            self._kernels[snapshot.key] = kernel_table(reader.functions(next(iter(image.applications)), say))
        tables = Tables(image.applications, image.programs, kernel or self._kernels[snapshot.key])
        chosen = points_of(node.name, self._plan.traced[node.name], tables)
        files.points.write_text(chosen.text())
        (target / POINTS).write_text(json.dumps(chosen.points.model_dump(mode="json"), indent=1) + "\n")

    def collect(self, report: Callable[[str], Mapping[str, Any]], target: Callable[[str], Path]) -> RunFailed | None:
        """Copy the stamps of ended machines to `target`. Returns an error if stamps are missing."""
        wrong = None
        for machine in self._plan.traced:
            files = self.files(machine)
            if files is None or not files.trace.is_file():
                continue
            stamps = report(machine).get("stamps")
            # Not moved: it may be another user's.
            with whole(target(machine) / TRACE) as beside:
                shutil.copyfile(files.trace, beside)
            length = (target(machine) / TRACE).stat().st_size
            if not isinstance(stamps, int) or length != HEADER_BYTES + STAMP_BYTES * stamps:
                what = f"its trace has {length} bytes, and it counted {stamps} stamps of {STAMP_BYTES}"
                wrong = wrong or RunFailed(what, machine=machine)
        return wrong


def _check_boots(node: Node, image: ImageTables) -> None:
    """Raises BadInput for a machine whose programs have no symbol table."""
    # For guests with and without folders of programs.
    own = any(path.startswith(f"{APPLICATIONS}/") or path.removeprefix("/") in image.programs for path, _ in node.files)
    if own or node.initrd is not None or (node.kernel is not None and image.kernel is not None):
        what = f"machine {node.name!r} boots its own programs, which have no symbol table"
        raise BadInput(what, field="trace", allowed="machines that boot the programs of their image")
