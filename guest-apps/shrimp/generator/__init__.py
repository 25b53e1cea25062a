# SPDX-License-Identifier: Apache-2.0
"""From an interface in RPC language (RFC 5531) to stubs in C: `language` < `layout` < `pieces` < `emit` < `command`."""
