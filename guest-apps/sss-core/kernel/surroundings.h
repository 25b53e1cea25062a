/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What MBCF asks of this kernel (node.c), each as in struct mbcf_surroundings. Known when the
 * protocol is compiled, they become part of its own functions.
 */
#include <stdbool.h>
#include <stdint.h>

#include "sss/frame.h"

struct sss_frame *surroundings_frame_get(void *context);
void surroundings_frame_put(void *context, struct sss_frame *frame);
bool surroundings_transmit(void *context, struct sss_frame *frame);
void *surroundings_page(void *context, void *space, uint64_t address, bool write, int *why);
void surroundings_changed(void *context, void *space);
void surroundings_signalled(void *context, void *space, uint64_t handler);
void surroundings_window_open(void *context);
void surroundings_failed(void *context, void *space);
