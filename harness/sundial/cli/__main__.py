# SPDX-License-Identifier: Apache-2.0
"""`python -m sundial.cli`, which the launcher in the checkout's root calls."""

from sundial.cli.main import main

main()
