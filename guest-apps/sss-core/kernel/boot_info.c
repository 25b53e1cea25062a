/* SPDX-License-Identifier: Apache-2.0 */
#include "boot_info.h"

#include <string.h>

#include "memory.h"
#include "panic.h"

/* xen/include/public/arch-x86/hvm/start_info.h, version 1 */
struct start_info {
    uint32_t magic, version, flags, modules;
    uint64_t module_list, command_line, rsdp, memory_map;
    uint32_t memory_map_entries, reserved;
};
struct start_module {
    uint64_t address, bytes, command_line, reserved;
};
struct start_memory {
    uint64_t address, bytes;
    uint32_t type, reserved;
};
enum { START_MAGIC = 0x336ec578, MEMORY_RAM = 1, COMMAND_LINE = 256 };

static const struct start_info *info;
static const void *initrd;
static size_t initrd_bytes;
static char command_line[COMMAND_LINE];

void boot_info_init(uint64_t start_info_physical)
{
    info = direct(start_info_physical);
    if (info->magic != START_MAGIC || info->version < 1)
        panic("not started by PVH: start info has magic %x, version %u", info->magic,
              info->version);
    if (info->command_line != 0)
        strncpy(command_line, direct(info->command_line), COMMAND_LINE - 1);
    if (info->modules != 0) {
        const struct start_module *module = direct(info->module_list);

        initrd = direct(module->address);
        initrd_bytes = module->bytes;
    }
}

const char *boot_command_line(void)
{
    return command_line;
}

const void *boot_initrd(size_t *length)
{
    *length = initrd_bytes;
    return initrd;
}

bool boot_memory(uint32_t index, bool *ram, uint64_t *begin, uint64_t *end)
{
    const struct start_memory *map = direct(info->memory_map);

    if (index >= info->memory_map_entries)
        return false;
    *ram = map[index].type == MEMORY_RAM;
    *begin = map[index].address;
    *end = map[index].address + map[index].bytes;
    return true;
}
