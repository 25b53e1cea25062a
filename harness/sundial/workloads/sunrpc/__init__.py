# SPDX-License-Identifier: Apache-2.0
"""ONC RPC over sockets and over memory-based communication."""
