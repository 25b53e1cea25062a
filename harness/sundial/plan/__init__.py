# SPDX-License-Identifier: Apache-2.0
"""Pure: an experiment in, what to build out - the fabric's configuration, a job and a domain for each machine.

Start at `build.plan_run` and `build.plan_topology`.
"""
