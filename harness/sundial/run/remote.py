# SPDX-License-Identifier: Apache-2.0
"""Machines of one topology on another host: their files there, and the forwarding of frames, records and consoles."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from sundial.machines.hypervisor import Machine
from sundial.machines.relay import FileRelay, FrameRelay
from sundial.machines.remote import RemoteHost
from sundial.model.network import Node
from sundial.plan.build import Boot, MachineFiles, Plan, domain_spec
from sundial.plan.domain import FrameStream, domain_xml
from sundial.plan.jobs import encode_job

DRAIN_S = 10.0
"""Seconds to wait for output of an ended machine that is still under way."""


class RemoteSite:
    """All machines of `plan` on `host`. `folder` is the rig's, for sockets; its name is unique to the rig."""

    def __init__(self, host: RemoteHost, plan: Plan, folder: Path) -> None:
        self.host = host
        self._plan = plan
        self._folder = folder
        self._frames: dict[str, FrameRelay] = {}
        self._files: list[FileRelay] = []
        self._ways: list[tuple[Path, Path]] = []

    def start(
        self,
        node: Node,
        boot: Boot,
        node_folder: Path,
        *,
        console_socket: Path | None,
        exec_socket: Path | None,
        kvm: bool,
    ) -> Machine:
        """Copy a machine's boot files, open its forwarding, start it paused; its sockets are as for local machines.

        Raises RunFailed.
        """
        host, job = self.host, self._plan.jobs[node.name]
        there = {part: host.folder / f"{self._folder.name}-{node.index}{part}" for part in ("c", "s", "x")}
        files = MachineFiles(
            console=there["c"],
            samples=there["s"],
            job=host.write(f"{self._folder.name}-{node.index}j", encode_job(job)),
            exec_socket=there["x"] if exec_socket is not None else None,
        )
        spec = domain_spec(
            self._plan,
            node,
            host.hypervisor.domain_name(node.name),
            replace(
                boot,
                emulator=host.emulator,
                kernel=host.boot_file(boot.kernel, boot.kernel_sha256),
                initrd=host.boot_file(boot.initrd, boot.initrd_sha256),
            ),
            files,
            kvm=kvm,
            run_as=host.user if host.uri.mode == "system" else None,
        )
        xml = domain_xml(replace(spec, nics=self._open_frames(node), dials=True))
        (node_folder / "domain.xml").write_text(xml)
        (node_folder / "job.json").write_text(json.dumps(job.document(), indent=1) + "\n")
        self._open_file(node, there["c"], node_folder / "console.log", console_socket)
        self._open_file(node, there["s"], node_folder / "samples.jsonl")
        if exec_socket is not None:
            host.reach(exec_socket, there["x"])
        return host.hypervisor.start(node.name, xml)

    def carried(self) -> dict[str, dict[str, int]]:
        """Number of frames by interface."""
        return {end: relay.carried.to_json() for end, relay in self._frames.items()}

    def close(self) -> None:
        """Keep the output of the machines, which have ended, and remove everything there."""
        for file in self._files:
            file.close(DRAIN_S)
        for relay in self._frames.values():
            relay.close()
        for there, here in self._ways:
            self.host.bring_no_more(there, here)
        self.host.remove(f"{self._folder.name}-")

    def record(self) -> dict[str, Any]:
        """For run.json."""
        machines = [node.name for node in self._plan.network.nodes if node.host == self.host.name]
        return {"connect": self.host.uri.text, "machines": machines, **self.host.hypervisor.versions()}

    def _open_frames(self, node: Node) -> tuple[FrameStream, ...]:
        streams = []
        for nic in node.nics:
            name = f"{self._folder.name}-{node.index}n{nic.index}"
            here, there = self._folder / f"r{name}", self.host.folder / name
            paths = self._plan.paths
            self._frames[nic.end] = FrameRelay(here, paths.machine_end(nic), paths.fabric_end(nic))
            self._bring(there, here)
            streams.append(FrameStream(there))
        return tuple(streams)

    def _open_file(self, node: Node, there: Path, file: Path, callers: Path | None = None) -> None:
        here = self._folder / f"r{there.name}"
        self._files.append(FileRelay(here, file, callers))
        self._bring(there, here)

    def _bring(self, there: Path, here: Path) -> None:
        self.host.bring(there, here)
        self._ways.append((there, here))
