# SPDX-License-Identifier: Apache-2.0
"""RPyC in scenarios: what cannot be is one line with what is allowed; what can be is in the jobs."""

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.images import ImageKind
from sundial.model.load import load_experiments
from sundial.plan.build import plan_run
from sundial.plan.paths import RunPaths
from sundial.workloads.functions import NAMES
from sundial.workloads.rpyc import model

HEAD = "description: A test\ntopology: two-hosts-10base-t\nworkloads:\n"
ALLOWED = f"all, or one or more of {', '.join(NAMES)}, or their numbers from 1 to 12"
PATHS = RunPaths(capture=Path("/run/wire"), sockets=Path("/run/s"), shm=Path("/dev/shm/sundial-x"))


@pytest.fixture
def python(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What every image has of Python."""
    packages = {"rpyc": "5.3.0", "numpy": "1.24.2"}
    monkeypatch.setattr(model, "packages", lambda image: packages)
    return packages


def write(folder: Path, *workloads: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(HEAD + "".join(f"  - {{{workload}}}\n" for workload in workloads))
    return str(path)


def refused(path: str) -> list[str]:
    with pytest.raises(BadInput) as caught:
        load_experiments(path)
    assert caught.value.exit_code == 2
    return [line.removeprefix(f"{path}:") for line in str(caught.value).splitlines()]


REFUSED = [
    ("functions: 13", f"functions: 13 is not known; allowed: {ALLOWED}"),
    ("functions: [void, nothing]", f"functions: 'nothing' is not known; allowed: {ALLOWED}"),
    ("functions: []", f"functions: the list is empty; allowed: {ALLOWED}"),
    ("containers: set", "containers: 'set' is not known; allowed: one or more of list, tuple"),
    ("containers: [1]", "containers: 1 is not known; allowed: one or more of list, tuple"),
    ("distance: 3", "distance: 3 is not known; allowed: one or more of numpy, zip"),
    ("distance: index", "distance: 'index' is not known; allowed: one or more of numpy, zip"),
    ("tcp_nodelay: 1", "tcp_nodelay: 1 is neither true nor false; allowed: true, false, or a list of both"),
    ("tcp_nodelay: []", "tcp_nodelay: [] is neither true nor false; allowed: true, false, or a list of both"),
    ("calls: 0", "calls: 0 is out of range; allowed: a whole number from 1 to 1000000"),
    ("port: 65535", "port: 65535 is out of range; allowed: a whole number from 1024 to 65534"),
    ("bdp_probe: true", "bdp_probe: unknown field"),
    ("die: {call: 0}", "die.call: 0 is out of range; allowed: a whole number from 1 to 1000000"),
    ("die: {call: 3}, containers: [list, tuple]", "die: die with 2 connections of each client: those behind the first "
     "would be refused; allowed: one series, container, distance and tcp_nodelay"),
    ("die: {call: 3}, series: 2, tcp_nodelay: [true, false]", "die: die with 4 connections of each client"),
]  # fmt: skip


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize(("written", "line"), REFUSED)
def test_what_cannot_be(tmp_path: Path, written: str, line: str) -> None:
    (seen,) = refused(write(tmp_path, f"app: rpyc, {written}"))
    assert seen.startswith(f"4: workloads.0.{line}")


def test_an_image_without_python_is_refused(tmp_path: Path) -> None:
    assert refused(write(tmp_path, "app: rpyc")) == [
        "4: workloads.0.server: image 'linux' of 'server' does not run rpyc",
        "4: workloads.0.clients: image 'linux' of 'client' does not run rpyc",
    ]


@pytest.mark.parametrize(
    ("packages", "line"),
    [
        ({"rpyc": "5.3.0"}, "distance: numpy on 'server', which boots linux: it has none; allowed: zip, or an image"),
        ({"rpyc": "3.4.4", "numpy": "1"}, "app: RPyC 3.4.4 on 'server', which boots linux: its messages are not known"),
    ],
)
def test_what_an_image_lacks(python: dict[str, str], tmp_path: Path, packages: dict[str, str], line: str) -> None:
    python.clear()
    python.update(packages)
    assert refused(write(tmp_path, "app: rpyc"))[0].startswith(f"4: workloads.0.{line}")


def test_both_ends_have_one_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = iter(["5.3.0"] * 2)

    def packages(image: ImageKind) -> dict[str, str]:
        return {"rpyc": next(turns, "6.0.2"), "numpy": "1"}

    monkeypatch.setattr(model.RpycKind, "runs_on", lambda self, image: True)
    monkeypatch.setattr(model, "packages", packages)
    (line,) = refused(write(tmp_path, "app: rpyc"))
    expected = "clients: RPyC 6.0.2 on 'client' and 5.3.0 on 'server'; allowed: images with one version"
    assert line == f"4: workloads.0.{expected}"


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize(
    ("one", "other", "port"),
    [
        ("app: rpyc, tcp_nodelay: true", "app: rpyc", 18861),
        ("app: rpyc, tcp_nodelay: [false, true]", "app: rpyc, port: 18862", 18862),
        ("app: rpyc, die: {call: 3}", "app: rpyc, die: {call: 3}", 18861),
        ("app: dce, sizes: [0], port: 18861", "app: rpyc, tcp_nodelay: [true, false]", None),
    ],
)
def test_two_services_on_one_port(tmp_path: Path, one: str, other: str, port: int | None) -> None:
    path = write(tmp_path, one, other)
    if port is None:
        # UDP has ports of its own.
        assert load_experiments(path)
        return
    (line,) = refused(path)
    what = f"port {port} of 'server' is that of another server, of workloads.0; allowed: a port of its own, or the same server"
    assert line == f"5: workloads.1.port: {what}"


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize(
    ("written", "names"), [("all", NAMES), ("[1, void, 12]", ("void", "distance")), ("[distance]", ("distance",))]
)
def test_functions_are_words_or_numbers(tmp_path: Path, written: str, names: tuple[str, ...]) -> None:
    path = write(tmp_path, f"app: rpyc, functions: {written}")
    (workload,) = load_experiments(path)[0].workloads
    assert isinstance(workload, model.Rpyc)
    assert workload.functions == names


@pytest.mark.usefixtures("python")
def test_a_job_calls_each_function_where_it_makes_a_difference(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "app: rpyc, functions: [void, int_array, distance], containers: [list, tuple], distance: [numpy, zip], "
        "tcp_nodelay: [false, true], calls: 5",
    )
    jobs = plan_run(load_experiments(path, seed=7)[0], PATHS).jobs
    services = [(each.app, each.options) for each in jobs["server"].services]
    assert services == [
        ("rpyc-server", {"port": 18861, "tcp_nodelay": False}),
        ("rpyc-server", {"port": 18862, "tcp_nodelay": True}),
    ]
    (dying,) = (
        plan_run(load_experiments(write(tmp_path, "app: rpyc, die: {call: 3}"))[0], PATHS).jobs["server"].services
    )
    assert dying.options == {"port": 18861, "tcp_nodelay": False, "die_call": 3}
    steps = [each.options for each in jobs["client"].steps]
    names = ("port", "tcp_nodelay", "container", "distance", "functions")
    turns = [
        ("list", "numpy", ["void", "int_array", "distance"]),
        ("list", "zip", ["distance"]),
        ("tuple", "numpy", ["int_array", "distance"]),
        ("tuple", "zip", ["distance"]),
    ]
    assert [tuple(step[name] for name in names) for step in steps] == [
        (port, nodelay, *turn) for port, nodelay in ((18861, False), (18862, True)) for turn in turns
    ]
    assert steps[0] | {"functions": None} == {
        "server": "10.0.0.2", "port": 18861, "functions": None, "container": "list", "distance": "numpy",
        "tcp_nodelay": False, "calls": 5, "warmup": 1, "series": 0, "total_timeout_ms": 25_000,
    }  # fmt: skip
