/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What lwIP wants to know of compiler and machine. */
#include <stddef.h>
#include <stdint.h>

#define LWIP_NO_INTTYPES_H 1
#define LWIP_NO_LIMITS_H   1
#define LWIP_NO_CTYPE_H    1
#define LWIP_NO_UNISTD_H   1
#define SSIZE_MAX          INT64_MAX

typedef int64_t ssize_t;

#define BYTE_ORDER LITTLE_ENDIAN

#define X8_F  "02x"
#define U16_F "u"
#define S16_F "d"
#define X16_F "x"
#define U32_F "u"
#define S32_F "d"
#define X32_F "x"
#define SZT_F "zu"

#define PACK_STRUCT_STRUCT __attribute__((packed))

_Noreturn void port_failed(const char *what);
#define LWIP_PLATFORM_ASSERT(what) port_failed(what)
#define LWIP_PLATFORM_DIAG(message)

uint32_t port_random(void);
#define LWIP_RAND() port_random()

#define LWIP_CHKSUM_ALGORITHM 0 /* ours: hooks.h */
uint16_t port_checksum(const void *data, int length);
