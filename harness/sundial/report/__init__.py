# SPDX-License-Identifier: Apache-2.0
"""Tables to report.html, figures and summary.csv; begin with `build.build_report`.

`stats`, `stages`, `wire_time` and `expected` compute; `figures*` and `topology_svg` draw; `tables*` and `headline` put
into words; `registry` asks the kinds of workloads; `build` assembles.
"""
