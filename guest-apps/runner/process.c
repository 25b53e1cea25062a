/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "samples.h"
#include "spares.h"
#include "zygote.h"

enum {
    LINE = 256,
    READY_TIMEOUT_MS = 30000,
    SIGNALLED = 128, /* exit statuses above this mean a signal, as in the shell */
    CANNOT_START = 127,
};

static const char APPS[] = "/usr/lib/sundial";

struct service {
    char app[JOB_NAME];
    pid_t pid; /* 0: dead */
    int out;   /* its standard output; -1: closed */
    char line[LINE];
    size_t length;
    bool ready;
    bool prepared; /* before there was a job, and no service of it so far */
    bool dies;     /* its job asks it to end by itself, with status 0 */
};

static struct service services[SERVICES_LIMIT];
static size_t service_count;
static unsigned dead_services;
static void (*tell_death)(void);

static int child_signals = -1; /* signalfd for SIGCHLD */

/* The one process that is waited for; 0: none. */
static pid_t awaited;
static int awaited_status;

int process_init(void (*on_death)(void))
{
    sigset_t set;

    tell_death = on_death;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    child_signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return child_signals < 0 ? -1 : 0;
}

void process_become_ordinary(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
}

/* The options as argv[1]; NULL where there is no memory. The caller frees it. */
static char *copy_options(const struct job_task *task)
{
    if (json_kind(&task->options) == JSON_IS_NOTHING)
        return strdup("{}");
    return strndup(task->options.text, task->options.length);
}

/*
 * Until it is another program the child borrows our memory, since a copy for that moment costs
 * 230,000 instructions.
 */
static pid_t start_program(const char *path, const char *app, const char *options, int out)
{
    pid_t pid = vfork();

    if (pid != 0)
        return pid;
    process_become_ordinary();
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    execl(path, app, options, (char *)NULL);
    _exit(CANNOT_START);
}

/* The same with a standard output of its own, `*output` its reading end. */
static pid_t start_speaker(const char *path, const char *app, const char *options, int *output)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid = start_program(path, app, options, ends[1]);
    close(ends[1]);
    if (pid < 0)
        close(ends[0]);
    else
        *output = ends[0];
    return pid;
}

static void path_of(const char *app, char path[LINE])
{
    snprintf(path, LINE, "%s/%s", APPS, app);
}

/*
 * Starts an application with its options and, where `output` is not NULL, a standard output of its
 * own. Its environment is set in ours, which it has part of or a copy.
 */
static pid_t start_app(const struct job_task *task, int *output, int step)
{
    char path[LINE];
    char number[16];
    char *options = copy_options(task);
    pid_t pid;

    if (options == NULL)
        return -1;
    path_of(task->app, path);
    setenv("SUNDIAL_APP", task->app, 1);
    if (step >= 0) {
        snprintf(number, sizeof(number), "%d", step);
        setenv("SUNDIAL_STEP", number, 1);
    }
    pid = spares_become(path, task->app, options, output);
    if (pid < 0)
        pid = zygote_fork(path, options, output);
    if (pid < 0)
        pid = output == NULL ? start_program(path, task->app, options, -1)
                             : start_speaker(path, task->app, options, output);
    free(options);
    return pid;
}

static int exit_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? SIGNALLED + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

static void describe_end(int wait_status, char *text, size_t size)
{
    if (WIFSIGNALED(wait_status))
        snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(wait_status),
                 strsignal(WTERMSIG(wait_status)));
    else if (WEXITSTATUS(wait_status) == CANNOT_START)
        snprintf(text, size, "cannot be started (no such application in this image?)");
    else
        snprintf(text, size, "ended with status %d", WEXITSTATUS(wait_status));
}

/* An error of an application that could not report it itself; a service's carries only its name. */
static void report(const char *app, int step, const char *message)
{
    json_t *line = json_pack("{ss}", "type", "error");

    if (step >= 0)
        json_object_set_new(line, "step", json_integer(step));
    json_object_set_new(line, "app", json_string(app));
    json_object_set_new(line, "message", json_string(message));
    samples_put(line);
}

static void note_end(pid_t pid, int wait_status)
{
    char message[LINE];

    if (pid == awaited) {
        awaited = 0;
        awaited_status = wait_status;
        return;
    }
    for (size_t i = 0; i < service_count; i++) {
        if (services[i].pid != pid)
            continue;
        services[i].pid = 0;
        if (services[i].prepared || (services[i].dies && wait_status == 0))
            return;
        dead_services++;
        describe_end(wait_status, message, sizeof(message));
        report(services[i].app, -1, message);
        tell_death();
    }
}

static void reap(void)
{
    struct signalfd_siginfo info;
    int wait_status;
    pid_t pid;

    while (read(child_signals, &info, sizeof(info)) > 0)
        continue;
    while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0)
        note_end(pid, wait_status);
}

/* A service speaks: the line "ready" is for us, every other line goes to the console. */
static void listen_to(struct service *service)
{
    ssize_t got = read(service->out, service->line + service->length,
                       sizeof(service->line) - service->length - 1);
    char *end;

    if (got <= 0) {
        close(service->out);
        service->out = -1;
        return;
    }
    service->length += (size_t)got;
    service->line[service->length] = '\0';
    while ((end = strchr(service->line, '\n')) != NULL ||
           service->length == sizeof(service->line) - 1) {
        size_t taken = end == NULL ? service->length : (size_t)(end - service->line) + 1;

        if (end != NULL)
            *end = '\0';
        if (strcmp(service->line, "ready") == 0)
            service->ready = true;
        else
            fprintf(stderr, "%s: %s\n", service->app, service->line);
        service->length -= taken;
        memmove(service->line, service->line + taken, service->length + 1);
    }
}

/* Waits for the next thing to happen; false when `timeout_ms` (-1: none) passed without any. */
static bool wait_for_event(int timeout_ms)
{
    struct pollfd watched[SERVICES_LIMIT + 1];
    struct service *speaker[SERVICES_LIMIT + 1];
    nfds_t count = 0;
    int happened;

    watched[count++] = (struct pollfd){.fd = child_signals, .events = POLLIN};
    for (size_t i = 0; i < service_count; i++) {
        if (services[i].out < 0)
            continue;
        speaker[count] = &services[i];
        watched[count++] = (struct pollfd){.fd = services[i].out, .events = POLLIN};
    }
    happened = poll(watched, count, timeout_ms);
    if (happened == 0)
        return false;
    if (happened < 0)
        return true;
    for (nfds_t i = 1; i < count; i++)
        if (watched[i].revents != 0)
            listen_to(speaker[i]);
    if (watched[0].revents != 0)
        reap();
    return true;
}

static int add_service(const struct job_task *task, bool prepared)
{
    struct service *service = &services[service_count];
    struct json_value die;
    int output = -1;

    *service = (struct service){.prepared = prepared,
                                .dies = json_kind(&task->options) == JSON_IS_OBJECT &&
                                        json_field(&task->options, "die", &die)};
    memcpy(service->app, task->app, sizeof(service->app));
    service->pid = start_app(task, &output, -1);
    service->out = output;
    service_count++;
    if (service->pid < 0)
        report(task->app, -1, strerror(errno));
    while (service->pid > 0 && !service->ready) {
        if (wait_for_event(READY_TIMEOUT_MS))
            continue;
        report(task->app, -1, "not ready within 30 s");
        return -1;
    }
    return service->ready && service->pid > 0 ? 0 : -1;
}

static bool is_without_options(const struct job_task *task)
{
    struct json_walk walk;
    struct json_value name, value;

    if (json_kind(&task->options) == JSON_IS_NOTHING)
        return true;
    json_walk_start(&walk, &task->options);
    return !json_walk_next(&walk, &name, &value);
}

static bool is_prepared_for(const struct service *service, const struct job_task *task)
{
    char path[LINE];

    path_of(task->app, path);
    return service->prepared && service->pid > 0 && strcmp(service->app, task->app) == 0 &&
           is_without_options(task) && spares_can_become(path);
}

int process_start_service(const struct job_task *task)
{
    for (size_t i = 0; i < service_count; i++)
        if (is_prepared_for(&services[i], task)) {
            services[i].prepared = false;
            return 0;
        }
    return add_service(task, false);
}

void process_prepare_service(const char *app)
{
    struct job_task task = {0};

    snprintf(task.app, sizeof(task.app), "%s", app);
    add_service(&task, true);
}

static bool is_wanted(const struct service *service, const struct job *job)
{
    struct json_walk walk;
    struct job_task task;

    json_walk_start(&walk, &job->services);
    while (job_next_task(&walk, &task))
        if (is_prepared_for(service, &task))
            return true;
    return false;
}

void process_end_unwanted(const struct job *job)
{
    size_t kept = 0;

    for (size_t i = 0; i < service_count; i++) {
        if (is_wanted(&services[i], job)) {
            services[kept++] = services[i];
            continue;
        }
        close(services[i].out);
        if (services[i].pid > 0) {
            kill(services[i].pid, SIGKILL);
            waitpid(services[i].pid, NULL, 0);
        }
    }
    service_count = kept;
}

int process_run_step(const struct job_task *task, size_t index)
{
    char message[LINE];

    awaited = start_app(task, NULL, (int)index);
    if (awaited < 0) {
        report(task->app, (int)index, strerror(errno));
        awaited = 0;
        return CANNOT_START;
    }
    while (awaited != 0)
        wait_for_event(-1);
    if (WIFSIGNALED(awaited_status) || WEXITSTATUS(awaited_status) == CANNOT_START) {
        describe_end(awaited_status, message, sizeof(message));
        report(task->app, (int)index, message);
    }
    samples_put(json_pack("{ss si ss si}", "type", "step", "step", (int)index, "app", task->app,
                          "status", exit_status(awaited_status)));
    return exit_status(awaited_status);
}

unsigned process_dead_services(void)
{
    return dead_services;
}

void process_supervise_for_ever(void)
{
    for (;;)
        wait_for_event(-1);
}

int process_run_shell(const char *command)
{
    pid_t pid = fork();
    int wait_status;

    if (pid == 0) {
        process_become_ordinary();
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(CANNOT_START);
    }
    if (pid < 0)
        return CANNOT_START;
    while (waitpid(pid, &wait_status, 0) < 0)
        if (errno != EINTR)
            return CANNOT_START;
    return exit_status(wait_status);
}

int process_fork_helper(void (*body)(void))
{
    pid_t pid = fork();

    if (pid == 0) {
        process_become_ordinary();
        body();
        _exit(0);
    }
    return pid < 0 ? -1 : 0;
}
