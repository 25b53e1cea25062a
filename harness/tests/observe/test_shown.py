# SPDX-License-Identifier: Apache-2.0
"""What tshark prints, whatever its version, as columns of the table of frames."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.observe.asked import Field, shown


@pytest.mark.parametrize("printed", ["53444c31,00ff", "53:44:4c:31,00:ff"], ids=["4.0", "4.4"])
def test_octets(printed: str) -> None:
    text = pl.DataFrame({"udp.payload": [printed, None], "ip.proto": ["17", "17"]})
    fields = [Field("udp_head", "udp.payload", "octets"), Field("protocol", "ip.proto", "number")]
    table = text.select(**shown(text, fields))
    assert table["udp_head"].to_list() == ["53444c31,00ff", None]


@pytest.mark.parametrize(
    ("printed", "number"), [("16", 16), ("0x10", 16), ("16,9", 16), ("0x0010,0x9", 16), ("", None), ("junk", None)]
)
def test_the_first_number(printed: str, number: int | None) -> None:
    text = pl.DataFrame({"ip.id": [printed]})
    assert text.select(**shown(text, [Field("ip_id", "ip.id", "number")]))["ip_id"].to_list() == [number]
