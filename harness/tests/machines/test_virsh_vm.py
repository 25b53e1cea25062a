# SPDX-License-Identifier: Apache-2.0
"""`sundial virsh` beside virsh itself, both over one machine of a daemon's: not one character differs."""

from __future__ import annotations

import importlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.machines.connection import open_hypervisor
from sundial.machines.virsh import CHANGING, COMMANDS, answer
from tests.machines.daemons import SessionDaemon, require_programs, session_daemon

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]
XML = """<domain type='qemu'><name>sundial-{0}</name><memory unit='MiB'>{1}</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><controller type='usb' model='none'/><memballoon model='none'/></devices></domain>"""
NAMES = {"client": "sundial-client", "server-of-some": "sundial-server-of-some"}


@pytest.fixture(scope="module")
def daemon() -> Iterator[SessionDaemon]:
    require_programs("virsh", "libvirtd", "qemu-system-x86_64")
    with session_daemon() as served:
        yield served


@pytest.fixture(scope="module")
def handle(daemon: SessionDaemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("virsh")
    open_hypervisor(daemon.uri, folder, folder, "sundial-test").close()
    libvirt = importlib.import_module("libvirt")
    opened = libvirt.open(daemon.uri)
    domains = [
        opened.createXML(XML.format(name.removeprefix("sundial-"), size), libvirt.VIR_DOMAIN_START_PAUSED)
        for name, size in zip(NAMES.values(), (64, 32), strict=True)
    ]
    yield opened
    for domain in domains:
        domain.destroy()
    opened.close()


@pytest.mark.parametrize(
    "line",
    [
        "list",
        "list --all",
        "list --inactive",
        "list --name",
        "list --uuid",
        "list --id",
        "list --name --uuid",
        "dominfo sundial-client",
        "dominfo --domain 2",
        "domstate sundial-client",
        "domstate sundial-client --reason",
        "domid sundial-client",
        "domname 1",
        "domuuid 1",
        "dumpxml 2",
        "domstats 1",
        "domstats",
        "vcpuinfo 1",
        "vcpucount 1",
        "qemu-monitor-command 1 --hmp info status",
        'qemu-monitor-command 1 {"execute":"query-status"}',
        'qemu-monitor-command 1 --pretty {"execute":"query-status"}',
        "hostname",
        "uri",
    ],
)
def test_the_answer_is_virshs(daemon: SessionDaemon, handle: Any, line: str) -> None:
    words = line.split(" ", 3) if "qemu-monitor" in line and "--hmp" not in line else line.split()
    real = subprocess.run(["virsh", "-c", daemon.uri, *words], capture_output=True, check=True, timeout=120)
    ours, theirs = answer(handle, NAMES, words), real.stdout.decode()
    if line == "domstats":  # libvirt has no order of its own for several machines
        ours, theirs = ("\n".join(sorted(text.split("\n\n"))) for text in (ours, theirs))
    assert _still(ours) == _still(theirs)


def _still(text: str) -> str:
    """Without what changes from one look to the next: libvirt numbers its questions, the host its times."""
    return re.sub(
        r"libvirt-\d+|(?:time|delay|wait|user|system|rss)=\d+|(?<=CPU: )\s+\d|(?<=time: )\s+[\d.]+s", "-", text
    )


def test_a_machine_goes_by_its_own_name(handle: Any) -> None:
    by = [answer(handle, NAMES, ["domid", name]) for name in ("client", "sundial-client", "1")]
    by.append(answer(handle, NAMES, ["domid", answer(handle, NAMES, ["domuuid", "client"]).strip()]))
    assert by == ["1\n\n"] * 4


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dominfo absent", "failed to get domain 'absent'; allowed: client, server-of-some"),
        ("dominfo", "command 'dominfo' requires <domain> option; allowed: client, server-of-some"),
        ("dominfo --domain", "command 'dominfo' requires <domain> option; allowed: client, server-of-some"),
        ("dominfo 1 2", "unexpected data '2'"),
        ("list foo", "unexpected data 'foo'"),
        ("dominfo 1 --foo", "command 'dominfo' doesn't support option --foo"),
        ("domstate 1 --foo", "command 'domstate' doesn't support option --foo; allowed: --reason"),
        ("qemu-monitor-command 1 rubbish", "'rubbish' is not a command of QEMU"),
        ("qemu-monitor-command 1", "'' is not a command of QEMU"),
        ("qemu-monitor-command 1 --hmp", "'' is not a command of QEMU"),
        ('qemu-monitor-command 1 {"execute":"quit"}', "quit may change the machine"),
        ("qemu-monitor-command 1 --hmp stop", "stop may change the machine"),
        ('qemu-monitor-command 1 {"execute":["x"]}', "may change the machine"),
        ("foo", f"unknown command: 'foo'; allowed: {', '.join(COMMANDS)}"),
        *((f"{name} 1", f"{name} would break the run that the machine is in") for name in CHANGING),
    ],
)
def test_what_is_refused(handle: Any, line: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        answer(handle, NAMES, line.split())
    assert words in str(caught.value)
    assert answer(handle, NAMES, ["list", "--name"]) == "sundial-client\nsundial-server-of-some\n\n"


def test_without_a_command_it_lists_what_there_is(handle: Any) -> None:
    lines = answer(handle, NAMES, []).splitlines()
    assert [line.split()[0] for line in lines] == list(COMMANDS)


def test_every_refused_command_is_one_of_virshs(daemon: SessionDaemon, tmp_path: Path) -> None:
    for name in (*CHANGING, *COMMANDS):
        done = subprocess.run(["virsh", "help", name], capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, name
