# SPDX-License-Identifier: Apache-2.0

# What decides: no system call, no clock, no memory of its own.
DCE_CORE = $(addprefix dce/,pdu.c ndr.c recvq.c xmitq.c machine.c client_machine.c server_machine.c conv.c epm.c)
SOURCES += $(DCE_CORE)

# Steps are stamped at the ends of functions (marker.h): none may be left by a jump.
DCE_CFLAGS = -fno-optimize-sibling-calls
$(DCE_CORE:%.c=$(OUT)/objects/%.o): CFLAGS += $(DCE_CFLAGS)
