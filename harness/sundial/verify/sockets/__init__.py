# SPDX-License-Identifier: Apache-2.0
"""Calls over UDP and TCP against their packets, whatever protocol they speak."""
