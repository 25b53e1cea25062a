# SPDX-License-Identifier: Apache-2.0
"""The documents of a run directory against their formats (harness/schemas) and against one another.

run.json and each record of a guest have the fields of their format and no other. What run.json says of the run's
length, its topology's name and its guests' kernels is checked against other records, and each domain.xml against the
topology: the machine that libvirt was given is the one that was planned.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import BaseModel, TypeAdapter, ValidationError

from sundial import EPOCH_NS
from sundial.errors import SundialError
from sundial.model.network import Network, Node
from sundial.model.recorded import recorded_network
from sundial.observe import RunDirectory
from sundial.plan.build import machine_memory
from sundial.plan.domain import QEMU_NAMESPACE, DomainSpec, FrameSockets, machine_flags
from sundial.seams.run import Run
from sundial.seams.samples import Record
from sundial.units import TIME, icount_shift
from sundial.verify import boots
from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import OUTBOUND, machine
from sundial.verify.samples import RunSamples
from sundial.verify.segment import network_of

UNPROVEN = (
    "run.json: scenario.scale and scenario.variant, the words for choices that the scenario says in full",
    "run.json: scenario.linger and scenario.deadline, but that the run was long enough for the one and not too long for"
    " the other: when a machine said that it was done is not captured",
    "nodes/*/domain.xml: paths on the host; the machine itself is the planned one",
)
UNPROVEN_REAL_CLOCK = (
    "run.json: hosts.*.qemu, .libvirt and .frames, which other hosts report of themselves and of their frames",
)
_DOMAIN_MOST = 1 << 20
_ARGUMENT = f"{{{QEMU_NAMESPACE}}}commandline/{{{QEMU_NAMESPACE}}}arg"
_RECORD: TypeAdapter[Any] = TypeAdapter(Record)


def check_documents(run: RunDirectory, samples: RunSamples, frames: pl.DataFrame) -> pl.DataFrame:
    """A finding for each place where a document is not of its format, or another contradicts it.

    `frames` with row, interface, direction, fate and time_ns.
    """
    rows = [*_format(run), *_records(run, samples), *_names(run), *_length(run, samples, frames), *_domains(run)]
    rows += [*_hosts(run), *_beginnings(run, samples, frames)]
    return as_table(rows)


def _format(run: RunDirectory) -> Iterator[Finding]:
    for field, words in _differences(Run, json.dumps(run.document)):
        yield Finding(None, f"run.json {field}", "as in harness/schemas/run.schema.json", words)
    if run.document.get("status") == "complete" and run.document.get("error") is not None:
        yield Finding(None, "run.json error", "none, of a run that is complete", str(run.document["error"]))
    if run.clock == "virtual" and run.document.get("epoch_ns") != EPOCH_NS:
        yield Finding(None, "run.json epoch_ns", str(EPOCH_NS), str(run.document.get("epoch_ns")))


def _records(run: RunDirectory, samples: RunSamples) -> Iterator[Finding]:
    """Each line but the rows of calls, which are read strictly."""
    for name in run.nodes:
        batches = [line for (client, _), line in samples.batches.items() if client == name]
        for record in (*samples.records.get(name, ()), *batches):
            for field, words in _differences(_RECORD, json.dumps(record)):
                where = f"nodes/{name}/samples.jsonl {record['type']} {field}"
                yield Finding(None, where, "as in harness/schemas/samples.schema.json", words)


def _differences(form: type[BaseModel] | TypeAdapter[Any], text: str) -> list[tuple[str, str]]:
    try:
        form.validate_json(text) if isinstance(form, TypeAdapter) else form.model_validate_json(text)
    except ValidationError as error:
        return [(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors()]
    return []


def _names(run: RunDirectory) -> Iterator[Finding]:
    """What has a name at two places."""
    scenario, topology = run.document.get("scenario"), run.document.get("topology")
    if isinstance(scenario, dict) and isinstance(topology, dict) and scenario.get("topology") != topology.get("name"):
        yield Finding(None, "run.json topology.name", str(scenario.get("topology")), str(topology.get("name")))
    if isinstance(scenario, dict) and scenario.get("scale") not in (None, "smoke", "quick", "paper"):
        yield Finding(None, "run.json scenario.scale", "none, smoke, quick or paper", str(scenario.get("scale")))


def _length(run: RunDirectory, samples: RunSamples, frames: pl.DataFrame) -> Iterator[Finding]:
    """The run lasts from zero until `linger` after the last client is done, and all that happens is in between."""
    time, scenario = run.document.get("time"), run.document.get("scenario")
    length_ns = time.get("virtual_ns") if isinstance(time, dict) else None
    if run.document.get("status") != "complete":
        return
    if not isinstance(length_ns, int):
        yield Finding(None, "run.json time.virtual_ns", "how long the run was", str(length_ns))
        return
    # A topology that is kept up ends when its fabric is stopped; machines may be ahead of that.
    network = network_of(run) if run.by_hand else None
    ahead = [] if network is None else [nic.end for node in network.nodes for nic in node.inner]
    outside = frames.filter(~pl.col("time_ns").is_between(0, length_ns), ~pl.col("interface").is_in(ahead))
    for time_ns in outside["time_ns"].head(1):
        yield Finding(None, "frames", f"within the run, from 0 to {length_ns} ns", f"one at {time_ns} ns")
    if run.clock != "virtual" or not isinstance(scenario, dict):
        return
    try:
        linger_ns, deadline_ns = (TIME.parse(scenario.get(name)) for name in ("linger", "deadline"))
    except SundialError:
        return  # the plan says so
    last_ns: int = samples.table.select(pl.col("end_ns").max().fill_null(0)).item()
    if last_ns + linger_ns > length_ns:
        expected = f"at least {last_ns} + {linger_ns}, the end of the last call and scenario.linger"
        yield Finding(None, "run.json time.virtual_ns", expected, str(length_ns))
    if length_ns > deadline_ns + linger_ns:
        yield Finding(None, "run.json time.virtual_ns", f"at most {deadline_ns} + {linger_ns}", str(length_ns))


def _beginnings(run: RunDirectory, samples: RunSamples, frames: pl.DataFrame) -> Iterator[Finding]:
    """Under the virtual clock a machine that has heard nothing sends nothing before the first thing it records, where
    that is not a call: the connections that calls take are opened before the first of them."""
    if run.clock != "virtual":
        return
    of_ports = frames.select("row", "direction", "time_ns", "interface", "fate").filter(pl.col("fate").is_null())
    seen = (
        of_ports.filter(pl.col("time_ns") == pl.col("time_ns").min().over("interface"))
        .select("row", "direction", "time_ns", machine=machine())
        .group_by("machine")
        .agg(pl.all().sort_by("time_ns", "row").first())
    )
    for name, node in run.nodes.items():
        calls = samples.table.filter(pl.col("client") == name)["start_ns"].drop_nulls().sort().head(1)
        records = [each for each in samples.records.get(name, ()) if "start" in each]
        # A binding is on the run's axis already.
        starts = [int(each["start"]) - (0 if each["type"] == "binding" else node.zero_ns) for each in records]
        # A client that tried several times records when the last try began.
        if any(each.get("tries", 1) != 1 for each in records):
            continue
        if min(starts, default=0) > min(calls, default=min(starts, default=0)):
            continue
        first = seen.filter(pl.col("machine") == name).select("row", "direction", "time_ns")
        for row, direction, time_ns in first.iter_rows() if starts else ():
            if direction == OUTBOUND and time_ns < min(starts):
                yield Finding(None, "first frame", f"{name} begins at {min(starts)} ns", f"at {time_ns} ns", [row])


def _hosts(run: RunDirectory) -> Iterator[Finding]:
    """Other computers ran the machines that the topology put there."""
    try:
        network = recorded_network(run.document)
    except SundialError:
        return  # the plan says so
    planned = {
        name: (uri.text, [node.name for node in network.nodes if node.host == name])
        for name, uri in network.hosts.items()
    }
    found = run.document.get("hosts")
    recorded = found if isinstance(found, dict) else {}
    for name in dict.fromkeys([*planned, *recorded]):
        host = recorded.get(name)
        seen = (host.get("connect"), host.get("machines")) if isinstance(host, dict) else None
        if planned.get(name) != seen:
            yield Finding(None, f"run.json hosts.{name}", str(planned.get(name)), str(seen))


# ---- domain.xml ----


def _domains(run: RunDirectory) -> Iterator[Finding]:
    try:
        network = recorded_network(run.document)
    except SundialError:
        return  # the plan says so
    lines: dict[str, str] = {}
    for node in network.nodes:
        name = f"nodes/{node.name}/domain.xml"
        path = run.path / name
        if not path.is_file():
            continue  # the directory says so
        text = path.read_bytes()
        try:
            if len(text) > _DOMAIN_MOST or b"<!" in text:
                raise ET.ParseError("longer than any domain, or with declarations")
            domain = ET.fromstring(text)
        except ET.ParseError as error:
            yield Finding(None, name, "a domain of libvirt", str(error))
            continue
        for field, expected, seen in _machine(run, network, node, domain):
            if expected != seen:
                yield Finding(None, f"{name} {field}", expected, seen)
        line = boots.line_of_image(node, domain)
        if lines.setdefault(node.image, line) != line:
            yield Finding(None, f"{name} cmdline", f"{lines[node.image]}, as others that boot {node.image}", line)


def _machine(run: RunDirectory, network: Network, node: Node, domain: ET.Element) -> Iterator[tuple[str, str, str]]:
    """Field, expected and seen, of what the machine is made of."""
    spec = _spec(run, node)
    arguments = [str(each.get("value")) for each in domain.iterfind(_ARGUMENT)]
    flags = list(machine_flags(spec))
    begin = arguments.index(flags[0]) if flags[0] in arguments else 0
    yield "type", "kvm" if spec.kvm else "qemu", str(domain.get("type"))
    yield "name", f"-{node.name}", f"{domain.findtext('name')}"[-len(node.name) - 1 :]
    yield "memory", str(spec.memory), str(domain.findtext("memory"))
    yield "vcpu", "1", str(domain.findtext("vcpu"))
    yield "QEMU's arguments", " ".join(flags), " ".join(arguments[begin : begin + len(flags)])
    yield from boots.differing(run, node, domain)
    netdevs = [re.split(",(?:local|server)", each)[0] for each in arguments if each.startswith(("dgram,", "stream,"))]
    kind = "dgram" if node.host is None else "stream"
    yield "netdevs", " ".join(f"{kind},id=n{place}" for place in range(len(node.network_adapters))), " ".join(netdevs)
    if spec.clock == "virtual":
        zero_ns = (run.document["nodes"].get(node.name) or {}).get("zero_ns")
        options = _plugin(arguments)
        wanted: dict[str, Any] = {"machine": node.index, "nics": len(node.nics), "shift": spec.shift}
        if "zero" in options:  # a machine that was booted cold begins at its own
            wanted["zero"] = zero_ns
        if node.name in network.offs_ns or "off" in options:
            wanted["off"] = network.offs_ns.get(node.name, "none")
        for field, value in wanted.items():
            yield f"plugin {field}", str(value), options.get(field, "none")


def _plugin(arguments: list[str]) -> Mapping[str, str]:
    """The clock plugin's arguments by name."""
    places = [place for place, each in enumerate(arguments[:-1]) if each == "-plugin"]
    parts = arguments[places[0] + 1].split(",") if places else []
    return {name: value for name, _, value in (part.partition("=") for part in parts)}


def _qemu(run: RunDirectory, node: Node) -> str:
    """The version of QEMU that the record names for the machine's host; empty where it names none."""
    named = run.document.get("versions") if node.host is None else (run.document.get("hosts") or {}).get(node.host)
    return str((named or {}).get("qemu") or "")


def _spec(run: RunDirectory, node: Node) -> DomainSpec:
    """The machine as it was planned; of the host's paths nothing is asked."""
    nowhere = Path("/")
    typed = nowhere if run.by_hand else None
    return DomainSpec(
        name=node.name,
        memory=machine_memory(node, _qemu(run, node)),
        translations_mib=0,
        shift=icount_shift(node.mips),
        clock="virtual" if run.clock == "virtual" else "real",
        emulator=nowhere,
        kernel=nowhere,
        initrd=nowhere,
        cmdline="",
        console=nowhere,
        samples=nowhere,
        job=nowhere,
        nics=tuple(FrameSockets(nowhere, nowhere) for _ in node.network_adapters),
        mapped=node.mapped is not None,
        disk=boots.disk_of(run, node),
        console_socket=typed,
        exec_socket=typed,
        loopback=nowhere if node.inner else None,
        kvm=run.document.get("accelerator") == "kvm",
    )
