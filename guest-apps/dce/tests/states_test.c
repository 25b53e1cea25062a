/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of states.txt, which describes its format, against the machines of client and server. */
#include "expect.h"
#include "rig.h"

#include <stdarg.h>
#include <stdlib.h>

enum {
    LINES = 2000,
    LINE = 200,
    WORDS = 64,
    FRAGMENT = 4096,
    FRAGMENT_BODY = 4016,
    ARRIVING = 8, /* bytes of a fragment that arrives */
    ROOM = 50000,
    SEQ = 40,
    BOOT = 0x5eed,
    ADDRESS = 0x0a000001,
    FIRST_SERIAL = 0x10000, /* that of a first transmission */
};

static const struct dce_peer server_end = {ADDRESS, 2001}, other_port = {ADDRESS, 2077},
                             stranger = {ADDRESS + 8, 2001};
static const struct dce_uuid activity = {{0xac, 1}}, conv_activity = {{0xc0}};
static const char *const ptypes[] = {"request", "ping", "response", "fault", "working",   "nocall",
                                     "reject",  "ack",  "cancel",   "fack",  "cancel_ack"};
static const char *const semantics[] = {"quiet", "maybe", "idempotent", "broadcast"};
static const uint8_t semantics_flags[] = {DCE_NO_FACK, DCE_MAYBE, DCE_IDEMPOTENT,
                                          DCE_BROADCAST | DCE_IDEMPOTENT};

static char lines[LINES][LINE];
static unsigned line_count, present; /* the line that runs, for messages */

/* The row that runs. */
static struct {
    bool is_client;
    enum dce_policy policy;
    uint64_t give_up_ns;
    unsigned places;
    struct dce_client client;
    struct dce_server server;
    struct dce_interface served;
    uint8_t *memory, *arguments, *results;
    struct dce_activity *running;
    struct dce_packet packet; /* the latest one that was sent */
    unsigned executed, calls;
    uint64_t now;
    size_t size; /* of the present arguments or results */
} row;

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void fail(const char *format, ...)
{
    va_list values;

    expect_failures++;
    printf("states.txt:%u: ", present + 1);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    printf("\n");
}

static void refuse(const char *word)
{
    fail("%s is not understood", word);
    exit(2);
}

static void *need(size_t bytes)
{
    void *memory = calloc(1, bytes);

    if (memory == NULL)
        abort();
    return memory;
}

static unsigned number(const char *word)
{
    char *end;
    unsigned long value = strtoul(word, &end, 0);

    if (end == word || *end != '\0')
        refuse(word);
    return (unsigned)value;
}

static uint64_t seconds(const char *word)
{
    return strcmp(word, "never") == 0 ? DCE_NEVER : (uint64_t)(strtod(word, NULL) * 1e9 + 0.5);
}

static unsigned find(const char *const *names, unsigned count, const char *word)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(names[i], word) == 0)
            return i;
    refuse(word);
    return 0;
}
#define FIND(names, word) find(names, sizeof(names) / sizeof(*(names)), word)

/* What stands behind the `=` of a word, which is cut there; NULL: it has none. */
static char *value_of(char *word)
{
    char *sign = strchr(word, '=');

    if (sign == NULL)
        return NULL;
    *sign = '\0';
    return sign + 1;
}

static void fill(uint8_t *bytes, size_t size, uint32_t seq, size_t from)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = rig_byte(seq, from + i);
}

/* ---- PDUs ---- */

/* One as a row has it. */
struct described {
    struct dce_pdu pdu;
    struct dce_peer peer;
    unsigned numbers[2], given; /* those behind its type */
    unsigned serial, size, about, knows;
    bool is_bare;
    struct dce_fack fack;
    struct dce_cancel cancel;
    uint8_t body[DCE_BODY_MOST];
};

/* word of a row, field */
#define FIELDS(X)                                                                                  \
    X(seq, pdu.seq)                                                                                \
    X(boot, pdu.boot_time)                                                                         \
    X(hint, pdu.activity_hint)                                                                     \
    X(opnum, pdu.opnum)                                                                            \
    X(version, pdu.version)                                                                        \
    X(auth, pdu.auth)                                                                              \
    X(flags2, pdu.flags2)                                                                          \
    X(interface, pdu.interface.bytes[15])                                                          \
    X(activity, pdu.activity.bytes[5])                                                             \
    X(conv, pdu.activity.bytes[14])                                                                \
    X(serial, serial)                                                                              \
    X(size, size)                                                                                  \
    X(about, about)                                                                                \
    X(knows, knows)                                                                                \
    X(window, fack.window_kib)

static void read_field(struct described *one, const char *name, unsigned value)
{
#define X(word, field)                                                                             \
    if (strcmp(name, #word) == 0) {                                                                \
        one->field = (__typeof__(one->field))value;                                                \
        return;                                                                                    \
    }
    FIELDS(X)
#undef X
    refuse(name);
}

static void read_value(struct described *one, const char *name, char *value)
{
    if (strcmp(name, "from") == 0 || strcmp(name, "to") == 0)
        one->peer = strcmp(value, "port") == 0 ? other_port : stranger;
    else if (strcmp(name, "selack") == 0)
        for (char *rest, *word = strtok_r(value, ",", &rest); word != NULL;
             word = strtok_r(NULL, ",", &rest))
            one->fack.selack[one->fack.selack_words++] = number(word);
    else
        read_field(one, name, number(value));
}

/* 2/4 */
static void read_fragment(struct dce_pdu *pdu, char *word, char *slash)
{
    *slash = '\0';
    pdu->fragment = (uint16_t)number(word);
    pdu->flags1 |= DCE_FRAGMENT;
    if (pdu->fragment + 1u == number(slash + 1))
        pdu->flags1 |= DCE_LAST | DCE_NO_FACK;
}

static void read_word(struct described *one, char *word)
{
    char *value = value_of(word), *slash = strchr(word, '/');
    struct dce_pdu *pdu = &one->pdu;

    if (value != NULL) {
        read_value(one, word, value);
    } else if (slash != NULL) {
        read_fragment(pdu, word, slash);
    } else if (strcmp(word, "new") == 0) {
        pdu->boot_time = 0;
        pdu->interface_hint = pdu->activity_hint = DCE_NO_HINT;
    } else if (strcmp(word, "bare") == 0) {
        one->is_bare = true;
    } else if (strcmp(word, "accepting") == 0) {
        one->cancel.accepting = true;
    } else if (one->given < 2 && (strcmp(word, "none") == 0 || (*word >= '0' && *word <= '9'))) {
        one->numbers[one->given++] = *word == 'n' ? UINT16_MAX : number(word);
    } else {
        pdu->flags1 |= semantics_flags[FIND(semantics, word)];
    }
}

/* A piece of what the machine sends, or of a stream that arrives. */
static void write_stream(struct described *one, bool is_sent)
{
    size_t piece = is_sent ? FRAGMENT_BODY : one->size, from = one->pdu.fragment * piece;
    size_t left = is_sent ? row.size - from : piece;

    one->pdu.length = (uint16_t)(left < piece ? left : piece);
    one->pdu.serial = (uint16_t)(one->serial == FIRST_SERIAL ? one->pdu.fragment : one->serial);
    fill(one->body, one->pdu.length, one->pdu.seq, from);
}

static void write_conv(struct described *one, bool asks)
{
    struct dce_conv_question question = {activity, one->knows};
    const struct dce_conv_answer answer = {.seq = one->numbers[0], .status = one->numbers[1]};
    struct dce_pdu *pdu = &one->pdu;

    question.activity.bytes[5] = (uint8_t)one->about;
    pdu->ptype = asks ? DCE_REQUEST : DCE_RESPONSE;
    pdu->flags1 = asks ? DCE_IDEMPOTENT : 0;
    pdu->length = asks ? dce_conv_put_question(&question, one->body, false)
                       : dce_conv_put_answer(&answer, pdu->opnum, one->body, false);
}

static void write_control(struct described *one)
{
    struct dce_pdu *pdu = &one->pdu;

    if (one->given == 0)
        return;
    if (pdu->ptype == DCE_FAULT || pdu->ptype == DCE_REJECT) {
        dce_put32(one->body, one->numbers[0], false);
        pdu->length = 4;
    } else if (pdu->ptype == DCE_CANCEL || pdu->ptype == DCE_CANCEL_ACK) {
        one->cancel.id = one->numbers[0];
        pdu->length = dce_cancel_encode(&one->cancel, pdu->ptype == DCE_CANCEL_ACK, one->body,
                                        false);
    } else {
        pdu->fragment = (uint16_t)one->numbers[0];
        one->fack.serial = (uint16_t)(one->serial == FIRST_SERIAL ? pdu->fragment : one->serial);
        pdu->length = one->is_bare ? 0 : dce_fack_encode(&one->fack, one->body, false);
    }
}

static const struct described *read_pdu(char **words, unsigned count, bool is_sent)
{
    static struct described one;
    bool asks = strcmp(words[0], "who") == 0, is_conv = asks || strcmp(words[0], "who_answer") == 0;

    one = (struct described){
        .pdu = {.ptype = (uint8_t)(is_conv ? 0 : FIND(ptypes, words[0])),
                .interface = is_conv ? dce_conv_interface : rig_interface,
                .activity = is_conv ? conv_activity : activity,
                .boot_time = is_conv ? 0 : BOOT,
                .version = is_conv ? DCE_CONV_VERSION : 1,
                .seq = is_conv ? 1 : SEQ + (row.calls > 1 ? row.calls - 1 : 0),
                .opnum = !is_conv,
                .interface_hint = row.is_client && !is_conv ? 3 : DCE_NO_HINT,
                .activity_hint = is_conv         ? DCE_NO_HINT
                                 : row.is_client ? 4
                                                 : 0,
                .body = one.body},
        .peer = server_end,
        .serial = FIRST_SERIAL,
        .size = ARRIVING,
        .knows = BOOT,
        .fack = {.window_kib = 32, .max_tsdu = 65507, .max_fragment = FRAGMENT, .has_serial = true},
    };
    for (unsigned i = 1; i < count; i++)
        read_word(&one, words[i]);
    if (is_conv)
        write_conv(&one, asks);
    else if (one.pdu.ptype == DCE_REQUEST || one.pdu.ptype == DCE_RESPONSE)
        write_stream(&one, is_sent);
    else
        write_control(&one);
    return &one;
}

/* ---- actions ---- */

static enum dce_action next(void)
{
    return row.is_client ? dce_client_next(&row.client, row.now, &row.packet)
                         : dce_server_next(&row.server, row.now, &row.packet, &row.running);
}

static void expect_quiet(void)
{
    enum dce_action action = next();

    if (action != DCE_WAIT)
        fail("the event before has another action: %s",
             action == DCE_SEND ? ptypes[row.packet.pdu.ptype] : "run or end");
}

static void expect_sent(char **words, unsigned count)
{
    const struct described *one = read_pdu(words, count, true);
    const struct dce_pdu *seen = &row.packet.pdu;
    uint8_t header[2][DCE_HEADER];

    if (next() != DCE_SEND) {
        fail("%s is not sent", words[0]);
        return;
    }
    dce_pdu_encode(&one->pdu, header[0]);
    dce_pdu_encode(seen, header[1]);
    for (unsigned i = 0; i < DCE_HEADER; i++)
        if (header[0][i] != header[1][i])
            fail("byte %u of %s: %#x, not %#x", i, ptypes[seen->ptype], header[1][i], header[0][i]);
    if (one->pdu.length == seen->length && seen->length != 0 &&
        memcmp(one->body, seen->body, seen->length) != 0)
        fail("another body of %s", words[0]);
    if (row.is_client &&
        (row.packet.to.address != one->peer.address || row.packet.to.port != one->peer.port))
        fail("%s goes to %x:%u", words[0], row.packet.to.address, row.packet.to.port);
}

static void expect_bytes(const struct dce_recvq *queue, uint32_t seq, size_t size)
{
    if (queue->length != size)
        fail("%zu bytes, not %zu", queue->length, size);
    for (size_t i = 0; i < queue->length; i++)
        if (queue->buffer[i] != rig_byte(seq, i)) {
            fail("byte %zu is another one", i);
            return;
        }
}

static void expect_run(char **words, unsigned count)
{
    (void)count;
    if (next() != DCE_RUN) {
        fail("it does not run");
        return;
    }
    row.executed++;
    expect_bytes(&row.running->recvq, row.running->header.seq, number(words[0]));
}

static void expect_end(char **words, unsigned count)
{
    static const char *const names[] = {"ok",           "no_answer", "wrong_boot_time",
                                        "out_of_range", "fault",     "reject"};
    const uint32_t statuses[] = {DCE_OK, DCE_COMM_FAILURE, DCE_WRONG_BOOT_TIME, DCE_OUT_OF_RANGE};
    unsigned how = FIND(names, words[0]);
    uint32_t status = how < 4 ? statuses[how] : number(words[1]);

    if (next() != DCE_DONE)
        fail("the call does not end");
    else if (row.client.status != status || row.client.rejected != (how == 5))
        fail("it ends with %#x", row.client.status);
    else if (status == DCE_OK)
        expect_bytes(&row.client.recvq, row.client.seq, count > 1 ? number(words[1]) : 0);
}

static uint64_t deadline(void)
{
    return row.is_client ? dce_client_deadline(&row.client) : dce_server_deadline(&row.server);
}

static uint64_t counted(const char *name)
{
    if (strcmp(name, "kept") == 0)
        return row.is_client ? !dce_xmitq_is_empty(&row.client.xmitq)
                             : dce_server_kept(&row.server);
    if (strcmp(name, "executed") == 0)
        return row.executed;
    if (strcmp(name, "places") == 0)
        return row.server.used;
    if (strcmp(name, "boot") == 0)
        return row.client.boot_time;
    if (strcmp(name, "hint") == 0)
        return row.client.activity_hint;
    return (row.is_client ? &row.client.counts : &row.server.counts)
        ->of[FIND(dce_count_names, name)];
}

static void check(char *word)
{
    static const char *const states[2][6] = {{"unknown", "way", "recv", "run", "final", "idle"},
                                             {"idle", "xmit", "recv", "final", "-", "-"}};
    unsigned state = row.is_client ? (unsigned)row.client.state
                                   : (unsigned)row.server.table[0].state;
    char *value = value_of(word);

    if (value == NULL)
        refuse(word);
    else if (strcmp(word, "state") == 0 && state != FIND(states[row.is_client], value))
        fail("state %s, not %s", states[row.is_client][state], value);
    else if (strcmp(word, "timer") == 0 && deadline() != seconds(value))
        fail("timer at %.3f s, not %s", (double)deadline() / 1e9, value);
    else if (strcmp(word, "state") != 0 && strcmp(word, "timer") != 0 &&
             counted(word) != number(value))
        fail("%s %u, not %s", word, (unsigned)counted(word), value);
}

static void check_all(char **words, unsigned count)
{
    while (count-- != 0)
        check(words[count]);
}

/* ---- events ---- */

static void begin_call(char **words, unsigned count)
{
    struct described one = {.pdu.opnum = 1};
    struct dce_operation operation = {.interface = rig_interface, .version = 1};

    row.size = number(words[0]);
    for (unsigned i = 1; i < count; i++)
        read_word(&one, words[i]);
    operation.opnum = one.pdu.opnum;
    operation.semantics = one.pdu.flags1;
    free(row.arguments);
    row.arguments = need(row.size + 1);
    fill(row.arguments, row.size, SEQ + row.calls++, 0);
    dce_client_call(&row.client, row.now, &operation, row.arguments, row.size);
}

static void arrive(char **words, unsigned count)
{
    const struct described *one = read_pdu(words, count, false);

    if (row.is_client)
        client_machine_packet(&row.client, row.now, &one->peer, &one->pdu);
    else
        server_machine_packet(&row.server, row.now, &one->peer, &one->pdu);
}

static void end_procedure(char **words, unsigned count)
{
    bool fails = count > 1;

    row.size = fails ? 0 : number(words[0]);
    fill(row.running->response, row.size, row.running->header.seq, 0);
    dce_server_result(&row.server, row.now, row.running, fails ? number(words[1]) : DCE_OK,
                      row.size);
}

static void time_out(char **words, unsigned count)
{
    (void)words;
    (void)count;
    if (deadline() != row.now)
        fail("the timer is due at %.3f s", (double)deadline() / 1e9);
    if (row.is_client)
        dce_client_timeout(&row.client, row.now);
    else
        dce_server_timeout(&row.server, row.now);
}

static void cancel(char **words, unsigned count)
{
    (void)words;
    (void)count;
    dce_client_cancel(&row.client, row.now);
}

/* An event, an action or the checks of `is`. */
static void step(uint64_t now, char **words, unsigned count)
{
    static const char *const names[] = {">",    "run",   "end",    "is",    "<",
                                        "call", "timer", "cancel", "result"};
    static void (*const steps[])(char **, unsigned) = {
        expect_sent, expect_run, expect_end, check_all,     arrive,
        begin_call,  time_out,   cancel,     end_procedure,
    };
    unsigned which = FIND(names, words[0]);

    if (which >= 3)
        expect_quiet();
    row.now = now;
    steps[which](words + 1, count - 1);
}

/* ---- rows ---- */

static bool has_operation(uint16_t opnum)
{
    return opnum == 1;
}

static void open_row(void)
{
    const struct dce_xmitq_settings xmitq = {row.policy, FRAGMENT, 2 * DCE_SECOND_NS};
    const struct dce_client_settings client = {
        .xmitq = xmitq,
        .offer = {32, FRAGMENT},
        .activity = activity,
        .server = server_end,
        .seq = SEQ,
        .ping_ns = 2 * DCE_SECOND_NS,
        .ack_delay_ns = DCE_SECOND_NS,
        .give_up_ns = row.give_up_ns,
        .broadcast_ns = 5 * DCE_SECOND_NS,
        .cancel_ns = DCE_SECOND_NS,
    };
    const struct dce_server_settings server = {
        .xmitq = xmitq,
        .offer = {32, FRAGMENT},
        .boot_time = BOOT,
        .conv_activity = conv_activity,
        .interfaces = &row.served,
        .interface_count = 1,
        .activities = row.places,
        .request_bytes = ROOM,
        .response_bytes = ROOM,
        .give_up_ns = row.give_up_ns,
        .half_ns = 60 * DCE_SECOND_NS,
        .idle_ns = 300 * DCE_SECOND_NS,
    };

    row.served = (struct dce_interface){rig_interface, 1 << 16 | 1, has_operation};
    row.memory = need(row.is_client ? dce_xmitq_memory(&xmitq) : dce_server_memory(&server));
    row.results = need(ROOM);
    if (row.is_client)
        dce_client_init(&row.client, &client, row.memory, row.results, ROOM);
    else
        dce_server_init(&row.server, &server, row.memory);
}

static void close_row(void)
{
    free(row.memory);
    free(row.arguments);
    free(row.results);
    memset(&row, 0, sizeof(row));
}

/* Its words without a comment, in `copy`. */
static unsigned split(const char *line, char copy[LINE], char **words)
{
    unsigned count = 0;

    strcpy(copy, line);
    copy[strcspn(copy, "#")] = '\0';
    for (char *rest, *word = strtok_r(copy, " ", &rest); word != NULL && count < WORDS;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    return count;
}

static void run_line(char **words, unsigned count, bool checks)
{
    uint64_t now = seconds(words[0]);

    for (unsigned first = 1, end; first < count; first = end) {
        for (end = first + 1; end < count; end++)
            if (strcmp(words[end], ">") == 0 || strcmp(words[end], "run") == 0 ||
                strcmp(words[end], "end") == 0 || strcmp(words[end], "is") == 0)
                break;
        if (checks || strcmp(words[first], "is") != 0)
            step(now, words + first, end - first);
    }
}

static void set(const char *name, const char *value)
{
    static const char *const policies[] = {"window", "halves", "osf"};

    if (value != NULL && strcmp(name, "give_up") == 0)
        row.give_up_ns = seconds(value);
    else if (value != NULL && strcmp(name, "places") == 0)
        row.places = number(value);
    else if (value != NULL && strcmp(name, "policy") == 0)
        row.policy = FIND(policies, value);
    else if (strcmp(name, "guest") != 0)
        refuse(name);
}

/* The row that begins with `line`; those that others begin with go without their checks. */
static void run_row(unsigned line, bool is_whole)
{
    char copy[LINE], *words[WORDS], other[LINE] = "";
    unsigned count = split(lines[line], copy, words), at = 3, before = 0;

    present = line;
    for (; at < count && strcmp(words[at], "|") != 0; at++) {
        if (strcmp(words[at], "after") == 0)
            snprintf(other, sizeof(other), "row %s %s ", words[1], words[++at]);
        else
            set(words[at], value_of(words[at]));
    }
    if (at + 1 >= count) /* where its rule is from */
        refuse(lines[line]);
    if (*other == '\0') {
        open_row();
    } else {
        while (before < line && strncmp(lines[before], other, strlen(other)) != 0)
            before++;
        if (before == line)
            refuse(other);
        run_row(before, false);
    }
    while (++line < line_count && *lines[line] != '\0' && strncmp(lines[line], "row ", 4) != 0) {
        present = line;
        count = split(lines[line], copy, words);
        if (count != 0)
            run_line(words, count, is_whole);
    }
}

static void read_rows(void)
{
    FILE *file = fopen(STATES, "r");

    if (file == NULL)
        refuse(STATES);
    for (; line_count < LINES && fgets(lines[line_count], LINE, file) != NULL; line_count++)
        lines[line_count][strcspn(lines[line_count], "\n")] = '\0';
    fclose(file);
}

int main(void)
{
    unsigned count = 0, failed = 0;

    read_rows();
    for (unsigned line = 0; line < line_count; line++) {
        unsigned before = expect_failures;

        if (strncmp(lines[line], "row ", 4) != 0) {
            if (*lines[line] != '#' && *lines[line] != '\0' && *lines[line - 1] == '\0')
                refuse(lines[line]); /* behind an empty line: of no row */
            continue;
        }
        row.is_client = strncmp(lines[line], "row client", 10) == 0;
        row.give_up_ns = 30 * DCE_SECOND_NS;
        row.places = 4;
        run_row(line, true);
        expect_quiet();
        close_row();
        count++;
        failed += expect_failures != before;
        printf("@T %.*s %s\n", (int)strcspn(lines[line], "|"), lines[line],
               expect_failures == before ? "ok" : "fail");
    }
    printf("@T done %u %u\n", count - failed, failed);
    return failed == 0 ? 0 : 1;
}
