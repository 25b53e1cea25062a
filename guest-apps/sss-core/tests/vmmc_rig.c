/* SPDX-License-Identifier: Apache-2.0 */
#include "vmmc_rig.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "node_state.h"

enum {
    OBJECTS = 256,
    BINDINGS = 512,
    SOURCES = 16,
    TRAP_FLAG = 0x100,
    SLICE_NS = 200000,
    DU_WORDS = VMMC_PAGE / 8,
};

struct who {
    uint16_t node, task;
};

struct exported {
    bool used;
    struct who owner;
    struct vmmc_export_setup setup;
    unsigned imports;
};

struct source {
    const uint8_t *memory;
    uint32_t bytes;
};

struct imported {
    bool used;
    struct who owner;
    struct exported *from; /* NULL: gone */
    volatile uint32_t *gone;
    volatile uint64_t *du;
    struct source sources[SOURCES];
    unsigned source_count;
};

struct binding {
    uint8_t *at; /* NULL: free */
    uint32_t pages;
    struct imported *import;
    volatile uint32_t *notified; /* NULL: stores need not be caught */
    bool refused;                /* the exporter's node has crashed */
};

static struct exported exports[OBJECTS];
static struct imported imports[OBJECTS];
static struct binding bindings[BINDINGS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *nodes[NODES_MOST];
static unsigned exports_most[NODES_MOST]; /* 0: as many as there is room for */

static struct who caller(void)
{
    return (struct who){SSS_INFO->node, SSS_INFO->task};
}

static bool is_callers(struct who owner)
{
    return owner.node == SSS_INFO->node && owner.task == SSS_INFO->task;
}

static void count(volatile uint32_t *word)
{
    if (word)
        __atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
}

static void must(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "vmmc_rig: %s\n", what);
        abort();
    }
}

/* ---- stores that are caught: of deliberate updates, and to pages that notify ---- */

/* What the next step of this thread ends. */
static __thread uint8_t *caught;

static struct binding *binding_of(const uint8_t *at)
{
    for (unsigned i = 0; i < BINDINGS; i++)
        if (bindings[i].at && at >= bindings[i].at &&
            at < bindings[i].at + (size_t)bindings[i].pages * VMMC_PAGE)
            return &bindings[i];
    return NULL;
}

static struct imported *import_of_du(const uint8_t *at)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        if (imports[i].used && at - (const uint8_t *)imports[i].du < VMMC_PAGE &&
            at >= (const uint8_t *)imports[i].du)
            return &imports[i];
    return NULL;
}

static uint8_t *page_of(uint8_t *at)
{
    return at - (uintptr_t)at % VMMC_PAGE;
}

static unsigned busy; /* transfers that find no place */

void vmmc_rig_busy(unsigned transfers)
{
    __atomic_store_n(&busy, transfers, __ATOMIC_RELEASE);
}

static bool finds_no_place(void)
{
    unsigned left = __atomic_load_n(&busy, __ATOMIC_ACQUIRE);

    while (left != 0 && !__atomic_compare_exchange_n(&busy, &left, left - 1, false,
                                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    return left != 0;
}

static void transfer(struct imported *import, unsigned word)
{
    uint64_t said = import->du[word];
    unsigned slot = said & 0xff;
    uint32_t from = said >> 8 & 0xfffff, to = said >> 28 & 0xfffff, length = said >> 48;
    const struct exported *export = import->from;

    length = length ? length : VMMC_TRANSFER;
    import->du[word] = 0;
    if (finds_no_place() || !export || slot >= import->source_count ||
        from + length > import->sources[slot].bytes ||
        to + length > export->setup.pages * VMMC_PAGE) {
        import->du[VMMC_DU_ERRORS]++;
        return;
    }
    memcpy((uint8_t *)export->setup.address + to, import->sources[slot].memory + from, length);
    if (word == VMMC_DU_START_NOTIFY)
        count(export->setup.notified);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = context;

    if (!binding_of(info->si_addr) && !import_of_du(info->si_addr)) {
        signal(number, SIG_DFL);
        return;
    }
    caught = info->si_addr;
    mprotect(page_of(caught), VMMC_PAGE, PROT_READ | PROT_WRITE);
    at->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_step(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    struct binding *binding = binding_of(caught);
    struct imported *import = import_of_du(caught);

    (void)number;
    (void)info;
    if (import)
        transfer(import, (unsigned)((uintptr_t)caught % VMMC_PAGE / 8));
    if (binding)
        count(binding->notified);
    if (binding && binding->refused && binding->import->gone)
        __atomic_store_n(binding->import->gone, 1, __ATOMIC_RELEASE);
    mprotect(page_of(caught), VMMC_PAGE, PROT_READ);
    at->uc_mcontext.gregs[REG_EFL] &= ~(long long)TRAP_FLAG;
}

static void catch_stores(void)
{
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

    sigaction(SIGSEGV, &fault, NULL);
    sigaction(SIGTRAP, &step, NULL);
}

/* ---- nodes and tasks ---- */

void vmmc_rig_start(unsigned wanted)
{
    must(node_open_group(nodes, wanted) == 0, "the nodes");
    catch_stores();
}

int vmmc_rig_task_of(uint16_t node, uint16_t id)
{
    int task = node_task(nodes[node - 1], id);

    must(task > 0, "a task");
    return task;
}

int vmmc_rig_task(uint16_t node)
{
    return vmmc_rig_task_of(node, 0);
}

/* Fresh pages at an address, whatever was there. */
static bool lay(void *at, uint64_t bytes, int protection)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    const void *laid = mmap(at, bytes, protection, flags, -1, 0);

    /* cppcheck-suppress memleak; the pages stay at their address */
    return laid != MAP_FAILED;
}

/* As in SSS-CORE, an address is given once only: what was unmapped may be bound there. */
static long keep_free(uint64_t address, uint64_t bytes)
{
    return lay((void *)(uintptr_t)address, bytes, PROT_NONE) ? 0 : -SSS_EINVAL;
}

/* Words that stores change are looked at by polling. */
long __real_sss_call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                     uint64_t f);
long __wrap_sss_call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                     uint64_t f);
long __wrap_sss_call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                     uint64_t f)
{
    if (number == SSS_MEMORY_UNMAP)
        return keep_free(a, b);
    if (number != SSS_WAIT)
        return __real_sss_call(number, a, b, c, d, e, f);
    for (uint64_t left = c;; left -= left == SSS_FOREVER ? 0 : SLICE_NS) {
        uint64_t slice = left < SLICE_NS ? left : SLICE_NS;
        long result = __real_sss_call(SSS_WAIT, a, b, slice, d, e, f);

        if (result != -SSS_ETIMEDOUT || left <= SLICE_NS)
            return result;
    }
}

/* ---- exports ---- */

static bool is_private(const struct vmmc_export_setup *setup)
{
    const uint8_t *begin = setup->address, *end = begin + (size_t)setup->pages * VMMC_PAGE;

    for (unsigned i = 0; i < OBJECTS; i++) {
        const struct exported *other = &exports[i];
        const uint8_t *first = other->setup.address;

        if (other->used && first < end && begin < first + (size_t)other->setup.pages * VMMC_PAGE)
            return false;
    }
    return true;
}

static unsigned exports_of(uint16_t node)
{
    unsigned there = 0;

    for (unsigned i = 0; i < OBJECTS; i++)
        there += exports[i].used && exports[i].owner.node == node;
    return there;
}

void vmmc_rig_full(uint16_t node, bool full)
{
    pthread_mutex_lock(&lock);
    exports_most[node - 1] = full ? exports_of(node) : 0;
    pthread_mutex_unlock(&lock);
}

static int add_export(const struct vmmc_export_setup *setup)
{
    unsigned most = exports_most[SSS_INFO->node - 1];

    if (!setup->address || (uintptr_t)setup->address % VMMC_PAGE || setup->pages == 0 ||
        setup->pages > VMMC_EXPORT_PAGES || !memchr(setup->name, '\0', VMMC_NAME) ||
        setup->name[0] == '\0' || !is_private(setup))
        return -SSS_EINVAL;
    if (most != 0 && exports_of(SSS_INFO->node) >= most)
        return -SSS_ENOMEM;
    for (int i = 0; i < OBJECTS; i++) {
        if (exports[i].used)
            continue;
        exports[i] = (struct exported){.used = true, .owner = caller(), .setup = *setup};
        return i;
    }
    return -SSS_ENOMEM;
}

int vmmc_export(const struct vmmc_export_setup *setup)
{
    int id;

    pthread_mutex_lock(&lock);
    id = add_export(setup);
    pthread_mutex_unlock(&lock);
    return id;
}

/* What is stored there from now on goes nowhere; loads give the same as before. */
static void cut_off(const struct binding *binding)
{
    size_t bytes = (size_t)binding->pages * VMMC_PAGE;
    uint8_t *copy = malloc(bytes);

    must(copy != NULL, "memory");
    memcpy(copy, binding->at, bytes);
    must(lay(binding->at, bytes, PROT_READ | PROT_WRITE), "cutting off");
    memcpy(binding->at, copy, bytes);
    if (binding->refused)
        mprotect(binding->at, bytes, PROT_READ);
    free(copy);
}

static void remove_export(struct exported *export, bool tell)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct imported *import = &imports[i];

        if (!import->used || import->from != export)
            continue;
        for (unsigned j = 0; j < BINDINGS; j++)
            if (bindings[j].at && bindings[j].import == import) {
                bindings[j].notified = NULL;
                bindings[j].refused = !tell;
                cut_off(&bindings[j]);
            }
        import->from = NULL;
        if (import->gone && tell)
            __atomic_store_n(import->gone, 1, __ATOMIC_RELEASE);
    }
    export->used = false;
}

int vmmc_unexport(int id)
{
    int result = -SSS_EINVAL;

    pthread_mutex_lock(&lock);
    if (id >= 0 && id < OBJECTS && exports[id].used && is_callers(exports[id].owner)) {
        remove_export(&exports[id], true);
        result = 0;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- imports ---- */

static int find_export(const struct vmmc_import_setup *setup, struct exported **found)
{
    int refused = VMMC_NO_NAME;

    for (unsigned i = 0; i < OBJECTS; i++) {
        struct exported *export = &exports[i];

        if (!export->used || export->owner.node != setup->node ||
            strncmp(export->setup.name, setup->name, VMMC_NAME) != 0)
            continue;
        *found = export;
        if (export->setup.key != setup->key)
            refused = VMMC_NO_KEY;
        else if (!(export->setup.allow >> (SSS_INFO->node - 1) & 1))
            refused = VMMC_NO_NODE;
        else if (export->setup.flags & VMMC_SINGLE && export->imports > 0)
            refused = VMMC_FULL;
        else
            return 0;
    }
    return -(VMMC_REFUSED + refused);
}

static int add_import(struct vmmc_import_setup *setup)
{
    struct exported *export = NULL;
    int error = find_export(setup, &export);
    void *du;

    if (error == -(VMMC_REFUSED + VMMC_FULL))
        count(export->setup.wanted);
    if (error)
        return error;
    for (int i = 0; i < OBJECTS; i++) {
        if (imports[i].used)
            continue;
        du = mmap(NULL, VMMC_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(du != MAP_FAILED, "a page for deliberate updates");
        imports[i] = (struct imported){
            .used = true, .owner = caller(), .from = export, .gone = setup->gone, .du = du};
        export->imports++;
        count(export->setup.imported);
        setup->pages = export->setup.pages;
        setup->use = export->setup.use;
        setup->du = du;
        return i;
    }
    return -SSS_ENOMEM;
}

int vmmc_import(struct vmmc_import_setup *setup)
{
    int handle;

    pthread_mutex_lock(&lock);
    handle = add_import(setup);
    pthread_mutex_unlock(&lock);
    return handle;
}

static void remove_import(struct imported *import, bool tell)
{
    for (unsigned i = 0; i < BINDINGS; i++)
        if (bindings[i].at && bindings[i].import == import) {
            munmap(bindings[i].at, (size_t)bindings[i].pages * VMMC_PAGE);
            bindings[i].at = NULL;
        }
    if (import->from && tell) {
        import->from->imports--;
        count(import->from->setup.imported);
    }
    munmap((void *)(uintptr_t)import->du, VMMC_PAGE);
    import->used = false;
}

static struct imported *import_of(int handle)
{
    bool right = handle >= 0 && handle < OBJECTS && imports[handle].used &&
                 is_callers(imports[handle].owner);

    return right ? &imports[handle] : NULL;
}

int vmmc_unimport(int handle)
{
    struct imported *import;

    pthread_mutex_lock(&lock);
    import = import_of(handle);
    if (import)
        remove_import(import, true);
    pthread_mutex_unlock(&lock);
    return import ? 0 : -SSS_EINVAL;
}

/* ---- bindings ---- */

static struct binding *free_binding(void)
{
    for (unsigned i = 0; i < BINDINGS; i++)
        if (!bindings[i].at)
            return &bindings[i];
    return NULL;
}

static int add_binding(void **address, uint32_t pages, struct imported *import, uint32_t first,
                       unsigned flags)
{
    struct binding *binding = free_binding();
    size_t bytes = (size_t)pages * VMMC_PAGE;
    uint8_t *at, *from;

    if (!import || pages == 0 || pages > VMMC_EXPORT_PAGES)
        return -SSS_EINVAL;
    if (!import->from)
        return -(VMMC_REFUSED + VMMC_GONE);
    if (first + pages > import->from->setup.pages || !binding)
        return -SSS_EINVAL;
    at = mmap(*address, bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (*address ? MAP_FIXED : 0), -1, 0);
    if (at == MAP_FAILED)
        return -SSS_ENOMEM;
    from = (uint8_t *)import->from->setup.address + (size_t)first * VMMC_PAGE;
    /* An old size of 0 makes a second mapping of the same memory. */
    must(mremap(from, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at, "binding");
    *binding = (struct binding){.at = at, .pages = pages, .import = import};
    if (flags & VMMC_NOTIFY) {
        binding->notified = import->from->setup.notified;
        mprotect(at, bytes, PROT_READ);
    }
    *address = at;
    return 0;
}

void *vmmc_bind(void *address, uint32_t pages, int handle, uint32_t first, unsigned flags,
                int *error)
{
    pthread_mutex_lock(&lock);
    *error = add_binding(&address, pages, import_of(handle), first, flags);
    pthread_mutex_unlock(&lock);
    return *error ? NULL : address;
}

int vmmc_unbind(void *address, uint32_t pages)
{
    struct binding *binding;

    pthread_mutex_lock(&lock);
    binding = binding_of(address);
    if (binding && binding->at == address && binding->pages == pages) {
        munmap(address, (size_t)pages * VMMC_PAGE);
        binding->at = NULL;
    } else {
        binding = NULL;
    }
    pthread_mutex_unlock(&lock);
    return binding ? 0 : -SSS_EINVAL;
}

int vmmc_source(int handle, const void *address, uint32_t pages)
{
    struct imported *import;
    int slot = -SSS_EINVAL;

    pthread_mutex_lock(&lock);
    import = import_of(handle);
    if (import && import->source_count < SOURCES && (uintptr_t)address % VMMC_PAGE == 0) {
        slot = (int)import->source_count++;
        import->sources[slot] = (struct source){address, pages * VMMC_PAGE};
    }
    pthread_mutex_unlock(&lock);
    return slot;
}

/* ---- ends ---- */

static void end_task(bool tell)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < OBJECTS; i++)
        if (imports[i].used && is_callers(imports[i].owner))
            remove_import(&imports[i], tell);
    for (unsigned i = 0; i < OBJECTS; i++)
        if (exports[i].used && is_callers(exports[i].owner))
            remove_export(&exports[i], tell);
    pthread_mutex_unlock(&lock);
}

void vmmc_rig_end(void)
{
    end_task(true);
}

void vmmc_rig_crash(void)
{
    end_task(false);
}

unsigned vmmc_rig_exports(void)
{
    unsigned there = 0;

    for (unsigned i = 0; i < OBJECTS; i++)
        there += exports[i].used;
    return there;
}

unsigned vmmc_rig_imports(void)
{
    unsigned there = 0;

    for (unsigned i = 0; i < OBJECTS; i++)
        there += imports[i].used;
    return there;
}

const char *vmmc_error_text(int error)
{
    return error <= -VMMC_REFUSED ? "refused" : "failed";
}
