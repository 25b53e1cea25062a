/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"
#include "foreign.h"
#include "functions.h"
#include "mix.h"
#include "options.h"
#include "pattern.h"
#include "samples.h"
#include "workload.h"

/* The children here end in the middle of their work, as the applications do on a wrong option. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

enum { SIZE = 3000, DIRTY = 0xa5, LINES = 65536 };

/* harness/schemas/README.md, word for word. */
static uint8_t specified(enum pattern_kind kind, uint32_t s, size_t i)
{
    uint8_t value = (uint8_t)((s * 131 + i * 7 + (i >> 8)) & 0xff);

    return kind == PATTERN_OPAQUE ? value : (uint8_t)(33 + value % 94);
}

static void pattern_is_the_specified_one(void)
{
    static uint8_t bytes[SIZE + 1];
    static const size_t starts[] = {0, 1, 16, 255, 256, 300};
    static const uint32_t sequences[] = {0, 1, 255, 256, 100000};
    static const size_t damaged[] = {0, SIZE / 2, SIZE - 1};

    for (unsigned kind = 0; kind < 2; kind++)
        for (size_t s = 0; s < 5; s++)
            for (size_t f = 0; f < 6; f++) {
                bool same = true;

                memset(bytes, DIRTY, sizeof(bytes));
                pattern_fill(kind, sequences[s], starts[f], bytes, SIZE);
                for (size_t i = 0; i < SIZE; i++)
                    same = same && bytes[i] == specified(kind, sequences[s], starts[f] + i);
                EXPECT(same);
                EXPECT(bytes[SIZE] == DIRTY);
                EXPECT(pattern_matches(kind, sequences[s], starts[f], bytes, SIZE));
                for (size_t d = 0; d < 3; d++) {
                    bytes[damaged[d]] ^= 1;
                    EXPECT(!pattern_matches(kind, sequences[s], starts[f], bytes, SIZE));
                    bytes[damaged[d]] ^= 1;
                }
            }
}

/* Values and sizes as the paper's table and the harness name them, counted by hand. */
static void the_twelve_functions_have_their_values(void)
{
    static const size_t sizes[] = {0, 1, 4, 8, 32, 512, 1024, 800, 800, 1200, 17, 24};
    double distance = 0;

    for (int i = 0; i < FUNCTIONS; i++)
        EXPECT(function_names[i] != NULL && function_size((enum function)(i + 1)) == sizes[i]);
    EXPECT(function_names[FUNCTIONS] == NULL);
    EXPECT(strlen(function_text) == FUNCTION_TEXT_BYTES);
    for (int i = 0; i < FUNCTION_TEXT_BYTES; i++)
        EXPECT(function_text[i] == 'a' + i % 26);
    for (int i = 0; i < FUNCTION_ELEMENTS; i++)
        EXPECT(function_ints[i] == i && function_floats[i] * 2 == (float)i);
    function_distance(function_points[0], function_points[1], &distance);
    EXPECT(distance == function_distance_value);
    EXPECT(distance * distance > 12.9999999999999 && distance * distance < 13.0000000000001);
    function_distance(function_points[0], function_points[0], &distance);
    EXPECT(distance == 0);
}

static void a_server_knows_every_call_and_no_damage(void)
{
    static uint8_t bytes[SIZE];

    for (unsigned kind = 0; kind < 2; kind++)
        for (uint32_t sequence = 0; sequence < 600; sequence++) {
            pattern_fill(kind, sequence, 0, bytes, SIZE);
            EXPECT(pattern_matches_any(kind, bytes, SIZE));
            bytes[sequence % SIZE + 1] ^= 4;
            EXPECT(!pattern_matches_any(kind, bytes, SIZE));
        }
    EXPECT(pattern_matches_any(PATTERN_OPAQUE, bytes, 0));
    EXPECT(!pattern_matches_any(PATTERN_TEXT, "\x20", 1));
}

static void seeds_mix_to_different_and_lasting_numbers(void)
{
    EXPECT(mix_seed(1, "a", 0) == mix_seed(1, "a", 0));
    EXPECT(mix_seed(1, "a", 0) != mix_seed(2, "a", 0));
    EXPECT(mix_seed(1, "a", 0) != mix_seed(1, "b", 0));
    EXPECT(mix_seed(1, "a", 0) != mix_seed(1, "a", 1));
    /* A stored value: captures of a seed must stay the same from version to version. */
    EXPECT(mix_seed(1234567890123456789u, "client", 0) % 4294967296u == 1188330131u);
}

static void text_of_failure(const struct call_record *record, char *text, size_t size)
{
    snprintf(text, size, "failure %d \"quoted\\\"\n", record->failure);
}

/* What `body` writes on the record stream. */
static const char *written_by(void (*body)(void))
{
    static char text[LINES];
    int ends[2];
    size_t length = 0;
    ssize_t got;
    pid_t pid;

    fflush(stdout); /* or the child says it again */
    EXPECT(pipe(ends) == 0);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        samples_set_fd(ends[1]);
        body();
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + length, sizeof(text) - length - 1)) > 0)
        length += (size_t)got;
    close(ends[0]);
    waitpid(pid, NULL, 0);
    text[length] = '\0';
    return text;
}

static void write_two_rows(void)
{
    struct call_record records[2] = {
        {.start_ns = 1, .end_ns = UINT64_MAX, .ok = true, .has_xid = true, .xid = UINT32_MAX},
        {.start_ns = 2, .end_ns = 3, .retransmits = 4, .failure = 5},
    };

    samples_put_batch(json_pack("{ss}", "type", "batch"), records, 2, text_of_failure);
}

static void rows_are_json_and_complete(void)
{
    EXPECT(strcmp(written_by(write_two_rows),
                  "{\"type\":\"batch\",\"columns\":[\"call\",\"start\",\"end\",\"ok\","
                  "\"retransmits\",\"xid\",\"error\"]}\n"
                  "[0,1,18446744073709551615,1,0,4294967295,null]\n"
                  "[1,2,3,0,4,null,\"failure 5 \\\"quoted\\\\\\\" \"]\n") == 0);
}

static char arguments[256];

static void read_options(void)
{
    char *argv[] = {(char *)"app", arguments, NULL};
    static const char *const colours[] = {"red", "blue", NULL};
    struct options *options = options_open(2, argv);
    struct workload workload = {0};
    char text[128];

    workload_read_functions(&workload, options);
    workload_read(&workload, options, 16, 100);
    snprintf(text, sizeof(text), "%zu %lld %d %u %s", workload.size_count, workload.sizes[0],
             options_word(options, "colour", colours),
             options_words(options, "colours", colours, 3), options_text(options, "name", "none"));
    options_check_all_taken(options);
    options_close(options);
    free(workload.sizes);
    samples_put(json_string(text));
}

static const char *with_options(const char *text)
{
    snprintf(arguments, sizeof(arguments), "%s", text);
    return written_by(read_options);
}

static void options_are_taken_or_refused(void)
{
    EXPECT(strcmp(with_options("{}"), "\"1 16 0 3 none\"\n") == 0);
    EXPECT(strcmp(with_options("{\"sizes\":[20,30],\"colour\":\"blue\",\"colours\":[\"blue\"],"
                               "\"name\":\"x\",\"calls\":null}"),
                  "\"2 20 1 2 x\"\n") == 0);
    EXPECT(strstr(with_options("{\"colour\":\"green\"}"), "option colour: must be one of") != NULL);
    EXPECT(strstr(with_options("{\"sizes\":[8]}"), "option sizes: must be an integer from 16") !=
           NULL);
    EXPECT(strcmp(with_options("{\"functions\":[\"distance\",\"void\"]}"), "\"2 12 0 3 none\"\n") ==
           0);
    EXPECT(strstr(with_options("{\"functions\":[\"null\"]}"), "option functions: must be one of") !=
           NULL);
    EXPECT(strstr(with_options("{\"functions\":[]}"), "option functions: must be an array") !=
           NULL);
    EXPECT(strstr(with_options("{\"functions\":[\"int\"],\"sizes\":[20]}"),
                  "option sizes: unknown") != NULL);
    EXPECT(strstr(with_options("{\"calls\":-1}"), "option calls") != NULL);
    EXPECT(strstr(with_options("{\"calls\":1.5}"), "option calls") != NULL);
    EXPECT(strstr(with_options("{\"speed\":1}"), "option speed: unknown") != NULL);
    EXPECT(strstr(with_options("{\"name\":1}"), "option name") != NULL);
    EXPECT(strstr(with_options("{\"a\":1,\"a\":2}"), "duplicate") != NULL);
    EXPECT(strstr(with_options("{"), "options: ") != NULL);
    EXPECT(strstr(with_options("[]"), "must be a JSON object") != NULL);
}

static bool always(void)
{
    return true;
}

static bool never(void)
{
    return false;
}

/* What the runner hears of `argv` as a service, once it has ended. */
static const char *heard_of(char *const argv[], bool (*is_serving)(void))
{
    static char text[SIZE];
    size_t length = 0;
    ssize_t got;
    int ends[2];
    pid_t pid;

    fflush(stdout); /* or the child says it again */
    EXPECT(pipe(ends) == 0);
    pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        foreign_become(argv, is_serving);
    }
    close(ends[1]);
    waitpid(pid, NULL, 0);
    while ((got = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0)
        length += (size_t)got;
    close(ends[0]);
    text[length] = '\0';
    return text;
}

static void a_foreign_program_is_ready_when_it_serves(void)
{
    char *command[] = {(char *)"echo", (char *)"noise", NULL};

    EXPECT(strcmp(heard_of(command, always), "ready\n") == 0);
    EXPECT(strcmp(heard_of(command, never), "") == 0);
}

int main(void)
{
    static const struct test tests[] = {
        {"pattern_is_the_specified_one", pattern_is_the_specified_one},
        {"a_server_knows_every_call_and_no_damage", a_server_knows_every_call_and_no_damage},
        {"seeds_mix_to_different_and_lasting_numbers", seeds_mix_to_different_and_lasting_numbers},
        {"the_twelve_functions_have_their_values", the_twelve_functions_have_their_values},
        {"rows_are_json_and_complete", rows_are_json_and_complete},
        {"options_are_taken_or_refused", options_are_taken_or_refused},
        {"a_foreign_program_is_ready_when_it_serves", a_foreign_program_is_ready_when_it_serves},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
