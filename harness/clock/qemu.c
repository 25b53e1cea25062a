// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include "qemu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct qemu qemu;

// QEMU accepts a range of versions of its plugin API, and refuses a plugin that declares another:
// 7.2 accepts 0 to 1, 10.0 accepts 2 to 4, 11.1 accepts 7 alone. Newest first.
static const struct {
    int major, minor; // the first version of QEMU
    int api;
} PLUGIN_APIS[] = {{11, 1, 7}, {9, 0, 2}, {0, 0, 1}};

// VersionInfo and VersionTriple of qapi/misc.json, as QAPI lays them out.
struct version_triple {
    int64_t major, minor, micro;
};
struct version_info {
    struct version_triple *qemu;
    char *package;
};

// NetClientInfo of include/net/net.h: the members up to receive_iov are the same from 7.2 to 11.1.
struct net_client_info {
    int type;
    size_t size;
    NetReceive *receive;
    void *receive_raw;
    void *receive_iov;
    void *more[40]; // the rest is copied as it is
};

static char complaint[256];

static const char *say(const char *format, const char *what)
{
    snprintf(complaint, sizeof complaint, format, what);
    return complaint;
}

static bool at_least(int major, int minor)
{
    return qemu.major > major || (qemu.major == major && qemu.minor >= minor);
}

static int plugin_api;

int qemu_plugin_api(void)
{
    void *query = dlsym(RTLD_DEFAULT, "qmp_query_version");
    memcpy(&qemu.qmp_query_version, &query, sizeof query);
    if (query) { // else qemu_load() says that it is missing
        const struct version_info *version = qemu.qmp_query_version(NULL);
        qemu.major = (int)version->qemu->major;
        qemu.minor = (int)version->qemu->minor;
    }
    size_t i = 0;
    while (!at_least(PLUGIN_APIS[i].major, PLUGIN_APIS[i].minor))
        i++;
    plugin_api = PLUGIN_APIS[i].api;
    return plugin_api;
}

static void (*on_translation)(struct qemu_plugin_tb *);

static void translated_by_id(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    on_translation(tb);
}

static void translated_by_data(struct qemu_plugin_tb *tb, void *data)
{
    (void)data;
    on_translation(tb);
}

void qemu_on_translation(qemu_plugin_id_t id, void (*callback)(struct qemu_plugin_tb *))
{
    void (*by_id)(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
    void (*by_data)(qemu_plugin_id_t, void (*)(struct qemu_plugin_tb *, void *), void *);
    on_translation = callback;
    if (plugin_api < 7) {
        memcpy(&by_id, &qemu.plugin_register_vcpu_tb_trans_cb, sizeof by_id);
        by_id(id, translated_by_id);
    } else {
        memcpy(&by_data, &qemu.plugin_register_vcpu_tb_trans_cb, sizeof by_data);
        by_data(id, translated_by_data, NULL);
    }
}

struct symbol {
    const char *name;
    void *place;             // of a pointer to a function
    const char *alternative; // its name in other versions, or NULL
};

// NULL, or which is missing.
static const char *look_up(const struct symbol *symbols, size_t number)
{
    for (size_t i = 0; i < number; i++) {
        void *address = dlsym(RTLD_DEFAULT, symbols[i].name);
        if (!address && symbols[i].alternative)
            address = dlsym(RTLD_DEFAULT, symbols[i].alternative);
        if (!address)
            return say("this QEMU does not export %s (it was built without modules)",
                       symbols[i].name);
        memcpy(symbols[i].place, &address, sizeof address);
    }
    return NULL;
}

const char *qemu_load_memory(void)
{
    const struct symbol symbols[] = {
        {"object_resolve_path", &qemu.object_resolve_path, NULL},
        {"host_memory_backend_get_memory", &qemu.host_memory_backend_get_memory, NULL},
        {"memory_region_size", &qemu.memory_region_size, NULL},
        {"memory_region_get_ram_ptr", &qemu.memory_region_get_ram_ptr, NULL},
        {"memory_region_init_rom_device_nomigrate", &qemu.memory_region_init_rom_device,
         "memory_region_init_rom_device"},
        {"memory_region_add_subregion_overlap", &qemu.memory_region_add_subregion_overlap, NULL},
    };
    const struct symbol both[] = {{"cpu_physical_memory_rw", &qemu.physical_memory_rw, NULL}};
    const struct symbol apart[] = {
        {"physical_memory_read", &qemu.physical_memory_read, NULL},
        {"physical_memory_write", &qemu.physical_memory_write, NULL},
    };
    const char *missing = look_up(symbols, sizeof symbols / sizeof *symbols);
    if (!missing && look_up(both, sizeof both / sizeof *both))
        missing = look_up(apart, sizeof apart / sizeof *apart);
    return missing;
}

void qemu_read_physical(uint64_t address, void *bytes, uint64_t length)
{
    if (qemu.physical_memory_rw)
        qemu.physical_memory_rw(address, bytes, length, false);
    else
        qemu.physical_memory_read(address, bytes, length);
}

void qemu_write_physical(uint64_t address, const void *bytes, uint64_t length)
{
    // QEMU only reads what it writes to the guest.
    void *from;
    memcpy(&from, &bytes, sizeof from);
    if (qemu.physical_memory_rw)
        qemu.physical_memory_rw(address, from, length, true);
    else
        qemu.physical_memory_write(address, from, length);
}

const char *qemu_load(void)
{
    const struct symbol symbols[] = {
        {"qemu_plugin_register_vcpu_tb_trans_cb", &qemu.plugin_register_vcpu_tb_trans_cb, NULL},
        {"qemu_plugin_register_vcpu_insn_exec_cb", &qemu.plugin_register_vcpu_insn_exec_cb, NULL},
        {"qemu_plugin_tb_n_insns", &qemu.plugin_tb_n_insns, NULL},
        {"qemu_plugin_tb_get_insn", &qemu.plugin_tb_get_insn, NULL},
        {"qemu_plugin_insn_size", &qemu.plugin_insn_size, NULL},
        {"qemu_plugin_insn_data", &qemu.plugin_insn_data, NULL},
        {"qemu_plugin_insn_vaddr", &qemu.plugin_insn_vaddr, NULL},
        {"qemu_clock_get_ns", &qemu.clock_get_ns, NULL},
        {"qemu_clock_deadline_ns_all", &qemu.clock_deadline_ns_all, NULL},
        {"timer_init_full", &qemu.timer_init_full, NULL},
        {"timer_mod_ns", &qemu.timer_mod_ns, NULL},
        {"timerlist_new", &qemu.timerlist_new, NULL},
        {"timerlist_free", &qemu.timerlist_free, NULL},
        {"timerlist_has_timers", &qemu.timerlist_has_timers, NULL},
        {"all_cpu_threads_idle", &qemu.all_cpu_threads_idle, NULL},
        {"icount_update", &qemu.icount_update, NULL},
        {"icount_get_raw", &qemu.icount_get_raw, NULL},
        {"qemu_find_netdev", &qemu.find_netdev, NULL},
        {"qemu_send_packet", &qemu.send_packet, NULL},
        {"qemu_can_send_packet", &qemu.can_send_packet, NULL},
        {"qemu_flush_queued_packets", &qemu.flush_queued_packets, NULL},
        {"qemu_add_vm_change_state_handler", &qemu.add_vm_change_state_handler, NULL},
        {"qemu_system_vmstop_request_prepare", &qemu.system_vmstop_request_prepare, NULL},
        {"qemu_system_vmstop_request", &qemu.system_vmstop_request, NULL},
        {"qmp_query_version", &qemu.qmp_query_version, NULL},
        {"g_byte_array_new", &qemu.byte_array_new, NULL},
        {"g_byte_array_set_size", &qemu.byte_array_set_size, NULL},
    };
    const char *missing = look_up(symbols, sizeof symbols / sizeof *symbols);
    if (missing)
        return missing;
    // Only for speed.
    void *warp = dlsym(RTLD_DEFAULT, "icount_start_warp_timer"),
         *run = dlsym(RTLD_DEFAULT, "async_run_on_cpu");
    if (warp && run) {
        memcpy(&qemu.icount_start_warp_timer, &warp, sizeof warp);
        memcpy(&qemu.async_run_on_cpu, &run, sizeof run);
    }
    // Only to stand. The lock has another name from 9.0 on.
    const struct symbol standing[] = {
        {"bql_lock_impl", &qemu.lock, "qemu_mutex_lock_iothread_impl"},
        {"runstate_is_running", &qemu.runstate_is_running, NULL},
        {"cpu_is_stopped", &qemu.cpu_is_stopped, NULL},
        {"main_loop_poll_add_notifier", &qemu.main_loop_poll_add_notifier, NULL},
        {"bql_unlock", &qemu.unlock, "qemu_mutex_unlock_iothread"},
    };
    if (look_up(standing, sizeof standing / sizeof *standing))
        qemu.unlock = NULL;
    qemu.tcg_qemu_tb_exec = dlsym(RTLD_DEFAULT, "tcg_qemu_tb_exec");
    void *registers = dlsym(RTLD_DEFAULT, "x86_cpu_gdb_read_register");
    memcpy(&qemu.read_register, &registers, sizeof registers);
    void *lookup = dlsym(RTLD_DEFAULT, "tcg_tb_lookup");
    memcpy(&qemu.tcg_tb_lookup, &lookup, sizeof lookup);
    void *memory = dlsym(RTLD_DEFAULT, "cpu_memory_rw_debug");
    memcpy(&qemu.read_memory, &memory, sizeof memory);
    if (!dlsym(RTLD_DEFAULT, "current_cpu"))
        return "this QEMU does not export current_cpu (it was built without modules)";
    return NULL;
}

void qemu_first_bytes(const struct qemu_plugin_insn *insn, uint8_t *bytes, size_t length)
{
    // The second form copies (API version 3, from QEMU 9.1), the first one returns a pointer.
    if (at_least(9, 1)) {
        size_t (*copy)(const struct qemu_plugin_insn *, void *, size_t);
        memcpy(&copy, &qemu.plugin_insn_data, sizeof copy);
        copy(insn, bytes, length);
        return;
    }
    const void *(*pointer)(const struct qemu_plugin_insn *);
    memcpy(&pointer, &qemu.plugin_insn_data, sizeof pointer);
    memcpy(bytes, pointer(insn), length);
}

// Whether an address belongs to the QEMU executable itself.
static bool in_executable(void *address)
{
    Dl_info there, here;
    void *known;
    memcpy(&known, &qemu.find_netdev, sizeof known);
    return dladdr(address, &there) && dladdr(known, &here) && there.dli_fbase == here.dli_fbase;
}

const char *qemu_take_netdev(const char *name, NetReceive *receive, NetClientState **nc)
{
    static struct net_client_info copies[8];
    static size_t used;

    *nc = qemu.find_netdev(name);
    if (!*nc)
        return say("the machine has no netdev %s", name);
    if (used == sizeof copies / sizeof *copies)
        return say("too many netdevs at %s", name);
    // first member of NetClientState
    struct net_client_info **info = (struct net_client_info **)*nc;
    void *function;
    memcpy(&function, &(*info)->receive, sizeof function);
    // A backend that takes frames by more than `receive` would let some pass by us.
    if (!in_executable(function) || (*info)->receive_raw || (*info)->receive_iov)
        return say("netdev %s is not of a kind whose frames can be taken (use dgram)", name);
    struct net_client_info *copy = &copies[used++];
    *copy = **info;
    copy->receive = receive;
    *info = copy;
    return NULL;
}

// What follows the mutex and the timers in QEMUTimerList of util/qemu-timer.c: its place among the
// clock's lists, and what to notify when the clock has jumped.
struct timer_list_tail {
    void *next, **previous;
    void (*notify)(void *opaque, int type);
    void *opaque;
};

static struct {
    void *list;
    void (*notify)(void *opaque, int type);
    void *opaque;
} quieted[32];
static size_t quieted_count;

// Instead of aio_timerlist_notify.
static void notify_if_it_has_timers(void *opaque, int type)
{
    for (size_t i = 0; i < quieted_count; i++)
        if (quieted[i].opaque == opaque && qemu.timerlist_has_timers(quieted[i].list))
            quieted[i].notify(opaque, type);
}

// The main loop's list: whose change makes the CPU leave its loop, to look at its timers again.
static void (*kick)(void *opaque, int type);
static __thread bool kicks_are_quiet;

static void kick_if_not_quiet(void *opaque, int type)
{
    if (!kicks_are_quiet)
        kick(opaque, type);
}

void qemu_quiet_kicks(bool quiet)
{
    kicks_are_quiet = quiet;
}

static void not_to_be_called(void *opaque, int type)
{
    (void)opaque;
    (void)type;
}

static struct timer_list_tail *tail_of(void *list, size_t offset)
{
    return (struct timer_list_tail *)((char *)list + offset);
}

void qemu_quiet_notifications(void)
{
    // A list of our own shows where the tail is.
    void *own = qemu.timerlist_new(QEMU_CLOCK_VIRTUAL, not_to_be_called, quieted);
    size_t offset = 0;
    const size_t farthest = 160;
    while (offset < farthest && !(tail_of(own, offset)->notify == not_to_be_called &&
                                  tail_of(own, offset)->opaque == quieted))
        offset += sizeof(void *);
    bool found = offset < farthest && *tail_of(own, offset)->previous == own;
    for (void *list = found ? tail_of(own, offset)->next : NULL; list;
         list = tail_of(list, offset)->next) {
        struct timer_list_tail *tail = tail_of(list, offset);
        // The main loop's own list, which makes the vCPU look, has no opaque.
        if (!tail->opaque && !kick) {
            kick = tail->notify;
            tail->notify = kick_if_not_quiet;
        }
        if (!tail->opaque || quieted_count == sizeof quieted / sizeof *quieted)
            continue;
        quieted[quieted_count].list = list;
        quieted[quieted_count].notify = tail->notify;
        quieted[quieted_count++].opaque = tail->opaque;
        tail->notify = notify_if_it_has_timers;
    }
    qemu.timerlist_free(own);
}

static void **current_cpu(void)
{
    static __thread void **current; // dlsym gives each thread its own address
    if (!current)
        current = dlsym(RTLD_DEFAULT, "current_cpu");
    return current;
}

void *qemu_current_cpu(void)
{
    return *current_cpu();
}

int64_t qemu_accounted_ns(void)
{
    // A thread without a CPU gets what was accounted last.
    void **current = current_cpu(), *cpu = *current;
    *current = NULL;
    int64_t ns = qemu.clock_get_ns(QEMU_CLOCK_VIRTUAL);
    *current = cpu;
    return ns;
}

int qemu_block_instructions(uintptr_t code, int listed)
{
    // TranslationBlock as of 7.2: pc, cs_base, flags, cflags, trace_vcpu_dstate, size, icount.
    enum { ICOUNT_AT = 30 };
    if (at_least(8, 0))
        return listed; // plugin_gen_tb_end() gets the number there
    const char *block = qemu.tcg_tb_lookup ? qemu.tcg_tb_lookup(code) : NULL;
    if (!block)
        return -1;
    uint16_t icount;
    memcpy(&icount, block + ICOUNT_AT, sizeof icount);
    return icount == listed || icount == listed - 1 ? icount : -1;
}
