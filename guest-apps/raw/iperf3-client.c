/* SPDX-License-Identifier: Apache-2.0 */
/* iperf3 as a step: runs its client with JSON output and puts the result on the record stream. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps.h"
#include "clock.h"
#include "options.h"
#include "samples.h"
#include "syscalls.h"

enum {
    ARGUMENTS = 32,
    TEXTS = 24,
    DEFAULT_PORT = 5201,
    PORT_LIMIT = 65535,
    BUFFER_LIMIT = 1 << 24,
    MS_PER_S = 1000,
    DURATION_LIMIT_MS = 3600 * MS_PER_S,
    STREAMS_LIMIT = 64,
    OUTPUT_LIMIT = 8 << 20,
    CONNECT_TRIES = 50,
    PAUSE_US = 100 * 1000,
};

struct command {
    char *arguments[ARGUMENTS];
    size_t count;
};

static void add(struct command *command, const char *argument)
{
    if (command->count + 1 == ARGUMENTS)
        samples_fail("too many arguments");
    command->arguments[command->count++] = strdup(argument);
}

/* An option with a number; 0 leaves the choice to iperf3. */
static void add_number(struct command *command, const char *option, long long number)
{
    char text[TEXTS];

    if (number == 0)
        return;
    snprintf(text, sizeof(text), "%lld", number);
    add(command, option);
    add(command, text);
}

/* iperf3 takes whole seconds. */
static long long read_seconds(struct options *options)
{
    long long duration_ms = options_integer(options, "duration_ms", MS_PER_S, MS_PER_S,
                                            DURATION_LIMIT_MS);

    if (duration_ms % MS_PER_S != 0)
        samples_refuse("option duration_ms: must be whole seconds");
    return duration_ms / MS_PER_S;
}

static void read_settings(struct command *command, int argc, char **argv)
{
    static const char *const transports[] = {"tcp", "udp", NULL};
    struct options *options = options_open(argc, argv);
    const char *server = options_text(options, "server", NULL);
    struct in_addr address;

    if (inet_pton(AF_INET, server, &address) != 1)
        samples_refuse("option server: must be an address like 10.0.0.2");
    add(command, "iperf3");
    add(command, "--json");
    add(command, "-4");
    add(command, "-c");
    add(command, server);
    add_number(command, "-p", options_integer(options, "port", DEFAULT_PORT, 1, PORT_LIMIT));
    if (options_word(options, "transport", transports) == 1)
        add(command, "-u");
    add_number(command, "-t", read_seconds(options));
    add_number(command, "-P", options_integer(options, "streams", 1, 1, STREAMS_LIMIT));
    add_number(command, "-b", options_integer(options, "rate_bps", 0, 0, 1LL << 40));
    add_number(command, "-l", options_integer(options, "length", 0, 0, BUFFER_LIMIT));
    add_number(command, "-w", options_integer(options, "socket_buffer", 0, 0, BUFFER_LIMIT));
    if (options_boolean(options, "tcp_nodelay", false))
        add(command, "-N");
    if (options_boolean(options, "reverse", false))
        add(command, "-R");
    options_integer(options, "series", 0, 0, 0x7fffffff);
    options_check_all_taken(options);
    options_close(options);
}

/* Runs the command; its output, and its exit status (128 + signal). */
static char *run(char *const arguments[], int *status)
{
    char *output = malloc(OUTPUT_LIMIT + 1);
    size_t length = 0;
    int ends[2];
    int wait_status = 0;
    pid_t pid;
    ssize_t got;

    if (output == NULL || pipe(ends) != 0)
        samples_fail("cannot run iperf3: %s", strerror(errno));
    pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close_descriptors_from(STDERR_FILENO + 1);
        execvp(arguments[0], arguments);
        _exit(127);
    }
    close(ends[1]);
    while ((got = read(ends[0], output + length, OUTPUT_LIMIT - length)) > 0)
        length += (size_t)got;
    output[length] = '\0';
    close(ends[0]);
    waitpid(pid, &wait_status, 0);
    *status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    return output;
}

/*
 * A server that is still starting refuses the connection: that is not a result, but a reason to
 * wait.
 */
static bool was_refused(const json_t *result)
{
    const char *error = json_string_value(json_object_get(result, "error"));

    return error != NULL && strstr(error, "Connection refused") != NULL;
}

int iperf3_client_main(int argc, char **argv)
{
    struct command command = {0};
    json_t *result = NULL;
    json_t *line;
    uint64_t start = 0;
    int status = 0;
    int tries = 0;

    if (clock_select_from_environment() != 0)
        samples_fail("SUNDIAL_CLOCK: must be tsc or monotonic");
    read_settings(&command, argc, argv);
    do {
        char *output;

        if (tries > 0)
            usleep(PAUSE_US);
        json_decref(result);
        start = clock_now_ns();
        output = run(command.arguments, &status);
        result = json_loads(output, 0, NULL);
        free(output);
    } while (was_refused(result) && ++tries < CONNECT_TRIES);
    if (result == NULL)
        samples_fail("iperf3 ended with status %d and no result", status);
    line = samples_object("iperf3");
    json_object_update_new(line, json_pack("{sI sI si si so}", "start", (json_int_t)start, "end",
                                           (json_int_t)clock_now_ns(), "status", status, "tries",
                                           tries + 1, "result", result));
    samples_put(line);
    return status == 0 ? 0 : 1;
}
