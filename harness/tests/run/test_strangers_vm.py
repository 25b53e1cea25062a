# SPDX-License-Identifier: Apache-2.0
"""A guest that has taken over its QEMU, here the client's, and writes what it likes into all that is mapped there.

The writes are made from this process, to what the plugin of the client has mapped writable and to nothing else: the
bell, the client's own page and its own rings. The machine that is to blame is named, and the exit status is 4.
"""

from __future__ import annotations

import ctypes
import mmap
import signal
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sundial.machines import shm
from tests.run.live import LiveRun, night, require_guests, write_scenario

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900), pytest.mark.spread]

CLIENT, SERVER = 0, 1
SLOTS, RING_HEADER = 256, 128
FRAME, HAS_LOCK = 0, 2


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[LiveRun]:
    run = LiveRun(write_scenario(tmp_path), tmp_path / "run")
    run.wait_batches(1)
    yield run
    assert run.leftovers() == []


class Client:
    """What the client's QEMU has of the shared memory."""

    def __init__(self, run: LiveRun) -> None:
        (folder,) = set(run.shm)
        self.pid = run.pid_of(f"guest={run.token}-client,")
        with (folder / "times").open("r+b") as file:
            self.times = shm._Shared.from_buffer(mmap.mmap(file.fileno(), 0))
        with (folder / f"rings-{CLIENT}").open("r+b") as file:
            self.rings = mmap.mmap(file.fileno(), 0)
        self.slot_bytes = self.times.fixed.slot_bytes
        self.from_fabric = RING_HEADER + SLOTS * self.slot_bytes

    @property
    def page(self) -> shm._Member:
        return self.times.machine[CLIENT]

    def put(self, ring: int, time_ns: int, length: int, nic: int, kind: int = FRAME) -> None:
        """An entry into the ring that begins at `ring`, in place of the next one or of several."""
        (written,) = struct.unpack_from("<Q", self.rings, ring)
        for number in range(written, written + 8):
            at = ring + RING_HEADER + number % SLOTS * self.slot_bytes
            struct.pack_into("<QIHH", self.rings, at, time_ns, length, nic, kind)
        struct.pack_into("<Q", self.rings, ring, written + 8)


def past(client: Client) -> None:
    client.put(0, 1, 60, 0)


def counter(client: Client) -> None:
    struct.pack_into("<Q", client.rings, 0, 1 << 63)


def other_counter(client: Client) -> None:
    struct.pack_into("<Q", client.rings, client.from_fabric + 64, 1 << 63)


def lock(client: Client) -> None:
    """It takes the lock, says that the server has it, and says of itself that it waits for nothing."""
    client.times.bell.lock.value = SERVER + 1


def lock_openly(client: Client) -> None:
    client.times.bell.lock.value = CLIENT + 1
    client.page.lock_state = HAS_LOCK


def now(client: Client) -> int:
    return int(client.page.own_ns)


ATTACKS: dict[str, tuple[Callable[[Client], None], str]] = {
    "a length of 2^31": (lambda c: c.put(0, now(c), 1 << 31, 0), "QEMU put an entry longer than its slot"),
    "interface 60000": (lambda c: c.put(0, now(c), 60, 60000), "QEMU put an entry of an interface that is not there"),
    "a time in the past": (past, "QEMU put an entry with a time that cannot be"),
    "a counter of 2^63": (counter, "QEMU put a ring's counter that cannot be"),
    "the other counter": (other_counter, "QEMU put a ring's counter that cannot be"),
}
"""What the fabric has to say of the client."""

ITS_OWN: dict[str, Callable[[Client], None]] = {
    "a length of 2^31": lambda c: c.put(c.from_fabric, now(c), 1 << 31, 0),
    "interface 60000": lambda c: c.put(c.from_fabric, now(c), 60, 60000),
}
"""Faults that harm only the client itself, because no other has these rings."""


def assert_others_pages_are_read_only(run: LiveRun, client: Client) -> None:
    """And the constants."""
    bell, page = (0, ctypes.sizeof(shm._Bell)), shm._Shared.machine.offset + CLIENT * shm.PAGE
    writable, readable, names = set(), set(), set()
    for line in Path(f"/proc/{client.pid}/maps").read_text().splitlines():
        addresses, rights, offset, _, _, *path = line.split(maxsplit=5)
        if not path or not path[0].startswith(str(run.shm[0])):
            continue
        first, last = (int(address, 16) for address in addresses.split("-"))
        names.add(Path(path[0]).name)
        if Path(path[0]).name == "times":
            found = (int(offset, 16), int(offset, 16) + last - first)
            (writable if "w" in rights else readable).add(found)
    assert names == {"times", f"rings-{CLIENT}"}
    assert writable == {bell, (page, page + shm.PAGE)}
    assert sum(last - first for first, last in readable | writable) == ctypes.sizeof(shm._Shared)


@pytest.mark.parametrize("attack", ["a time in the past", *(night(name) for name in ATTACKS if "past" not in name)])
def test_the_fabric_names_who_breaks_the_rules(run: LiveRun, attack: str) -> None:
    write, words = ATTACKS[attack]
    client = Client(run)
    assert_others_pages_are_read_only(run, client)
    began = time.monotonic()
    while run.process.poll() is None and time.monotonic() < began + 5:
        write(client)  # the plugin writes, too: once may be lost
        time.sleep(0.01)
    status, output = run.end()
    assert status == 4, output
    assert f"client: {words}" in output
    assert "server" not in output.partition("sundial: ")[2]


@pytest.mark.night
@pytest.mark.parametrize("attack", ITS_OWN)
def test_a_machine_can_hurt_itself(run: LiveRun, attack: str) -> None:
    client = Client(run)
    began = time.monotonic()
    while run.process.poll() is None and time.monotonic() < began + 5:
        ITS_OWN[attack](client)
        time.sleep(0.01)
    status, output = run.end()
    assert status == 4, output
    assert "client" in output.partition("sundial: ")[2]
    assert "server: " not in output.partition("sundial: ")[2]


@pytest.mark.parametrize("take", [lock, night(lock_openly)])
def test_a_lock_that_is_kept_is_not_blamed_on_others(run: LiveRun, take: Callable[[Client], None]) -> None:
    client = Client(run)
    run.kill(f"guest={run.token}-client,", signal.SIGSTOP)
    while client.times.bell.lock.value not in (0, CLIENT + 1):
        time.sleep(0.001)
    take(client)
    status, output = run.end()
    assert status == 4, output
    assert "client: QEMU does not give back the lock" in output
