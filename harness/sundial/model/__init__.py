# SPDX-License-Identifier: Apache-2.0
"""What the user wrote, validated: topologies and scenarios with file, line and field in every error.

Start at `load.load_experiments`. Nothing here starts anything or looks at the host; a file that is good here is good
everywhere.
"""
