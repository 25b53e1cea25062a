#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs `cargo ARGUMENT...`, which compiles the fabric; $1 names what is built. Where clones share CARGO_BUILD_BUILD_DIR, cargo
# would build the fabric's own crates in each: it compares times of files, and those of a clone are new. Here the sources get
# an old time if they are as they were when the same command last succeeded.
set -eu
name=$1
shift
[ -n "${CARGO_BUILD_BUILD_DIR:-}" ] || exec cargo "$@"
harness=$(dirname "$0")/..

sources() {
    find "$harness/fabric" "$harness/clock" \( -name target -o -name build \) -prune -o -type f "$@" -print0 | sort -z
}

# Each command as it was, the sources and all that cargo is told otherwise.
digest() {
    {
        cargo --version
        env | grep -E '^(CARGO_PROFILE|CARGO_INCREMENTAL|RUST|CLIPPY)' | sort
        printf '%s\n' "$@"
        sources | xargs -0 sha256sum
    } | sha256sum
}

mkdir -p "$CARGO_BUILD_BUILD_DIR"
exec 9>"$CARGO_BUILD_BUILD_DIR/sources.lock"
flock 9
inputs=$CARGO_BUILD_BUILD_DIR/$name.inputs
now=$(digest "$@")
if [ "$(cat "$inputs" 2>/dev/null)" = "$now" ]; then
    sources | xargs -0 touch -d @1
else
    rm -f "$inputs"
    # Those that are of another command's last success.
    sources -not -newermt @1 | xargs -0r touch
fi
cargo "$@" 9>&-
printf '%s\n' "$now" >"$inputs"
