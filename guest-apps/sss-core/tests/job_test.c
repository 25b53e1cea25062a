/* SPDX-License-Identifier: Apache-2.0 */
/* lib/json.c and kernel/job.c: examples of good and bad texts, then N mutated jobs (argv[1]). */
#include "kernel/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/format.h"
#include "lib/json.h"

static unsigned failures;

#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            failures++;                                                                            \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #condition);                                 \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
        }                                                                                          \
    } while (0)

int kvsnprintf(char *text, size_t size, const char *format, va_list arguments)
{
    return vsnprintf(text, size, format, arguments);
}

/* ---- JSON ---- */
static void test_texts(void)
{
    static const struct {
        const char *text;
        bool good;
    } texts[] = {
        {"{}", true},
        {" [1, -2.5e+3, \"x\", true, false, null, {\"a\":[]}] \n\n", true},
        {"\"\\u00e9\\ud83d\\ude00\\n\"", true},
        {"", false},
        {"{", false},
        {"[1,]", false},
        {"[1 2]", false},
        {"{\"a\"}", false},
        {"{\"a\":1,\"a\":2}", false},
        {"{\"a\":{\"b\":1},\"c\":{\"b\":1}}", true},
        {"{a:1}", false},
        {"01", false},
        {"1.", false},
        {"-", false},
        {"1e", false},
        {"\"\\x\"", false},
        {"\"\\ud800\"", false},
        {"\"\\ude00\"", false},
        {"\"\t\"", false},
        {"\"", false},
        {"tru", false},
        {"1 1", false},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct json_value value;
        const char *wrong = json_check(texts[i].text, strlen(texts[i].text), &value);

        EXPECT((wrong == NULL) == texts[i].good, "%s: %s", texts[i].text,
               wrong == NULL ? "taken" : wrong);
    }
}

static void test_depth(void)
{
    char text[2 * JSON_DEPTH + 3];
    struct json_value value;

    for (size_t depth = JSON_DEPTH; depth <= JSON_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        EXPECT((json_check(text, 2 * depth, &value) == NULL) == (depth == JSON_DEPTH), "depth %zu",
               depth);
    }
}

static struct json_value field_of(const char *text, const char *name)
{
    struct json_value whole, value = {0};

    EXPECT(json_check(text, strlen(text), &whole) == NULL, "%s", text);
    EXPECT(json_field(&whole, name, &value), "%s has no %s", text, name);
    return value;
}

static void test_values(void)
{
    static const char text[] =
        "{\"n\":18446744073709551615,\"over\":18446744073709551616,\"minus\":-1,\"half\":0.5,"
        "\"s\":\"a\\\"\\u00e9\\ud83d\\ude00\",\"nul\":\"\\u0000\",\"list\":[1,\"]\",{\"x\":[2]},3],"
        "\"t\":true}";
    struct json_value value = field_of(text, "n");
    struct json_walk walk;
    char decoded[16];
    uint64_t number = 0;
    bool flag = false;

    EXPECT(json_uint(&value, &number) && number == UINT64_MAX, "%lu", (unsigned long)number);
    for (const char *const *name = (const char *const[]){"over", "minus", "half", "s", NULL};
         *name != NULL; name++) {
        value = field_of(text, *name);
        EXPECT(!json_uint(&value, &number), "%s", *name);
    }
    value = field_of(text, "s");
    EXPECT(json_string(&value, decoded, sizeof(decoded)) &&
               strcmp(decoded, "a\"\xc3\xa9\xf0\x9f\x98\x80") == 0,
           "%s", decoded);
    EXPECT(!json_string(&value, decoded, 8), "does not fit");
    EXPECT(json_string(&value, decoded, 9), "just fits");
    value = field_of(text, "nul");
    EXPECT(!json_string(&value, decoded, sizeof(decoded)), "a NUL inside");
    value = field_of(text, "t");
    EXPECT(json_bool(&value, &flag) && flag, "true");
    value = field_of(text, "list");
    EXPECT(json_count(&value) == 4, "%zu", json_count(&value));
    json_walk_start(&walk, &value);
    json_walk_next(&walk, NULL, &value);
    EXPECT(json_walk_next(&walk, NULL, &value) && json_is(&value, "]"), "%.*s", (int)value.length,
           value.text);
    EXPECT(json_walk_next(&walk, NULL, &value) && json_kind(&value) == JSON_OBJECT, "%.*s",
           (int)value.length, value.text);
    EXPECT(json_walk_next(&walk, NULL, &value) && value.length == 1, "%.*s", (int)value.length,
           value.text);
    EXPECT(!json_walk_next(&walk, NULL, &value), "the end");
}

/* ---- the job ---- */
static bool task_exists(const char *name)
{
    return strcmp(name, "echo-server") == 0 || strcmp(name, "echo-client") == 0 ||
           strcmp(name, "mbcf-client") == 0;
}

static const char GOOD[] =
    "{\"version\":1,\"machine\":\"n1\",\"seed\":1234567890123456789,\"clock\":\"tsc\","
    "\"interfaces\":[{\"device\":\"eth0\","
    "\"mac\":\"02:53:44:00:00:01\",\"address\":\"10.0.0.1/"
    "24\",\"mtu\":1500,\"offloads\":false,\"neighbours\":["
    "{\"address\":\"10.0.0.2\",\"mac\":\"02:53:44:00:00:02\"}]}],\"bridge\":null,\"node\":1,"
    "\"epoch\":7,\"nodes\":["
    "{\"node\":2,\"machine\":\"n2\",\"mac\":\"02:53:44:00:00:02\"}],\"files\":{},\"services\":[{"
    "\"app\":\"echo-server\","
    "\"options\":{\"transports\":[\"udp\"]},\"restart\":true}],\"start_ns\":300000000,\"zero_ns\":"
    "5,\"steps\":[{\"app\":\"echo-client\","
    "\"options\":{\"transport\":\"mbcf3\",\"sizes\":[0,65536],\"calls\":10}},{\"app\":\"sleep\","
    "\"options\":{\"ns\":5}},"
    "{\"app\":\"kill\",\"options\":{\"task\":\"echo-server\"}},{\"app\":\"restart\"}]}";

/* GOOD with its first `from` replaced by `to`. */
static char *edited(const char *from, const char *to)
{
    const char *at = strstr(GOOD, from);
    char *text;
    size_t length;

    if (at == NULL) {
        printf("the good job has no %s\n", from);
        exit(1);
    }
    length = sizeof(GOOD) + strlen(to);
    text = malloc(length);
    snprintf(text, length, "%.*s%s%s", (int)(at - GOOD), GOOD, to, at + strlen(from));
    return text;
}

static void test_good(void)
{
    static struct job job;
    char error[JOB_ERROR] = "";
    const struct job_interface *interface = &job.interfaces[0];

    EXPECT(job_parse(GOOD, strlen(GOOD), task_exists, &job, error), "%s", error);
    EXPECT(job.tsc && !job.wait && !job.interactive && strcmp(job.machine, "n1") == 0, "%s",
           job.machine);
    EXPECT(job.seed == 1234567890123456789 && job.zero_ns == 5 && job.start_ns == 300000000,
           "numbers");
    EXPECT(job.interface_count == 1 && interface->adapter == 0 && interface->mtu == 1500,
           "interface");
    EXPECT(interface->address == 0x0a000001 && interface->netmask == 0xffffff00, "%x %x",
           interface->address, interface->netmask);
    EXPECT(interface->neighbour_count == 1 && interface->neighbours[0].address == 0x0a000002,
           "neighbour");
    EXPECT(interface->mac[1] == 0x53 && interface->neighbours[0].mac[5] == 2, "macs");
    EXPECT(job.node == 1 && job.epoch == 7 && job.node_count == 1 && job.nodes[0].node == 2,
           "nodes");
    EXPECT(job.service_count == 1 && job.step_count == 4, "%u %u", job.service_count,
           job.step_count);
    EXPECT(job_parse("{\"version\":1,\"wait\":true}", 25, task_exists, &job, error) && job.wait,
           "%s", error);
}

static void test_bad(void)
{
    static const struct {
        const char *from, *to, *told;
    } edits[] = {
        {"{\"version\"", "[\"version\"", "not JSON"},
        {"\"version\":1", "\"version\":2", "version"},
        {"\"version\":1,", "", "version"},
        {"\"version\":1", "\"version\":\"1\"", "version"},
        {"\"seed\":1234567890123456789", "\"seed\":-1", "seed"},
        {"\"seed\":1234567890123456789", "\"seed\":9223372036854775808", "seed"},
        {"\"seed\"", "\"sead\"", "unknown field \"sead\""},
        {"\"machine\":\"n1\"", "\"machine\":\"n\\\"1\"", "machine"},
        {"\"machine\":\"n1\"", "\"machine\":7", "machine"},
        {"\"tsc\"", "\"sundial\"", "clock"},
        {"eth0", "eth8", "eth0 to eth7"},
        {"eth0", "e", "eth0 to eth7"},
        {"\"interfaces\":[", "\"interfaces\":[{\"device\":\"eth0\"},", "twice"},
        {"02:53:44:00:00:01", "02:53:44:00:00", "mac"},
        {"02:53:44:00:00:01", "02:53:44:00:00:1", "mac"},
        {"02:53:44:00:00:01", "03:53:44:00:00:01", "group"},
        {"10.0.0.1/24", "10.0.0.1", "10.0.0.1/24"},
        {"10.0.0.1/24", "10.0.0.256/24", "10.0.0.1/24"},
        {"10.0.0.1/24", "10.0.0.1/33", "10.0.0.1/24"},
        {"10.0.0.1/24", "10.0.0.1/0", "10.0.0.1/24"},
        {"\"mtu\":1500", "\"mtu\":9000", "mtu"},
        {"\"mtu\":1500", "\"mtu\":500", "mtu"},
        {"\"offloads\":false", "\"offloads\":true", "offloads"},
        {"\"offloads\":false", "\"offloads\":0", "offloads"},
        {"10.0.0.2", "10.0.0", "10.0.0.2"},
        {"\"bridge\":null", "\"bridge\":{\"ports\":[]}", "bridge"},
        {"\"files\":{}", "\"files\":{\"/etc/x\":\"\"}", "files"},
        {"\"node\":1", "\"node\":0", "node"},
        {"\"node\":1", "\"node\":65", "node"},
        {"\"node\":1", "\"node\":2", "this machine"},
        {"\"epoch\":7", "\"epoch\":0", "epoch"},
        {"\"epoch\":7", "\"epoch\":4294967296", "epoch"},
        {"{\"node\":2", "{\"node\":3,\"mac\":\"02:53:44:00:00:03\"},{\"node\":3", "twice"},
        {"\"echo-server\"", "\"echo-servant\"", "no such task"},
        {"\"echo-server\"", "\"a-name-that-is-longer-than-any-task-has-one\"", "app"},
        {"\"echo-client\"", "7", "app"},
        {"{\"transports\":[\"udp\"]}", "[]", "options"},
        {"65536", "131073", "sizes"},
        {"[0,65536]", "[0,\"x\"]", "sizes"},
        {"[0,65536]", "0", "sizes"},
        {"\"transport\":\"mbcf3\"", "\"transport\":\"udp\"", "sizes"},
        {"\"calls\":10", "\"threads\":65", "threads"},
        {"\"calls\":10", "\"connections\":513", "connections"},
        {"\"calls\":10", "\"depth\":100000", "depth"},
        {"\"calls\":10", "\"tasks\":63", "tasks"},
        {"\"calls\":10", "\"key\":\"0123456789abcde\"", "key"},
        {"\"calls\":10", "\"key\":\"0123456789abcdeg\"", "key"},
        {"\"calls\":10", "\"key\":81985529216486895", "key"},
        {"{\"ns\":5}", "{}", "ns"},
        {"{\"task\":\"echo-server\"}", "{\"task\":1}", "kill"},
        {"\"steps\":[", "\"steps\":[3,", "steps"},
        {"\"steps\":[", "\"steps\":[{\"app\":\"mbcf-client\",\"more\":1},", "unknown field"},
    };

    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        static struct job job;
        char error[JOB_ERROR] = "";
        char *text = edited(edits[i].from, edits[i].to);
        bool good = job_parse(text, strlen(text), task_exists, &job, error);

        EXPECT(!good, "%s -> %s: taken", edits[i].from, edits[i].to);
        EXPECT(good || strstr(error, edits[i].told) != NULL, "%s -> %s: %s", edits[i].from,
               edits[i].to, error);
        EXPECT(strchr(error, '\n') == NULL, "%s", error);
        free(text);
    }
}

/* `count` times `entry` in front of the list's own. */
static void expect_too_many(const char *list, const char *entry, unsigned count, const char *told)
{
    static struct job job;
    size_t size = count * (strlen(entry) + 1) + 64;
    char *many = malloc(size);
    char error[JOB_ERROR] = "";
    char opening[32];
    size_t length;
    char *text;

    snprintf(opening, sizeof(opening), "\"%s\":[", list);
    length = (size_t)snprintf(many, size, "%s", opening);
    for (unsigned i = 0; i < count; i++)
        length += (size_t)snprintf(many + length, size - length, "%s,", entry);
    text = edited(opening, many);
    EXPECT(!job_parse(text, strlen(text), task_exists, &job, error), "%u of %s", count, list);
    EXPECT(strstr(error, told) != NULL, "%s", error);
    free(text);
    free(many);
}

/* ---- bytes that nobody meant ---- */
static uint64_t random_state = 88172645463325252ull;

static uint64_t draw(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

/* Everything that can be asked of a checked value, all the way down. */
static void look_at(const struct json_value *value)
{
    struct json_walk walk;
    struct json_value name, member;
    char text[24];
    uint64_t number;
    bool flag;

    json_uint(value, &number);
    json_bool(value, &flag);
    json_string(value, text, sizeof(text));
    json_walk_start(&walk, value);
    while (json_walk_next(&walk, &name, &member))
        look_at(&member);
}

static void mutate(char *text, size_t *length)
{
    static const char letters[] = "{}[]\",:\\u0d8-.eE1tfn ";

    for (uint64_t edits = 1 + draw(4); edits > 0; edits--) {
        size_t at = draw(*length);

        switch (draw(4)) {
        case 0:
            text[at] = letters[draw(sizeof(letters) - 1)];
            break;
        case 1:
            text[at] = (char)draw(256);
            break;
        case 2:
            memmove(text + at, text + at + 1, *length - at - 1);
            *length -= *length > 1;
            break;
        default:
            *length = draw(8) == 0 ? at + 1 : *length;
        }
    }
}

static void fuzz(unsigned long rounds)
{
    unsigned long taken = 0;

    for (unsigned long i = 0; i < rounds; i++) {
        static struct job job;
        char error[JOB_ERROR] = "";
        size_t length = strlen(GOOD);
        char *text = malloc(length);
        char *exact;
        struct json_value value;

        memcpy(text, GOOD, length);
        mutate(text, &length);
        exact = malloc(length); /* so that the first byte behind it is not ours */
        memcpy(exact, text, length);
        if (json_check(exact, length, &value) == NULL)
            look_at(&value);
        if (job_parse(exact, length, task_exists, &job, error))
            taken++;
        else
            EXPECT(error[0] != '\0', "%.*s", (int)length, exact);
        free(exact);
        free(text);
    }
    EXPECT(rounds < 1000 || (taken > 0 && taken < rounds), "%lu of %lu taken", taken, rounds);
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;

    test_texts();
    test_depth();
    test_values();
    test_good();
    test_bad();
    expect_too_many("services", "{\"app\":\"echo-server\"}", SSS_TASKS, "services");
    expect_too_many("nodes", "{\"node\":9,\"mac\":\"02:00:00:00:00:09\"}", 2, "twice");
    fuzz(rounds);
    printf("job: %s, %lu mutated jobs\n", failures == 0 ? "ok" : "FAILED", rounds);
    return failures != 0;
}
