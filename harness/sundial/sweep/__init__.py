# SPDX-License-Identifier: Apache-2.0
"""Many runs: what identifies one, where results are kept, which are made next, and what becomes of them."""
