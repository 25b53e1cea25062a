# SPDX-License-Identifier: Apache-2.0
"""A backplane that carries stores from memory to memory: virtual memory-mapped communication (SHRIMP)."""
