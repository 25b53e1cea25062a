/* SPDX-License-Identifier: Apache-2.0 */
/* From the first C instruction to the first task: devices, the job, the machine's identity, init.
 */
#include "console.h"
#include "exec.h"
#include "fwcfg.h"
#include "job.h"
#include "kernel.h"
#include "mbcf/core.h"
#include "net.h"
#include "pci.h"
#include "records.h"
#include "virtio_console.h"

#ifndef SSS_VERSION
#define SSS_VERSION "1.0"
#endif

enum {
    POLL_NS = 10 * 1000 * 1000,
    PROBE_BYTES = 64, /* tell whether the job has changed: the waiting one is shorter */
    STATUS_BAD_JOB = 2,
};
#define NS_PER_S 1000000000ull
#define ALIVE_NS (5 * NS_PER_S)
static const char JOB_FILE[] = "opt/sundial/job";
static const char READY[] = "sundial-ready";
static const char DONE[] = "sundial-done"; /* its final zero byte becomes the status */

static char job_bytes[JOB_BYTES];
static char probe[PROBE_BYTES];
static size_t job_length;
static struct job job;
static struct timer alive_timer;
static bool init_runs;
static bool said_done;

const char *job_text(size_t *length)
{
    *length = job_length;
    return job_length == 0 ? NULL : job_bytes;
}

/* ---- the console's prompt ---- */
static void print_console(void *context, const char *text)
{
    (void)context;
    console_write(text, __builtin_strlen(text));
}

static void prompt(void)
{
    kprintf("sss %s> ", job.machine[0] == '\0' ? "?" : job.machine);
}

static void line_typed(const char *line)
{
    monitor_line(line, print_console, NULL);
    prompt();
}

static void offer_monitor(void)
{
    prompt();
    console_listen(line_typed);
}

/* ---- waiting, before there are tasks ---- */
static void note_expired(struct timer *timer)
{
    *(volatile bool *)timer->context = true;
}

static void sleep_ns(uint64_t ns)
{
    volatile bool expired = false;
    struct timer timer = {.expired = note_expired, .context = (void *)&expired};

    timer_set(&timer, now_ns() + ns);
    /* STI takes effect behind the next instruction: no interrupt is lost between the look and the
     * halt. */
    while (!expired)
        __asm__ volatile("sti; hlt; cli" : : : "memory");
}

/* ---- the job ---- */
static bool task_exists(const char *name)
{
    size_t length;

    return __builtin_strcmp(name, "init") != 0 && initrd_find(name, &length) != NULL;
}

/* Under a snapshot the host exchanges the text: look again until it is another one. */
static bool wait_for_change(const struct fwcfg_file *file)
{
    do {
        sleep_ns(POLL_NS);
        if (!fwcfg_read(file, probe, sizeof(probe)))
            return false;
    } while (__builtin_memcmp(probe, job_bytes, sizeof(probe)) == 0);
    return true;
}

/* -> NULL, or what is wrong; `error` is room for it. */
static const char *receive_job(const struct fwcfg_file *file, char error[JOB_ERROR])
{
    bool said_ready = false;

    if (file->size != JOB_BYTES)
        return "the job must have exactly 65536 bytes";
    for (;;) {
        if (!fwcfg_read(file, job_bytes, JOB_BYTES))
            return "cannot read the job";
        job_length = JOB_BYTES;
        while (job_length > 0 && job_bytes[job_length - 1] == '\n')
            job_length--;
        if (!job_parse(job_bytes, job_length, task_exists, &job, error))
            return error;
        if (!job.wait)
            return NULL;
        if (!said_ready && !net_send_control(READY, sizeof(READY) - 1))
            return "cannot say ready on eth0";
        said_ready = true;
        if (!wait_for_change(file))
            return "cannot read the job";
    }
}

/* ---- the machine's identity ---- */
static const char *configure(const struct job_interface *interface, char error[JOB_ERROR])
{
    if (interface->adapter >= net_adapters()) {
        ksnprintf(error, JOB_ERROR, "interfaces: eth%u: this machine has %u adapters",
                  interface->adapter, net_adapters());
        return error;
    }
    if (interface->has_mac)
        net_set_mac(interface->adapter, interface->mac);
    sockets_interface(interface->adapter, interface->address, interface->netmask, interface->mtu);
    for (unsigned i = 0; i < interface->neighbour_count; i++)
        sockets_neighbour(interface->adapter, interface->neighbours[i].address,
                          interface->neighbours[i].mac);
    return NULL;
}

static bool add_nodes(void)
{
    for (unsigned i = 0; i < job.node_count; i++)
        if (mbcf_add_node(node_mbcf(), job.nodes[i].node, job.nodes[i].mac) < 0)
            return false;
    return true;
}

static const char *take_identity(char error[JOB_ERROR])
{
    uint32_t address = 0;
    const char *wrong = NULL;

    for (unsigned i = 0; i < job.interface_count && wrong == NULL; i++) {
        wrong = configure(&job.interfaces[i], error);
        if (job.interfaces[i].adapter == 0)
            address = job.interfaces[i].address;
    }
    if (wrong != NULL)
        return wrong;
    node_init(job.node, job.epoch, net_mac(0));
    if (!add_nodes())
        return "nodes: one of them is not taken by MBCF";
    task_identity(job.node, address, job.machine);
    return NULL;
}

static void say_hello(void)
{
    records_line(
        "{\"type\":\"hello\",\"version\":1,\"machine\":\"%s\",\"kernel\":\"sss-core " SSS_VERSION
        "\","
        "\"clock\":\"%s\",\"clock_hz\":%lu}",
        job.machine, job.tsc ? "tsc" : "monotonic", (unsigned long)NS_PER_S);
}

/* Says now and then that this machine still works, which nobody else can tell of a silent one. */
static void say_alive(struct timer *timer)
{
    records_line("{\"type\":\"alive\"}");
    timer_set(timer, now_ns() + ALIVE_NS);
}

/* ---- init ---- */
static void give_up(const char *message)
{
    records_error("kernel", message);
    records_line("{\"type\":\"done\",\"status\":%d}", STATUS_BAD_JOB);
    system_done(STATUS_BAD_JOB);
}

static void start_init(uint64_t next)
{
    char options[48];
    char message[80];
    int id;

    ksnprintf(options, sizeof(options), "{\"next\":%lu}", (unsigned long)next);
    id = task_create("init", options, 0, NULL);
    init_runs = id >= 0;
    if (init_runs)
        return;
    ksnprintf(message, sizeof(message), "cannot start init: error %d", -id);
    give_up(message);
}

void system_task_gone(const struct task *task)
{
    if (!init_runs || __builtin_strcmp(task_name(task), "init") != 0)
        return;
    init_runs = false;
    if (!said_done)
        give_up("init has ended before all steps were done");
}

void system_done(int status)
{
    char payload[sizeof(DONE)];

    __builtin_memcpy(payload, DONE, sizeof(DONE));
    payload[sizeof(DONE) - 1] = (char)status;
    said_done = true;
    records_flush();
    if (!net_send_control(payload, sizeof(payload)))
        kprintf("cannot say done on eth0\n");
}

void system_restart(uint64_t next)
{
    tasks_forget();
    sockets_restart();
    node_restart();
    if (!add_nodes())
        panic("the nodes that were known before the restart are refused after it");
    start_init(next);
}

/* ---- the beginning ---- */
static void start_devices(void)
{
    pci_scan();
    virtio_console_init();
    records_init();
    net_init();
    /* Who this is comes with the job; frames that are there before it find a node that knows
     * nobody. */
    node_init(1, 1, net_mac(0));
    sockets_init();
}

static void start_job(void)
{
    static char error[JOB_ERROR];
    struct fwcfg_file file;
    const char *wrong;

    if (!fwcfg_find(JOB_FILE, &file)) {
        kprintf("no job (%s in fw_cfg). This is the monitor; help tells what it knows.\n",
                JOB_FILE);
        offer_monitor();
        return;
    }
    wrong = receive_job(&file, error);
    if (wrong == NULL) {
        time_select(job.tsc);
        say_hello();
        wrong = take_identity(error);
    }
    if (wrong != NULL) {
        give_up(wrong);
        return;
    }
    if (!job.tsc) {
        alive_timer.expired = say_alive;
        timer_set(&alive_timer, now_ns() + ALIVE_NS);
    }
    if (job.interactive) {
        exec_init();
        offer_monitor();
    }
    start_init(0);
}

_Noreturn void kernel_main(uint64_t start_info_physical)
{
    console_init();
    memory_init(start_info_physical);
    trap_init();
    time_init();
    task_init();
    start_devices();
    start_job();
    schedule_run();
}
