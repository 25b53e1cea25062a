#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Laid into a machine's root by two-hosts-own-files.yaml; it runs there, not on the host.
cat /etc/motd
echo "I am $(hostname), kernel $(uname -r); my neighbours:"
cat /etc/neighbours
