# SPDX-License-Identifier: Apache-2.0
#
# The sources of a Linux program that is a node of MBCF, for guest-apps/Makefile: relative to guest-apps. They want
# SSS_LINUX defined and the folders of SSS_LINUX_INCLUDES.

SSS_LINUX = $(addprefix sss-core/,linux/node.c linux/memory.c linux/raw.c linux/wire.c linux/system.c linux/signal.c \
	lib/mbcf.c mbcf/channel.c mbcf/connection.c mbcf/execute.c mbcf/fifo.c mbcf/mbcf.c mbcf/operate.c)
SSS_LINUX_CFLAGS = -DSSS_LINUX -Isss-core/include -Isss-core/mbcf -Isss-core/linux
SSS_LINUX_HEADERS = $(wildcard sss-core/include/sss/*.h sss-core/mbcf/*.h sss-core/linux/*.h)

$(SSS_LINUX:%.c=$(OUT)/objects/%.o): CFLAGS += $(SSS_LINUX_CFLAGS)
$(SSS_LINUX:%.c=$(OUT)/objects/%.o): $(SSS_LINUX_HEADERS)
