# SPDX-License-Identifier: Apache-2.0
"""What a run needs of its images is found out before anything starts."""

from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.machines.images import Image
from sundial.model.load import load_experiments
from sundial.run.needs import require_of_images

SCENARIO = """\
topology:
  machines:
    client: {{interfaces: {{eth0: {{address: 10.0.0.1/24}}}}, {machine}}}
    server: {{interfaces: {{eth0: {{address: 10.0.0.2/24}}}}}}
  segments:
    lan: {{kind: switch, rate: 100 Mbit/s, ports: ["client:eth0", "server:eth0"]}}
timeline: [{event}]
workloads:
{workloads}
"""
COMMANDS = ["cat", "httpd", "sh", "wget"]


def _check(folder: Path, programs: str, machine: str = "", event: str = "", **manifest: Any) -> None:
    workloads = "\n".join(f"  - {{app: command, programs: {{{part}}}}}" for part in programs.split(" then "))
    (folder / "own.yaml").write_text(SCENARIO.format(workloads=workloads, machine=machine, event=event))
    (experiment,) = load_experiments(str(folder / "own.yaml"))
    known = {"commands": COMMANDS, "cmdline": "quiet rootfstype=ramfs", **manifest}
    image = Image("linux", Path("kernel"), Path("initrd"), "", "", known)
    require_of_images(experiment, {"linux": image})


ON = "on: client, argv"


@pytest.mark.parametrize(
    "programs",
    [
        f"a: {{{ON}: [wget, x]}}",
        f"a: {{{ON}: [/opt/own]}}, b: {{on: client, shell: nosuch}}",
        f"a: {{{ON}: [own], files: {{/usr/bin/own: '#!/bin/sh'}}}}",
        f"a: {{{ON}: [own], at: 1 s}}, b: {{{ON}: [sh]}}",
        f"a: {{{ON}: [own], env: {{PATH: /opt}}}}",
        f"a: {{{ON}: ['{{me.name}}']}}",
        f"a: {{{ON}: [sh]}}, b: {{on: server, argv: [cat], after: [a]}}, c: {{{ON}: [own], after: [b]}}",
        f"a: {{{ON}: [sh]}} then b: {{{ON}: [own]}}",
    ],
)
def test_a_program_that_may_be_there_is_not_refused(tmp_path: Path, programs: str) -> None:
    _check(tmp_path, programs)


@pytest.mark.parametrize(
    "programs",
    [
        f"a: {{{ON}: [wgett, x]}}",
        f"b: {{on: server, argv: [sh]}}, a: {{{ON}: [wgett], after: [b]}}",
        f"b: {{on: server, argv: [sh]}} then a: {{{ON}: [wgett]}}",
    ],
)
def test_a_program_that_the_image_lacks_is_refused(tmp_path: Path, programs: str) -> None:
    with pytest.raises(BadInput, match=r"programs.a.argv.0: image linux .*'client' has no .*'wgett'; allowed: wget"):
        _check(tmp_path, programs)


def test_an_image_or_root_that_is_not_known_is_not_judged(tmp_path: Path) -> None:
    _check(tmp_path, f"a: {{{ON}: [own]}}", commands=None)
    _check(tmp_path, f"a: {{{ON}: [own]}}", "root: {packages: [redis-server]}, memory: 256 MiB")
    _check(tmp_path, f"a: {{{ON}: [own]}}", "files: {/usr/bin/own: {content: x, mode: '0755'}}")


FILL = "{at: 1 s, fill_disk: client, leave: 0"


def test_a_root_without_a_size_is_not_filled(tmp_path: Path) -> None:
    programs = f"a: {{{ON}: [sh]}}"
    with pytest.raises(BadInput, match=r"timeline.0.fill_disk: the root of 'client' is a ramfs, which has no size"):
        _check(tmp_path, programs, event=f"{FILL}}}")
    _check(tmp_path, programs, event=f"{FILL}, path: /srv}}")
    _check(tmp_path, programs, "cmdline: rootfstype=tmpfs", f"{FILL}}}")
    _check(tmp_path, programs, event=f"{FILL}}}", cmdline="rootfstype=tmpfs")
