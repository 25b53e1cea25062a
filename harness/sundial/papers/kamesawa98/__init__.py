# SPDX-License-Identifier: Apache-2.0
"""Kamesawa, Matsumoto, Hiraki (1998): Sun RPC on memory-based communication, against UDP."""
