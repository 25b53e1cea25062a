# SPDX-License-Identifier: Apache-2.0
"""vRPC in scenarios: what fits, and one line for what does not."""

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments
from sundial.workloads.sunrpc.scenario import SunRpc

HEAD = "description: A test\ntopology: sss-two-vmmc\nworkloads:\n"
MBCF = "mbcf1, mbcf2, mbcf12, mbcf3, mbcf3a, mbcf3b"


def load(folder: Path, workload: str, topology: str | None = None) -> SunRpc:
    path = folder / "mine.yaml"
    path.write_text(f"{HEAD}  - {{app: sunrpc, sizes: 4, {workload}}}\n")
    found = load_experiments(str(path), topology=topology)[0].workloads[0]
    assert isinstance(found, SunRpc)
    return found


@pytest.mark.parametrize(
    ("workload", "line"),
    [
        ("transports: udp, wait: poll", "wait: wait over udp; allowed: transports: vrpc, vrpc-mbcf"),
        ("transports: vrpc, wait: sleep", "wait: 'sleep' is not known; allowed: poll, notify"),
        ("transports: vrpc-mbcf, deliberate_above: 5", "deliberate_above: deliberate_above over vrpc-mbcf, which has no deliberate updates; allowed: transports: vrpc"),
        ("transports: vrpc, deliberate_above: 98297", "deliberate_above: 98297 is out of range; allowed: a whole number from 0 to 98296"),
        ("transports: vrpc, depth: 2", f"depth: depth 2 over vrpc, whose client waits for the reply of each call; allowed: 1, or the transports {MBCF}"),
        ("transports: vrpc-mbcf, ack: false", f"ack: ack false over vrpc-mbcf, which has no such acknowledgement; allowed: true, or the transports {MBCF}"),
        ("transports: vrpc, one_way: true, procedures: sink", f"one_way: one_way over vrpc; allowed: false, or the transports tcp, {MBCF}"),
        ("transports: vrpc, semantics: exactly_once", "semantics: exactly_once over vrpc; allowed: at_most_once over vrpc"),
        ("transports: [vrpc, vrpc-mbcf, tcp], semantics: at_most_once, reply_cache: 5", f"reply_cache: reply_cache without at_most_once over udp or MBCF: no reply would be kept; allowed: semantics: at_most_once, transports: udp, {MBCF}"),
        ("transports: vrpc, threads: 2", "threads: 2 threads with 'client', which boots ssscore: its client has one; allowed: 1; depth is calls under way over MBCF"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, workload: str, line: str) -> None:
    with pytest.raises(BadInput) as caught:
        load(tmp_path, workload)
    assert caught.value.exit_code == 2
    assert str(caught.value).splitlines()[0].startswith(f"{tmp_path}/mine.yaml:4: workloads.0.{line}")


@pytest.mark.parametrize(
    ("transport", "topology", "line"),
    [
        ("vrpc", "sss-two-100base-tx", "'server' has no interface in a backplane"),
        ("vrpc", "two-hosts-10base-t", "vrpc with 'server', which boots linux: its library is SSS-CORE's; allowed: machines that boot ssscore"),
        ("vrpc-mbcf", "two-hosts-10base-t", "vrpc-mbcf with 'server', which boots linux"),
    ],
)  # fmt: skip
def test_what_it_needs_of_machines(tmp_path: Path, transport: str, topology: str, line: str) -> None:
    with pytest.raises(BadInput) as caught:
        load(tmp_path, f"transports: {transport}", topology)
    assert caught.value.exit_code == 2
    assert line in str(caught.value)


def test_rings_over_mbcf_need_no_backplane(tmp_path: Path) -> None:
    found = load(tmp_path, "transports: vrpc-mbcf, wait: notify", "sss-two-100base-tx")
    assert (found.transports, found.wait) == (("vrpc-mbcf",), "notify")


def test_sizes_are_those_that_a_ring_holds(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{HEAD}  - {{app: sunrpc, transports: vrpc, sizes: 65537}}\n")
    with pytest.raises(BadInput) as caught:
        load_experiments(str(path))
    assert "do not fit sunrpc echo over vrpc; allowed: 0 to 65536 bytes (what a ring holds)" in str(caught.value)
