/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first task: starts the services of the job, then runs its steps one after another, and tells
 * how each of them ended (harness/schemas/README.md, "Job" and "Samples"). Steps that it does
 * itself:
 *
 *   {"app":"sleep","options":{"ns":N}}
 *   {"app":"kill","options":{"task":NAME}}   ends a service, which is not an error then
 *   {"app":"restart"}                        the node crashes and restarts; services too; the
 * next step follows
 *
 * A service with "restart":true is created again whenever it ends, however that was.
 */
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "sss/system.h"

enum {
    JOB_BYTES = 65536,
    FAULTED = 128, /* exit statuses above this mean a fault, or that it was killed, as in a shell */
    KILLED = FAULTED + 9,
    CANNOT_START = 127,
    NO_STEP = -1,
    MESSAGE = 96,
    RESTARTS_MOST = 1000, /* of one service: it does nothing but end */
};

struct service {
    char name[SSS_NAME];
    int task; /* 0: has ended */
    struct json_value entry;
    bool restart;
    unsigned restarts;
};

static char job_bytes[JOB_BYTES];
static struct json_value job;
static struct service services[SSS_TASKS];
static unsigned service_count;
static bool well = true;

/* ---- telling ---- */
static void tell_error(const char *app, long step, const char *message)
{
    if (step == NO_STEP)
        sss_record("{\"type\":\"error\",\"app\":\"%s\",\"message\":\"%s\"}", app, message);
    else
        sss_record("{\"type\":\"error\",\"step\":%ld,\"app\":\"%s\",\"message\":\"%s\"}", step, app,
                   message);
    sss_log("%s: %s", app, message);
    well = false;
}

/* Reports a task that has ended otherwise than by itself and well. A fault the kernel has reported
 * already, with its registers. */
static void tell_end(const char *app, long step, int status)
{
    char message[MESSAGE];

    well = false;
    if (status == SSS_KILLED)
        tell_error(app, step, "killed");
    else if (status >= 0) {
        snprintf(message, sizeof(message), "ended with status %d", status);
        tell_error(app, step, message);
    }
}

static int exit_status(int status)
{
    return status >= 0 ? status : status == SSS_KILLED ? KILLED : FAULTED - status;
}

/* ---- tasks ---- */

/* Options as a task gets them: the job's, behind what only init knows; NULL where they are too
 * long. */
static const char *options_for(const struct json_value *entry, long step)
{
    static char text[SSS_OPTIONS];
    struct json_value options;
    struct json_value seed;
    uint64_t seed_number = 0;
    int length;

    if (json_field(&job, "seed", &seed))
        json_uint(&seed, &seed_number);
    if (step == NO_STEP)
        length = snprintf(text, sizeof(text), "{\"seed\":%lu", (unsigned long)seed_number);
    else
        length = snprintf(text, sizeof(text), "{\"step\":%ld,\"seed\":%lu", step,
                          (unsigned long)seed_number);
    if (!json_field(entry, "options", &options) || json_count(&options) == 0) {
        text[length] = '}';
        text[length + 1] = '\0';
        return text;
    }
    if ((size_t)length + options.length >= sizeof(text))
        return NULL;
    text[length] = ',';
    memcpy(text + length + 1, options.text + 1, options.length - 1); /* behind its brace */
    text[(size_t)length + options.length] = '\0';
    return text;
}

/* -> its id, or a negative error that has been reported. */
static int start(const char *app, const struct json_value *entry, long step)
{
    const char *options = options_for(entry, step);
    char message[MESSAGE];
    int task;

    if (options == NULL) {
        tell_error(app, step, "its options are too long");
        return -SSS_EMSGSIZE;
    }
    task = sss_task(app, options, 0);
    if (task < 0) {
        snprintf(message, sizeof(message), "cannot be started: error %d", -task);
        tell_error(app, step, message);
    }
    return task;
}

static void start_anew(struct service *service)
{
    int task;

    if (!service->restart)
        return;
    if (service->restarts++ == RESTARTS_MOST) {
        tell_error(service->name, NO_STEP, "has ended too often to be started again");
        return;
    }
    task = start(service->name, &service->entry, NO_STEP);
    service->task = task > 0 ? task : 0;
}

/* At once: the fabric ends the run at an instant that follows from this frame's. */
static void say_failed(void)
{
    sss_call(SSS_DONE, 1, 0, 0, 0, 0, 0);
}

/* Services that have ended are reported once. */
static void look_at_services(void)
{
    bool was_well = well;

    well = true;
    for (unsigned i = 0; i < service_count; i++) {
        struct sss_task_status status = {0};

        if (services[i].task == 0 ||
            (sss_task_status(services[i].task, &status) == 0 && status.state != SSS_GONE))
            continue;
        services[i].task = 0;
        if (status.status == 0) /* as an experiment with a server that dies wants it */
            sss_log("%s: has ended", services[i].name);
        else
            tell_end(services[i].name, NO_STEP, status.status);
        start_anew(&services[i]);
    }
    if (!well)
        say_failed();
    well = well && was_well;
}

/* Until the task is in this state or gone; services are looked after meanwhile. -> its last state
 */
static struct sss_task_status wait_for(int task, enum sss_task_state expected)
{
    for (;;) {
        uint32_t seen = SSS_INFO->tasks;
        struct sss_task_status status = {.state = SSS_GONE};

        look_at_services();
        if (sss_task_status(task, &status) < 0 || status.state == SSS_GONE ||
            status.state == expected)
            return status;
        sss_wait_word(&SSS_INFO->tasks, seen, SSS_FOREVER);
    }
}

static void sleep_until(uint64_t ns)
{
    uint64_t now;

    while ((now = sss_now_ns()) < ns) {
        uint32_t seen = SSS_INFO->tasks;

        look_at_services();
        sss_wait_word(&SSS_INFO->tasks, seen, ns - now);
    }
}

/* ---- services ---- */
static bool start_service(const struct json_value *entry)
{
    struct service *service = &services[service_count];
    struct json_value app, restart;
    struct sss_task_status status;
    int task;

    json_field(entry, "app", &app);
    json_text(&app, service->name, sizeof(service->name));
    service->entry = *entry;
    service->restart = json_field(entry, "restart", &restart) &&
                       json_bool(&restart, &service->restart) && service->restart;
    task = start(service->name, entry, NO_STEP);
    if (task < 0)
        return false;
    /* Not yet among those that look_at_services reports: this one's end is reported here. */
    status = wait_for(task, SSS_SERVING);
    if (status.state != SSS_SERVING) {
        tell_end(service->name, NO_STEP, status.status);
        return false;
    }
    service->task = task;
    service_count++;
    return true;
}

static bool start_services(void)
{
    struct json_value list, entry;
    struct json_walk walk;

    if (!json_field(&job, "services", &list))
        return true;
    json_walk_start(&walk, &list);
    while (json_walk_next(&walk, NULL, &entry))
        if (!start_service(&entry))
            return false;
    return true;
}

/* ---- steps that init does itself -> their status ---- */
static int sleep_step(const struct json_value *options)
{
    struct json_value value;
    uint64_t ns = 0;

    if (json_field(options, "ns", &value))
        json_uint(&value, &ns);
    sleep_until(sss_now_ns() + ns);
    return 0;
}

static int kill_step(const struct json_value *options, long step)
{
    struct json_value name;

    if (json_field(options, "task", &name)) {
        for (unsigned i = 0; i < service_count; i++) {
            if (services[i].task == 0 || !json_is(&name, services[i].name))
                continue;
            sss_kill(services[i].task);
            services[i].task = 0;
            start_anew(&services[i]);
            return 0;
        }
    }
    tell_error("kill", step, "no such service is alive");
    return 1;
}

static int run_task(const char *app, const struct json_value *entry, long step)
{
    int task = start(app, entry, step);
    struct sss_task_status status;

    if (task < 0)
        return CANNOT_START;
    status = wait_for(task, SSS_GONE);
    if (status.status < 0)
        tell_end(app, step, status.status);
    return exit_status(status.status);
}

static void tell_step(long step, const char *app, int status)
{
    sss_record("{\"type\":\"step\",\"step\":%ld,\"app\":\"%s\",\"status\":%d}", step, app, status);
    if (status != 0) {
        well = false;
        say_failed();
    }
}

/* Does not come back: what init must know afterwards goes with it, see main. */
static void restart_step(long step)
{
    tell_step(step, "restart", 0);
    sss_call(SSS_RESTART, (uint64_t)(step + 1) << 1 | !well, 0, 0, 0, 0, 0);
}

static void run_step(const struct json_value *entry, long step)
{
    struct json_value name = {0}, options = {0};
    char app[SSS_NAME] = "";

    json_field(entry, "app", &name);
    json_field(entry, "options", &options);
    json_text(&name, app, sizeof(app));
    if (strcmp(app, "restart") == 0)
        restart_step(step);
    else if (strcmp(app, "sleep") == 0)
        tell_step(step, app, sleep_step(&options));
    else if (strcmp(app, "kill") == 0)
        tell_step(step, app, kill_step(&options, step));
    else
        tell_step(step, app, run_task(app, entry, step));
}

static void run_steps(long first)
{
    struct json_value list, entry;
    struct json_walk walk;
    long step = 0;

    if (!json_field(&job, "steps", &list))
        return;
    json_walk_start(&walk, &list);
    for (; json_walk_next(&walk, NULL, &entry); step++)
        if (step >= first)
            run_step(&entry, step);
}

/* ---- the whole ---- */
static uint64_t job_number(const char *name)
{
    struct json_value value;
    uint64_t number = 0;

    if (json_field(&job, name, &value))
        json_uint(&value, &number);
    return number;
}

/* In virtual time steps begin at the same instant on all machines. */
static void wait_for_start(void)
{
    struct json_value clock;

    if (json_field(&job, "clock", &clock) && json_is(&clock, "tsc"))
        sleep_until(job_number("zero_ns") + job_number("start_ns"));
}

static void finish(void)
{
    look_at_services();
    sss_record("{\"type\":\"done\",\"status\":%d}", well ? 0 : 1);
    sss_call(SSS_DONE, well ? 0 : 1, 0, 0, 0, 0, 0);
}

/* Services go on serving. */
static _Noreturn void supervise(void)
{
    for (;;) {
        uint32_t seen = SSS_INFO->tasks;

        look_at_services();
        sss_wait_word(&SSS_INFO->tasks, seen, SSS_FOREVER);
    }
}

int main(int argc, char **argv)
{
    long length = sss_call(SSS_JOB, (uint64_t)job_bytes, sizeof(job_bytes), 0, 0, 0, 0);
    struct json_value options, next;
    bool served;
    /* behind a restart: the step to go on with, and in bit 0 whether one has failed */
    uint64_t token = 0;

    if (length < 0 || json_check(job_bytes, (size_t)length, &job) != NULL)
        return 1;
    if (argc > 1 && json_check(argv[1], strlen(argv[1]), &options) == NULL &&
        json_field(&options, "next", &next))
        json_uint(&next, &token);
    well = (token & 1) == 0;
    served = start_services();
    if (token == 0)
        wait_for_start();
    if (served)
        run_steps((long)(token >> 1));
    finish();
    supervise();
}
