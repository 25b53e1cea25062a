# SPDX-License-Identifier: Apache-2.0
"""The formats between the parts of Sundial as typed models; harness/schemas/README.md describes them.

One module for each format. Additional fields of a kind of segment or of an application are open here; that kind checks
them. `python -m sundial.seams.write` writes the JSON Schemas.
"""
