# SPDX-License-Identifier: Apache-2.0
"""The same echo as Sun RPC's over plain sockets."""
