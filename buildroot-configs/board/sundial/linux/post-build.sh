#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Called by Buildroot with TARGET_DIR as argument before the root file system is packed.
set -eu

target=$1
image=$(dirname "$0")/../../../../images/linux

install -m 0755 "$image/init" "$target/init"
install -m 0644 "$image"/etc/* "$target/etc/"
# The first process, the runner and the shell's profile look for programs in /bin alone.
for path in sbin/ifconfig sbin/ip sbin/modprobe sbin/tc usr/bin/iperf3 usr/bin/tcpdump usr/sbin/ethtool usr/sbin/rpcbind; do
    [ -e "$target/$path" ] || [ -L "$target/$path" ] || {
        echo "post-build.sh: $path is missing" >&2
        exit 1
    }
    ln -sf "../$path" "$target/bin/${path##*/}"
done
# Nothing is a module; modprobe is content where it finds a name in the kernel's own list.
for tree in "$BUILD_DIR"/linux-[0-9c]*; do
    modules=$target/lib/modules/$(cat "$tree/include/config/kernel.release")
    mkdir -p "$modules"
    cp "$tree/modules.builtin" "$modules/"
    : >"$modules/modules.dep"
done
# The runner starts what a job names, nothing else starts; and what is never used is memory of each machine.
rm -rf "$target/etc/init.d" "$target/etc/network" "${target:?}/usr/share"
rm -f "$target"/usr/bin/tcpdump.* "$target/usr/bin/rpcinfo"
for name in bridge ctstat genl ifstat lnstat nstat routel rtacct rtmon rtstat ss; do
    rm -f "$target/sbin/$name"
done
# A program that asks for a dynamic linker ends with status 127 where there is none.
find "$target" -type f | while read -r file; do
    linker=$(readelf -lW "$file" 2>/dev/null | sed -n 's/.*program interpreter: \(.*\)]$/\1/p')
    if [ -n "$linker" ] && ! [ -e "$target$linker" ] && ! [ -L "$target$linker" ]; then
        echo "post-build.sh: ${file#"$target/"} is not linked statically, and $linker is missing" >&2
        exit 1
    fi
done
