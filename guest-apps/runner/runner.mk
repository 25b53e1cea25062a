# SPDX-License-Identifier: Apache-2.0

RUNNER = $(addprefix runner/,base64.c capture.c control.c cpio.c entropy.c command.c exec.c extras.c image.c lz4.c memory.c \
	network.c ports.c process.c request.c shell.c spares.c zygote.c)
APPLETS += runner spare
SOURCES += runner/main.c runner/spare.c $(RUNNER)
