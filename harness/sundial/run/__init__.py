# SPDX-License-Identifier: Apache-2.0
"""One run, from plan to run directory; and topologies that are brought up and left up.

`runner.run` and what `keeper` offers are what the command line calls. What decides is in `supervisor` and `watchdog`,
both pure; `session`, `launch`, `fabric` and `watch` do.
"""
