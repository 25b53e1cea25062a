// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the plugin uses of QEMU: the plugin API (declared here, since distributions ship no header)
// and global functions of the executable, looked up by name so that a QEMU without them is refused
// with a sentence instead of a crash.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// ---- Plugin API -------------------------------------------------------------------------------
typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*qemu_plugin_vcpu_udata_cb_t)(unsigned int vcpu_index, void *userdata);

enum { QEMU_PLUGIN_CB_NO_REGS = 0 };
enum { QEMU_CLOCK_VIRTUAL = 1 };
enum { RUN_STATE_PAUSED = 4 };
enum { QEMU_TIMER_ATTR_ALL = -1 };

// GByteArray of GLib
typedef struct {
    uint8_t *data;
    unsigned len;
} GByteArray;

// Notifier of include/qemu/notify.h, the same from 7.2 to 11.1.
struct notifier {
    void (*notify)(struct notifier *, void *data);
    void *next, **previous;
};

typedef struct NetClientState NetClientState;
typedef ssize_t NetReceive(NetClientState *nc, const uint8_t *frame, size_t size);

// MemoryRegionOps of include/exec/memory.h, the same from 7.2 to 11.1.
struct memory_region_ops {
    uint64_t (*read)(void *opaque, uint64_t offset, unsigned size);
    void (*write)(void *opaque, uint64_t offset, uint64_t value, unsigned size);
    void *with_attributes[2];
    int endianness;
    struct {
        unsigned least, most;
        bool unaligned;
        void *accepts;
    } valid;
    struct {
        unsigned least, most;
        bool unaligned;
    } impl;
};
enum { QEMU_DEVICE_LITTLE_ENDIAN = 2 };

struct qemu {
    int major, minor;
    // Plugin API
    void *plugin_register_vcpu_tb_trans_cb; // version 7 has another signature: qemu_on_translation
    void (*plugin_register_vcpu_insn_exec_cb)(struct qemu_plugin_insn *,
                                              qemu_plugin_vcpu_udata_cb_t, int flags, void *);
    size_t (*plugin_tb_n_insns)(const struct qemu_plugin_tb *);
    struct qemu_plugin_insn *(*plugin_tb_get_insn)(const struct qemu_plugin_tb *, size_t);
    size_t (*plugin_insn_size)(const struct qemu_plugin_insn *);
    uint64_t (*plugin_insn_vaddr)(const struct qemu_plugin_insn *);
    void *plugin_insn_data; // its signature changed with API version 3: see qemu_first_bytes
    // Clocks and timers
    int64_t (*clock_get_ns)(int type);
    int64_t (*clock_deadline_ns_all)(int type, int attribute_mask);
    void (*timer_init_full)(void *timer, void *group, int type, int scale, int attributes,
                            void (*callback)(void *), void *);
    void (*timer_mod_ns)(void *timer, int64_t expire_ns);
    void *(*timerlist_new)(int type, void (*notify)(void *opaque, int type), void *opaque);
    void (*timerlist_free)(void *list);
    bool (*timerlist_has_timers)(void *list);
    bool (*all_cpu_threads_idle)(void);
    void (*icount_update)(void *cpu);
    void (*icount_start_warp_timer)(void);
    // NULL, both, where one is missing
    void (*async_run_on_cpu)(void *cpu, void (*function)(void *cpu, uint64_t), uint64_t);
    int64_t (*icount_get_raw)(void); // instructions executed so far
    // QEMU's big lock, and whether the machine runs; `unlock` is NULL where one is missing.
    void (*lock)(const char *file, int line);
    void (*unlock)(void);
    bool (*runstate_is_running)(void);
    // Also a CPU that a debugger has stopped, before QEMU has stopped the machine.
    bool (*cpu_is_stopped)(void *cpu);
    // Called by the main loop with QEMU's lock, the last time in each turn just before a CPU that
    // is idle jumps.
    void (*main_loop_poll_add_notifier)(struct notifier *);
    // What executes translated code; NULL where this QEMU does not show it.
    uintptr_t (**tcg_qemu_tb_exec)(void *env, const void *code);
    // Registers, by GDB's numbers, and memory as a debugger reads it: nothing of the guest changes.
    // NULL where this QEMU does not show it.
    int (*read_register)(void *cpu, GByteArray *append_to, int number);
    int (*read_memory)(void *cpu, uint64_t address, void *bytes, uint64_t length, bool write);
    // The translated block that code at this address of the host belongs to; NULL where this QEMU
    // does not show it.
    const void *(*tcg_tb_lookup)(uintptr_t code);
    GByteArray *(*byte_array_new)(void);
    GByteArray *(*byte_array_set_size)(GByteArray *, unsigned length);
    // Network
    NetClientState *(*find_netdev)(const char *id);
    ssize_t (*send_packet)(NetClientState *nc, const uint8_t *frame, int size);
    int (*can_send_packet)(NetClientState *nc);
    void (*flush_queued_packets)(NetClientState *nc);
    // Memory; only after qemu_load_memory(). Regions and objects are opaque.
    void *(*object_resolve_path)(const char *path, bool *ambiguous);
    void *(*host_memory_backend_get_memory)(void *backend);
    uint64_t (*memory_region_size)(void *region);
    void *(*memory_region_get_ram_ptr)(void *region);
    void (*memory_region_init_rom_device)(void *region, void *owner,
                                          const struct memory_region_ops *, void *opaque,
                                          const char *name, uint64_t bytes, void **error);
    void (*memory_region_add_subregion_overlap)(void *region, uint64_t offset, void *inner,
                                                int priority);
    // One function up to 11.0, two from 11.1 on; the others are NULL. See qemu_read_physical.
    void (*physical_memory_rw)(uint64_t address, void *bytes, uint64_t length, bool write);
    void (*physical_memory_read)(uint64_t address, void *bytes, uint64_t length);
    void (*physical_memory_write)(uint64_t address, const void *bytes, uint64_t length);
    // Run state
    void *(*add_vm_change_state_handler)(void (*)(void *, bool running, int state), void *);
    void (*system_vmstop_request_prepare)(void);
    void (*system_vmstop_request)(int state);
    void *(*qmp_query_version)(void **error);
};

extern struct qemu qemu;

// The version of the plugin API to declare to this QEMU, whose own version is known from here on.
// The only function that may be called before qemu_load().
int qemu_plugin_api(void);
// Fills `qemu`. Returns NULL, or a sentence saying what this QEMU lacks.
const char *qemu_load(void);
// The same for what the adapter of a backplane needs beside.
const char *qemu_load_memory(void);
// Calls `callback` for each block that QEMU translates.
void qemu_on_translation(qemu_plugin_id_t id, void (*callback)(struct qemu_plugin_tb *));
// The guest's memory by physical addresses; only after qemu_load_memory().
void qemu_read_physical(uint64_t address, void *bytes, uint64_t length);
void qemu_write_physical(uint64_t address, const void *bytes, uint64_t length);
// From here a jump of the virtual clock wakes no thread that has no timer of that clock. Only for
// speed: does nothing where QEMU's timer lists do not look as known.
void qemu_quiet_notifications(void);
// While `quiet`, a timer that this thread moves does not make the CPU leave its loop. Does nothing
// where qemu_quiet_notifications() did nothing.
void qemu_quiet_kicks(bool quiet);
// The first bytes of an instruction that is at least so long, at translation time.
void qemu_first_bytes(const struct qemu_plugin_insn *insn, uint8_t *bytes, size_t length);
// Replaces the function that takes the guest's frames at the back end NAME. Returns NULL or what is
// wrong.
const char *qemu_take_netdev(const char *name, NetReceive *receive, NetClientState **nc);
// How many instructions the block has that the code at this address of the host is of; it has
// `listed` or, where the last was taken off again, one less. -1 where that cannot be known.
int qemu_block_instructions(uintptr_t code, int listed);
// The CPU that the calling thread runs.
void *qemu_current_cpu(void);
// The virtual clock as it was last accounted. Unlike clock_get_ns() it may be called inside a
// block.
int64_t qemu_accounted_ns(void);
