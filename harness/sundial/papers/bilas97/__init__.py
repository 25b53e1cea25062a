# SPDX-License-Identifier: Apache-2.0
"""Bilas and Felten: RPC on the SHRIMP virtual memory-mapped network interface."""
