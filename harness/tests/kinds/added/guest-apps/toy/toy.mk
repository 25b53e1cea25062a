# SPDX-License-Identifier: Apache-2.0

APPLETS += toy-client toy-server
SOURCES += toy/client.c toy/server.c
