/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor shows a running node, and changes little. It runs in the interrupt of the console or
 * port, so it answers even if every task hangs.
 */
#include "monitor.h"

#include <stdarg.h>

#include "console.h"
#include "cpu.h"
#include "initrd.h"
#include "kformat.h"
#include "mbcf/core.h"
#include "memory.h"
#include "net.h"
#include "node.h"
#include "panic.h"
#include "sockets.h"
#include "task.h"
#include "task_table.h"
#include "thread.h"

enum { LINE_BYTES = 256, NS_PER_US = 1000, ACPI_PM1A_CONTROL = 0x604, ACPI_SOFT_OFF = 0x2000 };

struct printer {
    void (*print)(void *context, const char *text);
    void *context;
};

static void __attribute__((format(printf, 2, 3)))
say(const struct printer *to, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    kvsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    to->print(to->context, line);
}

/* ---- the text of one value; each column has its own buffer ---- */
static const char *address_text(uint32_t address, char text[16])
{
    ksnprintf(text, 16, "%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255,
              address & 255);
    return text;
}

static const char *peer_text(const struct sss_peer *peer, char text[24])
{
    char address[16];

    ksnprintf(text, 24, "%s:%u", address_text(peer->address, address), peer->port);
    return text;
}

static const char *task_state_text(enum sss_task_state state)
{
    return state == SSS_SERVING ? "serving" : state == SSS_RUNNING ? "running" : "gone";
}

static const char *phase_text(uint32_t phase)
{
    static const char *const texts[] = {"closed",    "connecting", "open",
                                        "listening", "ended",      "failed"};

    return phase < sizeof(texts) / sizeof(texts[0]) ? texts[phase] : "?";
}

/* ---- tables ---- */
static int show_tasks(const struct printer *to, const char *rest)
{
    struct task_row row;

    (void)rest;
    say(to, "%5s %-20s %-8s %7s %8s %7s %12s\n", "task", "name", "state", "creator", "threads",
        "pages", "run us");
    for (unsigned i = 0; task_at(i, &row); i++)
        say(to, "%5u %-20s %-8s %7u %8u %7zu %12lu\n", row.id, row.name, task_state_text(row.state),
            row.creator, row.threads, row.pages, (unsigned long)(row.run_ns / NS_PER_US));
    return 0;
}

static int show_threads(const struct printer *to, const char *rest)
{
    struct thread_row row;

    (void)rest;
    say(to, "%6s %5s %-10s %12s  %s\n", "thread", "task", "state", "run us", "at");
    for (unsigned i = 0; thread_at(i, &row); i++)
        say(to, "%6u %5u %-10s %12lu  0x%lx\n", row.id, row.task, row.state,
            (unsigned long)(row.run_ns / NS_PER_US), (unsigned long)row.instruction);
    return 0;
}

static int show_channels(const struct printer *to, const char *rest)
{
    static const char *const states[] = {"idle", "opening", "open", "dead"};
    struct mbcf_channel_info info;

    (void)rest;
    say(to, "%4s %-8s %8s %8s %10s %10s %10s %6s %9s %9s\n", "node", "state", "epoch", "theirs",
        "next seq", "acked", "received", "flying", "rtt us", "rto us");
    for (unsigned i = 0; mbcf_channel_at(node_mbcf(), i, &info); i++)
        say(to, "%4u %-8s %8x %8x %10u %10u %10u %6u %9lu %9lu\n", info.node,
            info.state < 4 ? states[info.state] : "?", info.epoch, info.peer_epoch, info.next_seq,
            info.acked, info.received, info.in_flight, (unsigned long)(info.srtt_ns / NS_PER_US),
            (unsigned long)(info.rto_ns / NS_PER_US));
    return 0;
}

static int show_connections(const struct printer *to, const char *rest)
{
    struct mbcf_connection_at at;

    (void)rest;
    say(to, "%5s %5s %9s %9s %-7s %-8s %10s %6s\n", "task", "ltn", "peer node", "peer task",
        "state", "made by", "unfinished", "error");
    for (unsigned i = 0; mbcf_connection_at(node_mbcf(), i, &at); i++)
        say(to, "%5u %5d %9u %9u %-7s %-8s %10u %6u\n", at.task, at.ltn, at.connection.node,
            at.connection.task, at.connection.state == MB_CONNECTION_OPEN ? "open" : "broken",
            at.connection.taskque ? "taskque" : "connect", at.connection.unfinished,
            at.connection.error);
    return 0;
}

static int show_fifos(const struct printer *to, const char *rest)
{
    static const char *const kinds[] = {"fifo", "taskque", "signal"};
    struct mbcf_fifo_at at;

    (void)rest;
    say(to, "%5s %-8s %18s %8s %8s\n", "task", "kind", "address", "size", "used");
    for (unsigned i = 0; mbcf_fifo_at(node_mbcf(), i, &at); i++)
        say(to, "%5u %-8s 0x%016lx %8lu %8lu\n", at.task, at.kind < 3 ? kinds[at.kind] : "?",
            (unsigned long)at.address, (unsigned long)at.size, (unsigned long)at.used);
    return 0;
}

static void show_counter(const struct printer *to, const char *name, uint64_t value)
{
    say(to, "%-28s %12lu\n", name, (unsigned long)value);
}

static int show_counters(const struct printer *to, const char *rest)
{
    const struct mbcf_counters *counters = mbcf_counters(node_mbcf());
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"frames sent", counters->frames_sent},
        {"frames received", counters->frames_received},
        {"bytes sent", counters->bytes_sent},
        {"bytes received", counters->bytes_received},
        {"operations sent", counters->operations_sent},
        {"operations executed", counters->operations_executed},
        {"results sent", counters->results_sent},
        {"acknowledgements sent", counters->acks_sent},
        {"resets sent", counters->resets_sent},
        {"sent again", counters->retransmitted},
        {"timeouts", counters->timeouts},
        {"duplicates dropped", counters->duplicates},
        {"gaps", counters->gaps},
        {"malformed", counters->malformed},
        {"of a foreign node", counters->foreign},
        {"of an old epoch", counters->stale_epoch},
    };

    (void)rest;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        show_counter(to, rows[i].name, rows[i].value);
    for (int status = 1; status <= MB_LAST_REMOTE; status++)
        if (counters->refused[status] != 0)
            say(to, "refused with status %-8d %12lu\n", status,
                (unsigned long)counters->refused[status]);
    return 0;
}

static int show_memory(const struct printer *to, const char *rest)
{
    (void)rest;
    show_counter(to, "pages", pages_total());
    show_counter(to, "pages free", pages_free());
    show_counter(to, "KiB free", pages_free() * PAGE / 1024);
    show_counter(to, "frames", SSS_FRAMES);
    show_counter(to, "frames free", frames_free());
    return 0;
}

static int show_net(const struct printer *to, const char *rest)
{
    (void)rest;
    say(to, "%-6s %-17s %9s %12s %9s %12s %8s %8s %8s\n", "", "address", "sent", "bytes",
        "received", "bytes", "refused", "foreign", "unknown");
    for (unsigned i = 0; i < net_adapter_count(); i++) {
        const struct net_counters *counters = net_counters(i);
        const uint8_t *mac = net_mac(i);

        say(to, "eth%-3u %02x:%02x:%02x:%02x:%02x:%02x %9lu %12lu %9lu %12lu %8lu %8lu %8lu\n", i,
            mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], (unsigned long)counters->frames_sent,
            (unsigned long)counters->bytes_sent, (unsigned long)counters->frames_received,
            (unsigned long)counters->bytes_received, (unsigned long)counters->refused,
            (unsigned long)counters->foreign, (unsigned long)counters->unknown);
    }
    return 0;
}

static int show_sockets(const struct printer *to, const char *rest)
{
    struct socket_row row;
    char local[24], peer[24];

    (void)rest;
    say(to, "%6s %5s %-4s %-10s %-21s %-21s %9s %9s %6s\n", "socket", "task", "kind", "phase",
        "local", "peer", "readable", "writable", "again");
    for (unsigned i = 0; socket_at(i, &row); i++)
        say(to, "%6u %5u %-4s %-10s %-21s %-21s %9u %9u %6u\n", row.number, row.task,
            row.protocol == SSS_TCP ? "tcp" : "udp", phase_text(row.state.phase),
            peer_text(&row.state.local, local), peer_text(&row.state.peer, peer),
            row.state.readable, row.state.writable, row.state.retransmits);
    return 0;
}

/* ---- what changes something ---- */
static int run_task(const struct printer *to, const char *rest)
{
    char name[SSS_NAME];
    size_t length = 0, bytes;
    int id;

    while (rest[length] != '\0' && rest[length] != ' ')
        length++;
    if (length == 0 || length >= sizeof(name)) {
        say(to, "run: takes NAME [OPTIONS]: a task of the image, and its options as JSON\n");
        return 1;
    }
    __builtin_memcpy(name, rest, length);
    name[length] = '\0';
    while (rest[length] == ' ')
        length++;
    if (initrd_find(name, &bytes) == NULL) {
        say(to, "run: the image has no task \"%s\"; it has", name);
        for (unsigned i = 0; initrd_at(i) != NULL; i++)
            say(to, " %s", initrd_at(i));
        say(to, "\n");
        return 1;
    }
    id = task_create(name, rest[length] == '\0' ? "{}" : rest + length, 0, NULL);
    say(to, id < 0 ? "run: error %d\n" : "task %d\n", id < 0 ? -id : id);
    return id < 0;
}

static bool is_init(unsigned id)
{
    struct task_row row;

    for (unsigned i = 0; task_at(i, &row); i++)
        if (row.id == id)
            return __builtin_strcmp(row.name, "init") == 0;
    return false;
}

static int kill_task(const struct printer *to, const char *rest)
{
    unsigned id = 0;
    struct task *task;

    for (; *rest >= '0' && *rest <= '9' && id <= UINT16_MAX; rest++)
        id = id * 10 + (unsigned)(*rest - '0');
    task = *rest != '\0' || id > UINT16_MAX ? NULL : task_by_id((uint16_t)id);
    if (task == NULL) {
        say(to, "kill: takes the number of a living task, as `tasks` shows it\n");
        return 1;
    }
    if (is_init(id)) {
        say(to, "kill: init supervises all others; `halt` ends the node\n");
        return 1;
    }
    task_end(task, SSS_KILLED);
    return 0;
}

static int show_log(const struct printer *to, const char *rest)
{
    (void)rest;
    console_replay(to->print, to->context);
    return 0;
}

static int halt_machine(const struct printer *to, const char *rest)
{
    (void)rest;
    say(to, "off\n");
    outw(ACPI_PM1A_CONTROL, ACPI_SOFT_OFF);
    return 0;
}

/* To try what the end of a machine does to the harness, to a run and to the peers. */
static int panic_now(const struct printer *to, const char *rest)
{
    (void)to;
    (void)rest;
    panic("on request of the monitor");
}

static int show_help(const struct printer *to, const char *rest);

static const struct {
    const char *name;
    const char *arguments;
    const char *about;
    int (*run)(const struct printer *to, const char *rest);
} commands[] = {
    {"help", "", "this", show_help},
    {"tasks", "", "living tasks", show_tasks},
    {"threads", "", "their threads", show_threads},
    {"connections", "", "logical connections of all tasks", show_connections},
    {"channels", "", "channels to other nodes", show_channels},
    {"fifos", "", "memory-based FIFOs, TASKQUEs and signal queues", show_fifos},
    {"counters", "", "what MBCF has counted", show_counters},
    {"memory", "", "pages and frames", show_memory},
    {"net", "", "adapters", show_net},
    {"sockets", "", "UDP and TCP", show_sockets},
    {"run", "NAME [OPTIONS]", "start a task of the image", run_task},
    {"kill", "TASK", "end a task", kill_task},
    {"log", "", "the end of what was printed on the console", show_log},
    {"panic", "", "end the machine as a fault of the kernel would", panic_now},
    {"halt", "", "switch the machine off", halt_machine},
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static int show_help(const struct printer *to, const char *rest)
{
    (void)rest;
    for (unsigned i = 0; i < COMMANDS; i++)
        say(to, "%-12s %-16s %s\n", commands[i].name, commands[i].arguments, commands[i].about);
    return 0;
}

static bool begins_with_word(const char *line, const char *word)
{
    while (*word != '\0' && *line == *word) {
        line++;
        word++;
    }
    return *word == '\0' && (*line == '\0' || *line == ' ');
}

int monitor_line(const char *line, void (*print)(void *context, const char *text), void *context)
{
    struct printer to = {.print = print, .context = context};

    while (*line == ' ')
        line++;
    if (*line == '\0')
        return 0;
    for (unsigned i = 0; i < COMMANDS; i++) {
        const char *rest = line + __builtin_strlen(commands[i].name);

        if (!begins_with_word(line, commands[i].name))
            continue;
        while (*rest == ' ')
            rest++;
        if (*rest == '\0' || commands[i].arguments[0] != '\0')
            return commands[i].run(&to, rest);
        say(&to, "%s: takes no arguments\n", commands[i].name);
        return 1;
    }
    say(&to, "no such command; there are");
    for (unsigned i = 0; i < COMMANDS; i++)
        say(&to, " %s", commands[i].name);
    say(&to, "\n");
    return 1;
}
