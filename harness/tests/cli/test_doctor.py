# SPDX-License-Identifier: Apache-2.0
"""The doctor: each lack is named with the line that mends it."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sundial.cli import checks, doctor, rooms
from sundial.cli.checks import Check, Host, State, check_all, check_plugins, check_qemu, check_tshark
from sundial.errors import HostLacks
from sundial.machines.certificates import OTHER_QEMU, Certificate
from sundial.machines.confinement import Holds

Call = Callable[..., Result]


class FakeHost(Host):
    """A host on which everything is there; tests take something away."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes
        self.outputs: dict[str, tuple[int, str]] = {
            "--version qemu": (0, "QEMU emulator version 7.2.22 (Debian 1:7.2)"),
            "--version tshark": (0, "TShark (Wireshark) 4.0.17"),
            "lua": (0, "mbcf\tmbcf\tmbcf\n"),
            "-plugin": (1, "Could not load plugin file=/nonexistent.so"),
            "modprobe": (0, ""),
        }
        self.outputs.update(changes.get("outputs", {}))

    def run(self, argv: Sequence[str], text: str = "") -> tuple[int, str]:
        if argv[1] == "--version":
            return self.outputs["--version qemu" if argv[0].startswith("qemu") else "--version tshark"]
        if argv[0] == "setpriv":
            return 0, "mbcf\tmbcf\tmbcf\n"
        if argv[1] == "-G":
            return self.outputs["lua"]
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

    def certificate(self) -> Certificate | None:
        found: Certificate | None = self.changes.get("certificate", Certificate("7.2.22", tested=True))
        return found

    def libvirt(self) -> str:
        if "libvirt" in self.changes:
            raise HostLacks("libvirt cannot be reached", hint="apt-get install libvirt-daemon")
        return "9.0.0"

    def misread(self) -> list[str]:
        return list(self.changes.get("misread", ()))

    def is_root(self) -> bool:
        return bool(self.changes.get("root"))

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
        ({"certificate": Certificate("12.0.1", "lan.pcapng differs")}, ("qemu", OTHER_QEMU)),
        (
            {"outputs": {"-plugin": (1, "-plugin: invalid option")}},
            ("qemu plugins", "use a QEMU built with --enable-plugins (Debian's is)"),
        ),
        ({"outputs": {"--version tshark": (127, "")}}, ("tshark", "apt-get install tshark")),
        ({"outputs": {"--version tshark": (0, "TShark 3.6.2")}}, ("tshark", "install tshark 4.0 or newer")),
        ({"outputs": {"lua": (0, "rpc\tRPC\trpc\n")}}, ("tshark", "install a tshark that was built with Lua")),
        ({"misread": ["udp_head"]}, ("tshark", "install tshark 4.0 or 4.4, with which it was tested")),
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
        {"certificate": None},
        {"confinement": Holds(0, True, True)},
        {"confinement": Holds(7, False, False)},
    ],
)
def test_what_is_optional_lacks_nothing(changes: dict[str, Any]) -> None:
    host = FakeHost(**changes)
    assert lacking(host) == []
    assert any(check.state is State.OPTIONAL for check in check_all(host))


@pytest.mark.parametrize(
    ("output", "name"), [("--version qemu", "qemu"), ("-plugin", "qemu plugins"), ("--version tshark", "tshark")]
)
def test_a_program_that_does_not_answer_is_not_called_absent(output: str, name: str) -> None:
    found = [check for check in check_all(FakeHost(outputs={output: (124, "")})) if check.state is State.LACKING]
    assert found == [Check(name, State.LACKING, "did not answer within 10 s", "the host is busy: ask again")]


def test_tshark_answers_what_it_is_asked_of_its_dissectors() -> None:
    answered = []

    class Asked(checks.Host):
        def run(self, argv: Sequence[str], text: str = "") -> tuple[int, str]:
            answered.append(super().run(argv, text))
            return answered[-1]

    host = Asked()
    assert checks.loads_lua(host, checks.started_by(host))
    assert answered
    assert {status for status, _ in answered} <= {0, checks.TIMED_OUT}


def test_tshark_that_loads_lua_for_another_user_than_root_lacks_nothing() -> None:
    host = FakeHost(outputs={"lua": (0, "rpc\tRPC\trpc\n")}, root=True)
    assert checks.started_by(host) == checks.AS_NOBODY
    assert lacking(host) == []


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        (Certificate("7.2.22", tested=True), "7.2.22, tested"),
        (Certificate("7.2.22"), "7.2.22, certified on this host"),
        (None, "7.2.22, not certified for virtual time yet"),
        (Certificate("7.2.22", "a differs"), "7.2.22 does not keep virtual time: a differs"),
    ],
)
def test_qemu_is_shown_with_its_certificate(certificate: Certificate | None, words: str) -> None:
    assert check_qemu(FakeHost(certificate=certificate)).found == words


@pytest.mark.parametrize(("options", "again"), [((), True), (("--if-needed",), False)])
def test_certify_certifies_again_unless_only_if_needed(
    call: Call, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], again: bool
) -> None:
    asked: list[bool] = []

    def certify(progress: object, *, again: bool) -> dict[str, object]:
        asked.append(again)
        return {"version": "12.0.1", "tested": False}

    monkeypatch.setattr(rooms, "certify", certify)
    result = call("doctor", "--certify", *options)
    assert (result.exit_code, result.stdout) == (0, "QEMU 12.0.1 keeps virtual time (certified)\n")
    assert asked == [again]


def test_if_needed_without_certify_is_bad_input(call: Call) -> None:
    assert call("doctor", "--if-needed").exit_code == 2


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
    found = [check(host) for check in (check_qemu, check_plugins, check_tshark)]
    # On a busy host one may not answer in time, and says so.
    assert [each for each in found if each.state is not State.GOOD and "did not answer" not in each.found] == []
    assert host.run(["/nonexistent"]) == (127, "")
    assert host.memory() > 0
