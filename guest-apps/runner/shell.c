/* SPDX-License-Identifier: Apache-2.0 */
#include "shell.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "syscalls.h"

static const char CONSOLE[] = "/dev/ttyS0";

/* Job control needs a session of its own whose controlling terminal is the console. */
static _Noreturn void become_shell(void)
{
    int console;

    setsid();
    console = open(CONSOLE, O_RDWR);
    if (console < 0 || ioctl(console, TIOCSCTTY, 1) != 0)
        _exit(1);
    dup2(console, STDIN_FILENO);
    dup2(console, STDOUT_FILENO);
    dup2(console, STDERR_FILENO);
    close_descriptors_from(STDERR_FILENO + 1); /* the record stream is not for typing into */
    setenv("HOME", "/root", 1);
    setenv("TERM", "vt100", 1);
    if (chdir("/root") != 0)
        perror("/root");
    execl("/bin/sh", "-sh", (char *)NULL);
    _exit(1);
}

void shell_serve_console(void)
{
    for (;;) {
        pid_t pid = fork();

        if (pid == 0)
            become_shell();
        if (pid < 0 || waitpid(pid, NULL, 0) < 0)
            sleep(1);
    }
}
