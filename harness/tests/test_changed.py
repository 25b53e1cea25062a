# SPDX-License-Identifier: Apache-2.0
"""The selection of tests for a change: what may break is selected, and a kind selects less than a stage."""

from __future__ import annotations

import tomllib

import pytest

from tests.changed import CHECKOUT, CRATES, Step, steps


def words(step: Step) -> str:
    return " ".join(step.argv)


def selected(*paths: str) -> dict[str, str]:
    return {step.suite: words(step) for step in steps(paths)}


@pytest.mark.parametrize(
    ("path", "suite", "text"),
    [
        ("harness/sundial/verify/chance.py", "python", "tests/segments/test_line_laws.py"),
        ("harness/sundial/workloads/raw/verify.py", "damages", "-k raw"),
        ("harness/sundial/workloads/raw/verify.py", "test_smoke_vm", "[raw-sweep]"),
        ("harness/sundial/segments/hub/model.py", "test_smoke_topologies_vm", "[two-hosts-10base-t]"),
        ("harness/sundial/run/supervisor.py", "booted", "tests/run/test_faults_vm.py"),
        ("harness/tests/verify/bed.py", "python", "tests/verify/test_tcp.py"),
        ("harness/fabric/core/src/lib.rs", "fabric/segments", "sundial-segments"),
        ("harness/fabric/segments/src/hub/mod.rs", "test_smoke_vm", "[quickstart]"),
        ("harness/fabric/wire/src/lib.rs", "fabric/cli", "sundial-fabric"),
        ("harness/clock/gate.c", "harness/clock", "harness/clock test"),
        ("harness/clock/sync.c", "fabric/io", "sundial-io"),
        ("harness/sundial/model/limits.py", "python", "tests/model/test_bad_scenarios.py"),
        ("harness/wireshark/mbcf_state.lua", "python", "tests/observe/test_mbcf_dissector.py"),
        ("harness/wireshark/grpc.lua", "python", "tests/workloads/grpc/test_tshark.py"),
        ("harness/wireshark/mbcf.lua", "python", "tests/observe/test_mbcf_dissector.py"),
        ("harness/scenarios/loss.yaml", "test_smoke_vm", "[loss]"),
        ("topologies/sss-office.yaml", "test_smoke_topologies_vm", "[sss-office]"),
        ("guest-apps/raw/header.c", "test_smoke_vm", "[raw-sweep]"),
        ("guest-apps/echo/server.c", "test_smoke_vm", "[quickstart]"),
        ("guest-apps/job/job.c", "guest-apps/sss-core", "guest-apps/sss-core check"),
        ("guest-apps/sss-core/kernel/vmmc_device.c", "booted", "tests/run/test_backplane_vm.py"),
        ("guest-apps/sss-core/kernel/task.c", "guest-apps/sss-core/tests", "guest-apps/sss-core/tests"),
        ("guest-apps/runner/main.c", "images/linux/tests", "images/linux/tests"),
        ("images/ssscore/core.py", "images/ssscore/tests", "images/ssscore/tests"),
        ("buildroot-configs/Config.in", "buildroot-configs", "buildroot-configs"),
    ],
)
def test_change_selects_its_tests(path: str, suite: str, text: str) -> None:
    assert text in selected(path)[suite]


def test_each_crate_has_its_name() -> None:
    manifests = (CHECKOUT / "harness" / "fabric").glob("*/Cargo.toml")
    names = {path.parent.name: tomllib.loads(path.read_text())["package"]["name"] for path in manifests}
    assert names == CRATES


def test_kind_leaves_the_tests_of_other_kinds_alone() -> None:
    chosen = " ".join(selected("harness/sundial/workloads/rpyc/verify.py").values())
    assert "tests/workloads/dce" not in chosen
    assert "tests/workloads/grpc/test_verify.py" not in chosen
    assert "[sss-mixed]" not in chosen


def test_machines_are_set_up_before_they_are_booted() -> None:
    order = [step.suite for step in steps(["harness/sundial/segments/link/verify.py"])]
    assert order.index("python") < order.index("setup") < order.index("test_smoke_vm")


def test_page_that_no_test_reads_selects_nothing() -> None:
    assert steps(["topologies/README.md", "CHANGELOG.md"]) == []
