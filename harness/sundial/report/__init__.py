# SPDX-License-Identifier: Apache-2.0
"""Tables to report.html, figures and summary.csv.

`stats`, `stages`, `wire_time` and `expected` compute; `figures*` and `topology_svg` draw; `tables*` and `headline` put
into words; `build` assembles.
"""

from sundial.report.build import ReportPaths, build_report

__all__ = ["ReportPaths", "build_report"]
