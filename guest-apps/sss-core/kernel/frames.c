/* SPDX-License-Identifier: Apache-2.0 */
#include "frames.h"

#include "memory.h"
#include "panic.h"

static struct sss_frame frames[SSS_FRAMES];
static struct sss_frame *pool;
static unsigned free_count;
static void (*on_empty)(void);

static __attribute__((noinline)) struct sss_frame *collect_and_get(void)
{
    struct sss_frame *frame;

    if (on_empty != NULL)
        on_empty();
    frame = sss_frame_take(&pool);
    if (frame != NULL)
        free_count--;
    return frame;
}

/* Out of line: inlined, it makes mbcf_frame_get too long to be inlined in the paths of mbcf/. */
__attribute__((noinline)) struct sss_frame *frame_get(void)
{
    struct sss_frame *frame = sss_frame_take(&pool);

    if (frame == NULL)
        return collect_and_get();
    free_count--;
    return frame;
}

void frame_put(struct sss_frame *frame)
{
    if (sss_frame_release(&pool, frame))
        free_count++;
}

unsigned frames_free(void)
{
    return free_count;
}

void frames_on_empty(void (*collect)(void))
{
    on_empty = collect;
}

void frames_forget_users(void)
{
    pool = NULL;
    free_count = 0;
    for (unsigned i = 0; i < SSS_FRAMES; i++)
        frames[i].users = 0;
}

void frames_free_unused(void)
{
    for (unsigned i = 0; i < SSS_FRAMES; i++) {
        if (frames[i].users == 0) {
            frames[i].users = 1;
            frame_put(&frames[i]);
        }
    }
}

void frames_init(void)
{
    uint8_t *memory = pages_alloc((size_t)SSS_FRAMES * FRAME_BUFFER_BYTES / PAGE);

    if (memory == NULL)
        panic("no memory for the pool of frames");
    /* The pages are zeroed: the virtio headers need no writing. */
    for (unsigned i = 0; i < SSS_FRAMES; i++)
        frames[i].bytes = memory + (size_t)i * FRAME_BUFFER_BYTES + FRAME_BUFFER_OFFSET +
                          FRAME_HEADER;
    frames_free_unused();
}
