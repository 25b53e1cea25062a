# SPDX-License-Identifier: Apache-2.0
"""A kind of segment: adapters around an ATM switch, with LAN emulation, bridged frames or classical IP."""
