/* SPDX-License-Identifier: Apache-2.0 */

/* Frames of MBCF over a packet socket. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node_state.h"

enum { RECEIVE_BUFFER = 1 << 20 };

static int bind_to(int fd, const char *interface, uint8_t mac[6])
{
    struct ifreq request = {0};
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(MBW_ETHERTYPE)};
    int bytes = RECEIVE_BUFFER;

    if (strlen(interface) >= sizeof(request.ifr_name)) {
        errno = ENODEV;
        return -1;
    }
    strcpy(request.ifr_name, interface);
    if (ioctl(fd, SIOCGIFHWADDR, &request) != 0)
        return -1;
    memcpy(mac, request.ifr_hwaddr.sa_data, 6);
    if (ioctl(fd, SIOCGIFINDEX, &request) != 0)
        return -1;
    address.sll_ifindex = request.ifr_ifindex;
    /* Only a convenience: a stream of peers must not depend on how often this process runs. */
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    return bind(fd, (struct sockaddr *)&address, sizeof(address));
}

int node_socket_open(const char *interface, uint8_t mac[6])
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int saved;

    if (fd >= 0 && bind_to(fd, interface, mac) == 0)
        return fd;
    saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return -1;
}

bool node_socket_send(int fd, const struct sss_frame *frame)
{
    return send(fd, frame->bytes, frame->length, 0) == (ssize_t)frame->length;
}

size_t node_socket_receive(int fd, uint8_t *frame, size_t size)
{
    struct sockaddr_ll from;
    socklen_t from_bytes = sizeof(from);
    ssize_t length;

    do {
        length = recvfrom(fd, frame, size, 0, (struct sockaddr *)&from, &from_bytes);
    } while (length > 0 && from.sll_pkttype == PACKET_OUTGOING);
    return length > 0 ? (size_t)length : 0;
}
