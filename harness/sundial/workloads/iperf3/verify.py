# SPDX-License-Identifier: Apache-2.0
"""iperf3's streams are no calls: their frames are counted, and nothing is said about them."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.samples import RunSamples
from sundial.verify.workload import Background, Verifier, WorkloadVerifier

PORT = 5201


class _Iperf3(Verifier):
    def background(
        self, run: RunDirectory, frames: pl.DataFrame, samples: RunSamples, ahead_ns: Mapping[str, int]
    ) -> Background:
        if not _is_in(run):
            return Background()
        own = pl.any_horizontal(pl.col("source_port") == PORT, pl.col("target_port") == PORT)
        return Background(classes=frames.filter(own).select("row", pl.lit("iperf3").alias("class")))


def _is_in(run: RunDirectory) -> bool:
    return any(
        str(task.get("app", "")).startswith("iperf3")
        for job in run.jobs.values()
        for task in (*job.get("services", []), *job.get("steps", []))
    )


KIND: WorkloadVerifier = _Iperf3()
