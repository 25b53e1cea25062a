# SPDX-License-Identifier: Apache-2.0
"""The doctor: each lack is named with the line that mends it."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sundial.cli import checks, doctor
from sundial.cli.checks import Check, Host, State, check_all, check_plugins, check_qemu, check_tshark
from sundial.errors import HostLacks
from sundial.machines.confinement import Holds

Call = Callable[..., Result]


class FakeHost(Host):
    """A host on which everything is there; tests take something away."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes
        self.outputs: dict[str, tuple[int, str]] = {
            "--version qemu": (0, "QEMU emulator version 7.2.22 (Debian 1:7.2)"),
            "--version tshark": (0, "TShark (Wireshark) 4.0.17\nwith libnl 3, with\nLua 5.2.4"),
            "-plugin": (1, "Could not load plugin file=/nonexistent.so"),
            "modprobe": (0, ""),
        }
        self.outputs.update(changes.get("outputs", {}))

    def run(self, argv: Sequence[str], text: str = "") -> tuple[int, str]:
        if argv[1] == "--version":
            return self.outputs["--version qemu" if argv[0].startswith("qemu") else "--version tshark"]
        if argv[0] == "modprobe":
            return self.outputs["modprobe"]
        return self.outputs["-plugin"]

    def which(self, program: str) -> str | None:
        return f"/usr/bin/{program}"

    def exists(self, path: Path) -> bool:
        return path not in self.changes.get("missing", ())

    def importable(self, module: str) -> bool:
        return module not in self.changes.get("modules", ())

    def free_bytes(self, folder: Path) -> int:
        return int(self.changes.get("shm", 1 << 30))

    def confinement(self) -> Holds:
        found: Holds = self.changes.get("confinement", Holds(7, True, True))
        return found

    def memory(self) -> int:
        return int(self.changes.get("memory", 8 << 30))

    def runs_kvm(self, kernel: Path) -> bool:
        return bool(self.changes.get("kvm", True))

    def cores(self) -> int:
        return 4

    def real_time(self) -> bool:
        return bool(self.changes.get("real_time", True))

    def images(self) -> dict[str, str]:
        return dict(self.changes.get("images", {"linux": "built"}))

    def libvirt(self) -> str:
        if "libvirt" in self.changes:
            raise HostLacks("libvirt cannot be reached", hint="apt-get install libvirt-daemon")
        return "9.0.0"

    def daemons(self) -> dict[str, str]:
        return dict(self.changes.get("daemons", {"qemu:///system": "9.0.0"}))


def lacking(host: Host) -> list[tuple[str, str | None]]:
    return [(check.name, check.mend) for check in check_all(host) if check.state is State.LACKING]


def test_a_host_with_everything() -> None:
    assert [check for check in check_all(FakeHost()) if check.state is not State.GOOD] == []


def test_real_time_scheduling_is_a_luxury() -> None:
    found = checks.check_real_time(FakeHost(real_time=False))
    assert found.state is State.OPTIONAL
    assert found.mend is not None
    assert "CAP_SYS_NICE" in found.mend


def test_daemons_are_named_and_none_is_needed() -> None:
    two = {"qemu:///session": "9.0.0", "qemu:///system": "does not answer"}
    found = checks.check_daemons(FakeHost(daemons=two))
    assert found == Check("libvirt daemons", State.GOOD, "qemu:///session (9.0.0), qemu:///system (does not answer)")
    assert checks.check_daemons(FakeHost(daemons={})).state is State.OPTIONAL


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"outputs": {"--version qemu": (127, "")}}, ("qemu", "apt-get install qemu-system-x86")),
        (
            {"outputs": {"--version qemu": (0, "QEMU emulator version 9.2.0")}},
            ("qemu", "virtual time needs QEMU 7.2 or 10.0; with other versions use --clock real"),
        ),
        (
            {"outputs": {"-plugin": (1, "-plugin: invalid option")}},
            ("qemu plugins", "use a QEMU built with --enable-plugins (Debian's is)"),
        ),
        ({"outputs": {"--version tshark": (127, "")}}, ("tshark", "apt-get install tshark")),
        ({"outputs": {"--version tshark": (0, "TShark 3.6.2")}}, ("tshark", "install tshark 4.0 or newer")),
        (
            {"outputs": {"--version tshark": (0, "TShark 4.0.17")}},
            ("tshark", "install a tshark that was built with Lua"),
        ),
        ({"modules": ("polars",)}, ("python", "make setup")),
        (
            {"modules": ("libvirt",)},
            ("libvirt", "apt-get install python3-libvirt libvirt-daemon libvirt-daemon-driver-qemu"),
        ),
        ({"libvirt": "gone"}, ("libvirt", "apt-get install libvirt-daemon")),
        ({"missing": (checks.FABRIC,)}, ("programs", "make setup")),
        ({"images": {"linux": "stale"}}, ("images", "./sundial images build --if-needed")),
        ({"shm": 1 << 20}, ("/dev/shm", "mount -o remount,size=1G /dev/shm")),
        ({"memory": 1 << 28}, ("memory", "a run of two guests needs 1 GiB; stop other programs")),
    ],
)
def test_a_lack_is_named_and_mended(changes: dict[str, Any], found: tuple[str, str]) -> None:
    assert lacking(FakeHost(**changes)) == [found]


@pytest.mark.parametrize(
    "changes",
    [
        {"kvm": False},
        {"missing": (Path("/dev/kvm"),)},
        {"outputs": {"modprobe": (1, "")}},
        {"confinement": Holds(0, True, True)},
        {"confinement": Holds(7, False, False)},
    ],
)
def test_what_is_optional_lacks_nothing(changes: dict[str, Any]) -> None:
    host = FakeHost(**changes)
    assert lacking(host) == []
    assert any(check.state is State.OPTIONAL for check in check_all(host))


@pytest.mark.parametrize(
    ("checks_made", "status"),
    [([Check("qemu", State.GOOD, "7.2")], 0), ([Check("qemu", State.LACKING, "not found", "apt-get install it")], 3)],
)
def test_the_exit_status(call: Call, monkeypatch: pytest.MonkeyPatch, checks_made: list[Check], status: int) -> None:
    monkeypatch.setattr(doctor, "check_all", lambda host: checks_made)
    result = call("doctor")
    assert result.exit_code == status
    assert ("qemu: apt-get install it" in result.stdout) == bool(status)
    result = call("doctor", "--json")
    assert result.exit_code == status
    assert json.loads(result.stdout)[0]["name"] == "qemu"


def test_this_host_s_own_tools_are_understood() -> None:
    """No guest, no libvirt: only that what is installed here is read rightly."""
    host = Host()
    if host.which(checks.EMULATOR) is None or host.which("tshark") is None:
        pytest.skip("qemu-system-x86_64 or tshark is not installed")
    assert [check(host).state for check in (check_qemu, check_plugins, check_tshark)] == [State.GOOD] * 3
    assert host.run(["/nonexistent"]) == (127, "")
    assert host.memory() > 0
