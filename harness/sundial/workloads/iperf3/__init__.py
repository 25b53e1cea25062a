# SPDX-License-Identifier: Apache-2.0
"""Bulk throughput, measured by iperf3."""
