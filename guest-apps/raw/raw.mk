# SPDX-License-Identifier: Apache-2.0

APPLETS += raw-client raw-server iperf3-client iperf3-server
EXTRAS += iperf3-client iperf3-server
SOURCES += $(addprefix raw/,raw_client.c raw_server.c header.c values.c channel.c iperf3-client.c iperf3-server.c)
