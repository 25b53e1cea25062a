# SPDX-License-Identifier: Apache-2.0
"""The loopback interface of a machine: the wire between programs of one guest, captured inside it."""
