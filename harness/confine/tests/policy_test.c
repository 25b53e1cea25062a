// SPDX-License-Identifier: Apache-2.0
// The policy file: what is understood, and that nothing else is taken for something.

#define _GNU_SOURCE
#include "../policy.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct policy policy;
static char why[256];

static bool read_text(const char *text, size_t length)
{
    char path[] = "/tmp/sundial-policy-XXXXXX";
    int file = mkstemp(path);
    assert(file >= 0 && write(file, text, length) == (ssize_t)length);
    close(file);
    bool read = policy_read(&policy, path, why, sizeof why);
    unlink(path);
    return read;
}

static bool reads(const char *text)
{
    return read_text(text, strlen(text));
}

static void what_is_understood(void)
{
    assert(reads("emulator /usr/bin/qemu\nread /a b\nprogram /usr\nwrite /c\ndevice "
                 "/dev/kvm\nfile_bytes 4096\n"
                 "user 1000 1001\n"));
    assert(strcmp(policy.emulator, "/usr/bin/qemu") == 0);
    assert(policy.count == 4);
    assert(policy.places[0].right == RIGHT_READ && strcmp(policy.places[0].path, "/a b") == 0);
    assert(policy.places[1].right == RIGHT_PROGRAM && policy.places[2].right == RIGHT_WRITE);
    assert(policy.places[3].right == RIGHT_DEVICE);
    assert(policy.file_bytes == 4096 && policy.user == 1000 && policy.group == 1001);
}

static void what_is_refused(void)
{
    static const char *const bad[] = {
        "",
        "read /a\n",
        "emulator /q",
        "emulator\n",
        "emulator qemu\n",
        "emulator /q\nread\n",
        "emulator /q\nREAD /a\n",
        "emulator /q\nread a\n",
        "emulator /q\n\n",
        "emulator /q\nuser 0 0\n",
        "emulator /q\nuser 1 0\n",
        "emulator /q\nuser 0 1\n",
        "emulator /q\nuser 1\n",
        "emulator /q\nuser 1 2 3\n",
        "emulator /q\nuser -1 1\n",
        "emulator /q\nuser 4294967295 1\n",
        "emulator /q\nfile_bytes 1k\n",
        "emulator /q\nfile_bytes 99999999999999999999999\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert(!reads(bad[i]));
    assert(!read_text("emulator /q\0\n", 13));
    assert(!policy_read(&policy, "/nonexistent", why, sizeof why));
}

static void limits(void)
{
    static char text[2 * POLICY_BYTES];
    size_t length = (size_t)sprintf(text, "emulator /q\n");
    for (int i = 0; i <= POLICY_PLACES; i++)
        length += (size_t)sprintf(text + length, "read /%d\n", i);
    assert(!reads(text));
    memset(text, 'x', sizeof text - 1);
    assert(!reads(text));
}

// Every prefix, and every single changed byte, is refused or understood; the sanitizers watch.
static void damaged(void)
{
    const char whole[] = "emulator /q\nread /a\nuser 12 13\nfile_bytes 7\n";
    char text[sizeof whole];
    for (size_t cut = 0; cut < sizeof whole; cut++)
        read_text(whole, cut);
    for (size_t at = 0; at + 1 < sizeof whole; at++)
        for (int value = 0; value < 256; value++) {
            memcpy(text, whole, sizeof whole);
            text[at] = (char)value;
            read_text(text, sizeof whole - 1);
        }
}

int main(void)
{
    what_is_understood();
    what_is_refused();
    limits();
    damaged();
    puts("policy ok");
    return 0;
}
