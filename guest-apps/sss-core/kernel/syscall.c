/* SPDX-License-Identifier: Apache-2.0 */
/* System calls: arguments are checked here, the work is done elsewhere. */
#include <string.h>

#include "console.h"
#include "csm.h"
#include "jobfile.h"
#include "memory.h"
#include "node.h"
#include "records.h"
#include "runqueue.h"
#include "services.h"
#include "signal.h"
#include "sockets.h"
#include "space.h"
#include "task.h"
#include "task_info.h"
#include "task_table.h"
#include "user.h"
#include "vmmc.h"
#include "wait.h"

enum { TEXT_MOST = 65536 /* bytes of one SSS_RECORD or SSS_LOG */ };
_Static_assert(SSS_CALLS == 71, "CALLS in entry.S");

static long call_exit(const uint64_t *a)
{
    task_end(task_current(), (int)a[0]);
    return 0;
}

static long call_thread_create(const uint64_t *a)
{
    struct thread *thread;

    if (a[0] < USER_BEGIN || a[0] >= USER_END || a[1] < USER_BEGIN || a[1] > USER_END ||
        a[1] % 16 != 0)
        return -SSS_EINVAL;
    thread = thread_create(task_current(), a[0], a[1] - 8 /* as after a call */, a[2]);
    if (thread == NULL)
        return -SSS_EAGAIN;
    thread_start(thread);
    return thread->id;
}

static long call_thread_exit(const uint64_t *a)
{
    struct task *task = task_current();
    struct thread *thread = thread_current();

    (void)a;
    if (task->threads == thread && thread->next_of_task == NULL) {
        task_end(task, 0);
        return 0;
    }
    thread_end(thread);
    task_memory_changed(task); /* what it has just written */
    return 0;
}

static long call_yield(const uint64_t *a)
{
    (void)a;
    runqueue_yield();
    return 0;
}

static long call_wait(const uint64_t *a)
{
    return wait_begin(a[0], a[1], a[2]);
}

static long call_clock(const uint64_t *a)
{
    (void)a;
    return (long)now_ns();
}

static long call_task_create(const uint64_t *a)
{
    static char options[SSS_OPTIONS];
    char name[SSS_NAME];
    bool with_options = a[1] != 0;

    if (user_string(name, sizeof(name), a[0]) < 0 ||
        (with_options && user_string(options, sizeof(options), a[1]) < 0))
        return -SSS_EFAULT;
    return task_create(name, with_options ? options : NULL, (unsigned)a[2], task_current());
}

/* The task that an argument names: 0 or its own id is the caller, else one that the caller has
 * created. */
static long named_task(uint64_t id, struct task **task)
{
    if (id > UINT16_MAX)
        return -SSS_ENOENT;
    *task = task_owned((uint16_t)id);
    if (*task != NULL)
        return 0;
    return task_by_id((uint16_t)id) == NULL ? -SSS_ENOENT : -SSS_EPERM;
}

static long call_task_kill(const uint64_t *a)
{
    struct task *task;
    long error = named_task(a[0], &task);

    if (error == 0)
        task_end(task, SSS_KILLED);
    return error;
}

static long call_task_status(const uint64_t *a)
{
    struct sss_task_status status;
    long error = a[0] > UINT16_MAX ? -SSS_ENOENT : task_status((uint16_t)a[0], &status);

    if (error == 0 && !user_write(a[1], &status, sizeof(status)))
        return -SSS_EFAULT;
    return error;
}

/* Passes text of the caller to `write`, page by page and in place. */
static long write_text(uint64_t address, uint64_t length,
                       void (*write)(const char *text, size_t length))
{
    struct task *task = task_current();
    int why;

    if (length > TEXT_MOST)
        return -SSS_EMSGSIZE;
    for (uint64_t done = 0; done < length; done += PAGE)
        if (task_page(task, address + done, false, &why) == NULL)
            return -SSS_EFAULT;
    if (length != 0 && task_page(task, address + length - 1, false, &why) == NULL)
        return -SSS_EFAULT;
    while (length != 0) {
        uint64_t part = PAGE - address % PAGE;
        const char *text = task_page(task, address, false, &why);

        if (part > length)
            part = length;
        write(text, part);
        address += part;
        length -= part;
    }
    return 0;
}

static long call_record(const uint64_t *a)
{
    return write_text(a[0], a[1], records_write);
}

static long call_log(const uint64_t *a)
{
    return write_text(a[0], a[1], console_write);
}

static long call_ready(const uint64_t *a)
{
    (void)a;
    task_current()->state = SSS_SERVING;
    tasks_changed();
    return 0;
}

/* The kernel's first task runs the job. */
static bool is_init(void)
{
    return task_current()->creator == 0 && strcmp(task_current()->name, "init") == 0;
}

static long call_done(const uint64_t *a)
{
    if (!is_init())
        return -SSS_EPERM;
    system_done((int)a[0]);
    return 0;
}

static long call_job(const uint64_t *a)
{
    size_t length;
    const char *text = job_text(&length);

    if (!is_init())
        return -SSS_EPERM;
    if (text == NULL)
        return -SSS_ENOENT;
    if (length > a[1])
        return -SSS_EMSGSIZE;
    return user_write(a[0], text, length) ? (long)length : -SSS_EFAULT;
}

static long call_restart(const uint64_t *a)
{
    if (!is_init())
        return -SSS_EPERM;
    system_restart(a[0]);
    return 0;
}

/* ---- memory ---- */

static long call_memory_map(const uint64_t *a)
{
    struct task *task = task_current();
    uint64_t bytes = (a[1] + PAGE - 1) & ~(PAGE - 1);
    uint64_t address = a[0];
    int error;

    if (bytes < a[1] || bytes / PAGE > pages_total())
        return -SSS_ENOMEM;
    if (address == 0)
        address = space_next_address(task, bytes);
    if (a[2] > UINT32_MAX || !space_range_valid(address, bytes))
        return -SSS_EINVAL;
    error = space_map(task, address, bytes, (unsigned)a[2]);
    return error == 0 ? (long)address : error;
}

static long call_memory_unmap(const uint64_t *a)
{
    int error;

    if (!space_range_valid(a[0], a[1]))
        return -SSS_EINVAL;
    csm_unmapped(task_current(), a[0], a[1]);
    error = space_unmap(task_current(), a[0], a[1]);
    if (error == 0)
        waits_check_mapped(task_current());
    return error;
}

static long call_memory_protect(const uint64_t *a)
{
    if (a[2] > UINT32_MAX || !space_range_valid(a[0], a[1]))
        return -SSS_EINVAL;
    return space_protect(task_current(), a[0], a[1], (unsigned)a[2]);
}

static long call_csm_share(const uint64_t *a)
{
    return csm_share(task_current(), a[0], a[1]);
}

static long call_csm_map(const uint64_t *a)
{
    struct task *task;
    long error = named_task(a[0], &task);

    if (error != 0)
        return error;
    if (a[1] > INT32_MAX || a[3] > UINT32_MAX)
        return -SSS_EINVAL;
    return csm_map(task, (int)a[1], a[2], (unsigned)a[3]);
}

static long call_signal_return(const uint64_t *a)
{
    (void)a;
    return signal_return();
}

/* The number of a call follows its arguments (struct trap_frame). */
static long call_node(const uint64_t *a)
{
    return node_call((unsigned)a[6], a);
}

static long call_operate(const uint64_t *a)
{
    *call_progress() = 0;
    return node_operate(a[0]);
}

static long call_operate_short(const uint64_t *a)
{
    *call_progress() = 0;
    return node_operate_short(a);
}

static long call_sockets(const uint64_t *a)
{
    return sockets_call((unsigned)a[6], a);
}

static long call_vmmc(const uint64_t *a)
{
    return vmmc_call((unsigned)a[6], a);
}

static long call_none(const uint64_t *a)
{
    (void)a;
    return -SSS_ENOSYS;
}

extern const call_function syscall_table[SSS_CALLS]; /* for entry.S */
const call_function syscall_table[SSS_CALLS] = {
    [SSS_EXIT] = call_exit,
    [SSS_THREAD_CREATE] = call_thread_create,
    [SSS_THREAD_EXIT] = call_thread_exit,
    [SSS_YIELD] = call_yield,
    [SSS_WAIT] = call_wait,
    [SSS_CLOCK] = call_clock,
    [SSS_TASK_CREATE] = call_task_create,
    [SSS_TASK_KILL] = call_task_kill,
    [SSS_TASK_STATUS] = call_task_status,
    [SSS_RECORD] = call_record,
    [SSS_LOG] = call_log,
    [SSS_READY] = call_ready,
    [SSS_DONE] = call_done,
    [SSS_JOB] = call_job,
    [SSS_RESTART] = call_restart,
    [SSS_RESTART + 1 ... SSS_MEMORY_MAP - 1] = call_none,
    [SSS_MEMORY_MAP] = call_memory_map,
    [SSS_MEMORY_UNMAP] = call_memory_unmap,
    [SSS_MEMORY_PROTECT] = call_memory_protect,
    [SSS_CSM_SHARE] = call_csm_share,
    [SSS_CSM_MAP] = call_csm_map,
    [SSS_CSM_MAP + 1 ... SSS_MB_KEY - 1] = call_none,
    [SSS_MB_KEY... SSS_MB_SIGNAL] = call_node,
    [SSS_MB_SIGNAL_RETURN] = call_signal_return,
    [SSS_MB_CONNECT... SSS_MB_CLOSE] = call_node,
    [SSS_MB_OPERATE] = call_operate,
    [SSS_MB_CONNECTION] = call_node,
    [SSS_MB_OPERATE_SHORT] = call_operate_short,
    [SSS_MB_OPERATE_SHORT + 1 ... SSS_SOCKET - 1] = call_none,
    [SSS_SOCKET... SSS_SOCKET_STATE] = call_sockets,
    [SSS_SOCKET_STATE + 1 ... SSS_VMMC_EXPORT - 1] = call_none,
    [SSS_VMMC_EXPORT... SSS_VMMC_SOURCE] = call_vmmc,
};
