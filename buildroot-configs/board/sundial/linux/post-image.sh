#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Called by Buildroot with BINARIES_DIR as argument after the images were made: kernel, initrd and the kernel's
# configuration in a folder linux, as the package sss-core leaves its own in a folder ssscore.
set -eu

images=$1

mkdir -p "$images/linux"
cp "$images/vmlinux" "$images/linux/kernel"
cp "$images/rootfs.cpio" "$images/linux/initrd"
for tree in "$BUILD_DIR"/linux-[0-9c]*; do
    cp "$tree/.config" "$images/linux/config"
done
