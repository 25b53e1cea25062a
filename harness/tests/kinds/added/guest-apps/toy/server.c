/* SPDX-License-Identifier: Apache-2.0 */
/* Sends every toy back. */
#include <stdint.h>
#include <sys/socket.h>

#include "apps.h"
#include "options.h"
#include "samples.h"
#include "server.h"
#include "toy.h"

static struct pollfd watched = {.events = POLLIN};
static long long toys;

static struct pollfd *watch(nfds_t *count)
{
    *count = 1;
    return &watched;
}

static void serve(struct pollfd *ready, nfds_t count, int happened)
{
    static uint8_t toy[TOY_LIMIT];
    struct sockaddr_storage from;
    socklen_t length = sizeof(from);
    ssize_t got = recvfrom(ready->fd, toy, sizeof(toy), 0, (struct sockaddr *)&from, &length);

    (void)count;
    (void)happened;
    if (got >= 0 && sendto(ready->fd, toy, (size_t)got, 0, (struct sockaddr *)&from, length) == got)
        toys++;
}

static void report(void)
{
    json_t *line = samples_object("counters");

    json_object_set_new(line, "toys", json_integer(toys));
    samples_put(line);
}

int toy_server_main(int argc, char **argv)
{
    static const struct server server = {watch, serve, report};
    struct server_settings settings = {.udp_port = TOY_PORT};
    struct options *options = options_open(argc, argv);

    server_hold_end();
    options_check_all_taken(options);
    options_close(options);
    watched.fd = server_open_socket(&settings, SOCK_DGRAM);
    server_run(&server);
    return 0;
}
