/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base64.h"
#include "cpio.h"
#include "expect.h"
#include "image.h"
#include "job/tests/golden.h"
#include "lz4.h"
#include "process.h"

static void expect_decoded(const char *name, const char *text)
{
    char error[JOB_ERROR] = "";
    static struct job job;

    EXPECT(job_decode(text, strlen(text), &linux_image, &job, error));
    if (error[0] != '\0')
        printf("%s: %s\n", name, error);
}

static void golden_jobs_are_decoded(void)
{
    EXPECT(golden_each("linux", expect_decoded) == 15);
}

static void expect_refused(const char *edit, const char *text, const char *word)
{
    char error[JOB_ERROR] = "";
    static struct job job;
    bool decoded = job_decode(text, strlen(text), &linux_image, &job, error);

    EXPECT(!decoded);
    EXPECT(strstr(error, word) != NULL && strchr(error, '\n') == NULL);
    if (decoded || strstr(error, word) == NULL)
        printf("%s: %s\n", edit, error);
}

static void malformed_jobs_are_refused_in_one_line(void)
{
    EXPECT(golden_each_malformed("linux", expect_refused) > 40);
}

static struct job decoded(const char *text)
{
    char error[JOB_ERROR] = "";
    static struct job job;

    EXPECT(job_decode(text, strlen(text), &linux_image, &job, error));
    return job;
}

static void a_hosts_fields_have_their_values(void)
{
    char *text = golden_job("linux/host");
    struct job job = decoded(text);
    const struct job_interface *interface = &job.interfaces[0];
    struct json_walk walk;
    struct job_task task;

    EXPECT(!job.wait && !job.interactive && job.tsc);
    EXPECT(strcmp(job.machine, "client") == 0 && job.seed == 2979770962045355843u);
    EXPECT(job.zero_ns == 3494200000 && job.start_ns == 300000000);
    EXPECT(job.interface_count == 1 && strcmp(interface->device, "eth0") == 0);
    EXPECT(interface->mac[1] == 0x53 && interface->mac[5] == 1 && interface->mtu == 1500);
    EXPECT(interface->address == 0x0a000001 && interface->netmask == 0xffffff00);
    EXPECT(interface->neighbour_count == 1 && interface->neighbours[0].address == 0x0a000002);
    EXPECT(job.service_count == 0 && job.step_count == 4 && job.bridge_port_count == 0);
    json_walk_start(&walk, &job.steps);
    EXPECT(job_next_task(&walk, &task) && strcmp(task.app, "echo-client") == 0);
    EXPECT(strncmp(task.options.text, "{\"server\":\"10.0.0.2\"", 20) == 0);
    for (unsigned i = 1; i < 4; i++)
        EXPECT(job_next_task(&walk, &task));
    EXPECT(strcmp(task.app, "raw-client") == 0 && !job_next_task(&walk, &task));
    free(text);
}

static void a_bridge_has_its_ports(void)
{
    char *text = golden_job("linux/bridge");
    struct job job = decoded(text);

    EXPECT(job.bridge_port_count == 2 && strcmp(job.bridge_ports[1].device, "eth1") == 0);
    EXPECT(strcmp(job.bridge_ports[0].netem, "delay 10ms") == 0);
    EXPECT(job.interfaces[0].address == 0);
    free(text);
}

static void routes_have_their_values(void)
{
    char *text = golden_job("linux/routes");
    struct job job = decoded(text);

    EXPECT(job.route_count == 1 && !job.forward);
    EXPECT(job.routes[0].network == 0x0a010000 && job.routes[0].netmask == 0xffffff00);
    EXPECT(job.routes[0].via == 0x0a0000fe);
    free(text);
    text = golden_job("linux/router");
    job = decoded(text);
    EXPECT(job.route_count == 0 && job.forward);
    free(text);
}

static void what_is_absent_stays_as_it_is(void)
{
    struct job job = decoded("{\"version\":1,\"interfaces\":[{\"device\":\"eth3\"}]}");

    EXPECT(!job.tsc && job.interfaces[0].adapter == 3 && job.interfaces[0].mtu == 0);
    EXPECT(!job.interfaces[0].has_mac && job.interfaces[0].address == 0);
    EXPECT(decoded("{\"version\":1,\"wait\":true}\n\n").wait);
}

static void cut_and_damaged_jobs_never_crash(void)
{
    char *text = golden_job("linux/endpoint");
    size_t size = strlen(text);
    char error[JOB_ERROR];
    static struct job job;

    for (size_t length = 0; length < size; length++) {
        char *cut = malloc(length + 1); /* so that the sanitizer sees a step too far */

        memcpy(cut, text, length);
        job_decode(cut, length, &linux_image, &job, error);
        free(cut);
    }
    for (size_t at = 0; at < size; at++) {
        text[at] = (char)(text[at] ^ 5);
        job_decode(text, size, &linux_image, &job, error);
        text[at] = (char)(text[at] ^ 5);
    }
    free(text);
}

static void base64_is_the_rfcs(void)
{
    static const char *const pairs[][2] = {
        {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
        {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"foobar", "Zm9vYmFy"}};
    static const char *const wrong[] = {"Z", "Zg=", "Z===", "Zg==Zg==", "Zm9v\n", "Zm9-"};
    uint8_t bytes[16];
    char text[16];

    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        size_t length = base64_encode(pairs[i][0], strlen(pairs[i][0]), text);

        EXPECT(length == strlen(pairs[i][1]) && memcmp(text, pairs[i][1], length) == 0);
        EXPECT(base64_decode(text, length, bytes) == (ptrdiff_t)strlen(pairs[i][0]));
        EXPECT(memcmp(bytes, pairs[i][0], strlen(pairs[i][0])) == 0);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        EXPECT_OF(base64_decode(wrong[i], strlen(wrong[i]), bytes) == -1, "%s", wrong[i]);
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
    const size_t first = 11;
    size_t length;
    uint8_t *out = lz4_decode_legacy(frame, sizeof(frame), &length);

    EXPECT(out != NULL && length == 3 && memcmp(out, "hi!", 3) == 0);
    munmap(out, length);
    for (size_t cut = 0; cut < sizeof(frame); cut++) {
        out = lz4_decode_legacy(frame, cut, &length);
        EXPECT_OF((out != NULL) == (cut == first), "%zu",
                  cut); /* the first block is a frame, too */
        if (out != NULL)
            munmap(out, length);
    }
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
    EXPECT(cpio_unpack((uint8_t *)archive, length, root) == 0);
    file = openat(root, "link", O_RDONLY);
    EXPECT(read(file, text, sizeof(text)) == 5 && memcmp(text, "hello", 5) == 0);
    close(file);
    for (size_t cut = 0; cut < length - 128; cut++)
        EXPECT(cpio_unpack((uint8_t *)archive, cut, root) == -1);
    unlinkat(root, "link", 0);
    unlinkat(root, "d/file", 0);
    unlinkat(root, "d", AT_REMOVEDIR);
    close(root);
    EXPECT(rmdir(folder) == 0);
}

static void what_is_there_already_stays(void)
{
    static char archive[1024];
    char folder[] = "/tmp/runner-test-XXXXXX";
    char text[16] = "";
    size_t length = 0;
    int root;
    int file;

    length += put_entry(archive + length, S_IFREG | 0755, "own", "image");
    length += put_entry(archive + length, S_IFLNK | 0777, "tool", "own");
    length += put_entry(archive + length, S_IFREG | 0644, "new", "image");
    length += put_entry(archive + length, 0, "TRAILER!!!", "");
    EXPECT(mkdtemp(folder) != NULL);
    root = open(folder, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < 2; i++) {
        file = openat(root, i == 0 ? "own" : "tool", O_WRONLY | O_CREAT, 0600);
        EXPECT(write(file, "mine", 4) == 4);
        close(file);
    }
    EXPECT(cpio_unpack((uint8_t *)archive, length, root) == 0);
    for (size_t i = 0; i < 2; i++) {
        file = openat(root, i == 0 ? "own" : "tool", O_RDONLY | O_NOFOLLOW);
        EXPECT(read(file, text, sizeof(text)) == 4 && memcmp(text, "mine", 4) == 0);
        close(file);
    }
    EXPECT(faccessat(root, "new", R_OK, 0) == 0);
    unlinkat(root, "own", 0);
    unlinkat(root, "tool", 0);
    unlinkat(root, "new", 0);
    close(root);
    EXPECT(rmdir(folder) == 0);
}

static void an_archive_gives_its_memory_back(void)
{
    enum { PAGE = 4096, PAGES = 4 };
    static _Alignas(PAGE) char archive[(PAGES + 1) * PAGE];
    static char data[PAGES * PAGE - PAGE / 2 + 1];
    char folder[] = "/tmp/runner-test-XXXXXX";
    struct stat status;
    size_t length;
    int root;

    memset(data, 'x', sizeof(data) - 1);
    length = put_entry(archive, S_IFREG | 0644, "file", data);
    put_entry(archive + length, 0, "TRAILER!!!", "");
    EXPECT(mkdtemp(folder) != NULL);
    root = open(folder, O_RDONLY | O_DIRECTORY);
    EXPECT(cpio_unpack((uint8_t *)archive, sizeof(archive), root) == 0);
    EXPECT(fstatat(root, "file", &status, 0) == 0 && status.st_size == sizeof(data) - 1);
    for (size_t page = 0; page < length / PAGE; page++)
        EXPECT(archive[page * PAGE + PAGE / 2] == 0);
    EXPECT(archive[length / PAGE * PAGE] == 'x'); /* no whole page */
    unlinkat(root, "file", 0);
    close(root);
    EXPECT(rmdir(folder) == 0);
}

static void a_signal_is_no_exit_status(void)
{
    EXPECT(process_run_shell("exit 3") == 3);
    EXPECT(process_run_shell("kill -9 $$") == 128 + 9);
}

int main(void)
{
    static const struct test tests[] = {
        {"golden_jobs_are_decoded", golden_jobs_are_decoded},
        {"malformed_jobs_are_refused_in_one_line", malformed_jobs_are_refused_in_one_line},
        {"a_hosts_fields_have_their_values", a_hosts_fields_have_their_values},
        {"a_bridge_has_its_ports", a_bridge_has_its_ports},
        {"routes_have_their_values", routes_have_their_values},
        {"what_is_absent_stays_as_it_is", what_is_absent_stays_as_it_is},
        {"cut_and_damaged_jobs_never_crash", cut_and_damaged_jobs_never_crash},
        {"base64_is_the_rfcs", base64_is_the_rfcs},
        {"lz4_blocks_are_decoded_within_their_room", lz4_blocks_are_decoded_within_their_room},
        {"lz4_frames_are_decoded", lz4_frames_are_decoded},
        {"archives_are_unpacked", archives_are_unpacked},
        {"what_is_there_already_stays", what_is_there_already_stays},
        {"an_archive_gives_its_memory_back", an_archive_gives_its_memory_back},
        {"a_signal_is_no_exit_status", a_signal_is_no_exit_status},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
