/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The basic types of the Sun RPC interface. The names are those that rpcgen writes, so they are not
 * ours to choose. */
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/types.h>

typedef int32_t bool_t;
typedef int32_t enum_t;
typedef uint32_t rpcprog_t;
typedef uint32_t rpcvers_t;
typedef uint32_t rpcproc_t;
typedef uint32_t rpcprot_t;
typedef uint32_t rpcport_t;
typedef int32_t rpc_inline_t;

#ifndef FALSE
#define FALSE 0
#endif
#ifndef TRUE
#define TRUE 1
#endif

#define mem_alloc(size)         calloc(1, size)
#define mem_free(pointer, size) free(pointer)
