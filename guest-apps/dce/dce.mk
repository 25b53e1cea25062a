# SPDX-License-Identifier: Apache-2.0

# What decides: no system call, no clock, no memory of its own.
DCE_CORE = $(addprefix dce/,pdu.c ndr.c twelve_ndr.c recvq.c xmitq.c machine.c client_machine.c server_machine.c order.c conv.c epm.c)
DCE = $(DCE_CORE) $(addprefix dce/,runtime.c record.c binding.c stubs.c twelve.c mapper.c identity.c parameters.c dce_client.c dce_server.c)
APPLETS += dce-client dce-server
SOURCES += $(DCE)

# Steps are stamped at the ends of functions (marker.h): none may be left by a jump.
DCE_CFLAGS = -fno-optimize-sibling-calls
$(DCE:%.c=$(OUT)/objects/%.o): CFLAGS += $(DCE_CFLAGS)
