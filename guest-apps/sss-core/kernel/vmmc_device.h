/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The adapter of a backplane: a PCI function whose memory the adapter watches. It reads its tables
 * there at each store, packet and transfer, so what is written here is so at once. Nothing may be
 * written before the job has come: a snapshot holds none of it.
 */
#include <stdbool.h>
#include <stdint.h>

#include "sss/vmmc_wire.h"

/* Which export of which node. */
struct vmmc_target {
    uint16_t node;
    uint8_t export_id;
    uint32_t generation;
};
enum { TARGET_ENABLED = 1, TARGET_COMBINE = 2, TARGET_NOTIFY = 4 };

bool vmmc_device_find(void);  /* at boot */
bool vmmc_device_begin(void); /* with the job: whether the adapter watches now */
bool vmmc_device_works(void);
uint16_t vmmc_device_node(void);

/* Physical addresses of pages that tasks map, and back: the number of an automatic page, or -1. */
uint64_t vmmc_automatic_page(unsigned page);
int vmmc_automatic_number(uint64_t physical_page);
uint64_t vmmc_deliberate_page(unsigned import);
void vmmc_clear_page(unsigned page);

/* `list` has the physical addresses of the pages, and is in the direct map. */
void vmmc_show_export(unsigned id, uint32_t generation, uint32_t pages, const uint64_t *list);
void vmmc_hide_export(unsigned id);
void vmmc_show_binding(unsigned page, const struct vmmc_target *to, unsigned flags, uint32_t first);
void vmmc_hide_binding(unsigned page);
void vmmc_show_import(unsigned import, const struct vmmc_target *to, uint32_t pages);
void vmmc_hide_import(unsigned import);
void vmmc_show_source(unsigned import, unsigned slot, const uint64_t *list, uint32_t pages);
void vmmc_hide_source(unsigned import, unsigned slot);
uint64_t vmmc_transfers_pending(unsigned import);

void vmmc_flush(void); /* what is being combined leaves */
/* From above three quarters of the outgoing FIFO until it is below one. */
bool vmmc_line_full(void);
void vmmc_send_message(uint16_t to, const struct vmmc_message *message);
