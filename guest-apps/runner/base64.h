/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * Bytes as base64 (RFC 4648 section 4), ended by a zero byte; the caller frees it. NULL: no memory.
 */
char *base64_encode(const void *bytes, size_t length);
