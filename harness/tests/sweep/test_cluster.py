# SPDX-License-Identifier: Apache-2.0
"""Runs on the workers of a scheduler, both of which may go at any moment; no process is started."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from sundial.cli import dask_preload, sweep_rooms
from sundial.errors import BadInput, HostLacks
from sundial.plan.request import Silence
from sundial.sweep.cluster import agent, engine
from sundial.sweep.cluster.blobs import Blobs
from sundial.sweep.cluster.engine import Cluster, Needs
from sundial.sweep.cluster.offer import Offer, Part, chosen, others, refusal
from sundial.sweep.making import SweepMaking
from sundial.sweep.perform import Swept
from sundial.sweep.place import Place, place_of
from tests.sweep.bench import sweeping
from tests.sweep.fake_dask import Client, Fake
from tests.sweep.side import FOLDER, MAKING, PARTS

GRID: dict[str, Any] = {
    "topology": "two-hosts-wan",
    "axes": {"loss": {"key": "loss", "values": ["0 %", "5 %"]}},
    "seeds": "1..3",
    "check": "40 %",
}


class Words(Silence):
    """What is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    asked = tmp_path / "asked"
    asked.mkdir()
    monkeypatch.setenv(FOLDER, str(asked))
    monkeypatch.setattr(engine, "LOOK_S", 0.001)
    return lambda *words: [(asked / word).touch() for word in words] and None


def perform(folder: Path, client: Client, monkeypatch: pytest.MonkeyPatch, words: Words | None = None) -> Swept:
    @contextlib.contextmanager
    def connected(place: Place, needs: Needs) -> Iterator[Cluster]:
        yield Cluster(client, "tcp://fake", needs, wait_s=0.05)

    monkeypatch.setattr(engine, "connected", connected)
    return sweeping(folder, GRID, place=Place(None, "tcp://fake")).perform(MAKING, words or Silence())


def workers(folder: Path, *names: str) -> dict[str, Any]:
    return {name: Fake(folder / name, name, host=f"host of {name}") for name in names}


def test_runs_are_made_on_workers_and_made_again_on_others(
    tmp_path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(workers(tmp_path, "a", "b"))
    swept = perform(tmp_path, client, monkeypatch)
    assert (swept.status, swept.counts.made, swept.counts.lost) == (0, 6, 0)
    assert swept.checked == swept.to_check >= 2
    for row in swept.rows:
        places = [address for key, address in client.begun if key == row.key]
        assert len(set(places)) == len(places) == 1 + row.kept.again, "each once, and again on another worker"
        assert places[0] == row.kept.result.host["worker"]
    again = perform(tmp_path, client, monkeypatch)
    assert (again.counts.made, again.counts.had, len(client.begun)) == (0, 6, 6 + swept.checked)


@pytest.mark.parametrize("seed", range(8))
def test_workers_and_clients_that_die_lose_nothing_and_no_run_counts_twice(
    tmp_path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random, names = Random(seed), iter(f"w{number}" for number in range(1000))

    def happens(client: Client) -> None:
        if client.workers and random.random() < 0.1:
            del client.workers[random.choice(list(client.workers))]
        if len(client.workers) < 2:
            name = next(names)
            client.workers[name] = Fake(tmp_path / random.choice("ab"), name, host="one host")
        client.is_up = random.random() > 0.02

    client, deaths = Client({}, seed, happens), 0
    while True:
        try:
            swept = perform(tmp_path, client, monkeypatch)
            break
        except HostLacks:  # the scheduler is gone, or too many runs in sequence were lost
            deaths += 1
        assert deaths < 40
    assert swept.status == 0
    assert len(swept.rows) == swept.counts.made + swept.counts.had == 6
    for row in swept.rows:
        made = [json.loads(path.read_bytes())["host"]["making"] for path in row.kept.run.parent.glob("again/*")]
        assert len({*made, row.kept.result.host["making"]}) == 1 + row.kept.again == 1 + len(made)
    assert list((tmp_path / "store" / "making").iterdir()) == []


def test_a_run_that_another_worker_makes_with_other_bytes_is_an_alarm(
    tmp_path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = perform(tmp_path, Client(workers(tmp_path, "a")), monkeypatch)
    checked = next(row for row in first.rows if row.kept.again)
    for path in tmp_path.glob(f"*/store/results/*/{checked.key}/again/*"):
        path.unlink()
    for path in tmp_path.glob(f"store/results/*/{checked.key}/again/*"):
        path.unlink()
    ask(f"differ-{checked.point.seed}")
    swept = perform(tmp_path, Client(workers(tmp_path, "a", "b")), monkeypatch)
    assert swept.status == 1
    (row,) = swept.having("differs")
    assert (row.key, row.first) == (checked.key, "wire/wan.pcapng")


def test_a_store_that_worker_and_client_share_gets_each_making_once(
    tmp_path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client({"a": Fake(tmp_path, "a", host="here")})
    words = Words()
    swept = perform(tmp_path, client, monkeypatch, words)
    assert (swept.status, swept.checked) == (0, swept.to_check)
    assert len(client.begun) == 6 + swept.checked
    assert "there is one worker: it makes again what it has made" in words.said


def test_what_a_worker_has_made_for_a_client_that_died_is_not_made_again(
    tmp_path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GRID, "check", "0 %")
    there = workers(tmp_path, "a")
    first = perform(tmp_path, Client(there), monkeypatch)
    monkeypatch.setattr(SweepMaking, "make", None)
    (tmp_path / "other").mkdir()
    swept = perform(tmp_path / "other", Client(there), monkeypatch)
    assert (swept.status, swept.counts.made) == (0, 6)
    makings = [{row.kept.result.host["making"] for row in each.rows} for each in (first, swept)]
    assert makings[0] == makings[1]


def test_another_version_of_a_part_is_refused_in_words(
    tmp_path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Fake(tmp_path / "b", "b", host="there", parts={"QEMU": Part("b" * 64, "9.2")})
    words = Words()
    both = {**workers(tmp_path, "a"), "b": other}
    swept = perform(tmp_path, Client(both), monkeypatch, words)
    assert swept.status == 0
    assert {row.kept.result.host["worker"] for row in swept.rows} == {"a"}
    why = "worker b is not used: its QEMU is 9.2 (bbbbbbbbbbbb), and this host's is 7.2 (aaaaaaaaaaaa)"
    assert why in words.said
    (tmp_path / "alone").mkdir()
    with pytest.raises(HostLacks, match="no worker for these runs is at tcp://fake; worker b is not used: its QEMU"):
        perform(tmp_path / "alone", Client({"b": other}), monkeypatch)


def test_a_worker_whose_host_lacks_something_is_put_aside(
    tmp_path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("lack-2")
    words = Words()
    swept = perform(tmp_path, Client(workers(tmp_path, "a", "b")), monkeypatch, words)
    assert (swept.status, swept.counts.made) == (0, 6)
    assert any(said.endswith("is not used any more: the host has no memory left") for said in words.said)


def test_a_worker_gets_the_images_that_it_lacks_by_their_digests(
    tmp_path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {}
    for name in ("kernel", "initrd"):
        path = tmp_path / name
        path.write_text(name)
        files[name] = (hashlib.sha256(name.encode()).hexdigest(), path)
    monkeypatch.setattr("tests.sweep.side.Known.files", lambda self, experiment: {"linux": files})
    there = workers(tmp_path, "a", "b")
    client = Client(there)
    assert perform(tmp_path, client, monkeypatch).status == 0
    assert sorted(client.received) == ["a", "a", "b", "b"]
    wanted = {"linux": {name: sha256 for name, (sha256, _) in files.items()}}
    place = there["a"].blobs.images(wanted)
    assert (place / "linux" / "kernel").read_text() == "kernel"
    assert there["a"].blobs.images(wanted) == place
    with pytest.raises(ValueError, match="has other bytes"):
        there["a"].blobs.put("0" * 64, b"forged")
    (tmp_path / "kernel").write_text("built again")
    (tmp_path / "late").mkdir()
    words = Words()
    with pytest.raises(HostLacks, match="it did not take an image: a file with digest"):
        perform(tmp_path / "late", Client(workers(tmp_path, "c")), monkeypatch, words)


def test_images_of_the_host_are_adopted(tmp_path: Path) -> None:
    built = tmp_path / "out" / "distribution" / "linux"
    built.mkdir(parents=True)
    (built / "kernel").write_text("kernel")
    blobs = Blobs(tmp_path / "blobs")
    blobs.adopt(tmp_path / "out")
    assert blobs.lacking([hashlib.sha256(b"kernel").hexdigest(), "0" * 64]) == ["0" * 64]


def test_a_worker_of_another_host_or_else_another_worker_repeats_a_run() -> None:
    offers = {at: Offer(at, host, 1, "", PARTS) for at, host in (("a", "x"), ("b", "x"), ("c", "y"))}
    assert set(others(offers, {"name": "x", "worker": "a"})) == {"c"}
    assert set(others({at: offers[at] for at in "ab"}, {"name": "x", "worker": "a"})) == {"b"}
    assert set(others({"a": offers["a"]}, {"name": "x", "worker": "a"})) == {"a"}
    assert chosen(offers, {"c": 1, "b": 1}) == "a"
    assert chosen(offers, dict.fromkeys("abc", 1)) is None
    assert refusal(offers["a"], offers["c"]) is None
    assert (
        refusal(offers["a"], Offer("d", "x", 1, "", {})) == "its QEMU is missing, and this host's is 7.2 (aaaaaaaaaaaa)"
    )


def test_places_are_read_and_others_are_refused(tmp_path: Path) -> None:
    assert place_of("local") == Place()
    assert place_of("local:2") == Place(2)
    for address in ("tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:8786"):
        assert place_of(address) == Place(None, address)
    for text in ("locale", "local:0", "local:65", "local:100", "tcp://127.0.0.1", "tcp://127.0.0.1:0", "http://a:1"):
        with pytest.raises(BadInput, match="is not a place for runs"):
            place_of(text)
    with pytest.raises(BadInput, match="another host without a certificate") as caught:
        place_of("tcp://10.0.0.1:8786")
    assert "tls://10.0.0.1:8786 with --certs DIR" in str(caught.value)
    with pytest.raises(BadInput, match="is missing for tls:"):
        place_of("tls://10.0.0.1:8786")
    with pytest.raises(BadInput, match=r"has no cert\.pem"):
        place_of("tls://10.0.0.1:8786", tmp_path)
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).touch()
    assert place_of("tls://10.0.0.1:8786", tmp_path) == Place(None, "tls://10.0.0.1:8786", tmp_path)


def test_a_worker_that_dask_starts_is_one_of_sundials_as_long_as_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Fake] = []
    monkeypatch.setattr(sweep_rooms, "agent", lambda slots, store: Fake(tmp_path, "a", host="x", slots=slots))
    monkeypatch.setattr(Fake, "close", lambda self: closed.append(self))
    worker = SimpleNamespace(state=SimpleNamespace(nthreads=3))
    dask_preload.dask_setup(worker)
    found = agent.offered()
    assert found is not None
    assert (found.name, found.slots) == ("a", 3)
    dask_preload.dask_teardown(worker)
    assert len(closed) == 1
