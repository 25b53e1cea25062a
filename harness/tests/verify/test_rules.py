# SPDX-License-Identifier: Apache-2.0
"""Every field of a finding has one rule, and every rule explains itself."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mutation.expected import load
from sundial.verify.rules import OTHER, PARTS, SEVERITIES, claims, parse, rule_of, rules

HERE = Path(__file__).parent
FOLLOWED_BY_RUNS = {
    # Fields that the walk cannot follow; recorded runs and the rows of `mutation/expected.yaml` have them.
    "judge/parties.py: f'{batch.where} {name}'",
    "segments/atm/verify_losses.py: words",
    "verify/counters.py: *row",
    "verify/devices.py: *row",
    "verify/findings.py: pl.lit(name)",
    "verify/headers/icmp.py: *problem",
    "verify/sockets/served.py: f'{self.where} {field}'",
    "verify/sockets/served.py: self.where",
    "verify/steps.py: where",
    "workloads/grpc/verify.py: *difference",
    "workloads/grpc/verify_connection.py: wrong.field.replace('grpc.', f'grpc.{side}.')",
    "workloads/mbcf/verify_fields.py: field",
    "workloads/rpyc/verify.py: *difference",
    "workloads/rpyc/verify_names.py: f'{batch.where} {name}'",
    "workloads/sunrpc/verify_bindings.py: field",
}
HEADS = {"segments/atm/": "wire/atm/elan.pdus.pcapng", "segments/loopback/": "n1"}
"""What a leading `*` is in a run, by the beginning of the module; elsewhere a line of a guest's program."""
HEAD = "nodes/m port 9"
SAID_BY_HEADERS = (
    "ip.version", "ip.hdr_len", "ip.len", "ip.dsfield", "ip.flags", "ip.flags.df", "ip.ttl", "ip.proto", "ip.src",
    "ip.dst", "ip.checksum", "ip.frag_offset", "arp.hw.type", "arp.src.hw_mac", "arp.dst.proto_ipv4", "icmp.type",
    "icmp.quote", "icmp.unused", "tcp.seq", "tcp.ack", "tcp.flags", "tcp.flags.reset", "tcp.window_size",
    "tcp.options.mss", "tcp.options.wscale", "tcp.urgent_pointer", "tcp.hdr_len", "forwarded packet", "devices",
    "cell loss towards c:eth0", "header error from c:eth0",
)  # fmt: skip


def _walk() -> ModuleType:
    spec = importlib.util.spec_from_file_location("produced_fields", HERE / "produced_fields.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


WALK = _walk()


PRODUCED = tuple(WALK.produced())


def sample_of(each: Any) -> str:
    """A field as a run has it, for one with open parts."""
    head = next((head for place, head in HEADS.items() if each.place.startswith(place)), HEAD)
    return re.sub("^[*]", head, each.field, count=1).replace("*", "x")


def test_every_field_of_the_sources_has_one_rule() -> None:
    found = {(each.place, sample_of(each)): claims(sample_of(each)) for each in PRODUCED if each.field is not None}
    assert {key: names for key, names in found.items() if len(names) != 1} == {}


def test_the_fields_that_the_walk_cannot_follow_are_known() -> None:
    assert {f"{each.place}: {each.expression}" for each in PRODUCED if each.field is None} == FOLLOWED_BY_RUNS


def test_every_field_that_a_mutation_yields_has_one_rule() -> None:
    fields = {row.field for rows in load().values() for row in rows if row.field is not None} | set(SAID_BY_HEADERS)
    assert {field: claims(field) for field in fields if len(claims(field)) != 1} == {}


def test_every_field_of_recorded_verdicts_has_one_rule() -> None:
    files = (HERE.parent / "seams" / "golden" / "verify").glob("*.json")
    fields = {field for path in files for field in _fields(json.loads(path.read_text()))}
    assert len(fields) > 5
    assert {field: claims(field) for field in fields if len(claims(field)) != 1} == {}


def _fields(value: object) -> set[str]:
    if isinstance(value, dict):
        problems = value.get("problems")
        own = {each["field"] for each in problems} if isinstance(problems, list) else set()
        return own.union(*(_fields(each) for each in value.values()))
    if isinstance(value, list):
        return set().union(*(_fields(each) for each in value))
    return set()


def test_every_rule_is_used() -> None:
    produced = {sample_of(each) for each in PRODUCED if each.field is not None}
    produced |= {row.field for rows in load().values() for row in rows if row.field is not None} | set(SAID_BY_HEADERS)
    used = {rule_of(field).name for field in produced}
    assert set(rules()) - used == {OTHER}


def test_a_rule_has_a_severity_and_all_parts() -> None:
    assert len(rules()) > 50
    for rule in rules().values():
        assert rule.severity in SEVERITIES
        assert tuple(rule.parts) == PARTS
        assert rule.fields
        assert all(words.endswith((".", "`", "?")) for words in rule.parts.values()), rule.name


def test_files_that_a_rule_names_are_there() -> None:
    root = HERE.parents[2]
    for rule in rules().values():
        for named in re.findall(r"\b(?:harness|guest-apps)/[\w./-]*\w", rule.parts["Source"]):
            assert (root / named).is_file(), (rule.name, named)


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("ip.id", "ip.id"),
        ("ip.ttl", "ip.header"),
        ("request.content.program", "sunrpc.header"),
        ("request.content.payload", "call.content"),
        ("nodes/client batch 3 tcp_retransmits", "kernel.retransmits"),
        ("nodes/client batch 3 warmup", "run.plan"),
        ("lan client:eth0 tx_frames", "wire.counters"),
        ("time on the wire: backoff of client:eth0", "hub.csma"),
        ("time on the wire: arrival at client:eth0", "wire.time"),
        ("mbcf.reserved", "mbcf.header"),
        ("of no kind at all", OTHER),
    ],
)
def test_the_pattern_with_most_letters_decides(field: str, name: str) -> None:
    assert rule_of(field).name == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("## Wrong Name\n\n`error` · `a`\n\n**Checked.** x.", "begins with its name"),
        ("## a.b\n\n`grave` · `a`\n\n**Checked.** x.", "allowed: critical, error, unmet"),
        ("## a.b\n\n`error` · `a`\n\n**Checked.** x.", "must have Checked, Source, Causes, In Wireshark"),
    ],
)
def test_a_page_of_another_form_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse(text, "page.md")
