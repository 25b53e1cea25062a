# SPDX-License-Identifier: Apache-2.0
"""What verifiers of kinds share: machines replayed against captures, who called whom, and the result of a kind."""
