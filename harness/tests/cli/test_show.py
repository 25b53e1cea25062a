# SPDX-License-Identifier: Apache-2.0
"""`sundial show`: the ladder of a call of a run that is made by hand."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result

from sundial.observe import open_run
from sundial.verify.samples import load_samples
from tests.verify.bed import CLIENT, RPC_PORT, SERVER, Bed, Record, Stream, capture, rpc_call, rpc_reply

Call = Callable[..., Result]
pytestmark = pytest.mark.usefixtures("viewer_asked_once")
PORT = 700


@pytest.fixture
def run(captures: Path) -> Path:
    """Calls over UDP: one of 4 fragments, one of 45, and one whose request was lost at first."""
    bed = Bed(captures / "run-1")
    bed.batch("echo-client", "udp", 5000, RPC_PORT, PORT)
    bed.udp_call(5000, 0x11)
    bed.batch("echo-client", "udp", 64000, RPC_PORT, PORT)
    bed.udp_call(64000, 0x22)
    bed.batch("echo-client", "udp", 64, RPC_PORT, PORT)
    start = bed.now - 1
    request = bed.datagram(CLIENT, (PORT, RPC_PORT), rpc_call(0x33, 64))
    bed.send(CLIENT, request, lose=(0,))
    bed.send(CLIENT, bed.datagram(CLIENT, (PORT, RPC_PORT), rpc_call(0x33, 64)))
    bed.send(SERVER, bed.datagram(SERVER, (RPC_PORT, PORT), rpc_reply(0x33, 64)))
    bed.sample(start, 0x33, retransmits=1)
    return bed.write()


def test_a_call_is_drawn_with_its_fragments(call: Call, run: Path) -> None:
    result = call("show", "run-1", "--call", "0")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "call 0 of the run: client to server (Sun RPC, udp echo, 5000 B, xid 0x11)"
    assert lines[3].split() == ["time", "client", "server"]
    assert sum("─▶" in line for line in lines) == 4
    assert sum("◀─" in line for line in lines) == 4
    assert "proc-1 Call" in result.stdout
    assert "bytes 1480-2959 of the packet" in result.stdout
    assert max(map(len, lines)) <= 80


def test_a_call_of_45_fragments_is_summarised_unless_all_are_asked_for(call: Call, run: Path) -> None:
    few = call("show", "run-1", "--call", "1").stdout
    assert few.count("41 more like it, until ") == 2
    assert "82 like frames are summarised; --all draws each." in few
    everything = call("show", "run-1", "--call", "1", "--all").stdout
    assert everything.count("of the packet") == 88
    assert "summarised" not in everything


def test_a_lost_request_and_its_retransmission(call: Call, run: Path) -> None:
    text = call("show", "run-1", "--call", "2").stdout
    assert "1 retransmission" in text
    assert "└ lost: client:eth0 to server:eth0" in text
    assert text.count("sent again: ") == 1
    found = json.loads(call("show", "run-1", "--call", "2", "--json").stdout)
    lost, again, reply = found["arrows"]
    assert (lost["lost"], lost["arrived_ns"], lost["frames"]) == (
        True,
        None,
        [lost["frames"][0], lost["frames"][0] + 1],
    )
    assert (again["again"], again["lost"], again["from"], again["to"]) == (True, False, "client", "server")
    assert again["arrived_ns"] - again["sent_ns"] == 2000
    assert (reply["from"], reply["to"], reply["notes"]) == ("server", "client", [])


def test_a_call_over_tcp_has_bytes_and_acknowledgements(call: Call, captures: Path) -> None:
    bed = Bed(captures / "tcp-1")
    bed.batch("echo-client", "tcp", 2000, RPC_PORT, 800)
    stream = Stream(bed, 800, RPC_PORT, {CLIENT: 1000, SERVER: 5000})
    stream.open()
    stream.call(2000, 7, [1448, 600], [1448, 584])
    bed.write()
    text = call("show", "tcp-1", "--call", "0", "--width", "100").stdout
    assert "TCP bytes 0-1447, ACK 0" in text
    assert "[TCP bytes 1448-2047, ACK 0]" in text
    assert "[TCP bytes 1448-2031, ACK 2048]" in text


def test_under_the_real_clock_the_frames_of_a_call_tell_when_it_was(call: Call, captures: Path) -> None:
    """Guests' clocks are apart from that of the captures."""
    bed = Bed(captures / "real-1", clock="real")
    bed.batch("echo-client", "udp", 64, RPC_PORT, PORT)
    begun = []
    for xid in (0x11, 0x22, 0x33):
        begun.append(bed.now)
        bed.udp_call(64, xid)
    lines = [json.loads(line) for line in bed.lines]
    behind = 3 * 10**9
    for row in lines[1:]:
        row[1], row[2] = row[1] + behind, row[2] + behind
    bed.lines[:] = [json.dumps(line) for line in lines]
    folder = bed.write()
    samples = load_samples(open_run(folder)).table.drop("id")
    ends = [at + 15_000 for at in begun]
    observed = samples.select("call").with_columns(
        pl.Series("call_first_tx_ns", begun), pl.Series("reply_last_rx_ns", ends), verdict=pl.lit("pass")
    )
    observed.write_parquet(folder / "observed.parquet")
    found = json.loads(call("show", "real-1", "--call", "1", "--json").stdout)
    assert [(arrow["from"], arrow["sent_ns"] - begun[1]) for arrow in found["arrows"]] == [
        ("client", 0),
        ("server", 11_000),
    ]
    assert "call begins" not in call("show", "real-1", "--call", "1").stdout


def test_a_machine_that_calls_itself_has_two_lifelines(call: Call, captures: Path) -> None:
    bed = Bed(captures / "alone-1")
    bed.batch("echo-client", "udp", 64, RPC_PORT, PORT)
    bed.udp_call(64, 0x11)
    folder = bed.write()
    frames = [record.frame for record in bed.records if record.direction == 2]
    own = [frame.replace(bytes([10, 0, 0, 2]), bytes([10, 0, 0, 1])) for frame in frames]
    records = [Record(1_000_000 + 11_000 * place, 0, 0, frame) for place, frame in enumerate(own)]
    records += [Record(1_000_500 + 11_000 * place, 1, 0, frame) for place, frame in enumerate(own)]
    (folder / "wire" / "lan.pcapng").unlink()
    (folder / "wire" / "loopback-client.pcapng").write_bytes(capture(["client:lo", "client:lo"], records))
    document = json.loads((folder / "run.json").read_text())
    document["captures"] = {"wire/loopback-client.pcapng": ""}
    document["nodes"] = {"client": document["nodes"]["client"]}
    (folder / "run.json").write_text(json.dumps(document))
    samples = pl.read_parquet(folder / "samples.parquet")
    samples = samples.with_columns(server=pl.lit("client"), server_address=pl.lit(CLIENT))
    samples.write_parquet(folder / "samples.parquet")
    found = json.loads(call("show", "alone-1", "--call", "0", "--json").stdout)
    assert found["parties"] == ["client (client)", "client (server)"]
    assert [(arrow["from"], arrow["to"]) for arrow in found["arrows"]] == [
        ("client (client)", "client (server)"), ("client (server)", "client (client)"),
    ]  # fmt: skip
    assert [arrow["arrived_ns"] - arrow["sent_ns"] for arrow in found["arrows"]] == [500, 500]


def test_calls_worth_a_look_are_listed(call: Call, run: Path) -> None:
    result = call("show", "latest")
    table = [line.split() for line in result.stdout.splitlines()]
    assert table[0][:3] == ["CALL", "CLIENT", "SERVER"]
    assert [row[0] for row in table[1:]] == ["2", "1", "0"]
    assert result.stderr.endswith("show run-1 --call 2\n")
    rows = json.loads(call("show", "latest", "--json").stdout)
    assert [(row["id"], row["size"], row["verdict"]) for row in rows] == [
        (2, 64, None),
        (1, 64000, None),
        (0, 5000, None),
    ]
    assert call("show", "latest", "--call", "slowest").stdout.startswith("call 1 of the run")


def test_the_diagram_is_written_as_svg(call: Call, run: Path, tmp_path: Path) -> None:
    result = call("show", "run-1", "--call", "0", "--svg", str(tmp_path / "call.svg"))
    assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / "call.svg").read_text().startswith("<svg ")
    refused = call("show", "run-1", "--call", "0", "--svg", str(tmp_path / "none" / "call.svg"))
    assert (refused.exit_code, "--svg cannot be written" in refused.stderr) == (2, True)


@pytest.mark.parametrize("asked", ["3", "-1", "x", "", "99999999999999999999", "1.5", "٣"])
def test_a_call_that_is_not_there_is_refused_with_the_range(call: Call, run: Path, asked: str) -> None:
    result = call("show", "run-1", "--call", asked)
    assert result.exit_code == 2
    assert result.stderr == f"sundial: {run}: --call: there is no call {asked}; allowed: 0 to 2, slowest or finding\n"


def test_what_a_run_does_not_have_is_named(call: Call, run: Path) -> None:
    result = call("show", "run-1", "--call", "finding")
    assert (result.exit_code, "no call of the run has a finding" in result.stderr) == (2, True)
    (run / "wire" / "lan.pcapng").unlink()
    result = call("show", "run-1", "--call", "0")
    assert (result.exit_code, "has no captures" in result.stderr) == (2, True)
    (run / "samples.parquet").write_bytes(b"no table")
    result = call("show", "run-1", "--call", "0")
    assert (result.exit_code, "is not readable as Parquet" in result.stderr) == (2, True)
    assert call("show", "run-2").exit_code == 2


def test_options_that_need_a_call_are_refused_without_one(call: Call, run: Path) -> None:
    for option in (("--all",), ("--svg", "x.svg")):
        result = call("show", "run-1", *option)
        assert (result.exit_code, "--svg and --all need a call" in result.stderr) == (2, True)


def test_a_run_without_calls_says_so(call: Call, captures: Path) -> None:
    Bed(captures / "none-1").write()
    assert call("show", "none-1").stderr == "the run has no calls\n"
    assert (call("show", "none-1", "--call", "0").exit_code) == 2


def test_an_output_that_takes_no_unicode_gets_ascii(run: Path, captures: Path) -> None:
    import os
    import subprocess

    from sundial.model.catalog import ROOT

    program = [sys.executable, "-P", "-m", "sundial.cli", "show", str(run), "--call", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "harness"), "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = subprocess.run(program, capture_output=True, check=True, env=environment)
    assert done.stdout.isascii()
    assert b"|-------X " in done.stdout


def test_help_has_examples(call: Call) -> None:
    for verb in (("show",), ("watch",), ("wireshark", "install"), ("wireshark", "uninstall")):
        text = call(*verb, "--help").stdout
        assert text.partition("Examples:")[2].count("sundial ") >= 2, verb
