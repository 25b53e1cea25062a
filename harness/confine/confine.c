// SPDX-License-Identifier: Apache-2.0
// Starts QEMU with no more rights than one machine needs. libvirt takes this program for the
// emulator.
//
// The file that SUNDIAL_CONFINE names says what is allowed, a line each:
//
//     emulator PATH    what to start
//     read PATH        this file, or all beneath this folder
//     program PATH     and start what is there
//     write PATH       and make, change and remove there
//     device PATH      open this device for reading and writing
//     file_bytes N     no file may grow beyond
//     user UID GID     give root up and be this user
//
// What the host has is used: Landlock for paths, TCP, signals and abstract sockets; an empty
// network namespace; another user where root starts it. What it lacks is left out: `--check` says
// what that is, a line each. Without SUNDIAL_CONFINE, as when libvirt asks what QEMU can do, QEMU
// is started as it is.

#define _GNU_SOURCE
#include "policy.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EMULATOR "qemu-system-x86_64"
#define NOBODY   65534
#define CANNOT   126 // as a shell says it of a program that is there and cannot be started

// linux/landlock.h of Debian 12 ends before the third version, so the interface is here
// (Documentation/userspace-api).
#define SYS_LANDLOCK_CREATE_RULESET 444
#define SYS_LANDLOCK_ADD_RULE       445
#define SYS_LANDLOCK_RESTRICT_SELF  446
#define LANDLOCK_VERSION            1u
#define LANDLOCK_PATH_BENEATH       1

enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_REMOVE_FILE = 1 << 5,
    FS_MAKE_REG = 1 << 8,
    FS_MAKE_SOCK = 1 << 9,
    FS_UP_TO_1 = (1 << 13) - 1,
    FS_REFER = 1 << 13,     // since 2
    FS_TRUNCATE = 1 << 14,  // since 3
    FS_IOCTL_DEV = 1 << 15, // since 5
    NET_TCP = 3,            // bind and connect, since 4
    SCOPES = 3,             // abstract sockets and signals, since 6
};
#define FS_OF_FILES (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

struct ruleset_attr {
    uint64_t fs, net, scoped;
};

struct path_beneath_attr {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

_Noreturn static void give_up(const char *what)
{
    fprintf(stderr, "sundial-confine: %s: %s\n", what, strerror(errno));
    exit(CANNOT);
}

static int landlock_version(void)
{
    long version = syscall(SYS_LANDLOCK_CREATE_RULESET, NULL, 0, LANDLOCK_VERSION);
    return version < 0 ? 0 : (int)version;
}

static uint64_t handled(int version)
{
    uint64_t fs = FS_UP_TO_1;
    if (version >= 2)
        fs |= FS_REFER;
    if (version >= 3)
        fs |= FS_TRUNCATE;
    if (version >= 5)
        fs |= FS_IOCTL_DEV;
    return fs;
}

static void allow(int ruleset, const char *path, uint64_t rights, int version)
{
    int file = open(path, O_PATH | O_CLOEXEC);
    if (file < 0) {
        if (errno == ENOENT) // what is not there needs no right
            return;
        give_up(path);
    }
    struct stat status;
    if (fstat(file, &status) < 0)
        give_up(path);
    if (!S_ISDIR(status.st_mode))
        rights &= FS_OF_FILES;
    struct path_beneath_attr rule = {.allowed = rights & handled(version), .parent = file};
    if (syscall(SYS_LANDLOCK_ADD_RULE, ruleset, LANDLOCK_PATH_BENEATH, &rule, 0) < 0)
        give_up(path);
    close(file);
}

static void restrict_paths(const struct policy *policy, int version)
{
    struct ruleset_attr attr = {
        .fs = handled(version),
        .net = version >= 4 ? NET_TCP : 0,
        .scoped = version >= 6 ? SCOPES : 0,
    };
    size_t size = version >= 6   ? sizeof attr
                  : version >= 4 ? 2 * sizeof(uint64_t)
                                 : sizeof(uint64_t);
    int ruleset = (int)syscall(SYS_LANDLOCK_CREATE_RULESET, &attr, size, 0);
    if (ruleset < 0)
        give_up("Landlock");
    const uint64_t read_only = FS_READ_FILE | FS_READ_DIR;
    const uint64_t write = read_only | FS_WRITE_FILE | FS_TRUNCATE | FS_MAKE_REG | FS_MAKE_SOCK |
                           FS_REMOVE_FILE;
    for (int i = 0; i < policy->count; i++) {
        const struct place *place = &policy->places[i];
        switch (place->right) {
        case RIGHT_READ:
            allow(ruleset, place->path, read_only, version);
            break;
        case RIGHT_PROGRAM:
            allow(ruleset, place->path, read_only | FS_EXECUTE, version);
            break;
        case RIGHT_WRITE:
            allow(ruleset, place->path, write, version);
            break;
        case RIGHT_DEVICE:
            allow(ruleset, place->path, FS_READ_FILE | FS_WRITE_FILE | FS_IOCTL_DEV, version);
            break;
        }
    }
    if (syscall(SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0) < 0)
        give_up("Landlock");
    close(ruleset);
}

// An empty network namespace: all frames go through unix sockets and shared memory. Whether the
// host allows it.
static bool leave_network(void)
{
    if (unshare(CLONE_NEWNET) == 0)
        return true;
    // A process that is not root may have one inside a user namespace; there it is user 65534, and
    // outside it stays what it was.
    return geteuid() != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

// NULL, or what cannot be done: containers have a root who may not read all files. `--check` tries.
static const char *become(unsigned user, unsigned group, bool keep_reading)
{
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
        setresgid(group, group, group) < 0 || setresuid(user, user, user) < 0)
        return "giving root up";
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    // The checkout may be in a home that only root enters. Landlock says which files these are;
    // without it none.
    if (keep_reading)
        data[0].effective = data[0].permitted = data[0].inheritable = 1u << CAP_DAC_READ_SEARCH;
    if (syscall(SYS_capset, &header, data) < 0)
        return "giving capabilities up";
    if (keep_reading && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0) < 0)
        return "keeping the right to read";
    return NULL;
}

static void limit(int which, rlim_t most)
{
    struct rlimit now;
    if (getrlimit(which, &now) < 0)
        give_up("limits");
    if (now.rlim_max != RLIM_INFINITY && now.rlim_max < most)
        most = now.rlim_max;
    struct rlimit then = {.rlim_cur = most, .rlim_max = most};
    if (setrlimit(which, &then) < 0)
        give_up("limits");
}

static void confine(const struct policy *policy)
{
    // Small guests touch a page here and there: with huge pages, QEMU takes up to half as much
    // memory again.
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    limit(RLIMIT_CORE, 0);
    if (policy->file_bytes > 0)
        limit(RLIMIT_FSIZE, policy->file_bytes);
    leave_network();
    int version = landlock_version();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        give_up("no new privileges");
    if (version > 0)
        restrict_paths(policy, version);
    if (policy->user == 0 || geteuid() != 0)
        return;
    const char *impossible = become(policy->user, policy->group, version > 0);
    if (impossible != NULL)
        give_up(impossible);
}

// In a child, for it cannot be undone.
static bool can(bool (*try)(void))
{
    pid_t child = fork();
    if (child < 0)
        return false;
    if (child == 0)
        _exit(try() ? 0 : 1);
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool try_user(void)
{
    return geteuid() == 0 && become(NOBODY, NOBODY, landlock_version() > 0) == NULL;
}

static int check(void)
{
    printf("landlock %d\n", landlock_version());
    printf("network %d\n", can(leave_network));
    printf("user %d\n", geteuid() != 0 || can(try_user));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--check") == 0)
        return check();
    const char *path = getenv("SUNDIAL_CONFINE");
    const char *emulator = EMULATOR;
    if (path != NULL) {
        static struct policy policy;
        char why[256];
        if (!policy_read(&policy, path, why, sizeof why)) {
            fprintf(stderr, "sundial-confine: %s: %s\n", path, why);
            return CANNOT;
        }
        unsetenv("SUNDIAL_CONFINE");
        emulator = policy.emulator;
        confine(&policy);
    }
    argv[0] = (char *)emulator;
    execvp(emulator, argv);
    give_up(emulator);
}
