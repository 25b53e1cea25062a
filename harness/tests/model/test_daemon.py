# SPDX-License-Identifier: Apache-2.0
"""URIs of libvirt daemons, and topologies with hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.daemon import DaemonUri, parse_daemon, parse_host
from sundial.model.load import load_topology
from sundial.model.network import build_network
from sundial.model.recorded import recorded_network


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("qemu:///session", DaemonUri("", "", "session")),
        ("qemu:///session?socket=/run/x", DaemonUri("", "", "session", options={"socket": "/run/x"})),
        ("qemu+unix:///system?mode=legacy", DaemonUri("", "unix", "system", options={"mode": "legacy"})),
        ("qemu+ssh://me@far:2222/system", DaemonUri("", "ssh", "system", "me", "far", 2222)),
        ("qemu+ssh://[2001:db8::1]/session", DaemonUri("", "ssh", "session", None, "2001:db8::1")),
        ("qemu+tls://far/system", DaemonUri("", "tls", "system", None, "far")),
        (
            "qemu+ssh://a%40b@far/session?keyfile=/me/a%20key%26more&known_hosts=/x+y",
            DaemonUri("", "ssh", "session", "a@b", "far", None, {"keyfile": "/me/a key&more", "known_hosts": "/x+y"}),
        ),
    ],
)
def test_a_uri_is_taken_apart(text: str, expected: DaemonUri) -> None:
    assert vars(parse_daemon(text)) == {**vars(expected), "text": text}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "embedded:",
        "xen:///system",
        "test:///default",
        "qemu:///embed?root=/tmp",
        "qemu:///",
        "qemu://",
        "session",
        "qemu+smoke:///system",
        "qemu+ssh:///system",
        "qemu+ssh://me:secret@far/system",
        "qemu+ssh://-oProxyCommand=x/system",
        "qemu+ssh://-l@far/system",
        "qemu+ssh://far:99999/system",
        "qemu+ssh://far:port/system",
        "qemu+ssh://[far/system",
        "qemu+ssh://me@fa r/system",
        "qemu:///system\n",
        "qemu:///system?socket",
        "qemu:///system?socket=",
        "qemu:///system?socket=/a&socket=/b",
        "qemu:///system?socket=/a%0Ab",
        "qemu:///system#x",
        "qemu+ssh://far%2fx/system",
    ],
)
def test_what_is_no_uri_is_one_line(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_daemon(text)
    assert "\n" not in str(caught.value)
    assert "; allowed: " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("qemu:///system", "does not use ssh"),
        ("qemu+tls://far/system", "does not use ssh"),
        ("qemu+ssh://far/system?no_verify=1", "option 'no_verify' of .* is unknown; allowed: keyfile, known_hosts"),
        ("qemu+ssh://far/system?keyfile=~/.ssh/id", "keyfile: '~/.ssh/id' is not an absolute path that ssh"),
        (
            "qemu+ssh://far/system?known_hosts=/%24%7BHOME%7D",
            "known_hosts: '/.{HOME}' is not an absolute path that ssh",
        ),
        ("qemu+ssh://far/system?keyfile=/a%22b", "keyfile: '/a.b' is not an absolute path that ssh"),
    ],
)
def test_a_host_is_reached_by_ssh_alone(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        parse_host(text)


def test_libvirt_gets_no_option_of_sshs() -> None:
    uri = parse_host("qemu+ssh://a%40b@[2001:db8::1]:2222/session?keyfile=/k&known_hosts=/h&socket=/x%26y")
    through = uri.through("/tmp/a b/ssh")
    assert through == "qemu+ssh://a%40b@[2001:db8::1]:2222/session?socket=%2Fx%26y&command=%2Ftmp%2Fa%20b%2Fssh"
    again = parse_daemon(through)
    assert (again.user, again.host, again.port, again.options["socket"]) == (uri.user, uri.host, 2222, "/x&y")


TOPOLOGY = """\
description: two hosts on two hosts
clock: real
hosts:
  b: {connect: "qemu+ssh://me@b/session"}
  c: {connect: "qemu+ssh://me@c/system"}
machines:
  client: {interfaces: {eth0: {address: 10.0.0.1/24}}}
  server: {on: b, interfaces: {eth0: {address: 10.0.0.2/24}}}
segments:
  lan: {kind: link, rate: 10 Mbit/s, ports: ["client:eth0", "server:eth0"]}
"""


def written(folder: Path, text: str = TOPOLOGY) -> str:
    path = folder / "apart.yaml"
    path.write_text(text)
    return str(path)


def test_machines_are_on_hosts(tmp_path: Path) -> None:
    topology = load_topology(written(tmp_path))
    network = build_network(topology)
    assert [node.host for node in network.nodes] == [None, "b"]
    assert {name: uri.text for name, uri in network.hosts.items()} == {"b": "qemu+ssh://me@b/session"}
    recorded = topology.model_dump(mode="json", exclude_none=True)
    assert recorded["hosts"]["c"] == {"connect": "qemu+ssh://me@c/system"}
    assert ("on" in recorded["machines"]["client"], recorded["machines"]["server"]["on"]) == (False, "b")
    assert recorded_network({"topology": recorded}).hosts == network.hosts


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (("on: b", "on: d"), "8: machines.server.on: there is no host 'd'; allowed: b, c"),
        (("on: b", "on: 7"), "8: machines.server.on: "),
        (
            ("clock: real", "clock: virtual"),
            "8: machines.server.on: a machine on host 'b' requires clock: real; allowed: clock:",
        ),
        (('"qemu+ssh://me@b/session"', "qemu:///session"), "4: hosts.b.connect: 'qemu:///session' does not use ssh"),
        (('"qemu+ssh://me@b/session"', "[1]"), "4: hosts.b.connect: [1] is not a URI; allowed: qemu+ssh://"),
        (("b: {connect", "b: {conect"), "4: hosts.b"),
    ],
)
def test_what_is_wrong_with_hosts_is_one_line(tmp_path: Path, edit: tuple[str, str], line: str) -> None:
    path = written(tmp_path, TOPOLOGY.replace(*edit))
    with pytest.raises(BadInput) as caught:
        load_topology(path)
    assert str(caught.value.problems[0]).startswith(f"{path}:{line}")


def test_a_host_can_be_set(tmp_path: Path) -> None:
    path = written(tmp_path)
    moved = load_topology(path, ["machines.server.on=c", "hosts.c.connect=qemu+ssh://you@c/session"])
    assert {name: uri.user for name, uri in build_network(moved).hosts.items()} == {"c": "you"}
    with pytest.raises(BadInput, match="there is no host 'd'"):
        load_topology(path, ["hosts.d.connect=qemu+ssh://you@c/session"])
