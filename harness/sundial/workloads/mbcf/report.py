# SPDX-License-Identifier: Apache-2.0
"""Operations of memory-based communication in reports."""

from __future__ import annotations

from collections.abc import Mapping

from sundial.report.workload import Client, WorkloadReport
from sundial.workloads.mbcf.observe import repeated
from sundial.workloads.mbcf.plan import CLIENT


class MbcfReport(WorkloadReport):
    """Operations, as the report asks for them."""

    clients: Mapping[str, Client] = {CLIENT: Client(CLIENT, repeats=repeated)}


KIND: WorkloadReport = MbcfReport()
