#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A folder with a .mk is an application, and no other file is edited: registration.sh GUEST-APPS SCRATCH
set -eu
rm -rf "$2"
mkdir -p "$2/toy"
for file in "$1"/*; do
    ln -s "$(realpath "$file")" "$2/$(basename "$file")"
done
rm -f "$2/build"
cat > "$2/toy/toy.mk" <<'MK'
APPLETS += toy-client toy-server
SOURCES += toy/client.c toy/server.c
MK
for side in client server; do
    cat > "$2/toy/$side.c" <<C
#include "apps.h"
#include "samples.h"

int toy_${side}_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    samples_put_error("this is toy-$side");
    return 7;
}
C
done
make -s -C "$2" OUT="$2/out" SANITIZED=1 "$2/out/toy-client" "$2/out/toy-server"
for side in client server; do
    test "$(readlink "$2/out/toy-$side")" = apps
    status=0
    "$2/out/toy-$side" '{}' 3> "$2/said" || status=$?
    test $status = 7
    grep -q "this is toy-$side" "$2/said"
done
echo '@T registration ok'
