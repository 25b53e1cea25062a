// SPDX-License-Identifier: GPL-2.0-or-later
//
// The adapter of a backplane, pure: what follows from a store of the guest, from a packet that
// arrives, and from time passing. Times are ns since zero; the guest's memory is reached by
// functions. README.md has the layout and the rules.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../guest-apps/sss-core/include/sss/vmmc_wire.h"

enum {
    VMMC_PAGE = VMW_PAGE,
    VMMC_NODES = 64,
    VMMC_EXPORTS = VMW_EXPORTS, // of a node; and as many imports
    VMMC_AU_PAGES = 1024,
    VMMC_SOURCES = 240,     // of an import
    VMMC_TRANSFERS = 64,    // deliberate ones that are under way
    VMMC_COMBINE_LEAST = 8, // a store must fit
};

// Where things are in what the guest sees.
enum vmmc_place {
    VMMC_REGISTERS = 0,
    VMMC_EXPORT_TABLE = 0x1000,
    VMMC_DU = 0x10000,
    VMMC_AU = 0x100000,
    VMMC_BINDINGS = 0x500000,
    VMMC_IMPORT_TABLE = 0x504000,
    VMMC_BYTES = 0x5f4000,
};

enum vmmc_register {
    VMMC_MAGIC_AT = 0, // "VMMC"
    VMMC_VERSION_AT = 4,
    VMMC_NODE_AT = 8,
    VMMC_FLUSH_AT = 16,   // a store: what is combined leaves
    VMMC_CONTROL_AT = 24, // a store {node 16, bytes 16, 0}: the message leaves
    VMMC_HIGH_AT = 32,    // 1 from when the kernel learns that the FIFO is high until it is low
    // 64 bits each, counted by the adapter
    VMMC_STORES_AT = 64,   // to bound pages
    VMMC_PACKETS_AT = 72,  // sent
    VMMC_WRITTEN_AT = 80,  // packets written into memory
    VMMC_REFUSED_AT = 88,  // packets for no export of this node
    VMMC_NACKS_AT = 96,    // packets of this node that another refused
    VMMC_NOWHERE_AT = 104, // stores and messages to a node that cannot be
    VMMC_TOLD_AT = 112,    // frames to the guest's kernel
    VMMC_MESSAGE_AT = 256, // memory: the control message, VMW_MESSAGE_MOST bytes
};
#define VMMC_MAGIC 0x434d4d56u

// Of an import's DU page.
enum { VMMC_START_AT = 0, VMMC_START_NOTIFY_AT = 8, VMMC_PENDING_AT = 64, VMMC_ERRORS_AT = 72 };

// An entry of the export table, at VMMC_EXPORT_TABLE + 256 * export.
struct vmmc_export {
    uint32_t generation; // 0: none
    uint32_t pages;
    uint64_t list; // guest address of the pages' guest addresses, 64 bits each
};

// Which buffer of which node: an entry of the bindings, at VMMC_BINDINGS + 16 * AU page, and the
// beginning of an import, at VMMC_IMPORT_TABLE + 4096 * import.
struct vmmc_target {
    uint16_t node;
    uint8_t flags;
    uint8_t export_id;
    uint32_t generation;
    uint32_t page;  // of the export; of an import 0
    uint32_t pages; // of an import
};
enum { VMMC_ENABLED = 1, VMMC_COMBINE = 2, VMMC_NOTIFY = 4 };

// A source slot of an import: VMMC_IMPORT_TABLE + 4096 * import + 256 + 16 * slot.
struct vmmc_source {
    uint64_t list; // as in vmmc_export
    uint32_t pages;
    uint32_t reserved;
};

struct vmmc_config {
    uint16_t node;
    uint32_t combine_bytes;
    uint64_t combine_timeout_ns;
    uint64_t setup_ns; // of a transfer
    uint64_t link_rate_bps, dma_rate_bps;
    uint32_t fifo_bytes;
};

// What the adapter does to the world. Addresses are the guest's physical ones.
struct vmmc_world {
    void (*send)(const uint8_t *packet, size_t length);
    void (*read)(uint64_t address, void *bytes, uint64_t length);
    void (*write)(uint64_t address, const void *bytes, uint64_t length);
    // Ethernet, to the first NIC; now.
    void (*tell)(const uint8_t *frame, size_t length);
};

struct vmmc_transfer {
    uint64_t source_list, source_at;
    struct vmmc_target to;
    uint32_t at, left; // offset in the export, bytes to go
    uint32_t number;
    uint16_t import;
    bool notify;
    uint64_t ready_ns;
};

// A NACK that waits until the outgoing FIFO is low.
struct vmmc_held {
    bool waits;
    uint32_t generation, offset, count; // of the packet that was refused
};

struct vmmc {
    const struct vmmc_config *config;
    const struct vmmc_world *world;
    uint8_t *seen; // VMMC_BYTES: what the guest loads
    uint32_t sequence[VMMC_NODES + 1];
    struct {
        uint32_t length, stores, binding;
        uint64_t deadline_ns;
        struct vmmc_target to;
        uint32_t offset;
    } open; // being combined; length 0: none
    uint8_t packet[VMW_PACKET_MOST];
    struct vmmc_transfer transfers[VMMC_TRANSFERS]; // a ring
    uint32_t first_transfer, transfer_count, transfers_begun;
    uint64_t read_ps, engine_free_ps; // when the piece under way has been read, and may leave
    // The line into the backplane: what has not left, by its end.
    struct {
        uint64_t end_ps;
        uint32_t bytes;
    } * leaving;
    uint32_t leaving_places, leaving_first, leaving_count, fifo_fill;
    uint64_t line_free_ps;
    bool told_high;  // that the FIFO is above three quarters, and not yet that it is low
    uint64_t low_ns; // it is not below a quarter before; only while told_high
    struct vmmc_held held[VMMC_NODES + 1][VMMC_EXPORTS]; // by sender and export
    uint32_t held_count;
    bool overflow; // the outgoing FIFO could not hold a packet: the run is at its end
};

// NULL, or what is wrong.
const char *vmmc_check(const struct vmmc_config *config);
// `seen` holds zeros.
void vmmc_init(struct vmmc *v, const struct vmmc_config *config, const struct vmmc_world *world,
               uint8_t *seen);
// The guest stored the lowest `size` bytes of `value`.
void vmmc_store(struct vmmc *v, uint64_t now_ns, uint64_t offset, uint64_t value, unsigned size);
// When time alone changes something; UINT64_MAX: never.
uint64_t vmmc_next_ns(const struct vmmc *v);
void vmmc_timeout(struct vmmc *v, uint64_t now_ns);
// A packet as it came from the backplane.
void vmmc_receive(struct vmmc *v, uint64_t now_ns, const uint8_t *packet, size_t length);
