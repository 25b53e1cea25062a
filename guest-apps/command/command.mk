# SPDX-License-Identifier: Apache-2.0
#
# A program of its own, OUT/command-apps: it is unpacked only for jobs that have it.

COMMAND_APPS = command
EXTRAS += $(COMMAND_APPS)
COMMAND_SOURCES = $(addprefix command/,amounts.c clocks.c command.c events.c program.c ready.c tell.c) common/clock.c common/samples.c runner/base64.c

$(OUT)/command-apps $(OUT)/command-apps.symbols: $(COMMAND_SOURCES:%.c=$(OUT)/objects/%.o)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ljansson

$(COMMAND_APPS:%=$(OUT)/%): $(OUT)/command-apps
	ln -sf command-apps $@
