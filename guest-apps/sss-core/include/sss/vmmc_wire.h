/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A backplane's packets, for the adapter (harness/clock) and the kernel alike. vmmc_wire.def has
 * the fields and numbers.
 */
#include <stddef.h>
#include <stdint.h>

enum {
#define VMW_NUMBER(name, value) VMW_##name = (value),
#include "vmmc_wire.def"
    VMW_PACKET_MOST = VMW_HEADER + VMW_PAGE,
};

enum vmw_kind {
#define VMW_KIND(name, number, text) VMW_##name = (number),
#include "vmmc_wire.def"
    VMW_FIFO = 5, /* never on the backplane: the fill of the outgoing FIFO, in `count` */
};

enum vmw_flag {
#define VMW_FLAG(name, bit) VMW_##name = (bit),
#include "vmmc_wire.def"
};
enum { VMW_FIFO_HIGH = 1 }; /* flag of VMW_FIFO; 0: it is low again */

enum vmw_reason {
#define VMW_REASON(name, number, text) VMW_##name = (number),
#include "vmmc_wire.def"
};

enum vmw_message {
#define VMW_MESSAGE(name, number) VMW_##name = (number),
#include "vmmc_wire.def"
};

struct vmmc_packet {
#define VMW_FIELD(name, offset, bits) uint##bits##_t name;
#include "vmmc_wire.def"
};

struct vmmc_message {
#define VMW_MESSAGE_FIELD(name, offset, bits) uint##bits##_t name;
#define VMW_MESSAGE_NAME(name, offset, bits)  uint64_t name[(bits) / 64];
#include "vmmc_wire.def"
};

#define VMW_IS_AT(type, name, offset, bits)                                                        \
    _Static_assert(offsetof(struct type, name) == (offset) &&                                      \
                       sizeof(((struct type *)NULL)->name) * 8 == (bits),                          \
                   "as on the wire");
#define VMW_FIELD(name, offset, bits)         VMW_IS_AT(vmmc_packet, name, offset, bits)
#define VMW_MESSAGE_FIELD(name, offset, bits) VMW_IS_AT(vmmc_message, name, offset, bits)
#define VMW_MESSAGE_NAME(name, offset, bits)  VMW_IS_AT(vmmc_message, name, offset, bits)
#include "vmmc_wire.def"
#undef VMW_IS_AT
_Static_assert(sizeof(struct vmmc_packet) == VMW_HEADER, "as on the wire");
_Static_assert(sizeof(struct vmmc_message) == VMW_MESSAGE_BYTES, "as on the wire");
