/* SPDX-License-Identifier: Apache-2.0 */
/* A machine with Linux has no adapter of a backplane. */
#include "sss/vmmc_pair.h"

int vmmc_pair_offer(struct vmmc_pair *pair, const struct vmmc_pair_setup *setup)
{
    (void)pair, (void)setup;
    return -SSS_ENOSYS;
}

int vmmc_pair_hear(struct vmmc_pair *pair)
{
    (void)pair;
    return -SSS_ENOSYS;
}

int vmmc_pair_connect(struct vmmc_pair *pair, uint16_t node, const struct vmmc_pair_setup *setup)
{
    (void)pair, (void)node, (void)setup;
    return -SSS_ENOSYS;
}

void vmmc_pair_close(struct vmmc_pair *pair)
{
    (void)pair;
}

void vmmc_pair_send_again(const struct vmmc_pair *pair, unsigned slot, uint32_t from, uint32_t to,
                          uint32_t length, bool notify)
{
    (void)pair, (void)slot, (void)from, (void)to, (void)length, (void)notify;
}

int vmmc_source(int handle, const void *address, uint32_t pages)
{
    (void)handle, (void)address, (void)pages;
    return -SSS_ENOSYS;
}

const char *vmmc_error_text(int error)
{
    (void)error;
    return "there is no backplane";
}
