# SPDX-License-Identifier: Apache-2.0
#
# The generator of ShrimpRPC's stubs and what it generates, compiled and called; part of `make check`.

.PHONY: check-shrimp
check: check-shrimp

check-shrimp:
	$(PYTHON) -m pytest -q shrimp/tests
