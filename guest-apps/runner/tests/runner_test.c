/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base64.h"
#include "cpio.h"
#include "exec.h"
#include "expect.h"
#include "job.h"
#include "lz4.h"

static const char FULL[] =
    "{\"version\":1,\"machine\":\"client\",\"seed\":1234567890123456789,\"clock\":\"tsc\","
    "\"zero_ns\":5,\"start_ns\":7,\"interactive\":true,"
    "\"interfaces\":[{\"device\":\"eth0\",\"mac\":\"02:53:44:00:00:0A\","
    "\"address\":\"10.0.0.1/24\","
    "\"mtu\":1500,\"offloads\":false,\"neighbours\":[{\"address\":\"10.0.0.2\","
    "\"mac\":\"02:53:44:00:00:02\"}]}],"
    "\"bridge\":{\"ports\":[\"eth0\",\"eth1\"],\"netem\":{\"eth0\":\"delay 10ms\"}},"
    "\"files\":{\"/etc/x\":\"y\"},\"services\":[{\"app\":\"rpcbind\",\"options\":{}}],"
    "\"steps\":[{\"app\":\"echo-client\",\"options\":{\"calls\":1}},{\"app\":\"b\"}]}\n\n";

static void a_full_job_is_decoded(void)
{
    char error[JOB_ERROR_LIMIT] = "";
    struct job job;

    EXPECT(job_parse(FULL, strlen(FULL), &job, error) == 0);
    EXPECT(!job.wait && job.interactive);
    EXPECT(strcmp(job.machine, "client") == 0 && job.seed == 1234567890123456789u);
    EXPECT(job.zero_ns == 5 && job.start_ns == 7);
    EXPECT(job.interface_count == 1 && job.interfaces[0].mac[5] == 0x0a);
    EXPECT(job.interfaces[0].address.s_addr == htonl(0x0a000001));
    EXPECT(job.interfaces[0].netmask.s_addr == htonl(0xffffff00));
    EXPECT(job.interfaces[0].neighbour_count == 1);
    EXPECT(job.bridge_port_count == 2);
    EXPECT(strcmp(job.bridge_ports[0].netem, "delay 10ms") == 0);
    EXPECT(strcmp(job.bridge_ports[1].netem, "") == 0);
    EXPECT(job.service_count == 1 && job.step_count == 2);
    EXPECT(strcmp(job.steps[0].options, "{\"calls\":1}") == 0);
    EXPECT(strcmp(job.steps[1].options, "{}") == 0);
    job_free(&job);
}

static void the_waiting_job_waits(void)
{
    static const char text[] = "{\"version\":1,\"wait\":true}\n\n\n";
    char error[JOB_ERROR_LIMIT];
    struct job job;

    EXPECT(job_parse(text, strlen(text), &job, error) == 0);
    EXPECT(job.wait && job.step_count == 0);
    job_free(&job);
}

static void wrong_jobs_name_the_field(void)
{
    static const struct {
        const char *text;
        const char *named;
    } cases[] = {
        {"", "line 1"},
        {"{", "line 1"},
        {"[]", "object"},
        {"{}", "version"},
        {"{\"version\":2}", "version"},
        {"{\"version\":1,\"frob\":1}", "frob: unknown"},
        {"{\"version\":1,\"seed\":-1}", "seed"},
        {"{\"version\":1,\"seed\":1e3}", "seed"},
        {"{\"version\":1,\"clock\":\"sun\"}", "clock"},
        {"{\"version\":1,\"wait\":1}", "wait"},
        {"{\"version\":1,\"machine\":1}", "machine"},
        {"{\"version\":1,\"bridge\":1}", "bridge"},
        {"{\"version\":1,\"bridge\":{\"ports\":[1]}}", "device"},
        {"{\"version\":1,\"interfaces\":{}}", "interfaces"},
        {"{\"version\":1,\"interfaces\":[1]}", "device"},
        {"{\"version\":1,\"interfaces\":[{\"device\":\"a/b\"}]}", "device"},
        {"{\"version\":1,\"interfaces\":[{\"device\":\"eth0\",\"mtu\":67}]}", "mtu"},
        {"{\"version\":1,\"interfaces\":[{\"device\":\"eth0\",\"mac\":\"02:53\"}]}", "mac"},
        {"{\"version\":1,\"interfaces\":[{\"device\":\"eth0\",\"address\":\"10.0.0.1\"}]}",
         "address"},
        {"{\"version\":1,\"interfaces\":[{\"device\":\"eth0\",\"neighbours\":[{}]}]}", "address"},
        {"{\"version\":1,\"steps\":[{\"app\":\"../x\"}]}", "app"},
        {"{\"version\":1,\"steps\":[{\"app\":\"x\",\"options\":[]}]}", "options"},
        {"{\"version\":1,\"files\":{\"x\":\"y\"}}", "files"},
        {"{\"version\":1,\"version\":1}", "duplicate"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char error[JOB_ERROR_LIMIT] = "";
        struct job job;

        EXPECT(job_parse(cases[i].text, strlen(cases[i].text), &job, error) == -1);
        if (strstr(error, cases[i].named) == NULL)
            printf("%s: %s\n", cases[i].text, error);
        EXPECT(strstr(error, cases[i].named) != NULL);
    }
}

static void cut_and_damaged_jobs_never_crash(void)
{
    char text[sizeof(FULL)];
    char error[JOB_ERROR_LIMIT];
    struct job job;

    for (size_t length = 0; length < sizeof(FULL); length++)
        if (job_parse(FULL, length, &job, error) == 0)
            job_free(&job);
    for (size_t at = 0; at < sizeof(FULL) - 1; at++) {
        memcpy(text, FULL, sizeof(FULL));
        text[at] = (char)(text[at] ^ 5);
        if (job_parse(text, sizeof(FULL) - 1, &job, error) == 0)
            job_free(&job);
    }
}

static void addresses_are_strict(void)
{
    static const char *const wrong[] = {"",           "10.0.0.1",    "10.0.0/24",   "10.0.0.1/",
                                        "10.0.0.1/0", "10.0.0.1/33", "10.0.0.1/2x", "/24"};
    struct in_addr address;
    struct in_addr netmask;
    uint8_t mac[ETH_ALEN];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        EXPECT(!job_parse_address(wrong[i], &address, &netmask));
    EXPECT(job_parse_address("1.2.3.4/32", &address, &netmask) && netmask.s_addr == 0xffffffff);
    EXPECT(!job_parse_mac("02:53:44:00:00:0g", mac));
    EXPECT(!job_parse_mac("02-53-44-00-00-01", mac));
}

static void base64_is_the_rfcs(void)
{
    static const char *const pairs[][2] = {
        {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
        {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"foobar", "Zm9vYmFy"}};

    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        char *text = base64_encode(pairs[i][0], strlen(pairs[i][0]));

        EXPECT(strcmp(text, pairs[i][1]) == 0);
        free(text);
    }
}

static bool answers(const char *request, const char *part)
{
    char *answer = exec_answer(request);
    bool found = answer != NULL && strstr(answer, part) != NULL;

    if (!found)
        printf("%s -> %s\n", request, answer);
    free(answer);
    return found;
}

static void commands_are_answered(void)
{
    EXPECT(answers("{\"id\":1,\"argv\":[\"/bin/echo\",\"foo\"]}", "\"stdout\":\"Zm9vCg==\""));
    EXPECT(answers("{\"id\":2,\"shell\":\"echo foo >&2; exit 9\"}", "\"status\":9"));
    EXPECT(answers("{\"id\":2,\"shell\":\"echo foo >&2\"}", "\"stderr\":\"Zm9vCg==\""));
    EXPECT(answers("{\"id\":3,\"argv\":[\"/no/such/program\"]}", "\"status\":127"));
    EXPECT(answers("{\"id\":3,\"shell\":\"kill -TERM $$\"}", "\"status\":143"));
    EXPECT(answers("{\"id\":4,\"argv\":[]}", "\"error\""));
    EXPECT(answers("{\"id\":4,\"argv\":[1]}", "\"error\""));
    EXPECT(answers("{\"id\":5}", "\"id\":5"));
    EXPECT(answers("nonsense", "\"id\":null"));
}

static void great_outputs_are_cut_and_counted(void)
{
    char *answer = exec_answer("{\"id\":6,\"shell\":\"head -c 3000000 /dev/zero\"}");

    /* 2^20 bytes, three of them in four characters, and few more for the rest of the line. */
    EXPECT(strstr(answer, "\"dropped\":1951424") != NULL);
    EXPECT(strlen(answer) > 1398104 && strlen(answer) < 1398104 + 100);
    free(answer);
    EXPECT(answers("{\"id\":7,\"argv\":[\"/bin/echo\"]}", "\"dropped\":0"));
}

/* A block of every kind of sequence: long literals, a long match, an overlapping one. */
static void lz4_blocks_are_decoded_within_their_room(void)
{
    static const uint8_t block[] = {0xf1, 1,   'a',  'b', 'c', 'd', 'e', 'f',  'g',
                                    'h',  'i', 'j',  'k', 'l', 'm', 'n', 'o',  'p',
                                    1,    0,   0x1f, 'X', 2,   0,   3,   0x10, 'Z'};
    static const char expected[] = "abcdefghijklmnoppppppX";
    uint8_t out[64];
    ptrdiff_t length = lz4_decode_block(block, sizeof(block), out, sizeof(out));

    EXPECT(length == 16 + 5 + 1 + 22 + 1);
    EXPECT(memcmp(out, expected, sizeof(expected) - 1) == 0 && out[length - 1] == 'Z');
    EXPECT(lz4_decode_block(block, sizeof(block), out, (size_t)length - 1) == -1);
    for (size_t cut = 0; cut < sizeof(block); cut++)
        EXPECT(lz4_decode_block(block, cut, out, sizeof(out)) < length);
    for (size_t at = 0; at < sizeof(block); at++) {
        uint8_t damaged[sizeof(block)];

        memcpy(damaged, block, sizeof(block));
        damaged[at] ^= 0xff;
        EXPECT(lz4_decode_block(damaged, sizeof(damaged), out, sizeof(out)) <= 64);
    }
}

static void lz4_frames_are_decoded(void)
{
    static const uint8_t frame[] = {0x02, 0x21, 0x4c, 0x18, 3, 0, 0,    0,  0x20,
                                    'h',  'i',  2,    0,    0, 0, 0x10, '!'};
    size_t length;
    uint8_t *out = lz4_decode_legacy(frame, sizeof(frame), &length);

    EXPECT(out != NULL && length == 3 && memcmp(out, "hi!", 3) == 0);
    free(out);
    for (size_t cut = 0; cut < sizeof(frame); cut++)
        free(lz4_decode_legacy(frame, cut, &length));
    EXPECT(lz4_decode_legacy(frame + 1, sizeof(frame) - 1, &length) == NULL);
}

static size_t put_entry(char *archive, unsigned mode, const char *name, const char *data)
{
    size_t name_size = strlen(name) + 1;
    size_t at = (size_t)sprintf(archive,
                                "070701%08X%08X%08X%08X%08X%08X%08zX%08X%08X%08X%08X%08zX%08X", 1,
                                mode, 0, 0, 1, 0, strlen(data), 0, 0, 0, 0, name_size, 0);

    memcpy(archive + at, name, name_size);
    at = (at + name_size + 3) / 4 * 4;
    memcpy(archive + at, data, strlen(data));
    return (at + strlen(data) + 3) / 4 * 4;
}

static void archives_are_unpacked(void)
{
    static char archive[4096];
    char folder[] = "/tmp/runner-test-XXXXXX";
    char text[16] = "";
    size_t length = 0;
    int root;
    int file;

    length += put_entry(archive + length, S_IFDIR | 0755, "d", "");
    length += put_entry(archive + length, S_IFREG | 0644, "d/file", "hello");
    length += put_entry(archive + length, S_IFLNK | 0777, "link", "d/file");
    length += put_entry(archive + length, 0, "TRAILER!!!", "");
    EXPECT(mkdtemp(folder) != NULL);
    root = open(folder, O_RDONLY | O_DIRECTORY);
    EXPECT(cpio_unpack((const uint8_t *)archive, length, root) == 0);
    file = openat(root, "link", O_RDONLY);
    EXPECT(read(file, text, sizeof(text)) == 5 && memcmp(text, "hello", 5) == 0);
    close(file);
    for (size_t cut = 0; cut < length - 128; cut++)
        EXPECT(cpio_unpack((const uint8_t *)archive, cut, root) == -1);
    unlinkat(root, "link", 0);
    unlinkat(root, "d/file", 0);
    unlinkat(root, "d", AT_REMOVEDIR);
    close(root);
    EXPECT(rmdir(folder) == 0);
}

int main(void)
{
    static const struct test tests[] = {
        {"a_full_job_is_decoded", a_full_job_is_decoded},
        {"the_waiting_job_waits", the_waiting_job_waits},
        {"wrong_jobs_name_the_field", wrong_jobs_name_the_field},
        {"cut_and_damaged_jobs_never_crash", cut_and_damaged_jobs_never_crash},
        {"addresses_are_strict", addresses_are_strict},
        {"base64_is_the_rfcs", base64_is_the_rfcs},
        {"commands_are_answered", commands_are_answered},
        {"great_outputs_are_cut_and_counted", great_outputs_are_cut_and_counted},
        {"lz4_blocks_are_decoded_within_their_room", lz4_blocks_are_decoded_within_their_room},
        {"lz4_frames_are_decoded", lz4_frames_are_decoded},
        {"archives_are_unpacked", archives_are_unpacked},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
