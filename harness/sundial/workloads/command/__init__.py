# SPDX-License-Identifier: Apache-2.0
"""Any programs, started in order on any machines, with proof of their traffic below its meaning."""
