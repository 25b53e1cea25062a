/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Virtual memory-mapped communication, as SHRIMP's network interface offers it: a task exports
 * pages of its memory, a task of another node imports them, and then transfers go from user memory
 * to user memory without a kernel. By automatic update each store to bound memory is performed in
 * the export as well; a deliberate update sends a stretch of memory on one store. An import can be
 * written, never read. Results below zero are -enum sss_error or -(VMMC_REFUSED + enum
 * vmmc_refusal).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

enum {
    VMMC_NAME = 32, /* bytes of an export's name with its NUL */
    VMMC_PAGE = 4096,
    VMMC_EXPORTS = 240,      /* of a node; and as many imports */
    VMMC_EXPORT_PAGES = 256, /* of an export */
    VMMC_BOUND_PAGES = 1024, /* of a node */
    VMMC_SOURCES = 240,      /* of an import */
    VMMC_TRANSFERS = 64,     /* of a node, under way */
    VMMC_TRANSFER = 65536,   /* bytes of one */
};

/* Why the other node did not let itself be imported, as in the answer on the backplane. */
enum vmmc_refusal {
    VMMC_NO_NAME = 1, /* it exports nothing of that name */
    VMMC_NO_KEY = 2,  /* another key */
    VMMC_NO_NODE = 3, /* its owner does not allow this node */
    VMMC_FULL = 4,    /* VMMC_SINGLE, and imported already */
    VMMC_GONE = 5,    /* it was there, and its owner has ended or unexported it */
    VMMC_REFUSED = 256,
};
const char *vmmc_error_text(int error);

/* What an export is for: the answer to an import says it, so that captures can be read. */
enum vmmc_use { VMMC_MEMORY = 0, VMMC_VRPC = 1, VMMC_SHRIMPRPC = 2 };

enum vmmc_export_flag { VMMC_SINGLE = 1 /* one import at a time; of one name there may be many */ };

struct vmmc_export_setup {
    void *address; /* of whole pages of the caller, private to it; they stay until unexport */
    uint32_t pages;
    uint32_t flags; /* enum vmmc_export_flag */
    uint32_t use;   /* enum vmmc_use */
    uint32_t reserved;
    uint64_t key;
    uint64_t allow; /* bit n - 1: node n may import; all ones: everybody */
    char name[VMMC_NAME];
    /* Words of the caller to wait for, or NULL: the kernel increments them at each notification,
     * and when the export is imported or an import of it ends. */
    volatile uint32_t *notified;
    volatile uint32_t *imported;
    /* And, of one that is VMMC_SINGLE, when an import is refused because all of its name are taken:
     * who has one may have crashed, which a store to what it exports itself finds out. */
    volatile uint32_t *wanted;
};
/* -> id. VMMC_SINGLE is what lets names be equal: an import takes the first that is free. */
int vmmc_export(const struct vmmc_export_setup *setup);
/* Packets that arrive later are refused; importers are notified. */
int vmmc_unexport(int id);

/* System calls take no address of a bound page, nor of `du` (EFAULT); only vmmc_unbind and
 * vmmc_unimport unmap them. */
struct vmmc_import_setup {
    uint16_t node;
    uint16_t reserved;
    uint32_t reserved2;
    uint64_t key;
    char name[VMMC_NAME];
    uint64_t timeout_ns; /* for the answer */
    /* A word of the caller, or NULL: the kernel makes it 1 when the export is no longer there. */
    volatile uint32_t *gone;
    /* Results */
    uint32_t pages;
    uint32_t use;          /* enum vmmc_use */
    volatile uint64_t *du; /* the import's page for deliberate updates, mapped into the caller */
};
/* Asks and waits for the answer -> handle. Of another node only. */
int vmmc_import(struct vmmc_import_setup *setup);
int vmmc_unimport(int handle); /* what is bound to it is unbound */

enum vmmc_bind_flag {
    VMMC_COMBINED = 1, /* consecutive stores leave in one packet */
    VMMC_NOTIFY = 2,   /* each packet is a notification there */
};
/*
 * Automatic update: fresh zeroed pages at `address` (NULL: the kernel chooses), each store to which
 * is performed in the import as well, from its page `first` on -> their address, NULL where it
 * fails (then *error says why). Loads see what this task has stored.
 */
void *vmmc_bind(void *address, uint32_t pages, int handle, uint32_t first, unsigned flags,
                int *error);
/* What is still combined leaves first; then the pages are unmapped. */
int vmmc_unbind(void *address, uint32_t pages);

/* Whole pages of the caller from which deliberate updates of this import may send -> slot. They
 * stay until vmmc_unimport. */
int vmmc_source(int handle, const void *address, uint32_t pages);

/*
 * Deliberate update, at user level: sends `length` bytes (1 to VMMC_TRANSFER) at `from` of a source
 * to `to` of the import. One store; the source may change once vmmc_pending is 0. What is outside
 * either, or one more than VMMC_TRANSFERS, is not sent, and counted: compare vmmc_errors before and
 * behind it, for all tasks of the node share these (vmmc_pair_send does so).
 */
enum { VMMC_DU_START = 0, VMMC_DU_START_NOTIFY = 1, VMMC_DU_PENDING = 8, VMMC_DU_ERRORS = 9 };
static inline void vmmc_send(volatile uint64_t *du, unsigned slot, uint32_t from, uint32_t to,
                             uint32_t length, bool notify)
{
    du[notify ? VMMC_DU_START_NOTIFY : VMMC_DU_START] = slot | (uint64_t)from << 8 |
                                                        (uint64_t)to << 28 | (uint64_t)length << 48;
}
static inline uint64_t vmmc_pending(const volatile uint64_t *du)
{
    return du[VMMC_DU_PENDING];
}
/* Transfers of this import that were not sent. */
static inline uint64_t vmmc_errors(const volatile uint64_t *du)
{
    return du[VMMC_DU_ERRORS];
}
