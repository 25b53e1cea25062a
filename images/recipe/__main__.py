# SPDX-License-Identifier: Apache-2.0
"""`python3 -m recipe NAME`, which images/NAME/build calls."""

import sys

from recipe.image import main

sys.exit(main())
