# SPDX-License-Identifier: Apache-2.0
"""Limits of the host: raised where they may be, and refused in one line where they are too little."""

from __future__ import annotations

import resource

import pytest

from sundial import limits
from sundial.errors import HostLacks
from sundial.model.load import load_topology
from sundial.model.network import build_network
from sundial.run import needs

FILES, MEMORY = resource.RLIMIT_NOFILE, resource.RLIMIT_AS
NEVER = resource.RLIM_INFINITY


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> dict[int, tuple[int, int]]:
    """Soft and hard limits of a host that is not this one."""
    have = {FILES: (1024, 4096), MEMORY: (NEVER, NEVER)}
    monkeypatch.setattr(resource, "getrlimit", have.__getitem__)
    monkeypatch.setattr(resource, "setrlimit", have.__setitem__)
    return have


@pytest.mark.parametrize(
    ("have", "then"),
    [((1024, 4096), (1024, 4096)), ((12, 4096), (64, 4096)), ((12, NEVER), (64, NEVER)), ((NEVER, NEVER),) * 2],
)
def test_a_soft_limit_is_raised_as_far_as_needed(
    host: dict[int, tuple[int, int]], have: tuple[int, int], then: tuple[int, int]
) -> None:
    host[FILES] = have
    limits.require(64, 1 << 30)
    assert host[FILES] == then


@pytest.mark.parametrize(
    ("limit", "have", "words", "hint"),
    [
        (FILES, (12, 12), "the limit of open files is 12; this command needs 64", "ulimit -n 64"),
        (MEMORY, (600 << 20,) * 2, "the limit of virtual memory is 600 MiB; this command needs 2048 MiB",
         "ulimit -v unlimited"),
    ],
)  # fmt: skip
def test_too_little_is_refused(
    host: dict[int, tuple[int, int]], limit: int, have: tuple[int, int], words: str, hint: str
) -> None:
    host[limit] = have
    with pytest.raises(HostLacks) as raised:
        limits.require(64, 2 << 30)
    assert (raised.value.message, raised.value.hint, raised.value.exit_code) == (words, hint, 3)


def test_more_machines_need_more_files(host: dict[int, tuple[int, int]]) -> None:
    host[FILES] = (1, 1 << 20)
    for topology, files in (("two-hosts-10base-t", 48), ("office", 80)):
        needs.require_for(build_network(load_topology(topology)))
        assert host[FILES][0] == files


def test_a_machine_with_much_memory_needs_it(host: dict[int, tuple[int, int]]) -> None:
    host[MEMORY] = (3 << 30, 3 << 30)
    needs.require_for(build_network(load_topology("two-hosts-10base-t")))
    large = load_topology("two-hosts-10base-t", ["machines.server.memory=3 GiB"])
    with pytest.raises(HostLacks, match="virtual memory is 3072 MiB"):
        needs.require_for(build_network(large))
