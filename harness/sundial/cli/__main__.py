# SPDX-License-Identifier: Apache-2.0
"""`python -m sundial.cli`; the launcher in the checkout's root calls this file with -P and -S.

Python's own start-up answers Ctrl-C with a traceback. -S leaves most of it to this file, -P keeps this folder from
hiding modules of the same names, and what takes long are the imports: a second on a busy host.
"""

import gc
import os
import sys
from pathlib import Path

# Imports and tables make many objects that stay: looking for garbage among them every 700 takes a tenth of a short run.
gc.set_threshold(100_000)
# Pydantic has none here, and looking for them reads what every package says of itself.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
if sys.dont_write_bytecode:
    # PYTHONDONTWRITEBYTECODE, which containers like to set: nothing beside the sources then, but compiling them all
    # takes every command half a second.
    sys.pycache_prefix = str(Path(__file__).resolve().parents[3] / ".sundial" / "pycache")
    sys.dont_write_bytecode = False

try:
    import site

    if sys.flags.no_site:
        site.main()
    from sundial.cli.main import main
except KeyboardInterrupt:
    print("sundial: interrupted", file=sys.stderr)
    sys.exit(130)

main()
