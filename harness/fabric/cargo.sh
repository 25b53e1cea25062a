#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs `cargo build` or `cargo test` (then OPTION...) on the fabric. Where clones share CARGO_BUILD_BUILD_DIR, cargo would
# build the fabric's own crates in each: it compares times of files, and those of a clone are new. Here the sources get an
# old time if they are as they were when the same command last compiled them.
set -eu
command=$1
fabric=$(dirname "$0")
# Where all look for it, whatever the user's own environment or configuration says.
export CARGO_TARGET_DIR="$fabric/target"
[ -n "${CARGO_BUILD_BUILD_DIR:-}" ] || exec cargo "$@"

sources() {
    find "$fabric" -name target -prune -o -type f -print0 | sort -z
}

# The command, the options in the environment and the sources.
digest() {
    {
        cargo --version
        env | grep -E '^(CARGO_PROFILE|CARGO_INCREMENTAL|RUST|CLIPPY|SYNC)' | sort
        printf '%s\n' "$@"
        sources | xargs -0 sha256sum
    } | sha256sum
}

# What the plugin has, too, keeps its times: make compares them (io/build.rs).
SYNC_SHA256=$(cat "$fabric"/../clock/sync.[ch] | sha256sum)
export SYNC_SHA256
mkdir -p "$CARGO_BUILD_BUILD_DIR"
exec 9>"$CARGO_BUILD_BUILD_DIR/sources.lock"
flock 9
inputs=$CARGO_BUILD_BUILD_DIR/$command.inputs
now=$(digest "$@")
if [ "$(cat "$inputs" 2>/dev/null)" = "$now" ]; then
    sources | xargs -0 touch -d @1
else
    rm -f "$inputs"
    # All: another clone may have built other sources since these were written, and cargo would take its crates for theirs.
    sources | xargs -0 touch
fi
if [ "$command" = test ]; then
    cargo "$@" --no-run 9>&-
else
    cargo "$@" 9>&-
fi
printf '%s\n' "$now" >"$inputs"
[ "$command" != test ] || exec cargo "$@" 9>&-
