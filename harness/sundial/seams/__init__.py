# SPDX-License-Identifier: Apache-2.0
"""The formats in which the parts of Sundial talk to one another, as typed models; prose in harness/schemas/README.md.

One module for each format. What a kind of segment or an application adds to a format stays open here and is checked
by that kind. `python -m sundial.seams.write` writes the JSON Schemas.
"""
