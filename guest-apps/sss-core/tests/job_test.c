/* SPDX-License-Identifier: Apache-2.0 */
/* lib/json.c and kernel/job_image.c: good and bad texts, the golden jobs, then N mutated ones
 * (argv[1]).
 */
#include "kernel/job_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tests/expect.h"
#include "job/tests/golden.h"
#include "lib/json.h"
#include "sss/abi.h"

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

        EXPECT_OF((wrong == NULL) == texts[i].good, "%s: %s", texts[i].text,
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
        EXPECT_OF((json_check(text, 2 * depth, &value) == NULL) == (depth == JSON_DEPTH),
                  "depth %zu", depth);
    }
}

static struct json_value field_of(const char *text, const char *name)
{
    struct json_value whole, value = {0};

    EXPECT_OF(json_check(text, strlen(text), &whole) == NULL, "%s", text);
    EXPECT_OF(json_field(&whole, name, &value), "%s has no %s", text, name);
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

    EXPECT_OF(json_uint(&value, &number) && number == UINT64_MAX, "%lu", (unsigned long)number);
    for (const char *const *name = (const char *const[]){"over", "minus", "half", "s", NULL};
         *name != NULL; name++) {
        value = field_of(text, *name);
        EXPECT_OF(!json_uint(&value, &number), "%s", *name);
    }
    value = field_of(text, "s");
    EXPECT_OF(json_text(&value, decoded, sizeof(decoded)) &&
                  strcmp(decoded, "a\"\xc3\xa9\xf0\x9f\x98\x80") == 0,
              "%s", decoded);
    EXPECT_OF(!json_text(&value, decoded, 8), "does not fit");
    EXPECT_OF(json_text(&value, decoded, 9), "just fits");
    value = field_of(text, "nul");
    EXPECT_OF(!json_text(&value, decoded, sizeof(decoded)), "a NUL inside");
    value = field_of(text, "t");
    EXPECT_OF(json_bool(&value, &flag) && flag, "true");
    value = field_of(text, "list");
    EXPECT_OF(json_count(&value) == 4, "%zu", json_count(&value));
    json_walk_start(&walk, &value);
    json_walk_next(&walk, NULL, &value);
    EXPECT_OF(json_walk_next(&walk, NULL, &value) && json_is(&value, "]"), "%.*s",
              (int)value.length, value.text);
    EXPECT_OF(json_walk_next(&walk, NULL, &value) && json_kind(&value) == JSON_IS_OBJECT, "%.*s",
              (int)value.length, value.text);
    EXPECT_OF(json_walk_next(&walk, NULL, &value) && value.length == 1, "%.*s", (int)value.length,
              value.text);
    EXPECT_OF(!json_walk_next(&walk, NULL, &value), "the end");
}

/* ---- the job ---- */
static bool task_exists(const char *name)
{
    static const char *const names[] = {
        "portmapper", "echo-server", "echo-client", "mbcf-server",   "mbcf-client",   "dce-server",
        "dce-client", "vmmc-server", "vmmc-client", "shrimp-server", "shrimp-client", NULL};

    for (unsigned i = 0; names[i] != NULL; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static void expect_taken(const char *name, const char *text)
{
    static struct job job;
    char error[JOB_ERROR] = "";

    EXPECT_OF(job_parse(text, strlen(text), task_exists, &job, error), "%s: %s", name, error);
}

static void expect_refused(const char *edit, const char *text, const char *word)
{
    static struct job job;
    char error[JOB_ERROR] = "";

    EXPECT_OF(!job_parse(text, strlen(text), task_exists, &job, error), "%s", edit);
    EXPECT_OF(strstr(error, word) != NULL, "%s: %s", edit, error);
    EXPECT_OF(strchr(error, '\n') == NULL, "%s", error);
}

static void test_golden(void)
{
    unsigned taken = golden_each("sss-core", expect_taken);
    unsigned refused = golden_each_malformed("sss-core", expect_refused);

    EXPECT_OF(taken == 10 && refused > 60, "%u taken, %u refused", taken, refused);
}

static void test_fields(void)
{
    static struct job job;
    char error[JOB_ERROR] = "";
    char *text = golden_job("sss-core/restart-client");
    const struct job_interface *interface = &job.interfaces[0];

    EXPECT_OF(job_parse(text, strlen(text), task_exists, &job, error), "%s", error);
    EXPECT_OF(job.tsc && !job.wait && !job.interactive && strcmp(job.machine, "client") == 0, "%s",
              job.machine);
    EXPECT_OF(job.seed == 2979770962045355843 && job.zero_ns == 3494200000 &&
                  job.start_ns == 20000000,
              "numbers");
    EXPECT_OF(job.interface_count == 1 && interface->adapter == 0 && interface->mtu == 1500,
              "interface");
    EXPECT_OF(interface->address == 0x0a000001 && interface->netmask == 0xffffff00, "%x %x",
              interface->address, interface->netmask);
    EXPECT_OF(interface->mac[1] == 0x53 && job.nodes[0].mac[5] == 2, "macs");
    EXPECT_OF(job.node == 1 && job.epoch == 3032508452 && job.node_count == 1 &&
                  job.nodes[0].node == 2 && strcmp(job.nodes[0].machine, "server") == 0,
              "nodes");
    EXPECT_OF(job.service_count == 2 && job.step_count == 1, "%u %u", job.service_count,
              job.step_count);
    free(text);
}

/* What init does itself, and what the harness does not write. */
static void test_builtins(void)
{
    expect_taken("builtins", "{\"version\":1,\"steps\":[{\"app\":\"sleep\",\"options\":{\"ns\":5}},"
                             "{\"app\":\"kill\",\"options\":{\"task\":\"echo-server\"}},"
                             "{\"app\":\"restart\"}]}");
    expect_taken("nothing", "{\"version\":1}");
}

/* The kernel's pools limit what goes over datagrams and MBCF, not over a stream. */
static void test_sizes(void)
{
    static const char form[] = "{\"version\":1,\"steps\":[{\"app\":\"echo-client\",\"options\":"
                               "{\"transport\":\"%s\",\"sizes\":[131073]}}]}";
    static const char *const limited[] = {"udp", "mbcf3", "vrpc"};
    char text[sizeof(form) + 8];

    snprintf(text, sizeof(text), form, "tcp");
    expect_taken("a stream", text);
    for (unsigned i = 0; i < sizeof(limited) / sizeof(limited[0]); i++) {
        snprintf(text, sizeof(text), form, limited[i]);
        expect_refused(limited[i], text, "sizes: 131073 must be an integer from 0 to");
    }
}

static void test_restart(void)
{
    static struct job job;
    char error[JOB_ERROR] = "";
    char *text = golden_job("sss-core/restart-server");
    struct json_walk walk;
    struct json_value die;
    struct job_task task;

    EXPECT_OF(job_parse(text, strlen(text), task_exists, &job, error), "%s", error);
    json_walk_start(&walk, &job.services);
    EXPECT_OF(job_next_task(&walk, &task) && strcmp(task.app, "portmapper") == 0 && !task.restart,
              "%s", task.app);
    EXPECT_OF(job_next_task(&walk, &task) && strcmp(task.app, "echo-server") == 0 && task.restart,
              "%s", task.app);
    EXPECT_OF(json_field(&task.options, "die", &die) && json_count(&die) == 2, "die");
    EXPECT_OF(!job_next_task(&walk, &task), "%s", task.app);
    free(text);
}

/* `count` times `entry` in front of the list's own. */
static void expect_too_many(const char *list, const char *entry, unsigned count, const char *word)
{
    size_t size = count * (strlen(entry) + 1) + 64;
    char *many = malloc(size);
    char *good = golden_job("sss-core/restart-client");
    char opening[32];
    size_t length;
    char *text;

    snprintf(opening, sizeof(opening), "\"%s\":[", list);
    length = (size_t)snprintf(many, size, "%s", opening);
    for (unsigned i = 0; i < count; i++)
        length += (size_t)snprintf(many + length, size - length, "%s,", entry);
    text = golden_edited(good, opening, many);
    expect_refused(list, text, word);
    free(text);
    free(good);
    free(many);
}

/* ---- damaged bytes ---- */
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
    json_text(value, text, sizeof(text));
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
    char *good = golden_job("sss-core/restart-client");
    unsigned long taken = 0;

    for (unsigned long i = 0; i < rounds; i++) {
        static struct job job;
        char error[JOB_ERROR] = "";
        size_t length = strlen(good);
        char *text = malloc(length);
        char *exact;
        struct json_value value;

        memcpy(text, good, length);
        mutate(text, &length);
        exact = malloc(length); /* so that the sanitizer sees a step too far */
        memcpy(exact, text, length);
        if (json_check(exact, length, &value) == NULL)
            look_at(&value);
        if (job_parse(exact, length, task_exists, &job, error))
            taken++;
        else
            EXPECT_OF(error[0] != '\0', "%.*s", (int)length, exact);
        free(exact);
        free(text);
    }
    free(good);
    EXPECT_OF(rounds < 1000 || (taken > 0 && taken < rounds), "%lu of %lu taken", taken, rounds);
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;

    test_texts();
    test_depth();
    test_values();
    test_golden();
    test_fields();
    test_builtins();
    test_sizes();
    test_restart();
    /* With the two that it has, one more than there may be. */
    expect_too_many("services", "{\"app\":\"echo-server\"}", SSS_TASKS - 3, "services: 63 of them");
    expect_too_many("nodes", "{\"node\":9,\"mac\":\"02:00:00:00:00:09\"}", 2, "twice");
    fuzz(rounds);
    printf("job: %s, %lu mutated jobs\n", expect_failures == 0 ? "ok" : "FAILED", rounds);
    return expect_failures != 0;
}
