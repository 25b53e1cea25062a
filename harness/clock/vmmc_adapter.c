// SPDX-License-Identifier: GPL-2.0-or-later
#include "vmmc_adapter.h"

#include "adapters.h"
#include "member.h"
#include "qemu.h"

#include <string.h>

static const char BACKEND[] = "/objects/vmmc0";

static struct vmmc adapter;
static const struct vmmc_clock *clock_of_run;
static uint64_t timer[64]; // QEMUTimer, opaque and smaller than this
static uint64_t due_ns;    // 0: it is not
static bool telling;       // a frame of tell() may still wait for a buffer
static bool inside;        // the adapter itself writes to the guest's memory

// MemoryRegion of include/exec/memory.h, opaque and smaller than this.
static _Alignas(16) uint8_t overlay[4096];

// ---- What the adapter does to the machine -----------------------------------------------------

static void send(const uint8_t *packet, size_t length)
{
    clock_of_run->hand_in(packet, length, clock_of_run->now_ns());
}

static void write_memory(uint64_t address, const void *bytes, uint64_t length)
{
    inside = true;
    qemu_write_physical(address, bytes, length);
    inside = false;
}

// QEMU keeps what the guest has no buffer for until it gives one.
static void tell(const uint8_t *frame, size_t length)
{
    inside = true;
    telling |= qemu.send_packet(adapters[0].client, frame, (int)length) == 0;
    inside = false;
}

bool vmmc_telling(void)
{
    telling = telling && !qemu.can_send_packet(adapters[0].client);
    return telling;
}

static const struct vmmc_world WORLD = {send, qemu_read_physical, write_memory, tell};

// ---- Events -----------------------------------------------------------------------------------

// The timer stays where it is if it is early enough: a store that puts off the end of combining
// moves nothing.
static void arm(void)
{
    if (adapter.overflow)
        broken("the outgoing FIFO of the backplane's adapter overflowed");
    uint64_t next = vmmc_next_ns(&adapter);
    if (next == UINT64_MAX || (due_ns && due_ns <= next))
        return;
    due_ns = next;
    qemu.timer_mod_ns(timer, zero_ns + (int64_t)next);
}

static void expired(void *unused)
{
    (void)unused;
    clock_of_run->enter(false);
    due_ns = 0;
    vmmc_timeout(&adapter, clock_of_run->now_ns());
    arm();
    clock_of_run->leave();
}

static void stored(void *unused, uint64_t offset, uint64_t value, unsigned size)
{
    (void)unused;
    // A guest that lists pages of the adapter as memory of an export, or as buffers of a NIC, gets
    // them written, no more.
    if (inside) {
        memcpy(adapter.seen + offset, &value, size);
        return;
    }
    clock_of_run->enter(true);
    vmmc_store(&adapter, clock_of_run->now_ns(), offset, value, size);
    arm();
    clock_of_run->leave();
}

// Only for what QEMU itself reads by way of the device; the guest's loads are of memory.
static uint64_t loaded(void *unused, uint64_t offset, unsigned size)
{
    (void)unused;
    uint64_t value = 0;
    memcpy(&value, adapter.seen + offset, size);
    return value;
}

void vmmc_deliver(const uint8_t *packet, size_t length, uint64_t now_ns)
{
    vmmc_receive(&adapter, now_ns, packet, length);
    arm();
}

// ---- Setting up -------------------------------------------------------------------------------

static const struct memory_region_ops OPERATIONS = {
    .read = loaded,
    .write = stored,
    .endianness = QEMU_DEVICE_LITTLE_ENDIAN,
    .valid = {.least = 1, .most = 8, .unaligned = true},
    .impl = {.least = 1, .most = 8, .unaligned = true},
};

const char *vmmc_plug(const struct vmmc_config *config, const struct vmmc_clock *clock)
{
    clock_of_run = clock;
    void *backend = qemu.object_resolve_path(BACKEND, NULL);
    if (!backend)
        return "the machine has no object vmmc0 for the backplane's adapter";
    void *memory = qemu.host_memory_backend_get_memory(backend), *error = NULL;
    if (qemu.memory_region_size(memory) < VMMC_BYTES)
        return "the object vmmc0 is too small for the backplane's adapter";
    qemu.memory_region_init_rom_device(overlay, NULL, &OPERATIONS, NULL, "vmmc", VMMC_BYTES,
                                       &error);
    if (error)
        return "no memory for the backplane's adapter";
    vmmc_init(&adapter, config, &WORLD, qemu.memory_region_get_ram_ptr(overlay));
    qemu.timer_init_full(timer, NULL, QEMU_CLOCK_VIRTUAL, 1, 0, expired, NULL);
    qemu.memory_region_add_subregion_overlap(memory, 0, overlay, 1);
    return NULL;
}
