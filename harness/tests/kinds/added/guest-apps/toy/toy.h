/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A toy: this name, a number in network order, and zeros up to its size. */
enum { TOY_PORT = 4242, TOY_NAME = 0x544f5931, TOY_HEADER_BYTES = 8, TOY_LIMIT = 65507 };
