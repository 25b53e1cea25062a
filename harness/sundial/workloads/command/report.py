# SPDX-License-Identifier: Apache-2.0
"""Programs in reports: each with its times, its end and what it wrote; there are no calls."""

from __future__ import annotations

from sundial.report.tables_run import RecordsAlone
from sundial.report.workload import WorkloadReport

KIND: WorkloadReport = RecordsAlone("programs", "program")
