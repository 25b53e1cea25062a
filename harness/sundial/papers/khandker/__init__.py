# SPDX-License-Identifier: Apache-2.0
"""Khandker, Honeyman, Teorey: Performance of DCE RPC."""
