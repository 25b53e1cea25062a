# SPDX-License-Identifier: Apache-2.0
"""What kinds of workloads share: services of one server, bands of sizes, the order of curves."""

from itertools import permutations

import pytest

from sundial.errors import BadInput
from sundial.model.scenario import STATISTICS
from sundial.model.workload import Sized
from sundial.plan.calling import bands
from sundial.plan.workload import Service
from sundial.report import palette


def test_one_service_has_the_transports_of_both_workloads() -> None:
    first = Service("echo", {"transports": ["udp"], "buffer": 5}, bound=True)
    second = Service("echo", {"transports": ["tcp", "udp"], "buffer": 5}, bound=True, restart=True)
    merged = first.merged(second, "server")
    assert merged == Service("echo", {"buffer": 5, "transports": ["udp", "tcp"]}, bound=True, restart=True)
    assert list(merged.options) == ["buffer", "transports"]


def test_one_service_cannot_have_two_values_of_an_option() -> None:
    with pytest.raises(BadInput, match="two workloads configure echo on 'server' differently"):
        Service("echo", {"buffer": 5}).merged(Service("echo", {}), "server")


def sized(**fields: object) -> Sized:
    return Sized.model_validate({"sizes": [1, 2, 3, 4, 5, 6], **fields})


def test_sizes_are_banded_by_calls_and_cut() -> None:
    assert bands(sized(calls={0: 9, 4: 2}), 0, 1) == [(9, [1, 2, 3]), (2, [4, 5, 6])]
    assert bands(sized(calls={0: 9, 4: 2}), 0, 1, most=2) == [(9, [1, 2]), (9, [3]), (2, [4, 5]), (2, [6])]
    assert bands(sized(calls=5), 0, 1, sizeless=True) == [(5, [0])]
    assert bands(sized(calls={0: 9, 7: 2}), 0, 1) == [(9, [1, 2, 3, 4, 5, 6])]


def test_seeded_bands_differ_by_series_and_seed() -> None:
    drawn = [bands(sized(order="seeded"), series, seed)[0][1] for series, seed in ((0, 1), (1, 1), (0, 2))]
    assert len({tuple(order) for order in drawn}) == 3
    assert all(sorted(order) == [1, 2, 3, 4, 5, 6] for order in drawn)


def test_curves_look_the_same_whatever_order_they_come_in() -> None:
    curves = [("echo-client", name, "echo") for name in ("mbcf3", "udp", "mbcf12", "tcp")] + [
        ("raw-client", "udp", "echo")
    ]
    looks = [list(palette.looks(list(order)).items()) for order in permutations(curves)]
    assert all(look == looks[0] for look in looks)
    labels = [look.label for _, look in looks[0]]
    assert labels == ["Sun RPC / UDP", "Sun RPC / TCP", "Sun RPC / MBCF12", "Sun RPC / MBCF3", "raw / UDP"]


def test_a_paper_says_how_many_series_it_drops() -> None:
    assert [STATISTICS["mean"].dropped(series) for series in (1, 2, 10)] == [0, 0, 0]
    assert [STATISTICS["kedziera98"].dropped(series) for series in (1, 2, 10)] == [0, 1, 1]
