/* SPDX-License-Identifier: Apache-2.0 */
#include "jobfile.h"

#include "cpu.h"
#include "fwcfg.h"
#include "initrd.h"
#include "net.h"
#include "timer.h"

enum {
    POLL_NS = 10 * 1000 * 1000,
    PROBE_BYTES = 64, /* enough to see a change: a job that waits is shorter */
};
static const char READY[] = "sundial-ready";

static struct fwcfg_file file;
static char job_bytes[JOB_BYTES];
static char probe[PROBE_BYTES];
static size_t job_length;

const char *job_text(size_t *length)
{
    *length = job_length;
    return job_length == 0 ? NULL : job_bytes;
}

static void set_flag(struct timer *timer)
{
    *(volatile bool *)timer->context = true;
}

/* Before there are threads. */
static void sleep_ns(uint64_t ns)
{
    volatile bool expired = false;
    struct timer timer = {.expired = set_flag, .context = (void *)&expired};

    timer_set(&timer, now_ns() + ns);
    /* STI enables interrupts only after HLT, so no interrupt is lost after the look at the flag. */
    while (!expired)
        halt();
}

static bool task_exists(const char *name)
{
    size_t length;

    return __builtin_strcmp(name, "init") != 0 && initrd_find(name, &length) != NULL;
}

/* The host replaces the text of a machine that it restores from a snapshot. */
static bool wait_for_change(void)
{
    do {
        sleep_ns(POLL_NS);
        if (!fwcfg_read(&file, probe, sizeof(probe)))
            return false;
    } while (__builtin_memcmp(probe, job_bytes, sizeof(probe)) == 0);
    return true;
}

bool jobfile_find(void)
{
    return fwcfg_find(JOB_FILE, &file);
}

const char *jobfile_receive(struct job *job, char error[JOB_ERROR])
{
    bool said_ready = false;

    if (file.size != JOB_BYTES)
        return "the job must have exactly 65536 bytes";
    for (;;) {
        if (!fwcfg_read(&file, job_bytes, JOB_BYTES))
            return "cannot read the job";
        job_length = JOB_BYTES;
        while (job_length > 0 && job_bytes[job_length - 1] == '\n')
            job_length--;
        if (!job_parse(job_bytes, job_length, task_exists, job, error))
            return error;
        if (!job->wait)
            return NULL;
        if (!said_ready && !net_send_control(READY, sizeof(READY) - 1))
            return "cannot say ready on eth0";
        said_ready = true;
        if (!wait_for_change())
            return "cannot read the job";
    }
}
