/* SPDX-License-Identifier: Apache-2.0 */
#include "ports.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char CLASS[] = "/sys/class/virtio-ports";

enum { PATH = 320, NAME = 64 };

static bool has_name(const char *port, const char *name)
{
    char path[PATH];
    char text[NAME] = "";
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s/name", CLASS, port);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    if (fgets(text, sizeof(text), file) == NULL)
        text[0] = '\0';
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
    return strcmp(text, name) == 0;
}

int ports_open(const char *name, int flags)
{
    char device[PATH];
    char link[PATH];
    DIR *ports = opendir(CLASS);
    const struct dirent *port;
    int handle = -1;

    if (ports == NULL)
        return -1;
    while (handle < 0 && (port = readdir(ports)) != NULL) {
        if (port->d_name[0] == '.' || !has_name(port->d_name, name))
            continue;
        snprintf(device, sizeof(device), "/dev/%s", port->d_name);
        snprintf(link, sizeof(link), "/dev/virtio-ports/%s", name);
        mkdir("/dev/virtio-ports", 0755);
        if (symlink(device, link) != 0 && errno != EEXIST)
            fprintf(stderr, "runner: cannot make %s\n", link);
        handle = open(device, flags);
    }
    closedir(ports);
    return handle;
}
