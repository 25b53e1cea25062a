/* SPDX-License-Identifier: Apache-2.0 */
#include "identity.h"

#include <stdio.h>

#include "mix.h"
#include "runtime.h"

static uint64_t mixed(const char *word, uint64_t index)
{
    struct dce_self self = runtime_self();
    char name[256];

    snprintf(name, sizeof(name), "dce/%s/%s/%s", self.machine, self.step, word);
    return mix_seed(self.seed, name, index);
}

struct dce_uuid dce_identity(const char *word, uint64_t index)
{
    uint64_t high = mixed(word, 2 * index), low = mixed(word, 2 * index + 1);
    struct dce_uuid uuid;

    dce_put32(uuid.bytes, (uint32_t)(high >> 32), true);
    dce_put32(uuid.bytes + 4, (uint32_t)high, true);
    dce_put32(uuid.bytes + 8, (uint32_t)(low >> 32), true);
    dce_put32(uuid.bytes + 12, (uint32_t)low, true);
    /* Random, as RFC 4122 marks it. */
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0f) | 0x40);
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3f) | 0x80);
    return uuid;
}

uint32_t dce_boot_time(void)
{
    uint32_t boot_time = (uint32_t)mixed("boot", runtime_self().process);

    return boot_time == 0 ? 1 : boot_time;
}

void dce_uuid_text(const struct dce_uuid *uuid, char text[DCE_UUID_TEXT])
{
    for (unsigned i = 0; i < sizeof(uuid->bytes); i++)
        text += snprintf(text, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                         uuid->bytes[i]);
}
