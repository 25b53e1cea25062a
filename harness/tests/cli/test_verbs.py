# SPDX-License-Identifier: Apache-2.0
"""The other verbs: what they ask, print and answer."""

import fcntl
import itertools
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sundial.cli import checks, rooms
from sundial.cli.open_ import viewer_command
from sundial.errors import BadInput
from sundial.model.catalog import ROOT
from sundial.model.root import read_lock
from sundial.plan.request import Kept, KeptMachine, UpRequest
from tests.warm_tshark.reader import unprivileged

Call = Callable[..., Result]
MakeRun = Callable[..., Path]


@pytest.fixture(autouse=True)
def _no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of root `open` says more, depending on the version of Wireshark."""
    monkeypatch.setattr(checks.Host, "is_root", lambda host: False)


def test_help_lists_every_verb_in_order(call: Call) -> None:
    result = call("--help")
    verbs = [line.split()[0] for line in result.stdout.partition("Commands:")[2].splitlines() if line.strip()]
    known = (
        "doctor,images,topology,new,rpc,up,exec,cp,console,impair,cut,heal,partition,power,virsh,down,run,try,verify"
    )
    later = "matrix,sweep,search,report,reproduce,show,watch,open,wireshark,export,compare,ls,tag,note,rm,gc,du"
    assert ",".join(verbs) == f"{known},replay,explain,{later}"


def test_topologies_are_listed_and_shown(call: Call) -> None:
    listed = dict(line.split(maxsplit=1) for line in call("topology", "list").stdout.splitlines())
    assert listed["two-hosts-10base-t"] == "Two hosts on a 10Base-T hub, half duplex"
    shown = call("topology", "show", "two-hosts-netem").stdout.splitlines()
    assert shown[0] == "two-hosts-netem: Two hosts with a kernel netem bridge between them (virtual clock)"
    assert "netem    125   96 MiB  eth0       -            02:53:44:00:00:02  1500  near" in shown
    assert shown[-3] == "├─ far     link, full duplex; 100 Mb/s; propagation 25 ns"
    assert call("topology", "show", "office", "--svg").stdout.startswith("<svg ")
    document = json.loads(call("topology", "show", "office", "--json").stdout)
    assert document["resolved"][5]["address"] == "10.0.0.100/24"


def test_a_machines_adapter_latency_is_shown(call: Call) -> None:
    words = ["two-hosts-10base-t", "--set", "machines.server.adapter.latency=5 us"]
    shown = call("topology", "show", *words).stdout.splitlines()
    assert "   client  linux, 125 mips" in shown
    assert "│  server  linux, 125 mips; adapter latency 5 µs" in shown
    assert "adapter latency 5 µs" in call("topology", "show", "--svg", *words).stdout


def test_what_machines_boot_beside_their_image_is_shown(call: Call) -> None:
    words = ["--set", "machines.server.cmdline=loglevel=7"]
    shown = call("topology", "show", "two-hosts-own-files", *words).stdout.splitlines()
    script = ROOT / "topologies" / "two-hosts-own-files" / "hello.sh"
    assert f"client:  file /usr/bin/hello (0755) from {script}" in shown
    assert "server:  command line, added loglevel=7" in shown
    assert "server:  file /etc/motd (0644) content in the topology" in shown
    document = json.loads(call("topology", "show", "two-hosts-own-files", *words, "--json").stdout)
    assert document["machines"]["client"]["files"]["/usr/bin/hello"] == {"from": str(script), "mode": "0755"}


def test_a_topology_is_checked(call: Call, tmp_path: Path) -> None:
    assert call("topology", "check", "office").stdout == "office: valid: 6 machines, 1 segment\n"
    path = tmp_path / "bad.yaml"
    path.write_text("description: no machines\nsegments: {}\n")
    result = call("topology", "check", str(path))
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        f"sundial: {path}:1: machines is missing; allowed: a mapping with keys: up to 32 lower-case letters, digits "
        "and single hyphens, beginning with a letter",
        f"sundial: {path}:2: segments: has 0 entries; allowed: 1 or more",
    ]
    assert (
        call("topology", "check", "missing.yaml").stderr
        == "sundial: missing.yaml: does not exist; allowed: a file, or a name from 'sundial topology list'\n"
    )


def test_a_topology_is_drawn(call: Call) -> None:
    drawn = call("topology", "graph", "two-hosts-10base-t").stdout
    assert '"client" -- "segment lan" [label="eth0 10.0.0.1"];' in drawn


def test_runs_are_listed(call: Call, make_run: MakeRun) -> None:
    assert call("ls").stderr == "there are no runs yet; make one with: ./sundial run quickstart\n"
    folder = make_run("quickstart-1")
    (folder / "verify.json").write_text('{"verdict": "pass"}')
    held = os.open(make_run(".half-1.partial"), os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    rows = [line.split() for line in call("ls").stdout.splitlines()]
    assert rows[0] == ["RUN", "STATUS", "VERDICT", "CLOCK", "VIRTUAL", "SIZE", "DATE"]
    assert rows[1][:6] == ["quickstart-1", "complete", "pass", "virtual", "1.500", "s"]
    assert rows[2] == ["half-1", "running", "-", "-", "-", "-", "-"]
    os.close(held)
    assert [row["run"] for row in json.loads(call("ls", "--json").stdout)] == ["quickstart-1", "half-1"]


def test_reproductions_are_listed_after_runs(call: Call, make_run: MakeRun, captures: Path) -> None:
    make_run("quickstart-1")
    folder = captures / "reproduce-bilas97-1-001"
    folder.mkdir()
    (folder / "reproduce.json").write_text('{"status": "complete"}')
    assert call("ls").stdout.splitlines()[2].split()[:5] == ["reproduce-bilas97-1-001", "complete", "-", "-", "-"]


def test_verify_says_what_is_wrong(call: Call, make_run: MakeRun, fake: Any) -> None:
    folder = make_run("quickstart-1")
    result = call("verify", "latest")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{folder}: pass: 12 calls, 0 mismatches",
        "  unproven: 2 properties; list them with --unproven",
    ]
    assert call("verify", "latest", "--unproven").stdout.splitlines()[1:] == [
        "  unproven: push flags",
        "  unproven: padding",
    ]
    fake.verdict = "fail"
    result = call("verify", str(folder))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{folder}: fail: 12 calls, 1 mismatch",
        "  request.packets: expected 2, seen 1 (wire/lan.pcapng, frames 7, 8)",
        f"    ./sundial open {folder} lan --all --filter 'rpc.xid == 5'",
        "  unproven: 2 properties; list them with --unproven",
    ]


@pytest.mark.parametrize(
    ("run", "line"),
    [
        (
            "nowhere",
            "sundial: there is no run 'nowhere'; allowed: a run directory, its name (see 'sundial ls'), or latest",
        ),
        ("latest", "sundial: there are no runs yet"),
    ],
)
def test_a_run_that_is_not_there(call: Call, run: str, line: str) -> None:
    for verb in ("verify", "report", "open"):
        result = call(verb, run)
        assert result.exit_code == 2
        assert result.stderr.splitlines()[0] == line


def test_a_folder_without_run_json(call: Call, tmp_path: Path) -> None:
    result = call("verify", str(tmp_path))
    assert result.exit_code == 2
    assert result.stderr == (
        f"sundial: {tmp_path}: has no run.json: it is not a run directory; allowed: what 'sundial run' wrote\n"
    )


def test_a_foreign_capture_needs_its_protocol(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def verify_pcap(*arguments: Any) -> dict[str, Any]:
        asked.append(arguments)
        return {"verdict": "pass", "calls": 3, "mismatches": 0, "unproven": ["payloads"]}

    monkeypatch.setattr(rooms, "verify_pcap", verify_pcap)
    assert call("verify").exit_code == 2
    assert call("verify", "--pcap", "x.pcap").exit_code == 2
    assert call("verify", "--pcap", "x.pcap", "--protocol", "sunrpc-udp", "--mtu", "67").exit_code == 2
    result = call("verify", "--pcap", "x.pcap", "--protocol", "sunrpc-udp", "--port", "2049")
    assert (result.exit_code, result.stdout) == (
        0, "x.pcap: pass: 3 calls, 0 mismatches\n  unproven: 1 properties; list them with --unproven\n",
    )  # fmt: skip
    assert asked == [(Path("x.pcap"), "sunrpc-udp", None, 2049)]


def test_the_report_is_written_again(call: Call, make_run: MakeRun, fake: Any) -> None:
    folder = make_run("quickstart-1")
    assert call("report", "quickstart-1").stdout == f"{folder}/report.html\n"


def test_open_prints_the_line_that_opens_the_capture(call: Call, make_run: MakeRun) -> None:
    folder = make_run("quickstart-1")
    printed = call("open", "latest", "lan", "--all", "--filter", "rpc.xid == 5", "--print").stdout
    assert f"-r {folder}/wire/lan.pcapng" in printed
    assert printed.endswith("-Y 'rpc.xid == 5'\n")
    result = call("open", "latest", "wan", "--print")
    assert (result.exit_code, result.stderr) == (
        2, f"sundial: {folder}: there is no capture of segment 'wan'; allowed: lan\n",
    )  # fmt: skip


def test_open_decodes_the_ports_of_the_runs_servers(call: Call, make_run: MakeRun) -> None:
    folder = make_run("quickstart-1")
    usual = {"tcp.port==50051,http2", "tcp.port==50052,http2", "tcp.port==18861,rpyc", "tcp.port==18862,rpyc"}

    def decoded() -> set[str]:
        words = shlex.split(call("open", "latest", "--print").stdout)
        return {after for word, after in itertools.pairwise(words) if word == "-d"}

    assert decoded() == usual
    apps = [("grpc-client", 6000), ("grpc-cpp-client", 6001), ("rpyc-client", 6002), ("dce-client", 6003)]
    steps = [{"app": app, "options": {"port": port}} for app, port in apps] + [{"app": "mbcf-client"}]
    (folder / "nodes" / "client").mkdir(parents=True)
    (folder / "nodes" / "client" / "job.json").write_text(json.dumps({"steps": steps}))
    assert decoded() == usual | {"tcp.port==6000,http2", "tcp.port==6001,http2", "tcp.port==6002,rpyc"}


def test_captures_of_pdus_and_cells_are_opened_by_their_names(
    call: Call, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run("quickstart-1")
    (folder / "wire" / "atm").mkdir()
    for name in ("lan.pdus", "lan.cells"):
        shutil.copy(folder / "wire" / "lan.pcapng", folder / "wire" / "atm" / f"{name}.pcapng")
        printed = call("open", "latest", name, "--all", "--print").stdout
        assert f"-r {folder}/wire/atm/{name}.pcapng" in printed
        assert "atm.vci" in printed
    frames = call("open", "latest", "--print").stdout
    assert f"-r {folder}/views/lan@server:eth0.pcapng" in frames
    assert "atm.vci" not in frames
    result = call("open", "latest", "wan", "--print")
    assert result.stderr.endswith("there is no capture of segment 'wan'; allowed: lan, lan.cells, lan.pdus\n")
    monkeypatch.setattr(shutil, "which", lambda program: program)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: None)
    monkeypatch.setenv("DISPLAY", ":7")
    result = call("open", "latest")
    assert result.stderr.splitlines() == [
        f"wireshark is opening {folder}/wire/lan.pcapng",
        "showing server:eth0; also: --at client:eth0, --all",
        "there are others: lan.cells, lan.pdus",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("scenario", "more", "shown"),
    [
        (None, (), "showing server:eth0; also: --at client:eth0, --all"),
        ({"workloads": [{"clients": ["far", "client"]}]}, (), "showing client:eth0; also: --at server:eth0, --all"),
        (None, ("--at", "client:eth0"), "showing client:eth0; also: --at server:eth0, --all"),
        (None, ("--all",), "showing all ports; also: --at server:eth0, --at client:eth0"),
    ],
)
def test_the_point_of_view_is_the_first_client_unless_asked(
    call: Call, make_run: MakeRun, scenario: Any, more: tuple[str, ...], shown: str
) -> None:
    make_run("quickstart-1", scenario=scenario)
    assert call("open", "latest", *more, "--print").stderr.splitlines() == [shown]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--at", "client"), "'client' is not a port of this capture; allowed: server:eth0, client:eth0"),
        (("--at", "client:eth0", "--all"), "--at and --all exclude each other; allowed: one of them"),
    ],
)
@pytest.mark.parametrize("verb", ["open", "export"])
def test_a_point_of_view_that_is_not_there_is_refused(
    call: Call, make_run: MakeRun, verb: str, more: tuple[str, ...], message: str
) -> None:
    make_run("quickstart-1")
    result = call(verb, "latest", *more)
    assert (result.exit_code, result.stderr.endswith(f"{message}\n")) == (2, True)


def test_export_writes_what_open_shows(call: Call, make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run("quickstart-1")
    call("open", "latest", "--print")
    view = (folder / "views" / "lan@server:eth0.pcapng").read_bytes()
    result = call("export", "latest", "-o", str(tmp_path / "out"))
    assert (result.exit_code, result.stderr) == (0, f"{tmp_path}/out: server:eth0; also: --at client:eth0, --all\n")
    assert (tmp_path / "out").read_bytes() == view == call("export", "latest").stdout_bytes
    assert call("export", "latest", "--all").stdout_bytes == (folder / "wire" / "lan.pcapng").read_bytes()


def test_a_finished_run_is_not_followed(call: Call, make_run: MakeRun) -> None:
    make_run("quickstart-1")
    result = call("export", "quickstart-1", "--follow")
    assert (result.exit_code, "--follow: the run has ended" in result.stderr) == (2, True)


def test_an_export_to_a_folder_is_refused(call: Call, make_run: MakeRun, tmp_path: Path) -> None:
    make_run("quickstart-1")
    result = call("export", "quickstart-1", "-o", str(tmp_path))
    assert (result.exit_code, "cannot be written" in result.stderr) == (2, True)
    assert not list(tmp_path.glob(".*"))


def test_wireshark_is_started_with_our_columns(call: Call, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_run("quickstart-1")
    started: list[list[str]] = []
    monkeypatch.setattr(shutil, "which", lambda program: program)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: started.append(command))
    monkeypatch.setenv("DISPLAY", ":7")
    result = call("open", "quickstart-1", "--filter", "rpc.xid == 5")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (0, f"wireshark is opening {folder}/wire/lan.pcapng")
    ((program, *arguments),) = started
    assert arguments[0:8:2] == ["-X"] * 4
    for place, name in enumerate(("mbcf", "rpyc", "grpc", "vmmc")):
        assert arguments[2 * place + 1].endswith(f"/harness/wireshark/{name}.lua")
    assert (program, arguments[8:10], arguments[-2:]) == (
        "wireshark", ["-r", f"{folder}/views/lan@server:eth0.pcapng"], ["-Y", "rpc.xid == 5"]
    )  # fmt: skip
    for field in ("frame.interface_name", "rpc.xid", "tcp.seq", "ip.frag_offset", "frame.comment"):
        assert field in arguments[11]


@pytest.mark.parametrize(
    ("installed", "lacking"),
    [(False, "wireshark is not installed"), (True, "there is no display for wireshark (DISPLAY is not set)")],
)
def test_without_a_wireshark_one_line_names_tsharks(
    call: Call, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, installed: bool, lacking: str
) -> None:
    folder = make_run("quickstart-1")
    monkeypatch.setattr(shutil, "which", lambda program: program if installed else None)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    result = call("open", "latest")
    assert result.exit_code == 3
    what, hint = result.stderr.splitlines()
    assert what == f"sundial: {lacking}"
    assert hint.startswith("hint: list it with: tshark -X lua_script:")
    assert f"/harness/wireshark/vmmc.lua -r {folder}/views/lan@server:eth0.pcapng -o 'gui.column.format:" in hint


@pytest.mark.parametrize(
    ("root", "loads", "begins"), [(True, False, "setpriv --reuid=65534 "), (True, True, ""), (False, False, "")]
)
def test_wireshark_that_loads_no_lua_for_root_is_another_users(
    call: Call, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, root: bool, loads: bool, begins: str
) -> None:
    make_run("quickstart-1")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(checks.Host, "is_root", lambda host: root)
    monkeypatch.setattr(checks, "loads_lua", lambda host: loads)
    line = call("open", "latest", "--print").stdout
    assert line.startswith(begins or "tshark ")
    assert " tshark -X lua_script:" in f" {line}"


def test_tshark_takes_our_columns() -> None:
    capture = Path(__file__).parents[1] / "verify" / "golden" / "run.client.pcapng"
    command = [*viewer_command([*unprivileged(), "tshark"], capture, capture, "rpc && ip.frag_offset > 0"), "-c", "200"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Invalid" not in done.stderr
    assert " 185 " in done.stdout


def test_up_exec_console_down(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    @dataclass
    class Done:
        status: int = 3
        stdout: bytes = b"out\n"
        stderr: bytes = b"err\n"
        dropped: int = 7
        timed_out: bool = True

    def up(request: UpRequest, progress: Any) -> Kept:
        asked.append((request.network.name, request.clock, request.seed))
        machines = (KeptMachine("client", "linux", "10.0.0.1/24", "/s"),)
        return Kept(request.network.name, request.clock, Path("/.c.partial"), Path("/c"), 1, machines)

    def exec_(what: rooms.Exec) -> Done:
        asked.append((what.machine, what.argv, what.topology, what.terminal, what.seconds))
        return Done()

    def down(topology: str | None) -> list[str]:
        if topology == "office":
            raise BadInput("topology 'office' is not up")
        return ["two-hosts-10base-t"]

    monkeypatch.setattr(rooms, "up", up)
    monkeypatch.setattr(rooms, "exec_", exec_)
    monkeypatch.setattr(rooms, "exec_gathered", exec_)
    monkeypatch.setattr(rooms, "down", down)
    result = call("up", "two-hosts-10base-t")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "MACHINE  ADDRESS",
        "client   10.0.0.1/24",
        "captures  /.c.partial",
        "libvirt   embedded: ./sundial virsh --topology two-hosts-10base-t list",
    ]
    assert "./sundial open two-hosts-10base-t; after down they are in /c" in result.stderr
    result = call("exec", "--timeout", "1.5 s", "client", "--", "ls", "--json", "-l")
    assert (result.exit_code, result.stderr.splitlines()) == (
        3,
        ["client: 7 bytes of output were dropped: the guest keeps no more", "client: ls did not end within 1.5 s"],
    )
    assert asked == [("two-hosts-10base-t", "real", 1), ("client", ("ls", "--json", "-l"), None, False, 1.5)]
    result = call("exec", "--timeout", "1", "client", "ls")
    assert (result.exit_code, "--timeout: '1' has no unit" in result.stderr) == (2, True)
    result = call("exec", "-t", "client", "sh")
    assert (result.exit_code, result.stderr) == (
        2, "sundial: --terminal: standard input is not a terminal; allowed: only in a terminal\n"
    )  # fmt: skip
    # A segment that requires virtual time decides, unless the user has.
    assert call("up", "sss-two-vmmc").exit_code == 0
    assert asked.pop() == ("sss-two-vmmc", "virtual", 1)
    result = call("up", "sss-two-vmmc", "--clock", "real")
    assert (result.exit_code, "kind vmmc requires clock: virtual; allowed: clock: virtual" in result.stderr) == (
        2,
        True,
    )
    assert json.loads(call("exec", "--json", "client", "true").stdout) == {
        "status": 3,
        "stdout": "out\n",
        "stderr": "err\n",
        "dropped": 7,
    }
    assert call("down").stdout == "two-hosts-10base-t\n"
    assert call("down", "office").exit_code == 2


def kept_office(captures: Path) -> Kept:
    machines = (KeptMachine("a", "linux", "", "/s"), KeptMachine("b", "linux", "", "/t"))
    return Kept("office", "real", captures, Path("/c"), 4711, machines)


def test_a_capture_that_grows_is_followed(call: Call, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_run("quickstart-1")
    monkeypatch.setattr(rooms, "kept", lambda: [kept_office(folder)])
    line = call("open", "office", "--filter", "icmp", "--print").stdout
    follow = f"{ROOT}/sundial export office lan --at server:eth0 --follow"
    assert line.startswith(f"{follow} | tshark -X lua_script:")
    assert line.endswith("-Y icmp\n")
    assert "/harness/wireshark/vmmc.lua -l -i - -o " in line


def test_what_is_up_is_listed(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "kept", list)
    assert call("ls", "--up").stderr == "nothing is up\n"
    kept = kept_office(Path("/c"))
    monkeypatch.setattr(rooms, "kept", lambda: [kept])
    assert call("ls", "--up").stdout.splitlines()[1] == "office    real   embedded  a b"
    assert json.loads(call("ls", "--up", "--json").stdout)[0]["machines"][1]["name"] == "b"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("images", "build", "--recipe", "nope"), "no image has a recipe nope; allowed: distribution, tuned"),
        (("run", "quickstart", "--recipe", "nope"), "no image has a recipe nope; allowed: distribution, tuned"),
        (("reproduce", "kamesawa98", "--recipe", "nope"), "no image has a recipe nope; allowed: distribution, tuned"),
        (("images", "build", "--buildroot", "/no/such"), "--buildroot: /no/such is not a folder"),
        (("images", "fetch", "/no/such"), "/no/such: cannot be read: No such file or directory"),
        (("images", "fetch", "/no/such", "--sha256", "0"), "/no/such: cannot be read: No such file or directory"),
        (("images", "fetch", "/dev/null", "--sha256", "0"), "/dev/null: its SHA-256 is e3b0c44298fc1c149afb"),
        (("images", "build", "--buildroot", "/", "--recipe", "tuned"), "--buildroot: recipe tuned does not use"),
    ],
)
def test_a_recipe_that_is_not_there_is_one_line_and_nothing_begins(
    call: Call, captures: Path, words: tuple[str, ...], message: str
) -> None:
    result = call(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert not captures.exists() or list(captures.iterdir()) == []


def test_virsh_asks_the_keeper_or_becomes_virsh(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(rooms, "connected", lambda topology: "embedded")
    monkeypatch.setattr(rooms, "virsh", lambda argv, topology: f"{asked.append((argv, topology))} said\n")
    assert call("virsh", "--topology", "office", "list", "--all").stdout == "None said\n"
    assert asked == [(("list", "--all"), "office")]
    assert [line.split()[0] for line in call("virsh").stdout.splitlines()] == rooms.virsh_commands()
    monkeypatch.setenv("PATH", str(tmp_path))
    result = call("virsh", "--connect", "qemu:///system", "list")
    assert (result.exit_code, result.stderr.splitlines()[1]) == (3, "hint: apt-get install libvirt-clients")
    virsh = tmp_path / "virsh"
    virsh.write_text('#!/bin/sh\necho "$0 $*"\n')
    virsh.chmod(0o755)
    became: list[Any] = []
    monkeypatch.setattr(os, "execv", lambda program, argv: became.append((program, argv)))
    monkeypatch.setattr(rooms, "connected", lambda topology: "qemu:///session")
    call("virsh", "dominfo", "--domain", "client")
    assert became == [(str(virsh), ["virsh", "-c", "qemu:///session", "dominfo", "--domain", "client"])]
    result = call("virsh", "--connect", "xen:///", "list")
    assert (result.exit_code, result.stderr.startswith("sundial: --connect: 'xen:///' is not a daemon")) == (2, True)


def test_a_rule_is_explained(call: Call) -> None:
    shown = call("explain", "call.packets").stdout
    assert shown.startswith("call.packets (error)\n\nChecked: ")
    assert all(f"\n{part}: " in shown for part in ("Source", "Causes", "In Wireshark", "Fields"))
    assert call("explain", "request.packets").stdout == shown  # by a field
    assert json.loads(call("explain", "call.packets", "--json").stdout)["severity"] == "error"
    listed = [line.split()[0] for line in call("explain").stdout.splitlines()]
    assert "mbcf.ack" in listed
    assert [each["rule"] for each in json.loads(call("explain", "--json").stdout)] == listed


def test_a_rule_that_is_not_there_is_refused_with_one_that_is_close(call: Call) -> None:
    result = call("explain", "call.packet")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("sundial: there is no rule 'call.packet'; allowed: did you mean call.packets")


def test_a_verdict_is_written_for_ci(
    call: Call, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_run("a", seed=5, captures={"wire/lan.pcapng": "ab"})
    verdict: dict[str, Any] = {"verdict": "pass", "calls": 3, "mismatches": 0, "problems": []}
    monkeypatch.setattr(rooms, "verify_run", lambda path: verdict)
    files = ["--junit", str(tmp_path / "t.xml"), "--summary", str(tmp_path / "t.md")]
    assert call("verify", "a", *files).exit_code == 0
    text = (tmp_path / "t.xml").read_text()
    assert '<property name="sha256 wire/lan.pcapng" value="ab" />' in text
    assert '<property name="seed" value="5" />' in text
    assert "| a | ✅ pass | 3 | 0 |" in (tmp_path / "t.md").read_text()
    assert call("verify", "b", *files).exit_code == 2
    assert "there is no run" in (tmp_path / "t.xml").read_text()
    assert call("verify", "--pcap", "x.pcapng", *files).exit_code == 2
    assert "status 2: --pcap needs --protocol" in (tmp_path / "t.xml").read_text()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--rows", "a=1", "--columns", "b=2"], "give either SCENARIO or --from RUN"),
        (["loss", "--from", "a", "--rows", "a=1", "--columns", "b=2"], "give either SCENARIO or --from RUN"),
        (["--from", "a", "--seed", "1", "--rows", "a", "--columns", "b"], "runs that are there cannot be changed"),
        (["--from", "b", "--rows", "a", "--columns", "b"], "there is no run 'b'"),
        (["loss", "--rows", "calls", "--columns", "b=2"], "--rows: 'calls' is not an axis"),
        (["loss", "--rows", "calls=1", "--columns", "sizes=1", "--measure", "p50"], "--measure: 'p50': at character 4"),
        (["loss", "--columns", "sizes=1"], "give both --rows and --columns"),
        (["--from", "a"], "give both --rows and --columns"),
        (["loss"], "--rows: the scenario has no vary.matrix"),
    ],
)
def test_a_matrix_of_another_form_is_refused(call: Call, make_run: MakeRun, words: list[str], line: str) -> None:
    make_run("a")
    result = call("matrix", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert line in result.stderr


LOCK_OF_REDIS = {
    "version": 1,
    "asked": ["redis-tools"],
    "packages": [{"name": "redis-tools", "version": "5:7", "sha256": "0" * 64, "architecture": "amd64"}],
    "sha256": "1" * 64,
}


def test_packages_of_roots_are_listed_and_written_to_a_lock(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "locks", lambda: [LOCK_OF_REDIS])
    lock = tmp_path / "lock"
    done = call("images", "packages", "redis-tools", "--lock", str(lock))
    assert done.exit_code == 0, done.output
    assert "redis-tools  5:7" in done.stdout
    assert read_lock(lock.read_text(), ["redis-tools"]) == LOCK_OF_REDIS["packages"]
    refused = call("images", "packages", "nosuch")
    assert refused.exit_code == 2
    assert "no root has packages nosuch; allowed: redis-tools" in refused.stderr
