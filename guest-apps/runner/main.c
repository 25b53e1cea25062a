/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process 1 of a guest: reads the job, gives the machine its identity, starts the services, runs
 * the steps, and says ready and done. What it writes is specified in harness/schemas/README.md
 * ("Job", "Samples").
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "apps.h"
#include "capture.h"
#include "clock.h"
#include "control.h"
#include "entropy.h"
#include "exec.h"
#include "extras.h"
#include "image.h"
#include "memory.h"
#include "network.h"
#include "ports.h"
#include "process.h"
#include "samples.h"
#include "shell.h"
#include "spares.h"
#include "zygote.h"

static const char JOB_FILE[] = "/sys/firmware/qemu_fw_cfg/by_name/opt/sundial/job/raw";
static const char CONTROL_DEVICE[] = "eth0";
static const char BINDER[] = "rpcbind"; /* what most servers have, and most of their start */

enum {
    POLL_NS = 10 * 1000 * 1000,
    PORT_LOOKS = 500, /* in 5 s */
    PAGE_BYTES = 4096,
    PROBE_BYTES = 64, /* tell whether the job has changed; the waiting one is shorter */
    NS_PER_S = 1000000000,
    ALIVE_S = 5,
};

static char job_text[JOB_BYTES];

static void sleep_ns(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};

    nanosleep(&time, NULL);
}

/*
 * The device tells the kernel of its ports in messages, which a worker takes: on a busy host
 * process 1 may be running before it.
 */
static int await_port(const char *name)
{
    int port = ports_open(name, O_WRONLY);

    for (int looks = 1; port < 0 && looks < PORT_LOOKS; looks++) {
        sleep_ns(POLL_NS);
        port = ports_open(name, O_WRONLY);
    }
    return port;
}

static void open_samples(void)
{
    int port = await_port("sundial.samples");

    if (port < 0) {
        fprintf(stderr, "runner: no virtio-serial port sundial.samples; samples are dropped\n");
        port = open("/dev/null", O_WRONLY);
    }
    if (port >= 0 && port != SAMPLES_FD) {
        dup2(port, SAMPLES_FD);
        close(port);
    }
}

/* An error that belongs to no application. */
static void report(const char *message)
{
    samples_put(json_pack("{ss ss ss}", "type", "error", "app", "runner", "message", message));
    fprintf(stderr, "runner: %s\n", message);
}

/*
 * The kernel fetches each byte with one port access, and for each page it starts again at the first
 * byte, so the padding must not be read. JSON never has an empty line: two newlines at the end of a
 * page are the beginning of the padding.
 */
static bool is_padding(size_t length)
{
    return length >= 2 && job_text[length - 1] == '\n' && job_text[length - 2] == '\n';
}

static ssize_t read_job(int file, size_t limit)
{
    size_t length = 0;

    while (length < limit && !is_padding(length)) {
        size_t part = limit - length < PAGE_BYTES ? limit - length : PAGE_BYTES;
        ssize_t got = pread(file, job_text + length, part, (off_t)length);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        length += (size_t)got;
    }
    return (ssize_t)length;
}

/* Under a snapshot the host exchanges the text: look again until it is another one. */
static void wait_for_change(int file)
{
    char before[PROBE_BYTES];

    memcpy(before, job_text, sizeof(before));
    do {
        sleep_ns(POLL_NS);
    } while (read_job(file, PROBE_BYTES) >= 0 && memcmp(before, job_text, sizeof(before)) == 0);
}

/*
 * What most jobs will need and is the same in all, while time is free. The kernel's generator has
 * to be keyed for it; each machine's own seed comes with the job.
 */
static int prepare(void)
{
    extras_let_load(false);
    if (entropy_mix(0, "") != 0)
        return -1;
    process_prepare_service(BINDER);
    spares_start();
    if (capture_start() != 0)
        return -1;
    zygote_start();
    memory_clear_free();
    return 0;
}

static int receive_job(struct job *job, char error[JOB_ERROR])
{
    int file = open(JOB_FILE, O_RDONLY | O_CLOEXEC);
    bool said_ready = false;

    if (file < 0) {
        snprintf(error, JOB_ERROR, "no job: %s: %s", JOB_FILE, strerror(errno));
        return -1;
    }
    for (;;) {
        ssize_t length = read_job(file, JOB_BYTES);

        if (length < 0) {
            snprintf(error, JOB_ERROR, "cannot read the job: %s", strerror(errno));
            return -1;
        }
        if (!job_decode(job_text, (size_t)length, &linux_image, job, error))
            return -1;
        /* While the machine waits to be kept as a snapshot, time is free: unpack for all jobs. */
        if (extras_unpack(job) != 0) {
            snprintf(error, JOB_ERROR, "cannot unpack the image's extras: %s", strerror(errno));
            return -1;
        }
        if (!job->wait)
            break;
        if (!said_ready && prepare() != 0) {
            snprintf(error, JOB_ERROR, "cannot prepare for the job: %s", strerror(errno));
            return -1;
        }
        if (!said_ready && (network_bring_up() != 0 || control_say_ready(CONTROL_DEVICE) != 0)) {
            snprintf(error, JOB_ERROR, "cannot say ready on %s: %s", CONTROL_DEVICE,
                     strerror(errno));
            return -1;
        }
        said_ready = true;
        wait_for_change(file);
    }
    close(file);
    return 0;
}

static const char *clock_word(const struct job *job)
{
    return job->tsc ? "tsc" : "monotonic";
}

static void say_hello(const struct job *job)
{
    struct utsname system;

    uname(&system);
    samples_put(json_pack("{ss si ss ss ss si}", "type", "hello", "version", 1, "machine",
                          job->machine, "kernel", system.release, "clock", clock_name(), "clock_hz",
                          NS_PER_S));
}

/* Reports from time to time that this guest still runs: a silent one looks like a dead one. */
static void say_alive(void)
{
    static const char line[] = "{\"type\":\"alive\"}\n";

    do
        sleep(ALIVE_S);
    while (write(SAMPLES_FD, line, sizeof(line) - 1) > 0);
}

/* Makes the folders above `path`. */
static void make_folders(const char *path)
{
    char *copy = strdup(path);

    for (char *slash = strchr(copy + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(copy, 0755);
        *slash = '/';
    }
    free(copy);
}

/* What an application's name links to is the program of all: replaced, and never written through.
 */
static FILE *open_for_writing(const char *path)
{
    struct stat status;
    bool linked = lstat(path, &status) == 0 && S_ISLNK(status.st_mode) && stat(path, &status) == 0;
    FILE *file;

    if (linked)
        unlink(path);
    file = fopen(path, "we");
    if (file != NULL && linked)
        fchmod(fileno(file), status.st_mode);
    return file;
}

static int write_file(const char *path, const struct json_value *content)
{
    char *text = malloc(content->length); /* a text is shorter than its JSON */
    FILE *file;
    int result = -1;

    if (text == NULL)
        return -1;
    make_folders(path);
    file = open_for_writing(path);
    if (!json_text(content, text, content->length))
        errno = EILSEQ; /* a NUL */
    else if (file != NULL && fputs(text, file) >= 0)
        result = 0;
    if (file != NULL && fclose(file) != 0)
        result = -1;
    free(text);
    return result;
}

static int write_files(const struct job *job, char error[JOB_ERROR])
{
    struct json_walk walk;
    struct json_value name, content;
    char path[JOB_PATH];

    json_walk_start(&walk, &job->files);
    while (json_walk_next(&walk, &name, &content)) {
        json_text(&name, path, sizeof(path));
        if (write_file(path, &content) != 0) {
            snprintf(error, JOB_ERROR, "file %.*s: %s", (int)(JOB_ERROR / 2), path,
                     strerror(errno));
            return -1;
        }
    }
    return 0;
}

static int take_identity(const struct job *job, char error[JOB_ERROR])
{
    if (sethostname(job->machine, strlen(job->machine)) != 0 ||
        entropy_mix(job->seed, job->machine) != 0) {
        snprintf(error, JOB_ERROR, "cannot take the name and the seed: %s", strerror(errno));
        return -1;
    }
    extras_let_load(extras_are_needed(job));
    for (size_t i = 0; i < job->interface_count; i++)
        if (network_configure(&job->interfaces[i], error) != 0)
            return -1;
    if (job->bridge_port_count > 0 &&
        network_configure_bridge(job->bridge_ports, job->bridge_port_count, error) != 0)
        return -1;
    if (network_configure_routes(job, error) != 0)
        return -1;
    return write_files(job, error);
}

static void wait_for_start(const struct job *job)
{
    uint64_t start = job->zero_ns + job->start_ns;
    uint64_t now;

    if (!job->tsc)
        return;
    while ((now = clock_now_ns()) < start)
        sleep_ns(start - now);
}

/* At once: the fabric ends the run at an instant that follows from this frame's. */
static void say_failed(void)
{
    control_say_done(CONTROL_DEVICE, 1);
}

/* Services, then steps; false if one did not go well. */
static bool run_tasks(const struct job *job)
{
    struct json_walk walk;
    struct job_task task;
    bool well = true;

    json_walk_start(&walk, &job->services);
    while (job_next_task(&walk, &task))
        if (process_start_service(&task) != 0)
            return false;
    wait_for_start(job);
    json_walk_start(&walk, &job->steps);
    for (size_t i = 0; job_next_task(&walk, &task); i++)
        if (process_run_step(&task, i) != 0) {
            well = false;
            say_failed();
        }
    return well && process_dead_services() == 0;
}

static void finish(bool well)
{
    capture_settle();
    samples_put(json_pack("{ss si}", "type", "done", "status", well ? 0 : 1));
    if (control_say_done(CONTROL_DEVICE, well ? 0 : 1) != 0)
        fprintf(stderr, "runner: cannot say done: %s\n", strerror(errno));
}

/* Whether a step is one that acts at instants of the run. */
static bool has_commands(const struct job *job)
{
    struct json_walk walk;
    struct job_task task;

    json_walk_start(&walk, &job->steps);
    while (job_next_task(&walk, &task))
        if (strcmp(task.app, "command") == 0)
            return true;
    return false;
}

/* What every application may want to know beside its options. */
static void set_environment(const struct job *job)
{
    char seed[32];
    char zero[32];

    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)job->seed);
    setenv("SUNDIAL_CLOCK", clock_word(job), 1);
    setenv("SUNDIAL_MACHINE", job->machine, 1);
    setenv("SUNDIAL_SEED", seed, 1);
    if (job->tsc && has_commands(job)) {
        snprintf(zero, sizeof(zero), "%llu", (unsigned long long)job->zero_ns);
        setenv("SUNDIAL_ZERO_NS", zero, 1);
    }
}

/*
 * Under the virtual clock nothing may compute beside the job. People expect the usual commands;
 * nothing else on a machine does.
 */
static void start_helpers(const struct job *job)
{
    if (!job->tsc && process_fork_helper(say_alive) != 0)
        report("cannot start the helper that says alive");
    if (!job->interactive)
        return;
    spares_end();
    zygote_end();
    if (process_run_shell("exec busybox --install -s /bin") != 0 ||
        process_fork_helper(shell_serve_console) != 0 || process_fork_helper(exec_serve) != 0)
        report("cannot start the interactive helpers");
}

int runner_main(int argc, char **argv)
{
    char error[JOB_ERROR];
    static struct job job;
    bool well = false;

    (void)argc;
    (void)argv;
    /* Left alone, jansson takes its hash seed from /dev/urandom, and before the job has brought
     * entropy the kernel spins for a virtual second to make some. */
    json_object_seed(1);
    open_samples();
    prctl(PR_SET_TIMERSLACK, 1); /* nothing here wants its wake-ups rounded */
    if (process_init(say_failed) != 0) {
        report("cannot watch processes");
    } else if (receive_job(&job, error) != 0) {
        report(error);
        network_bring_up();
    } else {
        clock_select(clock_word(&job));
        set_environment(&job);
        say_hello(&job);
        if (take_identity(&job, error) != 0) {
            report(error);
            network_bring_up();
        } else {
            process_end_unwanted(&job);
            start_helpers(&job);
            well = run_tasks(&job);
        }
    }
    finish(well);
    process_supervise_for_ever();
}
