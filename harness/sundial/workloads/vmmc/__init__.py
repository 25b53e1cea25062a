# SPDX-License-Identifier: Apache-2.0
"""Virtual memory-mapped communication without RPC, and the home of all calls over a backplane."""
