# SPDX-License-Identifier: Apache-2.0
"""Memory-based communication; `wire` has its bytes and numbers."""
