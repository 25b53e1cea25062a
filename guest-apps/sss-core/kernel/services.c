/* SPDX-License-Identifier: Apache-2.0 */
#include "services.h"

#include "console.h"
#include "exec.h"
#include "jobfile.h"
#include "kformat.h"
#include "mbcf/core.h"
#include "net.h"
#include "node.h"
#include "panic.h"
#include "prompt.h"
#include "records.h"
#include "sockets.h"
#include "task.h"
#include "task_info.h"
#include "task_table.h"
#include "timer.h"
#include "vmmc.h"

enum { STATUS_BAD_JOB = 2 };
#define NS_PER_S 1000000000ull
#define ALIVE_NS (5 * NS_PER_S)
static const char DONE[] = "sundial-done"; /* its final zero byte becomes the status */

static struct job job;
static struct timer alive_timer;
static bool init_runs;
static bool said_done;

/* ---- the machine's identity ---- */
static const char *configure(const struct job_interface *interface, char error[JOB_ERROR])
{
    if (interface->adapter >= net_adapter_count()) {
        ksnprintf(error, JOB_ERROR, "interfaces: eth%u: this machine has %u adapters",
                  interface->adapter, net_adapter_count());
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
        return "nodes: MBCF refuses one of them";
    vmmc_begin();
    task_identity(job.node, address, job.machine);
    return NULL;
}

static void say_hello(const char *version)
{
    records_line("{\"type\":\"hello\",\"version\":1,\"machine\":\"%s\",\"kernel\":\"sss-core %s\","
                 "\"clock\":\"%s\",\"clock_hz\":%lu}",
                 job.machine, version, job.tsc ? "tsc" : "monotonic", (unsigned long)NS_PER_S);
}

/* Otherwise a silent machine would look like a dead one. */
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

void system_task_ended(struct task *task)
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
    vmmc_restart(); /* what it has mapped into tasks is not theirs */
    tasks_forget();
    sockets_restart();
    node_restart();
    if (!add_nodes())
        panic("MBCF refuses nodes after a restart that it knew before");
    start_init(next);
}

/* ---- start ---- */
void system_start(const char *version)
{
    static char error[JOB_ERROR];
    const char *wrong;

    if (!jobfile_find()) {
        kprintf("no job (%s in fw_cfg). This is the monitor; help lists its commands.\n", JOB_FILE);
        prompt_open(job.machine);
        return;
    }
    wrong = jobfile_receive(&job, error);
    if (wrong == NULL) {
        clock_select(job.tsc);
        task_clock(job.tsc ? SSS_CLOCK_TSC : SSS_CLOCK_CALL);
        say_hello(version);
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
        prompt_open(job.machine);
    }
    start_init(0);
}
