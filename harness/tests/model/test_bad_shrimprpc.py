# SPDX-License-Identifier: Apache-2.0
"""ShrimpRPC in scenarios: what fits, and one line for what does not."""

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments
from sundial.workloads.shrimprpc.model import ShrimpRpc

HEAD = "description: A test\ntopology: sss-two-vmmc\nworkloads:\n"
BOUND = "0 to 16384 bytes (ECHO_LIMIT of guest-apps/shrimp/echo.x)"
WORDS = "one or more of null, in, out, inout, in_64, out_64, inout_64"


def load(folder: Path, workload: str, topology: str | None = None) -> ShrimpRpc:
    path = folder / "mine.yaml"
    path.write_text(f"{HEAD}  - {{app: shrimprpc, {workload}}}\n")
    found = load_experiments(str(path), topology=topology)[0].workloads[0]
    assert isinstance(found, ShrimpRpc)
    return found


@pytest.mark.parametrize(
    ("workload", "line"),
    [
        ("sizes: 16385", f"sizes: 16385 bytes do not fit shrimprpc inout over shrimprpc; allowed: {BOUND}"),
        ("sizes: [0, 65536], procedures: [null, in]", f"sizes: 65536 bytes do not fit shrimprpc in over shrimprpc; allowed: {BOUND}"),
        ("sizes: 4, procedures: echo", f"procedures: 'echo' is not known; allowed: {WORDS}"),
        ("sizes: 4, wait: sleep", "wait: 'sleep' is not known; allowed: poll, notify"),
        ("sizes: edges", "sizes: edges over a backplane: only those of udp and tcp are known; allowed: sizes and ranges FIRST:LAST:STEP"),
        ("sizes: 4, transports: vrpc", "transports: unknown field; allowed: clients, server, series, sizes, calls, warmup, order, trace, app, procedures, wait, total_timeout"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, workload: str, line: str) -> None:
    with pytest.raises(BadInput) as caught:
        load(tmp_path, workload)
    assert caught.value.exit_code == 2
    assert str(caught.value).splitlines()[0] == f"{tmp_path}/mine.yaml:4: workloads.0.{line}"


@pytest.mark.parametrize(
    ("topology", "line"),
    [
        ("sss-two-100base-tx", "'server' has no interface in a backplane"),
        ("two-hosts-10base-t", "image 'linux' of 'server' does not run shrimprpc"),
    ],
)
def test_it_needs_a_backplane(tmp_path: Path, topology: str, line: str) -> None:
    with pytest.raises(BadInput) as caught:
        load(tmp_path, "sizes: 4", topology)
    assert caught.value.exit_code == 2
    assert line in str(caught.value).splitlines()[0]


def test_sizes_are_those_of_procedures_that_take_any(tmp_path: Path) -> None:
    found = load(tmp_path, "sizes: [4, 16384], procedures: [null, in, in_64], wait: notify")
    assert (found.sizes, found.wait, found.transports) == ((4, 16384), "notify", ("shrimprpc",))
    assert load(tmp_path, "sizes: 70000, procedures: [null, inout_64]").sizes == (70000,)
