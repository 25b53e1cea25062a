/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Decodes a legacy LZ4 frame (lz4's doc/lz4_Frame_format.md, "Legacy frame") to pages that the
 * caller unmaps, `*decoded` bytes: an allocator might keep them. NULL if the frame is damaged or
 * empty, or memory is short.
 */
uint8_t *lz4_decode_legacy(const uint8_t *frame, size_t length, size_t *decoded);

/*
 * Decodes one block (doc/lz4_Block_format.md) of `length` bytes into `out`. The number of decoded
 * bytes, or -1 if the block is damaged or needs more than `room`.
 */
ptrdiff_t lz4_decode_block(const uint8_t *block, size_t length, uint8_t *out, size_t room);
