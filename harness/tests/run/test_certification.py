# SPDX-License-Identifier: Apache-2.0
"""The certification of an emulator: what its trials must show, and what becomes of the outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sundial.errors import HostLacks, RunFailed
from sundial.machines.certificates import Certificate, Certificates
from sundial.machines.seals import Book
from sundial.plan.request import Stirring
from sundial.run import certification
from sundial.run.certification import Evidence, Trial, first_difference, first_fault, plugin_lacks, require
from tests.run.stage import Words

CLOCK = {
    "status": "finished",
    "zero_ns": 8_000_200_000,
    "instructions": 5_000_000,
    "gates": 900,
    "looks": 800,
    "max_overshoot_ns": 15,
    "stamps_checked": 12,
}
MEASURE = Evidence(
    ready_ns={"client": 8_000_200_000},
    memories={"client": "5ca1e"},
    clocks={"client": CLOCK},
    files={"wire/lan.pcapng": b"0123456789", "nodes/client/console.log": b"hello"},
    instruction_ns={"client": 16},
)
LOOKS, GATES = Trial("jitter", Stirring(jitter_ns=1000), trace=True), Trial("gates alone", Stirring(looks=False))


def with_clock(**fields: Any) -> Evidence:
    return replace(MEASURE, clocks={"client": {**CLOCK, **fields}})


@pytest.mark.parametrize(("trial", "looks"), [(LOOKS, 800), (GATES, 0)])
def test_a_trial_as_it_must_be_has_no_fault(trial: Trial, looks: int) -> None:
    assert first_fault(trial, with_clock(looks=looks)) is None


@pytest.mark.parametrize(
    ("trial", "fields", "words"),
    [
        (LOOKS, {"status": "ready"}, "client did not end by its clock"),
        (LOOKS, {"looks": 0}, "client has no looks: where QEMU counts instructions was not found"),
        (GATES, {}, "client has 800 looks, expected gates alone"),
        (LOOKS, {"max_overshoot_ns": 16}, "client ran 16 ns past a gate"),
        (LOOKS, {"stamps_checked": 0}, "client has no stamp that was compared with QEMU's clock"),
    ],
)
def test_a_fault_of_one_trial_is_named(trial: Trial, fields: dict[str, Any], words: str) -> None:
    assert first_fault(trial, with_clock(**fields)) == words


def test_trials_with_other_gates_may_count_other_gates() -> None:
    assert first_difference(MEASURE, with_clock(gates=41_000_000, looks=1)) is None


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            replace(MEASURE, ready_ns={"client": 9_000_200_000}),
            "client is ready at 9000200000 ns, expected 8000200000 ns",
        ),
        (replace(MEASURE, memories={"client": "0dd"}), "the main memory of client differs when it is ready"),
        (
            replace(MEASURE, files={**MEASURE.files, "wire/lan.pcapng": b"0123x56789"}),
            "wire/lan.pcapng differs from byte 4 on",
        ),
        (
            replace(MEASURE, files={**MEASURE.files, "wire/lan.pcapng": b"012345"}),
            "wire/lan.pcapng differs from byte 6 on",
        ),
        (
            replace(MEASURE, files={"nodes/client/console.log": b"hello"}),
            "wire/lan.pcapng is there in one run only",
        ),
        (
            replace(MEASURE, files={**MEASURE.files, "nodes/client/console.log": b"h", "wire/lan.pcapng": b"9"}),
            "wire/lan.pcapng differs from byte 0 on",
        ),
        (with_clock(instructions=5_000_001), "client executed 5000001 instructions, expected 5000000"),
    ],
)
def test_the_first_difference_is_named(other: Evidence, words: str) -> None:
    assert first_difference(MEASURE, other) == words


class Host:
    """A session whose emulator is a file, and trials that leave what a test says."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        emulator, plugin = folder / "qemu", folder / "plugin"
        emulator.write_text("an emulator\n")
        plugin.write_text("a plugin\n")
        self.made: list[str] = []
        self.evidence: Callable[[Trial], Evidence] = lambda trial: with_clock(looks=800 * trial.stirring.looks)
        self.lacks: str | None = None
        self.session: Any = SimpleNamespace(
            certificates=Certificates(folder / "certificates.json", Book(folder / "emulators.json")),
            places=SimpleNamespace(plugin=plugin, trials=folder / "trials"),
            hypervisor=SimpleNamespace(versions=lambda: {"qemu": "12.0.1"}),
        )
        monkeypatch.setattr(certification, "emulator", lambda: emulator)
        monkeypatch.setattr(certification, "plugin_lacks", lambda qemu, plugin: self.lacks)
        monkeypatch.setattr(certification, "_made", self._made)

    def _made(self, course: Any, trial: Trial, folder: Path, session: Any, make: Any) -> Evidence:
        self.made.append(f"{course.scenario} {trial.name}")
        return self.evidence(trial)

    def require(self, *, again: bool = False) -> Certificate | None:
        return require(self.session, Words(), cast(Any, None), again=again)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def test_an_unknown_emulator_makes_all_trials(host: Host) -> None:
    assert host.require() == Certificate("12.0.1")
    assert host.made == [
        f"{course.scenario} {trial.name}" for course in certification.COURSES for trial in course.trials
    ]


def test_a_known_emulator_makes_no_trial(host: Host) -> None:
    host.require()
    host.made.clear()
    assert host.require() == Certificate("12.0.1")
    assert host.made == []


def test_a_known_emulator_is_certified_again_where_that_is_asked(host: Host) -> None:
    host.require()
    host.made.clear()
    host.require(again=True)
    assert host.made


def test_a_session_that_takes_every_emulator_makes_no_trial(host: Host) -> None:
    host.session.certificates = None
    assert host.require() is None
    assert host.made == []


def test_a_difference_is_refused_with_its_words_now_and_later(host: Host) -> None:
    host.evidence = lambda trial: with_clock(looks=800 * trial.stirring.looks, instructions=5 + trial.stirring.looks)
    words = "QEMU 12.0.1 does not keep virtual time: quickstart, gates alone: "
    for _ in range(2):
        with pytest.raises(HostLacks) as error:
            host.require()
        assert error.value.message == f"{words}client executed 5 instructions, expected 6"
    assert host.made == ["quickstart ordinary", "quickstart gates alone"]


def test_a_trial_that_fails_is_a_lack_that_is_not_remembered(host: Host) -> None:
    def failing(trial: Trial) -> Evidence:
        raise RunFailed("QEMU ended", machine="client")

    host.evidence = failing
    for _ in range(2):
        with pytest.raises(HostLacks, match=r"could not be certified \(quickstart, ordinary\): client: QEMU ended"):
            host.require()
    assert host.made == ["quickstart ordinary"] * 2


def test_an_emulator_without_what_the_plugin_needs_makes_no_trial(host: Host) -> None:
    host.lacks = "this QEMU does not export icount_update"
    with pytest.raises(HostLacks, match="cannot keep virtual time: this QEMU does not export icount_update"):
        host.require()
    assert host.made == []


@pytest.mark.parametrize(
    ("script", "lacks"),
    [
        ("exit 0", None),
        ("echo 'sundial-clock: it lacks x' >&2; echo 'qemu: Could not load plugin' >&2; exit 1", "it lacks x"),
        ("echo 'Could not load plugin /x/plugin.so: it requires API 2' >&2; exit 1", "it requires API 2"),
        ("echo 'qemu: -plugin: invalid option' >&2; exit 1", "qemu: -plugin: invalid option"),
        ("exit 9", "it ended with status 9"),
    ],
)
def test_what_a_plugin_lacks_is_one_line(tmp_path: Path, script: str, lacks: str | None) -> None:
    qemu = tmp_path / "qemu"
    qemu.write_text(f"#!/bin/sh\n{script}\n")
    qemu.chmod(0o755)
    assert plugin_lacks(qemu, Path("/x/plugin.so")) == lacks
