# SPDX-License-Identifier: Apache-2.0
"""Which accelerator is chosen, and how often it is tried whether KVM works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sundial.errors import HostLacks
from sundial.machines import accelerator
from sundial.machines.accelerator import choose, runs_kvm


class Probe:
    """Counts how often it is tried to boot."""

    def __init__(self, works: bool) -> None:
        self.works, self.tried = works, 0

    def __call__(self, *_: object) -> bool:
        self.tried += 1
        return self.works


@pytest.mark.parametrize(
    ("clock", "wanted", "works", "chosen", "tried"),
    [
        ("virtual", "auto", True, "tcg", 0),
        ("real", "auto", True, "kvm", 1),
        ("real", "auto", False, "tcg", 1),
        ("real", "tcg", True, "tcg", 0),
        ("real", "kvm", True, "kvm", 1),
    ],
)
def test_kvm_is_taken_where_it_works(clock: str, wanted: str, works: bool, chosen: str, tried: int) -> None:
    probe = Probe(works)
    assert choose(clock, wanted, probe) == chosen  # type: ignore[arg-type]
    assert probe.tried == tried


def test_kvm_that_is_wanted_and_does_not_work_is_said() -> None:
    with pytest.raises(HostLacks, match="no guest boots under KVM here"):
        choose("real", "kvm", Probe(False))


@pytest.mark.parametrize("works", [True, False])
def test_the_answer_is_kept_until_the_host_boots_again(tmp_path: Path, works: bool) -> None:
    device, boot_id, cache = tmp_path / "kvm", tmp_path / "boot_id", tmp_path / "private" / "kvm.json"
    device.touch()
    boot_id.write_text("one\n")
    probe = Probe(works)

    def ask() -> bool:
        return runs_kvm(tmp_path / "kernel", cache, device=device, boot_id=boot_id, boots=probe)

    assert [ask(), ask()] == [works, works]
    assert probe.tried == 1
    boot_id.write_text("two\n")
    assert ask() is works
    cache.write_text("{damaged")
    assert ask() is works
    assert probe.tried == 3
    assert json.loads(cache.read_text()) == {"boot_id": "two", "runs": works}


def test_without_a_device_nothing_is_tried(tmp_path: Path) -> None:
    probe = Probe(True)
    assert not runs_kvm(tmp_path / "kernel", tmp_path / "kvm.json", device=tmp_path / "none", boots=probe)
    assert probe.tried == 0


@pytest.mark.parametrize(("script", "works"), [("exit 0", True), ("exit 1", False), ("exec sleep 60", False)])
def test_a_boot_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, works: bool) -> None:
    program = tmp_path / "qemu"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(accelerator, "EMULATOR", str(program))
    monkeypatch.setattr(accelerator, "PROBE_S", 0.5)
    device = tmp_path / "kvm"
    device.touch()
    assert runs_kvm(tmp_path / "kernel", tmp_path / "kvm.json", device=device) is works
