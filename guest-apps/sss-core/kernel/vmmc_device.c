/* SPDX-License-Identifier: Apache-2.0 */
#include "vmmc_device.h"

#include <stddef.h>

#include "memory.h"
#include "paging.h"
#include "pci.h"
#include "sss/vmmc.h"

enum { VENDOR = 0x1af4, DEVICE = 0x1110, MEMORY_BAR = 2 };

/* Offsets in the adapter's memory. */
enum {
    MAGIC_AT = 0,
    NODE_AT = 8,
    FLUSH_AT = 16,
    SEND_AT = 24, /* a store: node 16, length 16 */
    LINE_FULL_AT = 32,
    MESSAGE_AT = 0x100,
    EXPORTS_AT = 0x1000, /* entries of 256 bytes: generation 32, pages 32; list */
    DELIBERATE_AT = 0x10000,
    PENDING_AT = 64, /* in a deliberate page; a store sets the errors */
    ERRORS_AT = 72,
    AUTOMATIC_AT = 0x100000,
    BINDINGS_AT = 0x500000, /* entries of 16 bytes: target; page 32 */
    IMPORTS_AT = 0x504000,  /* entries of a page: target; 0 32, pages 32 */
    SOURCES_AT = 256,       /* in one: entries of 16 bytes: list; pages 32 */
    ADAPTER_BYTES = 0x5f4000,
    EXPORT_BYTES = 256,
    BINDING_BYTES = 16,
    SOURCE_BYTES = 16,
};
#define MAGIC 0x434d4d56u /* "VMMC" */

static volatile uint8_t *memory; /* NULL: this machine has none */
static uint64_t physical_begin;
static bool works;

static volatile uint64_t *word(unsigned at)
{
    return (volatile uint64_t *)(memory + at);
}

bool vmmc_device_find(void)
{
    struct pci_function *pci;

    for (unsigned i = 0; (pci = pci_at(i)) != NULL; i++) {
        if (pci->vendor_id != VENDOR || pci->device_id != DEVICE || memory != NULL)
            continue;
        physical_begin = pci_bar(pci, MEMORY_BAR);
        if (physical_begin == 0)
            continue;
        pci_enable(pci);
        memory = map_device(physical_begin, ADAPTER_BYTES);
    }
    return memory != NULL;
}

bool vmmc_device_begin(void)
{
    works = memory != NULL && *(volatile uint32_t *)(memory + MAGIC_AT) == MAGIC;
    return works;
}

bool vmmc_device_works(void)
{
    return works;
}

uint16_t vmmc_device_node(void)
{
    return *(volatile uint16_t *)(memory + NODE_AT);
}

uint64_t vmmc_automatic_page(unsigned page)
{
    return physical_begin + AUTOMATIC_AT + page * PAGE;
}

int vmmc_automatic_number(uint64_t physical_page)
{
    uint64_t number = (physical_page - vmmc_automatic_page(0)) / PAGE;

    return physical_page >= vmmc_automatic_page(0) && number < VMMC_BOUND_PAGES ? (int)number : -1;
}

uint64_t vmmc_deliberate_page(unsigned import)
{
    return physical_begin + DELIBERATE_AT + import * PAGE;
}

void vmmc_clear_page(unsigned page)
{
    for (unsigned at = 0; at < PAGE; at += sizeof(uint64_t))
        *word(AUTOMATIC_AT + page * (unsigned)PAGE + at) = 0;
}

/* ---- tables: the word that makes an entry valid is written last, and taken away first ---- */

void vmmc_show_export(unsigned id, uint32_t generation, uint32_t pages, const uint64_t *list)
{
    unsigned at = EXPORTS_AT + id * EXPORT_BYTES;

    *word(at + 8) = physical(list);
    *word(at) = generation | (uint64_t)pages << 32;
}

void vmmc_hide_export(unsigned id)
{
    *word(EXPORTS_AT + id * EXPORT_BYTES) = 0;
}

static void show_target(unsigned at, const struct vmmc_target *to, unsigned flags, uint64_t rest)
{
    *word(at) = 0;
    *word(at + 8) = rest;
    *word(at) = to->node | (uint64_t)(flags | TARGET_ENABLED) << 16 |
                (uint64_t)to->export_id << 24 | (uint64_t)to->generation << 32;
}

void vmmc_show_binding(unsigned page, const struct vmmc_target *to, unsigned flags, uint32_t first)
{
    show_target(BINDINGS_AT + page * BINDING_BYTES, to, flags, first);
}

void vmmc_hide_binding(unsigned page)
{
    *word(BINDINGS_AT + page * BINDING_BYTES) = 0;
}

static volatile uint64_t *deliberate_word(unsigned import, unsigned at)
{
    return word(DELIBERATE_AT + import * (unsigned)PAGE + at);
}

static unsigned import_at(unsigned import)
{
    return IMPORTS_AT + import * (unsigned)PAGE;
}

void vmmc_show_import(unsigned import, const struct vmmc_target *to, uint32_t pages)
{
    *deliberate_word(import, ERRORS_AT) = 0;
    show_target(import_at(import), to, 0, (uint64_t)pages << 32);
}

void vmmc_hide_import(unsigned import)
{
    *word(import_at(import)) = 0;
}

static unsigned source_at(unsigned import, unsigned slot)
{
    return import_at(import) + SOURCES_AT + slot * SOURCE_BYTES;
}

void vmmc_show_source(unsigned import, unsigned slot, const uint64_t *list, uint32_t pages)
{
    *word(source_at(import, slot)) = physical(list);
    *word(source_at(import, slot) + 8) = pages;
}

void vmmc_hide_source(unsigned import, unsigned slot)
{
    *word(source_at(import, slot) + 8) = 0;
}

uint64_t vmmc_transfers_pending(unsigned import)
{
    return *deliberate_word(import, PENDING_AT);
}

void vmmc_flush(void)
{
    *word(FLUSH_AT) = 0;
}

bool vmmc_line_full(void)
{
    return *(volatile uint32_t *)(memory + LINE_FULL_AT) != 0;
}

void vmmc_send_message(uint16_t to, const struct vmmc_message *message)
{
    uint64_t words[sizeof(*message) / sizeof(uint64_t)];

    _Static_assert(sizeof(*message) == 64, "as on the backplane");
    __builtin_memcpy(words, message, sizeof(*message));
    for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++)
        *word(MESSAGE_AT + 8 * i) = words[i];
    *word(SEND_AT) = to | (uint64_t)sizeof(*message) << 16;
}
