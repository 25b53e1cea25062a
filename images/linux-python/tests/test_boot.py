# SPDX-License-Identifier: Apache-2.0
"""Python programs in guests: restored from a snapshot they are forks of the zygote, else new interpreters.

The program is a toy that is laid over the image: NAME-SIDE is any folder of guest-apps with a SIDE.py.
"""

import json
from pathlib import Path

import pytest
from testing import snapshot
from testing.built import recipe_under_test
from testing.guest import ICOUNT, Guest, interface, job

from recipe.cpio import Archive

pytestmark = [pytest.mark.vm, pytest.mark.night]

SECOND = 1_000_000_000

TOY = """
import os, random, signal, sys
from pathlib import Path

from sundial_guest import clock, options, samples, serving

SPEC = {"port": options.Integer(1, 9, absent=5), "do": options.Word("say", "serve", "die", "fill")}

def main(given):
    first = clock.now_ns()
    chosen = options.read(given, SPEC)
    if chosen.do == "serve":
        serving.hold_signals()
        counters = serving.Counters(port=chosen.port)
        counters.count("void")
        serving.serve(counters)
    if chosen.do == "fill":
        filled = os.urandom(4096) * (48 << 8)
    if chosen.do == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    parent = os.getppid()
    status = Path("/proc/self/status").read_text()
    threads = next(line.split()[1] for line in status.splitlines() if line.startswith("Threads:"))
    swaps = [line.split()[:4] for line in Path("/proc/swaps").read_text().splitlines()[1:]]
    loaded = sorted(name for name in ("grpc", "rpyc", "numpy") if name in sys.modules)
    samples.put({
        "type": "toy", "first": first, "parent": parent, "threads": threads, "loaded": loaded, "swaps": swaps,
        "random": random.random(), "hash": hash("text"), "urandom": os.urandom(4).hex(),
        "name": Path("/proc/self/comm").read_text(), "arguments": sys.argv,
        "environment": sorted(f"{name}={value}" for name, value in os.environ.items() if name != "_"),
    })
    return 0
"""


def step(**options: object) -> dict:
    return {"app": "toy-client", "options": options}


@pytest.fixture(scope="module")
def with_toy(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image with the toy in it."""
    folder = tmp_path_factory.mktemp("image")
    archive = Archive(over_another=True)
    for path in ("usr/lib/sundial/python", "usr/lib/sundial/python/sundial_toy"):
        archive.add_folder(path)
    archive.add_file("usr/lib/sundial/python/sundial_toy/client.py", TOY.encode())
    archive.add_link("usr/lib/sundial/toy-client", "python-program")
    (folder / "initrd").write_bytes((image / "initrd").read_bytes() + archive.to_bytes())
    (folder / "kernel").symlink_to(image / "kernel")
    (folder / "manifest.json").symlink_to(image / "manifest.json")
    return folder


@pytest.fixture(scope="module")
def state(with_toy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine of the least memory that waits for its job, kept."""
    return snapshot.keep(tmp_path_factory.mktemp("kept"), with_toy)


def run(guest: Guest, folder: Path) -> Guest:
    with guest:
        guest.start((folder / "a", folder / "b"))
        guest.wait_for("done")
    return guest


def restored(tmp_path: Path, image: Path, state: Path, name: str = "g", **fields: object) -> Guest:
    what = job("m", [interface(1, (2,))], clock="tsc", **fields)
    folder = tmp_path / name
    folder.mkdir()
    return run(snapshot.restored(folder, image, state, what), folder)


@pytest.mark.skipif(recipe_under_test("linux-python") != "distribution", reason="its kernel has no zram")
def test_what_is_not_used_is_compressed_where_memory_is_short(with_toy: Path, state: Path, tmp_path: Path) -> None:
    guest = restored(tmp_path, with_toy, state, steps=[step(), step(do="fill")])
    assert [line["status"] for line in guest.lines("step")] == [0, 0], guest.describe()
    before, after = (line["swaps"] for line in guest.lines("toy"))
    assert [each[:2] for each in before] == [["/dev/zram0", "partition"]]
    assert int(after[0][3]) - int(before[0][3]) > 20 * 1024


@pytest.fixture(scope="module")
def worked(with_toy: Path, state: Path, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    """A restored machine that has run its steps: programs in Python and in C, two of them with a wrong option."""
    services = [
        {"app": "toy-client", "options": {"do": "serve"}},
        {"app": "rpcbind", "options": {}},
        {"app": "echo-server", "options": {"transports": ["udp", "tcp"]}},
    ]
    echo = {"app": "echo-client", "options": {"server": "10.0.0.1", "calls": 2, "sizes": [16]}}
    steps = [step(), step(), step(port=10), step(more=1), echo, step()]
    return restored(tmp_path_factory.mktemp("worked"), with_toy, state, services=services, steps=steps)


def test_a_program_is_a_process_of_its_own(worked: Guest) -> None:
    processes = {(line["parent"], line["threads"], line["name"]) for line in worked.lines("toy")}
    assert processes == {(1, "1", "toy-client\n")}
    assert len({line["random"] for line in worked.lines("toy")}) == 3


def test_a_forked_program_does_what_a_new_interpreter_does(with_toy: Path, state: Path, tmp_path: Path) -> None:
    tasks = {"services": [{"app": "toy-client", "options": {"do": "serve"}}], "steps": [step(), step()]}
    forked = restored(tmp_path, with_toy, state, **tasks)
    what = job("m", [interface(1, (2,))], clock="tsc", **tasks)
    cold = run(Guest(tmp_path / "cold", with_toy, what, ICOUNT), tmp_path)
    for guest in (forked, cold):
        assert guest.lines("done") == [{"type": "done", "status": 0}], guest.describe()
        assert [line["status"] for line in guest.lines("step")] == [0, 0]
        processes = {(line["parent"], line["threads"], line["name"]) for line in guest.lines("toy")}
        assert processes == {(1, "1", "toy-client\n")}
    same = ("random", "hash", "arguments", "environment", "step", "app")
    for one, other in zip(forked.lines("toy"), cold.lines("toy"), strict=True):
        assert [one[key] for key in same] == [other[key] for key in same]
    assert len({line["random"] for line in forked.lines("toy")}) == 2


def test_a_restored_machine_has_imported_all_and_starts_at_once(worked: Guest, with_toy: Path) -> None:
    first, second, _ = worked.lines("toy")
    declared = json.loads((with_toy / "manifest.json").read_text())["python"]
    assert set(first["loaded"]) <= set(declared)
    assert "numpy" in first["loaded"]
    # From one step's first statement to that of the next, the end of the one included.
    assert 0 < second["first"] - first["first"] < SECOND


def test_clones_differ_by_their_seed_alone(with_toy: Path, state: Path, tmp_path: Path) -> None:
    lines = []
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        guest = restored(tmp_path, with_toy, state, name, seed=seed, steps=[step()])
        lines += guest.lines("toy")
    # When the host gives a machine its job is the harness's to keep equal, and with it what the kernel's generator takes
    # from interrupts: recorded digests hold that, for TCP's first sequence numbers come from there.
    assert [line.pop("first") > 0 for line in lines] == [True] * 3
    one, _, other = (line.pop("urandom") for line in lines)
    assert one != other
    assert lines[0] == lines[1]
    assert lines[0]["random"] != lines[2]["random"]
    assert lines[0]["hash"] == lines[2]["hash"]


def test_a_wrong_option_fails_its_step_and_no_other(worked: Guest) -> None:
    assert [line["status"] for line in worked.lines("step")] == [0, 0, 2, 2, 0, 0], worked.describe()
    assert [line["message"] for line in worked.lines("error")] == [
        "option port: must be an integer from 1 to 9",
        "option more: unknown; there are port, do",
    ]


def test_a_program_that_is_killed_is_named(with_toy: Path, state: Path, tmp_path: Path) -> None:
    services = [{"app": "toy-client", "options": {"do": "die"}}]
    guest = restored(tmp_path, with_toy, state, services=services)
    assert guest.lines("done") == [{"type": "done", "status": 1}]
    (error,) = guest.lines("error")
    assert (error["app"], error["message"]) == ("toy-client", "killed by signal 9 (Killed)")


def test_an_application_in_c_runs_beside_them(worked: Guest) -> None:
    """All workloads of `linux` run on this image."""
    assert [row["ok"] for _, rows in worked.batches() for row in rows] == [1, 1]
