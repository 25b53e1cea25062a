/* SPDX-License-Identifier: Apache-2.0 */
#include "pci.h"

#include "console.h"
#include "cpu.h"
#include "paging.h"

enum {
    CONFIG_ADDRESS = 0xcf8, /* PCI 3.0, 3.2.2.3.2 */
    CONFIG_DATA = 0xcfc,
    FUNCTIONS = 64,
    DEVICES_OF_BUS = 32,
    FUNCTIONS_OF_DEVICE = 8,
    BRIDGES_DEEP = 8,
};

/* Offsets in configuration space (PCI 3.0, 6.1; bridges: PCI-to-PCI bridge 1.2, 3.2). */
enum {
    IDS = 0x00,
    COMMAND = 0x04,
    HEADER_TYPE = 0x0c, /* bits 16..23 */
    BARS = 0x10,
    BUS_NUMBERS = 0x18, /* secondary bus: bits 8..15 */
    CAPABILITIES = 0x34,
};
enum {
    MEMORY_ACCESS = 1 << 1,
    BUS_MASTER = 1 << 2,
    NO_PIN_INTERRUPT = 1 << 10,
    HAS_CAPABILITIES = 1 << 20, /* in the status half */
    MULTIFUNCTION = 0x80,
    HEADER_BRIDGE = 1,
    NO_VENDOR = 0xffff,
};

/* MSI-X (PCI 3.0, 6.8.2): capability, and an entry of four words. */
enum { CAPABILITY_MSIX = 0x11, MSIX_ENTRY_WORDS = 4, MSIX_MASKED = 1 };
#define MSIX_ENABLE     (1u << 31)
#define MSIX_MASK_ALL   (1u << 30)
#define MESSAGE_ADDRESS 0xfee00000u /* to the processor with APIC id 0 (SDM 3A 10.11.1) */

static struct pci_function functions[FUNCTIONS];
static unsigned function_count;

static void select(const struct pci_function *function, unsigned offset)
{
    outl(CONFIG_ADDRESS, 0x80000000u | (uint32_t)function->bus << 16 |
                             (uint32_t)function->device << 11 | (uint32_t)function->function << 8 |
                             (offset & 0xfc));
}

uint32_t pci_read32(const struct pci_function *function, unsigned offset)
{
    select(function, offset);
    return inl(CONFIG_DATA);
}

static void write32(const struct pci_function *function, unsigned offset, uint32_t value)
{
    select(function, offset);
    outl(CONFIG_DATA, value);
}

static void scan_bus(uint8_t bus, unsigned depth);

static void found(const struct pci_function *function, uint8_t header_type, unsigned depth)
{
    if (function_count < FUNCTIONS)
        functions[function_count++] = *function;
    else
        kprintf("pci: more than %d functions; %u:%u.%u is not used\n", FUNCTIONS, function->bus,
                function->device, function->function);
    if ((header_type & 0x7f) == HEADER_BRIDGE) {
        uint8_t secondary = (uint8_t)(pci_read32(function, BUS_NUMBERS) >> 8);

        if (secondary > function->bus && depth < BRIDGES_DEEP)
            scan_bus(secondary, depth + 1);
    }
}

/* -> whether to look for further functions */
static bool scan_function(struct pci_function *function, unsigned depth)
{
    uint32_t ids = pci_read32(function, IDS);
    uint8_t header_type;

    function->vendor_id = (uint16_t)ids;
    function->device_id = (uint16_t)(ids >> 16);
    if (function->vendor_id == NO_VENDOR)
        return function->function != 0;
    header_type = (uint8_t)(pci_read32(function, HEADER_TYPE) >> 16);
    found(function, header_type, depth);
    return function->function != 0 || (header_type & MULTIFUNCTION) != 0;
}

static void scan_bus(uint8_t bus, unsigned depth)
{
    for (unsigned device = 0; device < DEVICES_OF_BUS; device++) {
        struct pci_function function = {.bus = bus, .device = (uint8_t)device};

        for (function.function = 0; function.function < FUNCTIONS_OF_DEVICE; function.function++)
            if (!scan_function(&function, depth))
                break;
    }
}

void pci_scan(void)
{
    function_count = 0;
    scan_bus(0, 0);
}

struct pci_function *pci_at(unsigned index)
{
    return index < function_count ? &functions[index] : NULL;
}

unsigned pci_capability(const struct pci_function *function, uint8_t id, unsigned from)
{
    unsigned at;

    if ((pci_read32(function, COMMAND) & HAS_CAPABILITIES) == 0)
        return 0;
    at = from == 0 ? pci_read32(function, CAPABILITIES) : pci_read32(function, from) >> 8;
    /* At most 48 capabilities fit after the header: a circular list ends here. */
    for (unsigned steps = 0; (at & 0xfc) != 0 && steps < 48; steps++) {
        uint32_t head = pci_read32(function, at & 0xfc);

        if ((uint8_t)head == id)
            return at & 0xfc;
        at = head >> 8;
    }
    return 0;
}

uint64_t pci_bar(const struct pci_function *function, unsigned index)
{
    enum { IO = 1, KIND = 6, WIDE = 4 };
    uint32_t low = pci_read32(function, BARS + 4 * index);
    uint64_t high = 0;

    if ((low & IO) != 0)
        return 0;
    if ((low & KIND) == WIDE)
        high = pci_read32(function, BARS + 4 * index + 4);
    return high << 32 | (low & ~15u);
}

void pci_enable(const struct pci_function *function)
{
    /* The status half is written as zeros, which clears nothing. */
    uint32_t command = pci_read32(function, COMMAND) & 0xffff;

    write32(function, COMMAND, command | MEMORY_ACCESS | BUS_MASTER | NO_PIN_INTERRUPT);
}

bool pci_msix_enable(struct pci_function *function)
{
    unsigned capability = pci_capability(function, CAPABILITY_MSIX, 0);
    uint32_t head, table;
    uint64_t bar;

    if (capability == 0)
        return false;
    head = pci_read32(function, capability);
    table = pci_read32(function, capability + 4);
    bar = pci_bar(function, table & 7);
    if (bar == 0)
        return false;
    function->msix_entries = (head >> 16 & 0x7ff) + 1;
    function->msix_table = map_device(bar + (table & ~7u),
                                      function->msix_entries * MSIX_ENTRY_WORDS * sizeof(uint32_t));
    if (function->msix_table == NULL)
        return false;
    for (unsigned i = 0; i < function->msix_entries; i++)
        function->msix_table[i * MSIX_ENTRY_WORDS + 3] = MSIX_MASKED;
    write32(function, capability, (head | MSIX_ENABLE) & ~MSIX_MASK_ALL);
    return true;
}

void pci_msix_set(const struct pci_function *function, unsigned entry, int vector)
{
    volatile uint32_t *words = function->msix_table + entry * MSIX_ENTRY_WORDS;

    words[0] = MESSAGE_ADDRESS;
    words[1] = 0;
    words[2] = (uint32_t)vector;
    words[3] = 0;
}
