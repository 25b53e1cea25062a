/* SPDX-License-Identifier: Apache-2.0 */
#include "entropy.h"

#include <fcntl.h>
#include <linux/random.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "mix.h"

enum { WORDS = 4 }; /* 256 bits: what the kernel's generator is keyed with */

int entropy_mix(uint64_t seed, const char *machine)
{
    struct rand_pool_info *pool = malloc(sizeof(*pool) + WORDS * sizeof(uint64_t));
    uint64_t *words;
    int device;
    int result = -1;

    if (pool == NULL)
        return -1;
    words = (uint64_t *)(void *)pool->buf;
    pool->entropy_count = WORDS * 64;
    pool->buf_size = WORDS * sizeof(uint64_t);
    for (size_t i = 0; i < WORDS; i++)
        words[i] = mix_seed(seed, machine, i);
    device = open("/dev/urandom", O_RDWR | O_CLOEXEC);
    if (device >= 0) {
        if (ioctl(device, RNDADDENTROPY, pool) == 0 && ioctl(device, RNDRESEEDCRNG) == 0)
            result = 0;
        close(device);
    }
    free(pool);
    return result;
}
