/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks of the MBCF workloads as Linux programs: this process is a node, with the task that its
 * name says and, where that is a server, the binder. The option "endpoint" tells which node on
 * which interface; the rest is the task's.
 */
#include <errno.h>
#include <rpc/mbcf_binder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "lib/json.h"
#include "node.h"
#include "options.h"

int echo_server_task(int argc, char **argv);
int echo_client_task(int argc, char **argv);
int mbcf_server_task(int argc, char **argv);
int mbcf_client_task(int argc, char **argv);

enum { NAME_BYTES = 64, MAC_TEXT = 18, OPTIONS_BYTES = 65536, NO_SUCH_APPLICATION = 127 };

static const struct {
    const char *name;
    int (*task)(int argc, char **argv);
    bool is_server;
} applets[] = {
    {"mbcf-echo-server", echo_server_task, true},
    {"mbcf-echo-client", echo_client_task, false},
    {"mbcf-server", mbcf_server_task, true},
    {"mbcf-client", mbcf_client_task, false},
};

static struct json_value endpoint;

static bool field_uint(const struct json_value *object, const char *name, uint64_t most,
                       uint64_t *number)
{
    struct json_value value;

    return json_field(object, name, &value) && json_uint(&value, number) && *number >= 1 &&
           *number <= most;
}

static bool field_text(const struct json_value *object, const char *name, char *text, size_t size)
{
    struct json_value value;

    return json_field(object, name, &value) && json_text(&value, text, size);
}

static bool read_peer(const struct json_value *value, struct node_peer *peer)
{
    char text[MAC_TEXT];
    uint64_t node;
    int end = 0;

    if (!field_uint(value, "node", SSS_NODES, &node) ||
        !field_text(value, "mac", text, sizeof(text)) ||
        sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx%n", &peer->mac[0], &peer->mac[1], &peer->mac[2],
               &peer->mac[3], &peer->mac[4], &peer->mac[5], &end) != 6 ||
        text[end] != '\0')
        return false;
    peer->node = (uint16_t)node;
    return true;
}

static struct node *open_node(void)
{
    static struct node_peer peers[SSS_NODES];
    static char machine[NAME_BYTES];
    char device[NAME_BYTES];
    struct node_config config = {.machine = machine, .peers = peers};
    struct json_value list, value;
    struct json_walk members;
    uint64_t number, epoch;
    struct node *node;

    snprintf(machine, sizeof(machine), "%s",
             getenv("SUNDIAL_MACHINE") != NULL ? getenv("SUNDIAL_MACHINE") : "");
    if (!field_text(&endpoint, "device", device, sizeof(device)) ||
        !field_uint(&endpoint, "node", SSS_NODES, &number) ||
        !field_uint(&endpoint, "epoch", UINT32_MAX, &epoch) ||
        !json_field(&endpoint, "nodes", &list) || json_kind(&list) != JSON_IS_ARRAY)
        options_fail("option endpoint: must hold device, node (1 to %d), epoch and nodes",
                     SSS_NODES);
    config.node = (uint16_t)number;
    config.epoch = (uint32_t)epoch;
    json_walk_start(&members, &list);
    while (json_walk_next(&members, NULL, &value))
        if (config.peer_count == SSS_NODES || !read_peer(&value, &peers[config.peer_count++]))
            options_fail("option endpoint: its nodes must be at most %d, each with node and mac",
                         SSS_NODES);
    node = node_open_raw(device, &config);
    if (node == NULL)
        task_fail("cannot open %s for MBCF: %s", device, strerror(errno));
    return node;
}

/* ---- the binder, where there is a server to be found ---- */

static struct node *binder_node;
static volatile uint32_t binder_ready;

static void run_binder(void *unused)
{
    struct mb_fifo *queue = NULL;

    (void)unused;
    if (node_task(binder_node, MB_BINDER_TASK) == MB_BINDER_TASK)
        queue = mb_binder_declare();
    if (queue == NULL)
        task_fail("the binder cannot declare its TASKQUE");
    binder_ready = 1;
    for (;;) {
        uint32_t events = queue->events;

        mb_binder_serve();
        sss_wait_word(&queue->events, events, SSS_FOREVER);
    }
}

static void start_binder(struct node *node)
{
    binder_node = node;
    if (sss_thread(run_binder, NULL, 0) < 0)
        task_fail("cannot start the binder's thread");
    while (!binder_ready)
        sss_yield();
}

/* ---- options: without the endpoint, and with what SSS-CORE's init adds ---- */

static char *task_options(const struct json_value *options)
{
    const char *step = getenv("SUNDIAL_STEP"), *seed = getenv("SUNDIAL_SEED");
    struct json_value name, value;
    struct json_walk members;
    char *text = malloc(OPTIONS_BYTES);
    int length;

    if (text == NULL)
        task_fail("out of memory");
    length = snprintf(text, OPTIONS_BYTES, "{\"seed\":%s", seed != NULL ? seed : "0");
    if (step != NULL)
        length += snprintf(text + length, OPTIONS_BYTES - (size_t)length, ",\"step\":%s", step);
    json_walk_start(&members, options);
    while (json_walk_next(&members, &name, &value)) {
        if (json_is(&name, "endpoint")) {
            endpoint = value;
            continue;
        }
        length += snprintf(text + length, OPTIONS_BYTES - (size_t)length, ",%.*s:%.*s",
                           (int)name.length, name.text, (int)value.length, value.text);
        if (length >= OPTIONS_BYTES - 2)
            options_fail("options: at most %d bytes", OPTIONS_BYTES);
    }
    snprintf(text + length, OPTIONS_BYTES - (size_t)length, "}");
    return text;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash != NULL ? slash + 1 : argv[0];
    char *arguments[] = {argv[0], NULL, NULL};
    struct json_value options;
    size_t applet = 0;
    struct node *node;
    int status;

    while (applet < sizeof(applets) / sizeof(*applets) && strcmp(name, applets[applet].name) != 0)
        applet++;
    if (applet == sizeof(applets) / sizeof(*applets)) {
        fprintf(stderr, "%s: no such application\n", name);
        return NO_SUCH_APPLICATION;
    }
    if (clock_select_from_environment() != 0)
        options_fail("SUNDIAL_CLOCK: must be tsc or monotonic");
    if (argc != 2 || json_check(argv[1], strlen(argv[1]), &options) != NULL ||
        json_kind(&options) != JSON_IS_OBJECT)
        options_fail("options: must be one JSON object");
    arguments[1] = task_options(&options);
    if (endpoint.text == NULL)
        options_fail("option endpoint: must be given");
    node = open_node();
    if (applets[applet].is_server)
        start_binder(node);
    if (node_task(node, 0) < 0)
        task_fail("the node has no place for a task");
    status = applets[applet].task(2, arguments);
    node_close(node);
    return status;
}
