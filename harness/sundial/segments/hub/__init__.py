# SPDX-License-Identifier: Apache-2.0
"""A repeater with half-duplex stations: CSMA/CD (IEEE 802.3, clauses 4, 9 and 27)."""
