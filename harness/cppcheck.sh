#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cppcheck over all C: what a compiler does not see. A finding that is wrong is suppressed where it is, with the reason.
# $1, where given, is a folder in which it keeps what it found in files that stay as they are.
set -eu
cd "$(dirname "$0")/.."
# readdirCalled: glibc's own manual advises against readdir_r.
# It keeps no account of its configuration: what was found with another is elsewhere.
[ -z "${1:-}" ] || { set -- "$1/$(sha256sum harness/cppcheck.cfg | cut -c1-16)"; mkdir -p "$1"; }
exec cppcheck ${1:+"--cppcheck-build-dir=$1"} --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr --std=c11 -j "$(nproc)" \
    --library=gnu --library=posix --library=harness/cppcheck.cfg --suppress=missingIncludeSystem --suppress=readdirCalled \
    --template='{file}:{line}: {severity}: {message} [{id}]' \
    -Iguest-apps/sss-core/include -Iguest-apps/sss-core/mbcf -Iguest-apps/sss-core/lib/include -Iguest-apps/sss-core/kernel \
    -Iguest-apps/common guest-apps harness/clock harness/benchmarks/frames harness/sundial/interface/runtime
