/* SPDX-License-Identifier: Apache-2.0 */
/* The command server with a host at the other end of a socket pair. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base64.h"
#include "command.h"
#include "exec.h"
#include "expect.h"
#include "mix.h"
#include "request.h"

enum { TEXT_LIMIT = 1 << 22, SILENCE_S = 20, REQUESTS = 200000, CONVERSATIONS = 10 };

static int host = -1; /* the host's end */
static pid_t server;
static char heard[TEXT_LIMIT]; /* what the server has said, not yet read */
static size_t heard_length;

static void connect_host(void)
{
    struct timeval patience = {.tv_sec = SILENCE_S};
    int ends[2];

    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    fflush(stdout);
    server = fork();
    if (server == 0) {
        close(ends[0]);
        signal(SIGPIPE, SIG_IGN);
        EXPECT(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
        exec_serve_host(ends[1]);
        exit(0);
    }
    close(ends[1]);
    host = ends[0];
    setsockopt(host, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    heard_length = 0;
}

/* True where the server ended as it should: a sanitizer's finding is another status. */
static bool disconnect_host(void)
{
    int status = -1;

    close(host);
    return waitpid(server, &status, 0) == server && status == 0;
}

static void tell(const char *line)
{
    size_t length = strlen(line);

    EXPECT(write(host, line, length) == (ssize_t)length && write(host, "\n", 1) == 1);
}

/* The next line that holds `part`; others before it are passed over. NULL: silence. */
static char *hear(const char *part)
{
    static char line[TEXT_LIMIT];

    for (;;) {
        char *end = memchr(heard, '\n', heard_length);
        ssize_t got;

        if (end != NULL) {
            size_t length = (size_t)(end - heard);

            memcpy(line, heard, length);
            line[length] = '\0';
            heard_length -= length + 1;
            memmove(heard, end + 1, heard_length);
            if (strstr(line, part) != NULL)
                return line;
            continue;
        }
        got = read(host, heard + heard_length, sizeof(heard) - heard_length);
        if (got <= 0)
            return NULL;
        heard_length += (size_t)got;
    }
}

static bool hears(const char *part)
{
    const char *line = hear(part);

    if (line == NULL)
        printf("never heard: %s\n", part);
    return line != NULL;
}

/* In either order. */
static bool hears_both(const char *one, const char *other)
{
    const char *line = hear("");
    bool first = line != NULL && strstr(line, one) != NULL;

    return first ? hears(other) : line != NULL && strstr(line, other) != NULL && hears(one);
}

static void a_command_has_output_and_a_status(void)
{
    connect_host();
    tell("{\"id\":1,\"argv\":[\"/bin/sh\",\"-c\",\"echo foo; exit 9\"]}");
    EXPECT(hears("{\"id\":1,\"stdout\":\"Zm9vCg==\"}"));
    EXPECT(hears("{\"id\":1,\"status\":9}"));
    tell("{\"id\":2,\"argv\":[\"/bin/sh\",\"-c\",\"echo foo >&2\"]}");
    EXPECT(hears("{\"id\":2,\"stderr\":\"Zm9vCg==\"}"));
    EXPECT(hears("{\"id\":2,\"status\":0}"));
    tell("{\"id\":3,\"argv\":[\"/no/such/program\"]}");
    EXPECT(hears("{\"id\":3,\"status\":127}"));
    tell("{\"id\":3,\"argv\":[\"/bin/sh\",\"-c\",\"kill -TERM $$\"]}");
    EXPECT(hears("{\"id\":3,\"status\":143}"));
    EXPECT(disconnect_host());
}

static void what_is_no_request_is_refused(void)
{
    static const char *const lines[][2] = {
        {"nonsense", "{\"id\":null,\"error\":\"is not JSON\"}"},
        {"{\"id\":4,\"argv\":[]}", "{\"id\":4,\"error\":\"argv: must not be empty\"}"},
        {"{\"id\":4,\"argv\":[1]}", "{\"id\":4,\"error\":\"argv: must hold strings\"}"},
        {"{\"id\":5}", "{\"id\":5,\"error\":\"must have"},
        {"{\"id\":\"x\",\"argv\":[\"true\"]}", "{\"id\":null,\"error\":\"id: must be"},
        {"{\"id\":6,\"input\":\"x\"}", "{\"id\":6,\"error\":\"input: must be base64"},
        {"{\"id\":7,\"argv\":[\"true\"],\"terminal\":{}}", "{\"id\":7,\"error\":\"terminal: must"},
        {"{\"id\":8,\"signal\":65}", "{\"id\":8,\"error\":\"must have"},
    };

    connect_host();
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        tell(lines[i][0]);
        EXPECT(hears(lines[i][1]));
    }
    EXPECT(disconnect_host());
}

static void input_is_passed_on_to_its_end(void)
{
    connect_host();
    tell("{\"id\":1,\"argv\":[\"/bin/cat\"]}");
    tell("{\"id\":1,\"input\":\"Zm9v\"}");
    EXPECT(hears_both("\"stdout\":\"Zm9v\"", "{\"id\":1,\"taken\":3}"));
    tell("{\"id\":1,\"input\":null}");
    EXPECT(hears("{\"id\":1,\"status\":0}"));
    EXPECT(disconnect_host());
}

/* What nothing reads is not taken; beyond the limit the command is ended. */
static void input_is_bounded(void)
{
    size_t length = BASE64_LENGTH((size_t)COMMAND_INPUT_BYTES - 1);
    char *line = malloc(length + 64);
    char *end = line + sprintf(line, "{\"id\":1,\"input\":\"");

    memset(end, 'A', length);
    memcpy(end + length, "\"}", 3);
    connect_host();
    tell("{\"id\":1,\"argv\":[\"/bin/sleep\",\"100\"]}");
    for (int i = 0; i < 4; i++)
        tell(line);
    EXPECT(hears("{\"id\":1,\"error\":\"input: more than the command has taken\"}"));
    EXPECT(disconnect_host());
    free(line);
}

static void commands_run_beside_one_another_and_get_signals(void)
{
    connect_host();
    tell("{\"id\":1,\"argv\":[\"/bin/sleep\",\"100\"]}");
    tell(
        "{\"id\":2,\"argv\":[\"/bin/sh\",\"-c\",\"trap 'exit 5' INT; echo x; sleep 100 & wait\"]}");
    tell("{\"id\":2,\"argv\":[\"/bin/echo\"]}");
    EXPECT(hears("{\"id\":2,\"error\":\"id: is that of a command that runs\"}"));
    tell(
        "{\"id\":3,\"argv\":[\"/bin/sh\",\"-c\",\"trap 'exit 5' INT; echo x; sleep 100 & wait\"]}");
    EXPECT(hears("{\"id\":3,\"stdout\""));
    tell("{\"id\":3,\"signal\":2}");
    EXPECT(hears("{\"id\":3,\"status\":5}"));
    tell("{\"id\":1,\"signal\":9}");
    EXPECT(hears("{\"id\":1,\"status\":137}"));
    tell("{\"id\":1,\"signal\":9}"); /* too late: no fault */
    tell("{\"id\":4,\"argv\":[\"/bin/true\"]}");
    EXPECT(hears("{\"id\":4,\"status\":0}"));
    EXPECT(disconnect_host());
}

/* Bytes of output in a line. */
static size_t output_bytes(const char *line)
{
    static uint8_t bytes[TEXT_LIMIT];
    const char *text = strstr(line, "\"stdout\":\"");

    return text == NULL ? 0 : (size_t)base64_decode(text + 10, strcspn(text + 10, "\""), bytes);
}

/* Bytes of output, until there are `most` or a line holds `until`. */
static size_t bytes_heard(const char *until, size_t most)
{
    size_t bytes = 0;
    const char *line;

    while (bytes < most && (line = hear("\"")) != NULL && strstr(line, until) == NULL)
        bytes += output_bytes(line);
    return bytes;
}

/* A host that does not read holds up its own command only; nothing is lost. */
static void output_waits_for_its_host(void)
{
    size_t bytes = EXEC_OUTPUT_BYTES;
    const char *line;

    connect_host();
    tell("{\"id\":1,\"argv\":[\"/bin/sh\",\"-c\",\"head -c 1000000 /dev/zero; exit 4\"]}");
    EXPECT(bytes_heard("\"status\"", EXEC_OUTPUT_BYTES) == EXEC_OUTPUT_BYTES);
    tell("{\"id\":2,\"argv\":[\"/bin/sleep\",\"0.5\"]}");
    EXPECT(bytes_heard("{\"id\":2,\"status\":0}", SIZE_MAX) == 0);
    tell("{\"id\":1,\"taken\":30000}");
    tell("{\"id\":3,\"argv\":[\"/bin/sleep\",\"0.5\"]}");
    EXPECT(bytes_heard("{\"id\":3,\"status\":0}", SIZE_MAX) == 30000);
    bytes += 30000;
    tell("{\"id\":1,\"taken\":131072}");
    while ((line = hear("\"id\":1,")) != NULL && strstr(line, "\"status\"") == NULL) {
        char taken[64];
        size_t got = output_bytes(line);

        bytes += got;
        sprintf(taken, "{\"id\":1,\"taken\":%zu}", got);
        tell(taken);
    }
    EXPECT(line != NULL && strcmp(line, "{\"id\":1,\"status\":4}") == 0);
    EXPECT_OF(bytes == 1000000, "%zu bytes", bytes);
    EXPECT(disconnect_host());
}

/* What it writes may be on its way before the shell ends, as much as a host has not taken. */
static void one_that_is_left_behind_is_not_waited_for(void)
{
    const char *line;

    connect_host();
    tell("{\"id\":1,\"argv\":[\"/bin/sh\",\"-c\",\"yes & echo $!; exit 3\"]}");
    while ((line = hear("\"id\":1,")) != NULL && strstr(line, "\"status\"") == NULL)
        tell("{\"id\":1,\"taken\":131072}");
    EXPECT(line != NULL && strcmp(line, "{\"id\":1,\"status\":3}") == 0);
    EXPECT(disconnect_host());
}

static bool is_gone(pid_t pid)
{
    for (int i = 0; i < 500 && kill(pid, 0) == 0; i++)
        usleep(10000);
    return kill(pid, 0) != 0;
}

/* The process number that the next line of output holds. */
static pid_t hear_number(void)
{
    const char *text = hear("\"stdout\"");
    char number[32] = "";

    if (text == NULL)
        return 0;
    text = strstr(text, "\"stdout\":\"") + 10;
    base64_decode(text, strcspn(text, "\""), (uint8_t *)number);
    return (pid_t)atoi(number);
}

static void a_host_that_hangs_up_leaves_nothing_running(void)
{
    pid_t stubborn;
    pid_t meek;

    connect_host();
    tell("{\"id\":1,\"argv\":[\"/bin/sh\",\"-c\",\"trap '' HUP; echo $$; while :; do sleep 1; "
         "done\"]}");
    stubborn = hear_number();
    tell("{\"id\":1,\"hang_up\":true}");
    tell("{\"id\":1,\"argv\":[\"/bin/sh\",\"-c\",\"echo $$; exec sleep 100\"]}");
    meek = hear_number();
    EXPECT(stubborn > 0 && meek > 0 && stubborn != meek);
    EXPECT(is_gone(stubborn));
    EXPECT(disconnect_host());
    EXPECT(is_gone(meek));
}

static void a_terminal_has_a_size_that_changes(void)
{
    connect_host();
    tell("{\"id\":1,\"argv\":[\"/bin/sh\",\"-c\",\"trap 'stty size; exit 6' WINCH; stty size; "
         "while :; do sleep 0.1; done\"],"
         "\"terminal\":{\"type\":\"vt220\",\"rows\":24,\"columns\":80}}");
    EXPECT(hears("\"stdout\":\"MjQgODANC")); /* "24 80\r\n" */
    tell("{\"id\":1,\"window\":{\"rows\":50,\"columns\":132}}");
    EXPECT(hears("NTAgMTMyDQ")); /* "50 132\r\n" */
    EXPECT(hears("{\"id\":1,\"status\":6}"));
    EXPECT(disconnect_host());
}

static void keys_of_a_terminal_do_what_they_do(void)
{
    static const char *const keys[][2] = {{"\"Aw==\"", "130"}, {"null", "0"}}; /* Ctrl-C, the end */
    char line[160];

    connect_host();
    for (int i = 0; i < 2; i++) {
        sprintf(line, "{\"id\":%d,\"argv\":[\"/bin/sh\",\"-c\",\"echo $TERM; exec cat\"],%s}", i,
                "\"terminal\":{\"type\":\"vt220\",\"rows\":1,\"columns\":1}");
        tell(line);
        EXPECT(hears("\"stdout\":\"dnQyMjA")); /* "vt220" */
        sprintf(line, "{\"id\":%d,\"input\":%s}", i, keys[i][0]);
        tell(line);
        sprintf(line, "{\"id\":%d,\"status\":%s}", i, keys[i][1]);
        EXPECT(hears(line));
    }
    EXPECT(disconnect_host());
}

static void a_line_without_end_is_passed_over(void)
{
    char *line = malloc(3000001);

    memset(line, 'x', 3000000);
    line[3000000] = '\0';
    connect_host();
    tell(line);
    EXPECT(hears("{\"id\":null,\"error\":\"a line longer than 1048576 bytes\"}"));
    tell("{\"id\":1,\"argv\":[\"/bin/true\"]}");
    EXPECT(hears("{\"id\":1,\"status\":0}"));
    EXPECT(disconnect_host());
    free(line);
}

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = mix_seed(*seed, "request", 0);
    return *seed % below;
}

/* Requests with bytes changed, cut and doubled: the parser says what they are, or refuses them. */
static void damaged_requests_never_crash(void)
{
    static const char *const whole[] = {
        "{\"id\":1,\"argv\":[\"/bin/true\",\"a\\u0000b\",\"\\u00e9\"]}",
        "{\"id\":1,\"argv\":[\"true\"],\"terminal\":{\"type\":\"vt100\",\"rows\":24,\"columns\":80}"
        "}",
        "{\"id\":-9223372036854775808,\"input\":\"QUJDREVGRw==\"}",
        "{\"id\":1,\"input\":null}",
        "{\"id\":1,\"signal\":15}",
        "{\"id\":1,\"taken\":4096}",
        "{\"id\":1,\"window\":{\"rows\":1,\"columns\":65535}}",
        "{\"id\":1,\"hang_up\":true}",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    };
    uint64_t seed = 8;
    unsigned understood = 0;

    for (int i = 0; i < REQUESTS; i++) {
        const char *from = whole[draw(&seed, sizeof(whole) / sizeof(*whole))];
        size_t length = strlen(from);
        size_t cut = draw(&seed, 4) == 0 ? draw(&seed, length + 1) : length;
        char *line = malloc(cut + 1); /* so that the sanitizer sees a step too far */
        struct request request;

        memcpy(line, from, cut);
        for (uint64_t edits = draw(&seed, 4); edits > 0 && cut > 0; edits--)
            line[draw(&seed, cut)] = draw(&seed, 2) == 0 ? (char)draw(&seed, 256)
                                                         : "{}[]\":,0-\\"[draw(&seed, 10)];
        request_read(&request, line, cut);
        EXPECT((request.kind == REQUEST_INVALID) == (request.error != NULL));
        if (request.kind == REQUEST_START)
            EXPECT(request.argv != NULL && request.argv[0] != NULL);
        understood += request.kind != REQUEST_INVALID;
        request_release(&request);
        free(line);
    }
    EXPECT(understood > REQUESTS / 10 && understood < REQUESTS);
}

/* One line of a host that does not keep to the order of things. */
static void draw_line(uint64_t *seed, char *line)
{
    static const char *const commands[] = {
        "[\"/bin/true\"]",
        "[\"/bin/cat\"]",
        "[\"/bin/sleep\",\"0.01\"]",
        "[\"/no/such\"]",
        "[\"/bin/sh\",\"-c\",\"head -c 300000 /dev/zero; exit 3\"]",
        "[\"/bin/sh\",\"-c\",\"sleep 0.01 & echo x >&2\"]"};
    static const char terminal[] = ",\"terminal\":{\"type\":\"vt100\",\"rows\":2,\"columns\":2}";
    int id = (int)draw(seed, 6);

    switch (draw(seed, 8)) {
    case 0:
    case 1:
        sprintf(line, "{\"id\":%d,\"argv\":%s%s}", id, commands[draw(seed, 6)],
                draw(seed, 4) == 0 ? terminal : "");
        break;
    case 2:
        sprintf(line, "{\"id\":%d,\"input\":%s}", id, draw(seed, 3) == 0 ? "null" : "\"QUJDREVG\"");
        break;
    case 3:
        sprintf(line, "{\"id\":%d,\"signal\":%d}", id, (int)draw(seed, 2) == 0 ? SIGINT : SIGTERM);
        break;
    case 4:
        sprintf(line, "{\"id\":%d,\"taken\":%d}", id, (int)draw(seed, 1 << 20));
        break;
    case 5:
        sprintf(line, "{\"id\":%d,\"window\":{\"rows\":%d,\"columns\":9}}", id,
                (int)draw(seed, 99));
        break;
    case 6:
        sprintf(line, "{\"id\":%d,\"hang_up\":true}", id);
        break;
    default:
        sprintf(line, "{\"id\":%d,\"input\":7,}", id);
        break;
    }
}

static void any_order_of_requests_leaves_it_serving(void)
{
    uint64_t seed = 88;
    char line[256];
    const char *night = getenv("NIGHT");
    int conversations = night != NULL && *night != '\0' ? 10 * CONVERSATIONS : CONVERSATIONS;

    for (int i = 0; i < conversations; i++) {
        connect_host();
        for (uint64_t left = draw(&seed, 40); left > 0; left--) {
            draw_line(&seed, line);
            tell(line);
        }
        tell("{\"id\":99,\"argv\":[\"/bin/true\"]}");
        EXPECT(hears("{\"id\":99,\"status\":0}"));
        EXPECT(disconnect_host());
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"a_command_has_output_and_a_status", a_command_has_output_and_a_status},
        {"what_is_no_request_is_refused", what_is_no_request_is_refused},
        {"input_is_passed_on_to_its_end", input_is_passed_on_to_its_end},
        {"input_is_bounded", input_is_bounded},
        {"commands_run_beside_one_another_and_get_signals",
         commands_run_beside_one_another_and_get_signals},
        {"output_waits_for_its_host", output_waits_for_its_host},
        {"one_that_is_left_behind_is_not_waited_for", one_that_is_left_behind_is_not_waited_for},
        {"a_host_that_hangs_up_leaves_nothing_running",
         a_host_that_hangs_up_leaves_nothing_running},
        {"a_terminal_has_a_size_that_changes", a_terminal_has_a_size_that_changes},
        {"keys_of_a_terminal_do_what_they_do", keys_of_a_terminal_do_what_they_do},
        {"a_line_without_end_is_passed_over", a_line_without_end_is_passed_over},
        {"damaged_requests_never_crash", damaged_requests_never_crash},
        {"any_order_of_requests_leaves_it_serving", any_order_of_requests_leaves_it_serving},
    };

    signal(SIGPIPE, SIG_IGN);
    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
