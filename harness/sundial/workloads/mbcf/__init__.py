# SPDX-License-Identifier: Apache-2.0
"""Memory-based communication: operations on a server's memory, and the transports of Sun RPC over it."""
