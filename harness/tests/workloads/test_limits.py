# SPDX-License-Identifier: Apache-2.0
"""How much each workload carries."""

import pytest

from sundial.workloads.mbcf.model import size_limit as mbcf_limit
from sundial.workloads.raw.model import size_limit as raw_limit
from sundial.workloads.sunrpc.limits import credentials, size_limit
from sundial.workloads.sunrpc.scenario import SunRpc


@pytest.mark.parametrize(
    ("fields", "transport", "procedure", "limit"),
    [
        ({}, "udp", "echo", 8756),
        ({}, "udp", "echo_string", 8756),
        ({}, "tcp", "echo_string", 9000),
        ({}, "udp", "source", 8772),
        ({"auth": "sys"}, "udp", "echo", 8728),
        ({"udp_message_size": "60000"}, "udp", "echo", 59956),
        ({}, "tcp", "echo", 1 << 20),
        ({}, "udp", "null", 0),
        ({}, "mbcf1", "echo", 1332),
        ({"auth": "sys"}, "mbcf1", "echo", 1304),
        ({}, "mbcf1", "source", 65536),
        ({}, "mbcf12", "echo_string", 9000),
    ],
)
def test_limits_of_sun_rpc(fields: dict[str, object], transport: str, procedure: str, limit: int) -> None:
    workload = SunRpc.model_validate({"app": "sunrpc", "transports": transport, "sizes": 0, **fields})
    assert size_limit(workload, transport, procedure, "client").most == limit


def test_limits_of_raw_sockets() -> None:
    assert raw_limit("udp").most == 65507
    assert raw_limit("tcp").least == 16


def test_limits_of_operations() -> None:
    sizes = {name: (mbcf_limit(name).least, mbcf_limit(name).most) for name in ("write", "signal", "swap")}
    assert sizes == {"write": (0, 131072), "signal": (0, 1376), "swap": (8, 8)}


def test_credentials_are_those_of_rfc_5531() -> None:
    workload = SunRpc.model_validate({"app": "sunrpc", "transports": "udp", "sizes": 0, "auth": "sys"})
    assert credentials(workload, "vm") == 24
    assert credentials(workload.model_copy(update={"auth": "none"}), "vm") == 0
