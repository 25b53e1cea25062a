#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A folder with a .mk is an application, and no other file is edited: registration.sh GUEST-APPS SCRATCH SANITIZED-APPS
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
# Objects of the other applications are copied; what depends on the list of applications is compiled.
make -s -C "$2" OUT="$2/out" SANITIZED=1 "$2/out/applets.h" "$2/out/extras_apps.h"
for file in "$3"/*.h "$3"/*_xdr.c "$3/objects"; do
    [ -e "$2/out/$(basename "$file")" ] || cp -R "$file" "$2/out"
done
rm "$2/out/objects/common/apps.o" "$2/out/objects/runner/extras.o"
make -s -C "$2" OUT="$2/out" SANITIZED=1 "$2/out/toy-client" "$2/out/toy-server"
for side in client server; do
    test "$(readlink "$2/out/toy-$side")" = apps
    status=0
    "$2/out/toy-$side" '{}' 3> "$2/said" || status=$?
    test $status = 7
    grep -q "this is toy-$side" "$2/said"
done
echo '@T registration ok'
