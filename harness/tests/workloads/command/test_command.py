# SPDX-License-Identifier: Apache-2.0
"""`app: command` without a machine: templates, jobs, and records against the scenario."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments
from sundial.observe.programs import fnv1a, last_lines, outputs
from sundial.plan.jobs import build_jobs
from sundial.seams.samples import Line
from sundial.workloads.command.model import Command, Port
from sundial.workloads.command.model_template import filled
from sundial.workloads.command.verify_decoded import services_of
from sundial.workloads.command.verify_records import check_order, check_ran, figures_of, read_records

SCENARIO = """\
description: A service and a job
topology: {topology}
workloads:
  - app: command
    ports: {{web: {{tcp: 80}}, dns: {{udp: 53}}}}
    programs:
      web: {{on: server, role: service, argv: [httpd, -p, "{{me}}:{{port.web}}"], ready: {{tcp: web}}}}
      get: {{on: client, argv: [wget, "{{server}}", "{{{{x}}}}"], after: [web], expect: {{stdout: {{contains: hi}}}}}}
"""
ZERO = 1000


def _write(folder: Path, change: Callable[[str], str] = lambda text: text) -> str:
    file = folder / "own.yaml"
    file.write_text(change(SCENARIO.format(topology="two-hosts-switched")))
    return str(file)


def _workload(folder: Path) -> Command:
    (experiment,) = load_experiments(_write(folder))
    (workload,) = experiment.scenario.workloads
    assert isinstance(workload, Command)
    return workload


def test_templates_become_addresses_ports_and_braces(tmp_path: Path) -> None:
    (experiment,) = load_experiments(_write(tmp_path))
    jobs = build_jobs(experiment)
    (server,), (client,) = jobs["server"].steps, jobs["client"].steps
    assert server.options["programs"][0]["argv"] == ["httpd", "-p", "10.0.0.2:80"]
    assert client.options["programs"][0]["argv"] == ["wget", "10.0.0.2", "{x}"]
    assert client.options["programs"][0]["after"] == [[1, 0]]
    assert server.options["programs"][0]["tells"] == [0]


@pytest.mark.parametrize(
    ("text", "message"), [("{no}", "{no} is unknown"), ("a {", "is not closed"), ("{}", "{} is unknown")]
)
def test_a_template_without_value_is_refused_with_what_is_known(text: str, message: str) -> None:
    with pytest.raises(BadInput) as raised:
        filled(text, {"server": "10.0.0.2"}.get, lambda: "{server}")
    assert message in str(raised.value)
    assert "allowed: " in str(raised.value)


BAD = {
    "template": ('{server}", ', '{sever}", ', "workloads.0.programs.get.argv.1: {sever} is unknown"),
    "unknown machine": ("on: client", "on: laptop", "has no host 'laptop'"),
    "unknown program": ("after: [web]", "after: [wob]", "there is no program 'wob'"),
    "cycle": ("role: service,", "role: service, after: [get],", "'web' waits for 'get' waits for 'web'"),
    "no words": ('argv: [httpd, -p, "{me}:{port.web}"]', "user: 1", "a program has either argv or shell"),
    "no rule": ("ready: {tcp: web}", "ready: {}", "ready must have exactly one rule"),
    "port name": ("ready: {tcp: web}", "ready: {tcp: dns}", "there is no tcp port 'dns'"),
    "ready job": ("role: service, ", "", "'web' is a job, which has no readiness"),
    "clients": ("app: command", "app: command\n    clients: client", "has no field clients"),
    "pattern": ("contains: hi", "matches: '('", "is not a regular expression"),
    "empty": ("ports: {web: {tcp: 80}", "ports: {web: {}", "a port has exactly one of tcp, udp, icmp and ethertype"),
    "too many ports": ("dns: {udp: 53}", "dns: {udp: 1-2000}", "'1-2000' is not a port; allowed: a number from 1 to"),
    "ports from high": ("dns: {udp: 53}", "dns: {udp: 9-8}", "'9-8' is not a port"),
    "signal": ("expect: {stdout", "expect: {signal: SEG, stdout", "did you mean 'SEGV'?"),
    "two kinds": (
        "web: {tcp: 80}",
        "web: {tcp: 80, ethertype: arp}",
        "has exactly one of tcp, udp, icmp and ethertype",
    ),
    "type of IPv4": (
        "web: {tcp: 80}",
        "web: {ethertype: 0x0800}",
        "2048 is not a type of frames; allowed: arp, or a number",
    ),
    "decoded type": ("dns: {udp: 53}", "x: {ethertype: arp, decode: dns}", "a type of frames has nothing to decode"),
    "figure": ("after: [web], ", "after: [web], figures: {rate: '[0-9]+'}, ", "has 0 groups"),
    "path": ("after: [web], ", "after: [web], files: {srv/x: y}, ", "an absolute path such as"),
}


def test_udp_ports_may_be_several() -> None:
    port = Port.model_validate({"udp": "5000 - 5010"})
    assert (port.model_dump(mode="json")["udp"], port.number) == ("5000-5010", 5000)
    assert port.numbers("udp") == range(5000, 5011)
    assert (Port(udp=53).numbers("udp"), Port(tcp=80).numbers("udp"), Port(icmp=True).number) == (
        range(53, 54),
        range(0),
        None,
    )
    assert {each.port for each in services_of([port])} == set(range(5000, 5011))


def test_types_of_frames_are_read_as_they_are_shown() -> None:
    port = Port.model_validate({"ethertype": "arp"})
    assert (port.ethertype, port.model_dump(mode="json")["ethertype"]) == (0x0806, "arp")
    port = Port.model_validate({"ethertype": 0x88B6})
    assert port.model_dump(mode="json")["ethertype"] == "0x88b6"
    assert Port.model_validate(port.model_dump(mode="json", exclude_none=True)) == port


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_with_its_field(name: str, tmp_path: Path) -> None:
    before, after, message = BAD[name]
    assert before in SCENARIO.format(topology="x")
    with pytest.raises(BadInput) as raised:
        load_experiments(_write(tmp_path, lambda text: text.replace(before, after)))
    lines = str(raised.value).splitlines()
    assert any(message in line for line in lines), lines
    assert all("own.yaml" in line for line in lines)


def test_two_services_with_one_port_on_one_machine_are_refused(tmp_path: Path) -> None:
    other = "      second: {on: server, role: service, argv: [httpd], ready: {tcp: 80}}\n"
    with pytest.raises(BadInput, match=r"tcp port 80 of .server. is already used by .web."):
        load_experiments(_write(tmp_path, lambda text: text + other))


def _output(data: bytes, name: str = "get", stream: str = "stdout") -> dict[str, Any]:
    text = base64.b64encode(data).decode()
    return {"type": "output", "step": 0, "app": "command", "name": name, "stream": stream, "at": 1, "data": text}


def _program(data: bytes = b"hi yo\n", **changes: Any) -> dict[str, Any]:
    written = {"bytes": len(data), "kept": len(data), "fnv1a": fnv1a(data)}
    record = {
        "type": "program", "step": 0, "app": "command", "name": "get", "role": "job", "start": 5000, "ready": None,
        "end": 9000, "status": 0, "signal": None, "timed_out": False, "stopped": False, "stdout": written,
        "stderr": {"bytes": 0, "kept": 0, "fnv1a": fnv1a(b"")},
    }  # fmt: skip
    return record | changes


def _findings(workload: Command, records: list[dict[str, Any]]) -> Iterator[str]:
    for each in records:
        Line.validate_python(each)
    ran, missing = read_records(workload, "client", ZERO, records)
    yield from (each.field for each in missing)
    for program in ran:
        yield from (finding.field for finding in check_ran(program, outputs(records)))
    yield from (finding.field for finding in check_order(workload, ran))


HELLO = _output(b"hi yo\n")
DAMAGES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "another status": ([HELLO, _program(status=1)], "status"),
    "a signal": ([HELLO, _program(status=None, signal=9)], "status"),
    "neither": ([HELLO, _program(status=None)], "end"),
    "a byte of stdout is missing": ([_output(b"hi yo"), _program()], "stdout"),
    "a byte of stdout is another": ([_output(b"hi yO\n"), _program()], "stdout"),
    "a line of stdout is missing": ([_program()], "stdout"),
    "fewer kept than written": ([HELLO, _program(stdout={"bytes": 9, "kept": 6, "fnv1a": fnv1a(b"hi yo\n")})], "kept"),
    "text is missing": ([_output(b"other\n"), _program(b"other\n")], "stdout"),
    "timed out": ([HELLO, _program(timed_out=True)], "end"),
    "stopped": ([HELLO, _program(stopped=True)], "end"),
    "times": ([HELLO, _program(end=4000)], "times"),
    "another name": ([HELLO, _program(name="got")], "records"),
    "another role": ([HELLO, _program(role="service", ready=6000)], "records"),
    "a readiness": ([HELLO, _program(ready=6000)], "ready"),
    "twice": ([HELLO, _program(), _program()], "records"),
    "none": ([], "records"),
}


def test_records_of_a_good_run_have_no_findings(tmp_path: Path) -> None:
    assert list(_findings(_workload(tmp_path), [HELLO, _program()])) == []


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_record_is_a_finding(name: str, tmp_path: Path) -> None:
    records, field = DAMAGES[name]
    found = list(_findings(_workload(tmp_path), records))
    assert any(each.endswith(field) or f" {field}" in each for each in found), found


def _figures(folder: Path, pattern: str, data: bytes) -> tuple[list[str], list[tuple[str, object]]]:
    text = SCENARIO.format(topology="two-hosts-switched").replace(
        "after: [web], ", f"after: [web], figures: {{x: '{pattern}'}}, "
    )
    (experiment,) = load_experiments(_write(folder, lambda _: text))
    (workload,) = experiment.scenario.workloads
    assert isinstance(workload, Command)
    (ran,), _ = read_records(workload, "client", ZERO, [_program(data)])
    rows, findings = figures_of(ran, outputs([_output(data)]))
    return [str(row["value"]) for row in rows], [(each.field, each.seen) for each in findings]


def test_figures_are_the_numbers_of_all_matches(tmp_path: Path) -> None:
    assert _figures(tmp_path, "^rate ([0-9.]+)", b"rate 7\nrate 0.25 of rate 3\n") == (
        ["7.000000000", "0.250000000"],
        [],
    )


def test_a_figure_without_a_match_or_a_number_is_a_finding(tmp_path: Path) -> None:
    assert _figures(tmp_path, "rate ([0-9]+)", b"no\n") == ([], [("program client get figure x", "none")])
    assert _figures(tmp_path, "rate (.+)", b"rate 1e9\n") == ([], [("program client get figure x", "'1e9'")])
    assert _figures(tmp_path, "rate (no)?", b"rate 1\n") == ([], [("program client get figure x", "None")])


def test_a_program_that_starts_before_what_it_waits_for_is_a_finding(tmp_path: Path) -> None:
    workload = _workload(tmp_path)
    web = _program(b"", name="web", role="service", start=2000, ready=6000, stopped=True, status=0)
    service, _ = read_records(workload, "server", ZERO, [web])
    job, _ = read_records(workload, "client", ZERO, [_program()])
    (found,) = check_order(workload, [*service, *job])
    assert (found.field, found.expected) == ("program client get start", "after web of server, at 5000 ns")


def test_outputs_of_any_bytes_are_kept_and_shown() -> None:
    data = bytes(range(256))
    assert outputs([_output(data[:100]), _output(data[100:])]) == {("get", "stdout"): data}
    assert outputs([_output(b"") | {"data": "?"}]) == {("get", "stdout"): b""}
    assert last_lines(b"one\n\ntwo\n\xff\0three") == ["one", "two", "\N{REPLACEMENT CHARACTER}?three"]
