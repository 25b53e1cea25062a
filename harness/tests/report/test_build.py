# SPDX-License-Identifier: Apache-2.0
"""The whole report from made-up run directories: complete, broken, empty, large."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from sundial.errors import BadInput
from sundial.report import build
from sundial.report.build import build_report
from sundial.report.load import load
from tests.growth import NEAR_LINEAR, growth
from tests.report import synthetic

FIGURES = {"latency-throughput", "packets", "stages", "distributions"}
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Checks nesting while reading, and collects ids, references and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self._collect(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._collect(attrs)

    def _collect(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href", "action", "data", "srcset"):
                self.references.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "quickstart-two-hosts-10base-t-42-001"
    synthetic.make(folder, synthetic.two_hosts(series=2, calls=6))
    build_report(folder)
    return folder


def page(folder: Path) -> Page:
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def test_a_complete_run_has_every_part(quickstart: Path) -> None:
    text = page(quickstart).text
    for words in (
        "quickstart on two-hosts-10base-t",
        "calls match the protocol",
        "02:53:44:00:00:01",
        "Sun RPC / UDP",
        "raw / TCP",
        "./sundial run quickstart --topology two-hosts-10base-t --seed 42 --set calls=20",
        "wire/lan.pcapng",
        "ab" * 32,
        "ef" * 32,
        "Binding (port mapper)",
        "1 834.0",
        "Counters of the wires",
        "AMD EPYC 7B13",
        "./sundial open quickstart-two-hosts-10base-t-42-001",
        "Frames outside calls",
    ):
        assert words in text, words
    assert "undefined" not in text.lower()
    assert "None" not in text


def test_the_page_stands_alone(quickstart: Path) -> None:
    html = (quickstart / "report.html").read_text(encoding="utf-8")
    found = page(quickstart)
    assert "script" not in found.tags
    assert "link" not in found.tags
    assert re.findall(r"https?://|//[a-z]", html) == []
    assert re.findall(r"@import|url\((?!#)", html) == []
    for reference in found.references:
        if reference.startswith("#"):
            assert reference[1:] in found.ids
        else:
            assert (quickstart / reference).is_file(), reference


def test_ids_are_unique(quickstart: Path) -> None:
    ids = page(quickstart).ids
    assert len(ids) == len(set(ids))


def test_both_themes_and_paper_are_styled(quickstart: Path) -> None:
    html = (quickstart / "report.html").read_text(encoding="utf-8")
    assert "@media (prefers-color-scheme: dark)" in html
    assert "@media print" in html
    body = html.split("</style>", 1)[1]
    # Every colour inside the drawings is a role, so that the dark theme reaches it.
    assert set(re.findall(r"(?:fill|stroke)[:=]\s*\"?(#[0-9a-fA-F]{6})", body)) == set()


def test_figures_are_written_as_svg(quickstart: Path) -> None:
    made = {path.name for path in (quickstart / "figures").iterdir()}
    assert {f"{stem}.svg" for stem in FIGURES} <= made
    assert not any(name.endswith(".png") for name in made)
    assert ".png" not in (quickstart / "report.html").read_text(encoding="utf-8")
    assert "topology.svg" in made
    assert "series-spread.svg" in made


def test_a_second_report_with_png_is_the_first_and_pictures(quickstart: Path, tmp_path: Path) -> None:
    again = tmp_path / quickstart.name
    shutil.copytree(quickstart, again, ignore=shutil.ignore_patterns("figures", "report.html", "summary.csv"))
    paths = build_report(again, png=True)
    assert paths.summary.read_bytes() == (quickstart / "summary.csv").read_bytes()
    made = {path.name: path for path in paths.figures}
    assert {f"{stem}.png" for stem in FIGURES} <= made.keys()
    for name in (name for name in made if not name.endswith(".png")):
        assert made[name].read_bytes() == (quickstart / "figures" / name).read_bytes(), name
    html = paths.html.read_text(encoding="utf-8")
    first = (quickstart / "report.html").read_text("utf-8")
    assert re.sub(r' · <a href="figures/[a-z-]+\.png">PNG</a>', "", html) == first
    assert all(f'href="figures/{stem}.png"' in html for stem in FIGURES)
    for path in (path for path in paths.figures if path.suffix == ".png"):
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("L"))
        assert pixels.shape[1] == 1440, path.name
        assert 0.003 < (pixels < 200).mean() < 0.7, path.name


def test_summary_csv(quickstart: Path) -> None:
    table = pl.read_csv(quickstart / "summary.csv")
    assert table.columns == [
        "app", "transport", "procedure", "size", "client", "calls", "ok", "errors", "retransmissions",
        "rtt_min_us", "rtt_median_us", "rtt_mean_us", "rtt_p95_us", "rtt_p99_us", "rtt_max_us", "rtt_stddev_us",
        "series", "series_dropped", "throughput_kBps", "throughput_stddev_pct", "series_min_kBps", "series_max_kBps",
        "statistic",
    ]  # fmt: skip
    assert table.height == 4 * len(synthetic.QUICKSTART_SIZES) - 1  # raw TCP has no size 0
    assert table["calls"].unique().to_list() == [12]
    assert (table["rtt_min_us"] <= table["rtt_median_us"]).all()


def test_the_wire_minimum_lies_below_every_call(quickstart: Path) -> None:
    from sundial.report import expected, topology_read, wire_time
    from sundial.report.workload import Setting

    data = load(quickstart)
    topology = topology_read.read(data.run)
    out, back = wire_time.hops(topology, "client", "server"), wire_time.hops(topology, "server", "client")
    assert out
    assert back
    for curve in synthetic.CURVES:
        rows = data.samples.filter(pl.col("app") == curve[0], pl.col("transport") == curve[1])
        floor = expected.wire_minimum(Setting(curve), rows["size"].unique().to_list(), out, back)
        assert floor is not None
        for size, least in zip(floor.sizes, floor.us, strict=True):
            fastest = rows.filter(pl.col("size") == size)["rtt_ns"].min()
            assert fastest is None or fastest / 1000 > least  # type: ignore[operator]


def test_mismatches_are_shown_with_a_filter_to_paste(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path / "run", synthetic.two_hosts(calls=5, mismatched_sizes=[1444, 2909]))
    build_report(run, drawn=False)
    html = (run / "report.html").read_text(encoding="utf-8")
    found = page(run)
    assert "4 mismatches between capture and protocol." in found.text  # Sun RPC and raw, both over UDP
    assert "rpc.xid == 0xdeadbeef || (ip.id == 0x1a2b && ip.src == 10.0.0.1)" in found.text
    assert '<section class="verdict fail">' in html
    assert html.count('<tr class="alarm">') == 4
    assert "FAIL" in found.text


def test_kedziera98_is_named_and_applied(tmp_path: Path) -> None:
    plan = synthetic.two_hosts(series=4, calls=4, sizes=[16, 1024, 8192], statistic="kedziera98")
    run = synthetic.make(tmp_path / "run", plan)
    build_report(run, drawn=False)
    assert "lowest throughput is dropped" in page(run).text
    table = pl.read_csv(run / "summary.csv")
    assert table["series_dropped"].unique().to_list() == [1]
    assert (table["throughput_kBps"] > table["series_min_kBps"]).all()


def test_loss_gets_its_figure(tmp_path: Path) -> None:
    plan = synthetic.wan(curves=synthetic.CURVES[:2], calls=40, sizes=[16, 1024, 8192])
    run = synthetic.make(tmp_path / "run", plan)
    build_report(run)
    assert (run / "figures" / "retransmissions.svg").is_file()
    assert "loss 5 %" in page(run).text


def test_many_clients_are_compared(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path / "run", synthetic.office(calls=4, sizes=[16, 4096], curves=synthetic.CURVES[:2]))
    build_report(run)
    assert (run / "figures" / "clients.svg").is_file()
    assert "5 clients" in page(run).text
    assert pl.read_csv(run / "summary.csv")["client"].n_unique() == 5


def test_bars_of_curves_with_different_sizes_stand_at_their_own(tmp_path: Path) -> None:
    """Size 0 is made by UDP alone; the panels share one axis and must name it rightly."""
    plan = synthetic.two_hosts(calls=2, sizes=[0, 16, 1024], curves=synthetic.CURVES[2:])
    run = synthetic.make(tmp_path / "run", plan)
    build_report(run)
    labels = re.findall(r">(\d+)</text>", (run / "figures" / "stages.svg").read_text(encoding="utf-8"))
    assert [labels.count(size) for size in ("16", "1024")] == [2, 2]
    assert labels.index("16") < labels.index("1024")


def test_iperf3_results_get_a_table(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path / "run", synthetic.two_hosts(calls=2, sizes=[16]))
    result = {"type": "iperf3", "transport": "tcp", "seconds": 2.0, "bits_per_second": 9_412_345.5, "retransmits": 0}
    with (run / "nodes" / "client" / "samples.jsonl").open("a") as stream:
        stream.write(json.dumps(result) + "\n")
    build_report(run, drawn=False)
    assert "9.412" in page(run).text


def test_without_run_json_it_is_no_run_directory(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"run\.json: is missing"):
        build_report(tmp_path)
    (tmp_path / "run.json").write_text("[1]")
    with pytest.raises(BadInput, match="not a JSON object"):
        build_report(tmp_path)


def test_run_json_alone_is_enough(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    paths = build_report(tmp_path)
    found = page(tmp_path)
    assert "not verified" in found.text
    assert "samples.parquet is missing" in found.text
    assert "No calls were recorded." in found.text
    assert pl.read_csv(paths.summary).height == 0


def test_a_failed_run_shows_error_and_console(tmp_path: Path) -> None:
    run = tmp_path / "run"
    error = {
        "error": "RunFailed",
        "exit_code": 4,
        "message": "server: the guest died at 1.203 s",
        "hint": "see nodes/server/console.log",
        "machine": "server",
        "console_tail": ["Kernel panic - not syncing: <made up>"],
    }
    plan = synthetic.two_hosts(calls=3, sizes=[16, 1024], extra={"status": "failed", "error": error, "captures": {}})
    synthetic.make(run, plan)
    for name in ("observed.parquet", "verify.json", "wire/counters.json"):
        (run / name).unlink()
    console = run / "nodes" / "server" / "console.log"
    console.write_bytes(console.read_bytes() + b"\x1b[31mlast \xff words\x00\n")
    build_report(run)
    text = page(run).text
    assert "server: the guest died at 1.203 s" in text
    assert "Kernel panic - not syncing: <made up>" in text
    assert re.search(r"last .* words", text)
    assert "verify.json is missing" in text
    assert (run / "figures" / "latency-throughput.svg").is_file()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((name, content) for name in ("samples.parquet", "observed.parquet") for content in (None, b"", b"garbage")),
        *((name, content) for name in ("verify.json", "wire/counters.json") for content in (None, b"{", b"[]")),
        ("nodes/client/samples.jsonl", None),
        ("nodes/client/samples.jsonl", b"\x00garbage"),
        ("nodes/client/job.json", b"["),
    ],
)
def test_any_file_may_be_missing_or_broken(tmp_path: Path, name: str, content: bytes | None) -> None:
    run = synthetic.make(tmp_path / "run", synthetic.two_hosts(calls=2, sizes=[16], curves=synthetic.CURVES[:1]))
    if content is None:
        (run / name).unlink()
    else:
        (run / name).write_bytes(content)
    build_report(run, drawn=content is None)  # what is broken is drawn as if it were missing
    assert "quickstart" in page(run).text


def test_empty_tables(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path / "run", synthetic.two_hosts(calls=2, sizes=[16]))
    for name in ("samples.parquet", "observed.parquet"):
        pl.read_parquet(run / name).clear().write_parquet(run / name)
    build_report(run)
    assert "No calls were recorded." in page(run).text


def test_a_run_of_programs_says_which_machine_serves_and_counts_no_calls(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path / "run", synthetic.two_hosts(calls=2, sizes=[16]))
    for name in ("samples.parquet", "observed.parquet"):
        pl.read_parquet(run / name).clear().write_parquet(run / name)
    verify = json.loads((run / "verify.json").read_text()) | {"verdict": "pass", "mismatches": 0, "calls": 0}
    (run / "verify.json").write_text(json.dumps(verify))
    for machine, role in (("client", "service"), ("server", "job")):
        step = {"app": "command", "options": {"programs": [{"name": "p", "role": role}]}}
        (run / "nodes" / machine / "job.json").write_text(json.dumps({"services": [], "steps": [step]}))
    _, topology = build._read(load(run))
    assert {each.name: each.role for each in topology.machines} == {"client": "server", "server": "client"}
    build_report(run)
    assert "All frames match the protocol." in page(run).text


def test_calls_that_all_failed(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path / "run", synthetic.two_hosts(calls=2, sizes=[16, 32]))
    pl.read_parquet(run / "samples.parquet").with_columns(ok=pl.lit(False)).write_parquet(run / "samples.parquet")
    build_report(run)
    assert (run / "figures" / "retransmissions.svg").is_file()


def test_old_figures_are_removed(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path / "run", synthetic.two_hosts(calls=2, sizes=[16]))
    (run / "figures").mkdir()
    (run / "figures" / "old.svg").write_text("old")
    build_report(run, drawn=False)
    assert not (run / "figures" / "old.svg").exists()


def test_words_of_the_run_cannot_become_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    plan = synthetic.two_hosts(calls=2, sizes=[16], extra={"command": [evil], "host": {evil: evil}, "seed": evil})
    run = synthetic.make(tmp_path / "run", plan)
    build_report(run, drawn=False)
    assert "script" not in page(run).tags


def test_real_clock_does_not_split_the_client(tmp_path: Path) -> None:
    plan = synthetic.two_hosts(calls=3, sizes=[16, 1024], curves=synthetic.CURVES[:1], extra={"clock": "real"})
    run = synthetic.make(tmp_path / "run", plan)
    build_report(run)
    text = page(run).text
    assert "client: call" not in text
    assert "guests have separate clocks" in text


def test_sample_stream_is_read_without_its_calls(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path / "run", synthetic.two_hosts(calls=2, sizes=[16]))
    with (run / "nodes" / "client" / "samples.jsonl").open("a") as stream:
        stream.write(
            '{"type":"error","step":0,"app":"echo-client","message":"no reply"}\n{"type":"alive"}\n{"type":"cut'
        )
    records = load(run).records
    assert set(records) == {"hello", "batch", "binding", "done", "counters", "error", "garbled"}
    assert [record["port"] for record in records["binding"]] == [1025, 1026]


def test_finished_samples_are_read_from_the_streams_of_a_failed_run(tmp_path: Path) -> None:
    plan = synthetic.two_hosts(calls=2, sizes=[16], extra={"status": "failed", "error": {"message": "fabric: killed"}})
    run = synthetic.make(tmp_path / "run", plan)
    (run / "samples.parquet").unlink()
    batch = {"type": "batch", "step": 0, "app": "echo-client", "series": 0, "transport": "udp", "procedure": "echo",
             "size": 16, "thread": 0, "server": "10.0.0.2", "server_port": 1025, "client_port": 700, "warmup": 1,
             "columns": ["call", "start", "end", "ok", "retransmits", "xid", "error"]}  # fmt: skip
    rows = [[k, 1_000_000 * k, 1_000_000 * k + 500_000, 1, 0, 7 + k, None] for k in range(4)]
    stream = run / "nodes" / "client" / "samples.jsonl"
    stream.write_text("".join(json.dumps(line) + "\n" for line in [batch, *rows]) + "[4, 40000")
    build_report(run, drawn=False)
    table = pl.read_csv(run / "summary.csv")
    assert table.select("calls", "ok", "rtt_median_us").row(0) == (3, 3, 500.0)
    assert "fabric: killed" in page(run).text


@pytest.mark.night
@pytest.mark.timeout(900)
def test_time_grows_with_the_number_of_calls(tmp_path: Path) -> None:
    """Of 512 sizes and 4 series, as kedziera98 has them."""

    def work(calls: int) -> Callable[[], object]:
        plan = synthetic.two_hosts(sizes=range(16, 8193, 64), calls=calls, series=4, warmup=0, statistic="kedziera98")
        run = synthetic.make(tmp_path / f"run-{calls}", plan)
        return lambda: build_report(run)

    assert growth(work, small=50) < NEAR_LINEAR
