# SPDX-License-Identifier: Apache-2.0
"""Runs of a sweep on other hosts, placed by Dask.distributed, which is optional."""
