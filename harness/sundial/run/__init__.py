# SPDX-License-Identifier: Apache-2.0
"""One run, from plan to run directory, and topologies that stay up.

The command line calls `runner.run` and the functions of `keeper`. `supervisor` and `watchdog` decide and are pure;
`session`, `rig`, `fabric` and `watch` act.
"""
