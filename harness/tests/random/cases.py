# SPDX-License-Identifier: Apache-2.0
"""Random cases: a topology and a scenario as their files have them, whether they load, and how long they run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments
from sundial.model.scenario import SEED_MOST
from sundial.model.workload import Sized, WorkloadBase
from sundial.plan.build import plan_run
from sundial.plan.paths import DRY
from sundial.workloads import functions
from sundial.workloads.iperf3.model import Iperf3
from tests.random import networks as nets
from tests.random.events import timelines
from tests.random.fields import seldom
from tests.random.networks import Net, networks
from tests.random.workloads import HASTY_S, workloads

IMAGES_DRAWN = ("linux", "linux", "linux", "linux", "ssscore", "ssscore", "linux-python")
"""An image's share; a tree of which some are not built leaves those out."""
TOPOLOGY, SCENARIO = "topology.yaml", "scenario.yaml"

SERVERLESS = frozenset(("dce", "grpc", "rpyc", "sunrpc"))
"""Whose clients make calls that fail where no server is reached."""

CALLS_IN_ALL, PACKETS_MOST = 250, 2500
"""Most calls of a case, and about the most packets of its messages: a run takes seconds, not minutes."""


@dataclass(frozen=True)
class Case:
    """The contents of two files."""

    topology: dict[str, Any]
    scenario: dict[str, Any]

    def write(self, folder: Path) -> Path:
        """The scenario's file, beside its topology's. JSON is YAML."""
        for name, data in ((TOPOLOGY, self.topology), (SCENARIO, self.scenario)):
            (folder / name).write_text(json.dumps(data, indent=1) + "\n")
        return folder / SCENARIO

    @property
    def text(self) -> str:
        return json.dumps([self.topology, self.scenario])


@st.composite
def cases(
    draw: st.DrawFn,
    images: Sequence[str] = IMAGES_DRAWN,
    *,
    shapes: Sequence[str] = nets.SHAPES,
    kinds: Sequence[str] = nets.KINDS,
    apps: Sequence[str] | None = None,
) -> Case:
    """Cases of which most load. `shapes`, `kinds` and `apps` narrow what is drawn."""
    net = draw(networks(images, shapes, kinds))
    topology = net.document
    works = draw(workloads(net, apps))
    return Case(topology, draw(_scenario(net, works)))


@st.composite
def _scenario(draw: st.DrawFn, net: Net, works: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"description": "Random", "topology": f"./{TOPOLOGY}", "workloads": works}
    found["seed"] = draw(st.integers(0, 99) | st.integers(0, SEED_MOST))
    # No call waits so long in virtual time; under the real clock a case must be short.
    found["deadline"] = "4 min" if net.clock == "real" else "12 h"
    if draw(seldom(6)):
        found["stagger"] = draw(st.sampled_from(("1 ms", "3 ms", "50 ms", "2 s")))
    if draw(seldom(6)):
        found["linger"] = draw(st.sampled_from(("200 ms", "3 s", "20 s", "50 ms", "1 ms")))
    if draw(seldom(10)):
        found["start"] = draw(st.sampled_from(("1 s", "5 s")))
    # What MBCF does when nothing passes for a while is not verified well enough: mbcf.close, mbcf.ack.
    if not net.calm and all({*work.get("transports", ())} <= {"udp", "tcp"} for work in works) and draw(seldom(3)):
        events = draw(timelines(net, may_stay={work["app"] for work in works} <= SERVERLESS))
        found |= {"timeline": events} if events else {}
    expect = {}
    hasty = [work for work in works if _hasty(work, net)]
    # What libtirpc asks again sooner than it can leave fills the buffer of its socket, and it gives the call up.
    gives_up = any(work["app"] == "sunrpc" for work in hasty)
    if not net.calm or gives_up or any("die" in work or _unheard(work, net) for work in works):
        expect["failures"] = "allowed"
    if hasty:
        expect["retransmissions"] = "allowed"
    return found | ({"expect": expect} if expect else {})


def _unheard(work: dict[str, Any], net: Net) -> bool:
    """True if a server that still boots may miss a call, which is not sent again."""
    return net.clock == "real" and work.get("semantics") == "broadcast"


def _hasty(work: dict[str, Any], net: Net) -> bool:
    """True if the client may ask again before the server can have answered."""
    if work["app"] == "dce":
        resend_s = {"100 ms": 0.1, "500 ms": 0.5, "5 s": 5.0}.get(work.get("resend", "2 s"), 2.0)
        # Under the real clock a server waits for the host, too.
        return resend_s * net.slowest < HASTY_S or (net.clock == "real" and resend_s < 2)
    if work["app"] not in ("sunrpc", "raw"):
        return False
    retry_s = {"100 ms": 0.1, "300 ms": 0.3, "2500 ms": 2.5}.get(work.get("retry_timeout", "1 s"), 1.0)
    return retry_s * net.slowest < HASTY_S


class TooLong(ValueError):
    """A case that would take long to run."""


def load(case: Case, folder: Path) -> Experiment:
    """The case as the command would run it. Raises BadInput, or TooLong; both files stay in `folder`."""
    (experiment,) = load_experiments(str(case.write(folder)))
    messages = [each for work in experiment.workloads for each in _messages(work)]
    calls = sum(count for _, count in messages)
    mtu = min(nic.mtu for node in experiment.network.nodes for nic in node.nics if not nic.mapped)
    packets = sum(2 * count * (1 + size // (mtu - 28)) for size, count in messages)
    plan_run(experiment, DRY)
    if calls > CALLS_IN_ALL:
        raise TooLong(f"more than {CALLS_IN_ALL} calls")
    if packets > PACKETS_MOST:
        raise TooLong(f"more than {PACKETS_MOST} packets")
    return experiment


def _messages(work: WorkloadBase) -> Iterator[tuple[int, int]]:
    """Bytes of data, and how many calls have so many."""
    callers = len(work.clients) * work.series * getattr(work, "threads", 1)
    if isinstance(work, Iperf3):
        rate_bps = work.rate or 2_000_000
        yield rate_bps * work.duration // 8000, len(work.clients) * len(work.transports) * work.streams
        return
    several = (getattr(work, name, None) for name in MULTIPLIERS)
    ways = math.prod(len(values) for values in several if isinstance(values, tuple) and values)
    names = getattr(work, "functions", None)
    if names:
        for name in names:
            yield functions.BY_NAME[name].size, callers * ways * (_least_calls(work, 0) + getattr(work, "warmup", 0))
        return
    assert isinstance(work, Sized)
    for size in work.sizes:
        assert isinstance(size, int)
        yield size, callers * ways * (_least_calls(work, size) + work.warmup)


MULTIPLIERS = ("transports", "operations", "procedures", "modes", "containers", "languages", "tcp_nodelay", "distance")
"""Fields with several values, each of which is called by itself."""


def _least_calls(work: WorkloadBase, size: int) -> int:
    calls = getattr(work, "calls", 1)
    return calls if isinstance(calls, int) else next(count for least, count in reversed(calls) if least <= size)
