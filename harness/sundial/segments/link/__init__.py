# SPDX-License-Identifier: Apache-2.0
"""Two ports, full duplex, with the impairments of tc-netem."""
