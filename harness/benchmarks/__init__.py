# SPDX-License-Identifier: Apache-2.0
"""`make bench`: the figures that this project promises, measured side by side. README.md says what is fair and why."""
