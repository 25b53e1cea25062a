# SPDX-License-Identifier: Apache-2.0
"""DCE RPC, connectionless (C706, ncadg_ip_udp)."""
