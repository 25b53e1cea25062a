# SPDX-License-Identifier: Apache-2.0
"""Tables to report.html, figures and summary.csv; begin with `build.build_report`.

`stats`, `stages`, `wire_time`, `expected` and `cells` compute; `figures*` and `topology_*` draw; `tables*` and
`headline` put into words; `registry` asks the kinds of workloads, `topology_read` those of segments; `build` assembles.
"""
