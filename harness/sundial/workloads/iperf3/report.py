# SPDX-License-Identifier: Apache-2.0
"""iperf3 in reports: its own results, as it makes no calls."""

from __future__ import annotations

from sundial.report.tables_run import RecordsAlone
from sundial.report.workload import WorkloadReport

KIND: WorkloadReport = RecordsAlone("iperf3", "iperf3")
