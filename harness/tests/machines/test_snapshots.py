# SPDX-License-Identifier: Apache-2.0
import json
import os
import threading
from dataclasses import fields, replace
from pathlib import Path

import pytest

from sundial.errors import RunFailed
from sundial.machines.snapshots import Snapshot, SnapshotKey, SnapshotStore

KEY = SnapshotKey(
    qemu="7.2.22",
    flags=("-icount", "shift=3"),
    mips="125",
    memory_mib=128,
    nics=1,
    kernel_sha256="aa",
    initrd_sha256="bb",
    cmdline="console=ttyS0",
    plugin_sha256="cc",
)


class Kitchen:
    """A maker that counts its work, and what was said."""

    def __init__(self, content: bytes = b"state" * 1000) -> None:
        self.content = content
        self.memory = b"memory" * 1000
        self.made = 0
        self.said: list[str] = []

    def make(self, folder: Path) -> int:
        self.made += 1
        (folder / "state").write_bytes(self.content)
        (folder / "memory").write_bytes(self.memory)
        return 13_007_200_000

    def use(self, store: SnapshotStore, key: SnapshotKey = KEY) -> Snapshot:
        with store.use(key, self.make, self.said.append) as snapshot:
            assert snapshot.state.read_bytes() == self.content
            assert snapshot.memory.read_bytes() == self.memory
            assert snapshot.is_sealed()
            return snapshot


def test_every_field_is_part_of_the_key() -> None:
    others: dict[str, object] = {
        "qemu": "7.2.23",
        "flags": ("-icount", "shift=2"),
        "mips": "250",
        "memory_mib": 256,
        "nics": 2,
        "kernel_sha256": "a",
        "initrd_sha256": "b",
        "cmdline": "quiet",
        "plugin_sha256": "c",
        "format": 99,
    }
    assert set(others) == {field.name for field in fields(SnapshotKey)}
    digests = {replace(KEY, **{name: value}).digest() for name, value in others.items()}  # type: ignore[arg-type]
    assert len(digests | {KEY.digest()}) == len(others) + 1
    assert KEY.digest() == replace(KEY).digest()


def test_made_once_and_said_once(tmp_path: Path) -> None:
    store, kitchen = SnapshotStore(tmp_path / "s"), Kitchen()
    first = kitchen.use(store)
    second = kitchen.use(store)
    assert first == second
    assert first.zero_ns == 13_007_200_000
    assert kitchen.made == 1
    assert len(kitchen.said) == 1
    assert "booting a guest once" in kitchen.said[0]


def test_another_key_is_another_snapshot(tmp_path: Path) -> None:
    store, kitchen = SnapshotStore(tmp_path / "s"), Kitchen()
    kitchen.use(store)
    kitchen.use(store, replace(KEY, mips="250"))
    assert kitchen.made == 2


def flip(state: Path) -> None:
    content = bytearray(state.read_bytes())
    content[17] ^= 1
    state.write_bytes(content)


def truncate(state: Path) -> None:
    os.truncate(state, 100)


def lose(state: Path) -> None:
    state.unlink()


def lose_meta(state: Path) -> None:
    state.with_name("meta.json").unlink()


def cut_meta(state: Path) -> None:
    meta = state.with_name("meta.json")
    meta.write_text(meta.read_text()[:40])


def old_meta(state: Path) -> None:
    meta = state.with_name("meta.json")
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "version": 0}))


def foreign_meta(state: Path) -> None:
    meta = state.with_name("meta.json")
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "digest": "0" * 64}))


def moved_zero(state: Path) -> None:
    meta = state.with_name("meta.json")
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "zero_ns": -5}))


@pytest.mark.parametrize("harm", [flip, truncate, lose, lose_meta, cut_meta, old_meta, foreign_meta, moved_zero])
def test_a_damaged_one_is_noticed_and_made_anew(tmp_path: Path, harm) -> None:  # type: ignore[no-untyped-def]
    store, kitchen = SnapshotStore(tmp_path / "s"), Kitchen()
    harm(kitchen.use(store).state)
    kitchen.use(store)
    assert kitchen.made == 2
    assert "damaged" in kitchen.said[1]
    assert "\n" not in kitchen.said[1]
    kitchen.use(store)
    assert kitchen.made == 2


@pytest.mark.parametrize("harm", [flip, truncate, lose])
def test_damaged_memory_is_noticed_and_made_anew(tmp_path: Path, harm) -> None:  # type: ignore[no-untyped-def]
    store, kitchen = SnapshotStore(tmp_path / "s"), Kitchen()
    harm(kitchen.use(store).memory)
    kitchen.use(store)
    assert kitchen.made == 2
    assert "its memory" in kitchen.said[1]


@pytest.mark.parametrize("name", ["state", "memory"])
def test_a_touched_but_whole_one_is_read_again_and_kept(tmp_path: Path, name: str) -> None:
    store, kitchen = SnapshotStore(tmp_path / "s"), Kitchen()
    os.utime(kitchen.use(store).folder / name, (1, 1))
    kitchen.use(store)
    assert kitchen.made == 1


def test_a_write_while_it_is_used_is_noticed(tmp_path: Path) -> None:
    """Machines map the memory: a write changes those that run, even one that is taken back."""
    store, kitchen = SnapshotStore(tmp_path / "s"), Kitchen()
    with store.use(KEY, kitchen.make, kitchen.said.append) as snapshot:
        assert snapshot.is_sealed()
        flip(snapshot.memory)
        flip(snapshot.memory)
        assert snapshot.memory.read_bytes() == kitchen.memory
        assert not snapshot.is_sealed()
        snapshot.memory.unlink()
        assert not snapshot.is_sealed()


def test_only_its_owner_gets_at_a_snapshot_and_qemu_may_be_another_user(tmp_path: Path) -> None:
    snapshot = Kitchen().use(SnapshotStore(tmp_path / "s"))
    assert snapshot.folder.stat().st_mode & 0o777 == 0o700
    assert snapshot.memory.stat().st_mode & 0o777 == 0o666


def test_a_maker_that_fails_leaves_nothing(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "s")

    def fail(folder: Path) -> int:
        (folder / "state").write_bytes(b"half")
        raise RunFailed("the guest did not boot")

    with pytest.raises(RunFailed, match="did not boot"), store.use(KEY, fail, lambda line: None):
        pass
    assert [path.name for path in (tmp_path / "s").iterdir() if path.suffix != ".lock"] == []


def test_two_at_once_make_it_once(tmp_path: Path) -> None:
    kitchen = Kitchen()
    gate = threading.Barrier(4)

    def work() -> None:
        gate.wait()
        kitchen.use(SnapshotStore(tmp_path / "s"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kitchen.made == 1


def test_the_least_used_go_but_none_that_is_in_use(tmp_path: Path) -> None:
    store, kitchen = SnapshotStore(tmp_path / "s"), Kitchen()
    keys = [replace(KEY, nics=nics) for nics in range(1, 5)]
    for age, key in enumerate(keys):
        kitchen.use(store, key)
        os.utime(tmp_path / "s" / key.digest(), (age, age))
    with store.use(keys[0], kitchen.make, kitchen.said.append):
        os.utime(tmp_path / "s" / keys[0].digest(), (0, 0))
        store.prune(keep=2)
        left = {path.name for path in (tmp_path / "s").iterdir() if path.is_dir()}
    assert left == {keys[0].digest(), keys[2].digest(), keys[3].digest()}


def test_what_a_dead_maker_left_is_taken_away(tmp_path: Path) -> None:
    store, kitchen = SnapshotStore(tmp_path / "s"), Kitchen()
    kitchen.use(store)
    left = tmp_path / "s" / f".{KEY.digest()}.abc123.making"
    left.mkdir()
    kitchen.use(store)
    assert not left.exists()
