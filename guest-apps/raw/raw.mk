# SPDX-License-Identifier: Apache-2.0

RAW = raw/client.c raw/server.c raw/header.c raw/channel.c raw/iperf3-client.c raw/iperf3-server.c
