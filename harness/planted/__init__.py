# SPDX-License-Identifier: Apache-2.0
"""Plants small faults in the product, one at a time, and says which of the tests notice each."""
