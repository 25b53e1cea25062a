# SPDX-License-Identifier: Apache-2.0
"""`python -m sundial.cli`; the launcher in the checkout's root calls this file with -P and -S.

Python's own start-up answers Ctrl-C with a traceback. -S leaves most of it to this file, -P keeps this folder from
hiding modules of the same names, and what takes long are the imports: a second on a busy host.
"""

import sys

try:
    import site

    if sys.flags.no_site:
        site.main()
    from sundial.cli.main import main
except KeyboardInterrupt:
    print("sundial: interrupted", file=sys.stderr)
    sys.exit(130)

main()
