# SPDX-License-Identifier: Apache-2.0
"""The command line: parses and prints, nothing else. One file a verb; `main` puts them together."""
