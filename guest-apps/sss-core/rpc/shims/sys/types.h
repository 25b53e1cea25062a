/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Names of a Unix system that the Sun RPC interface uses. */
#include <stddef.h>
#include <stdint.h>

typedef unsigned char u_char;
typedef unsigned short u_short;
typedef unsigned int u_int;
typedef unsigned long u_long;
typedef uint8_t u_int8_t;
typedef uint16_t u_int16_t;
typedef uint32_t u_int32_t;
typedef uint64_t u_int64_t;
typedef long quad_t;
typedef unsigned long u_quad_t;
typedef char *caddr_t;
typedef unsigned int uid_t;
typedef unsigned int gid_t;
typedef long ssize_t;
typedef long time_t;
typedef long suseconds_t;
