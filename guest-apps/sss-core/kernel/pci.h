/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The functions on the PCI buses, and message-signalled interrupts (PCI Local Bus 3.0, PCI Express
 * base). */
#include <stdbool.h>
#include <stdint.h>

struct pci_function {
    uint8_t bus, device, function;
    uint16_t vendor_id, device_id;
    volatile uint32_t *msix_table; /* NULL before pci_msix_enable */
    unsigned msix_entries;
};

/* Finds every function, also behind bridges, in order of bus, device and function. */
void pci_scan(void);
/* The index-th function found, or NULL. */
struct pci_function *pci_at(unsigned index);

uint32_t pci_read32(const struct pci_function *function, unsigned offset);
/* The next capability of this id after `from` (0: the first) -> its offset, or 0. */
unsigned pci_capability(const struct pci_function *function, uint8_t id, unsigned from);
/* The address in a base address register, 64 bits; 0 if it is not for memory or not assigned. */
uint64_t pci_bar(const struct pci_function *function, unsigned index);
/* memory accesses and bus mastering; the old interrupt pin off */
void pci_enable(const struct pci_function *function);
bool pci_msix_enable(struct pci_function *function);
void pci_msix_set(const struct pci_function *function, unsigned entry, int vector);
