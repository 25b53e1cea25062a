// SPDX-License-Identifier: Apache-2.0
#include "connection.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

static std::vector<int> descriptors()
{
    std::vector<int> found;
    DIR *folder = opendir("/proc/self/fd");

    if (folder == nullptr)
        return found;
    while (struct dirent *entry = readdir(folder))
        if (entry->d_name[0] != '.')
            found.push_back(atoi(entry->d_name));
    closedir(folder);
    std::sort(found.begin(), found.end());
    return found;
}

int connection_find(const char *address, int port)
{
    struct in_addr wanted;

    if (inet_pton(AF_INET, address, &wanted) != 1)
        return -1;
    for (int descriptor : descriptors()) {
        struct sockaddr_in peer = {};
        socklen_t length = sizeof(peer);

        if (getpeername(descriptor, reinterpret_cast<struct sockaddr *>(&peer), &length) == 0 &&
            peer.sin_family == AF_INET && peer.sin_addr.s_addr == wanted.s_addr &&
            ntohs(peer.sin_port) == port)
            return descriptor;
    }
    return -1;
}

int connection_local_port(int connection)
{
    struct sockaddr_in local = {};
    socklen_t length = sizeof(local);

    getsockname(connection, reinterpret_cast<struct sockaddr *>(&local), &length);
    return ntohs(local.sin_port);
}

long connection_retransmits(int connection)
{
    struct tcp_info info = {};
    socklen_t length = sizeof(info);

    if (getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return 0;
    return info.tcpi_total_retrans;
}
