/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pool of transmit buffers. */
#include "sss/frame.h"

enum {
    /* virtio_net_hdr with num_buffers (virtio 1.1, 5.1.6): zeros, as nothing is offloaded */
    FRAME_HEADER = 12,
    /* a buffer's part of a page; the Ethernet payload begins at its byte 32 */
    FRAME_BUFFER_BYTES = 2048,
    FRAME_BUFFER_OFFSET = 6, /* of the virtio header in it: 6 + 12 + 14 = 32 */
};

void frames_init(void);
struct sss_frame *frame_get(void); /* users == 1; NULL if all are in use */
void frame_put(struct sss_frame *frame);
unsigned frames_free(void);
/* `collect` gives back frames that adapters have sent; called when the pool is empty. */
void frames_on_empty(void (*collect)(void));
/* After a restart: forgets all users; then those that still use frames count themselves in `users`
 * again; then the others return to the pool. */
void frames_forget_users(void);
void frames_free_unused(void);
