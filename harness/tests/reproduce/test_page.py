# SPDX-License-Identifier: Apache-2.0
"""report.html of a reproduction, from what was said to what is shown."""

from __future__ import annotations

from pathlib import Path

from sundial.reproduce.page import Page, write_page
from sundial.reproduce.runs import Bench, Made
from sundial.reproduce.worker import OneByOne
from tests.reproduce.house import House
from tests.reproduce.test_perform import Words


def test_what_a_run_died_of_is_escaped_once(tmp_path: Path) -> None:
    house = House()
    bench = Bench(tmp_path, 7, "embedded", house.doors(), Words(), OneByOne(house.making))
    bench.made.append(Made("null-calls", "null calls", "failed", 0, 0, "client: a < b && c isn't <b>"))
    page = Page("paper", "An author: A title.", [], [], {}, [])
    text = write_page(tmp_path, page, bench, ("sundial", "reproduce", "paper")).read_text()
    assert "client: a &lt; b &amp;&amp; c isn&#39;t &lt;b&gt;" in text
    assert "&amp;lt;" not in text
