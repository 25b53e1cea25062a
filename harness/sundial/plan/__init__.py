# SPDX-License-Identifier: Apache-2.0
"""Pure: an experiment in, a plan out: the fabric's configuration, and a job and a domain for each machine.

Start at `build.plan_run` and `build.plan_topology`.
"""
