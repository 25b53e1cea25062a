# SPDX-License-Identifier: Apache-2.0
"""Workloads over a backplane that cannot be: the field, what is wrong there, and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments
from sundial.model.workload import Sized

TOPOLOGY = """\
description: Three nodes, two of them on one backplane
defaults: {image: ssscore}
machines:
  a: {interfaces: {eth0: {address: 10.0.0.1/24}, vmmc0: {}}}
  b: {interfaces: {eth0: {address: 10.0.0.2/24}, vmmc0: {}}}
  c: {interfaces: {eth0: {address: 10.0.0.3/24}, vmmc0: {}}}
  d: {interfaces: {eth0: {address: 10.0.0.4/24}, vmmc0: {}}}
  e: {interfaces: {eth0: {address: 10.0.0.5/24}}}
  f: {image: linux, interfaces: {eth0: {address: 10.0.0.6/24}}}
segments:
  lan: {kind: switch, rate: 100 Mbit/s, ports: ["a:eth0", "b:eth0", "c:eth0", "d:eth0", "e:eth0", "f:eth0"]}
  one: {kind: vmmc, ports: ["a:vmmc0", "b:vmmc0"]}
  other: {kind: vmmc, ports: ["c:vmmc0", "d:vmmc0"]}
"""
GOOD = "app: vmmc, server: b, clients: a, sizes: [8, 64]"
BACKPLANE = "allowed: machines with interfaces in one segment of kind vmmc"
SIZES = "allowed: 8 to 65536 bytes (one transfer)"


def load(folder: Path, workload: str) -> tuple[object, ...]:
    (folder / "t.yaml").write_text(TOPOLOGY)
    path = folder / "mine.yaml"
    path.write_text(f"description: A test\ntopology: t.yaml\nworkloads:\n  - {{{workload}}}\n")
    (found,) = load_experiments(str(path))[0].workloads
    assert isinstance(found, Sized)
    return found.sizes


def test_what_fits(tmp_path: Path) -> None:
    assert load(tmp_path, f"{GOOD}, operations: [du, au], modes: stream") == (8, 64)
    assert load(tmp_path, GOOD.replace("[8, 64]", "['8:40:16', 65536]")) == (8, 24, 40, 65536)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("server: b, clients: a", "server: b, clients: e", f"clients: 'e' has no interface in a backplane; {BACKPLANE}"),
        ("server: b, clients: a", "server: e, clients: a", f"server: 'e' has no interface in a backplane; {BACKPLANE}"),
        ("clients: a", "clients: [a, c]", f"clients: c:vmmc0 is in 'other', and b:vmmc0 in 'one'; {BACKPLANE}"),
        ("clients: a", "clients: f", "clients: image 'linux' of 'f' does not run vmmc"),
        ("clients: a", "clients: b", "clients: 'b' is the server, and what passes its loopback interface is not captured"),
        ("[8, 64]", "[0, 8]", f"sizes: 0 bytes do not fit vmmc round_trip over au; {SIZES}"),
        ("[8, 64]", "[8, 65544]", f"sizes: 65544 bytes do not fit vmmc round_trip over au; {SIZES}"),
        ("[8, 64]", "[8, 12]", "sizes: 12 bytes are no whole stores; allowed: multiples of 8"),
        ("[8, 64]", "[edges]", "sizes: edges over a backplane: only those of udp and tcp are known"),
        ("app: vmmc", "app: vmmc, operations: [au, read]", "operations: 'read' is not known; allowed: one or more of au, au-combined, du"),
        ("app: vmmc", "app: vmmc, modes: both", "modes: 'both' is not known; allowed: one or more of round_trip, stream"),
        ("app: vmmc", "app: vmmc, wait: notify", "wait: unknown field; allowed: clients, server, series, sizes, calls, warmup, order, app, operations, modes, total_timeout"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(tmp_path: Path, old: str, new: str, line: str) -> None:
    assert old in GOOD
    with pytest.raises(BadInput) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert caught.value.exit_code == 2
    (said,) = str(caught.value).splitlines()
    assert f"mine.yaml:4: workloads.0.{line}" in said
