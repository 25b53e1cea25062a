# SPDX-License-Identifier: Apache-2.0
"""Certificates: by what an emulator and the plugin contain, whatever they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from sundial.machines import certificates
from sundial.machines.certificates import Certificate, Certificates
from sundial.machines.seals import Book, sha256_of

FAILED = Certificate("12.0.1", "client is ready at 2 ns, expected 1 ns")


@pytest.fixture
def emulator(tmp_path: Path) -> Path:
    path = tmp_path / "qemu"
    path.write_text("an emulator\n")
    return path


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "plugin"
    path.write_text("a plugin\n")
    return path


def of(folder: Path) -> Certificates:
    return Certificates(folder / "certificates.json", Book(folder / "emulators.json"))


@pytest.mark.parametrize("certificate", [Certificate("12.0.1"), FAILED])
def test_a_certificate_is_found_again(tmp_path: Path, emulator: Path, plugin: Path, certificate: Certificate) -> None:
    assert of(tmp_path).find(emulator, plugin) is None
    of(tmp_path).write(emulator, plugin, certificate)
    assert of(tmp_path).find(emulator, plugin) == certificate


@pytest.mark.parametrize("changed", ["emulator", "plugin"])
def test_a_changed_program_is_not_known(tmp_path: Path, emulator: Path, plugin: Path, changed: str) -> None:
    of(tmp_path).write(emulator, plugin, FAILED)
    {"emulator": emulator, "plugin": plugin}[changed].write_text("its security patch\n")
    assert of(tmp_path).find(emulator, plugin) is None


def test_an_equal_emulator_elsewhere_is_known(tmp_path: Path, emulator: Path, plugin: Path) -> None:
    of(tmp_path).write(emulator, plugin, FAILED)
    copy = tmp_path / "copy"
    copy.write_bytes(emulator.read_bytes())
    assert of(tmp_path).find(copy, plugin) == FAILED


def test_a_tested_emulator_needs_no_trials(
    tmp_path: Path, emulator: Path, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(certificates.TESTED, sha256_of(emulator), "7.2.22")
    assert of(tmp_path).find(emulator, plugin) == Certificate("7.2.22", tested=True)


def test_trials_that_were_made_say_more_than_the_tests(
    tmp_path: Path, emulator: Path, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(certificates.TESTED, sha256_of(emulator), "7.2.22")
    of(tmp_path).write(emulator, plugin, FAILED)
    assert of(tmp_path).find(emulator, plugin) == FAILED


def test_a_damaged_file_of_certificates_knows_nothing(tmp_path: Path, emulator: Path, plugin: Path) -> None:
    of(tmp_path).write(emulator, plugin, FAILED)
    place = tmp_path / "certificates.json"
    place.write_text(place.read_text().replace("12.0.1", "12.0.2"))
    assert of(tmp_path).find(emulator, plugin) is None
