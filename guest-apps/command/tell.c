/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame of the control EtherType with "sundial-tell" is passed on by the fabric to one machine, a
 * millisecond later or as late as a wire could, at an exact time (harness/schemas/README.md). None
 * is lost; one that comes before its machine has opened its socket is not heard, so a machine that
 * opens it asks.
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "command.h"

enum { ETHERTYPE_CONTROL = 0x88b5 };

static const char DEVICE[] = "eth0";
static const char TELL[] = "sundial-tell";

struct message {
    struct ether_header header;
    char word[sizeof(TELL) - 1];
    uint8_t to;
    uint8_t workload;
    uint8_t need;
    uint8_t from;
    uint8_t what[2];
} __attribute__((packed));

static uint8_t own_workload;

static int device_index(int file, struct ifreq *request)
{
    memset(request, 0, sizeof(*request));
    memcpy(request->ifr_name, DEVICE, sizeof(DEVICE));
    return ioctl(file, SIOCGIFINDEX, request) == 0 ? request->ifr_ifindex : -1;
}

int tell_open(unsigned workload)
{
    int file = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETHERTYPE_CONTROL));
    struct sockaddr_ll here = {.sll_family = AF_PACKET, .sll_protocol = htons(ETHERTYPE_CONTROL)};
    struct ifreq request;

    own_workload = (uint8_t)workload;
    if (file < 0)
        return -1;
    here.sll_ifindex = device_index(file, &request);
    if (here.sll_ifindex >= 0 && bind(file, (struct sockaddr *)&here, sizeof(here)) == 0)
        return file;
    close(file);
    return -1;
}

void tell(int file, unsigned machine, bool need, unsigned from, unsigned what)
{
    struct message message = {.to = (uint8_t)machine,
                              .workload = own_workload,
                              .need = need,
                              .from = (uint8_t)from,
                              .what = {(uint8_t)(what >> 8), (uint8_t)what}};
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_halen = ETH_ALEN};
    struct ifreq request;

    to.sll_ifindex = device_index(file, &request);
    ioctl(file, SIOCGIFHWADDR, &request);
    memset(message.header.ether_dhost, 0xff, ETH_ALEN);
    memcpy(message.header.ether_shost, request.ifr_hwaddr.sa_data, ETH_ALEN);
    message.header.ether_type = htons(ETHERTYPE_CONTROL);
    memcpy(message.word, TELL, sizeof(message.word));
    sendto(file, &message, sizeof(message), 0, (struct sockaddr *)&to, sizeof(to));
}

bool tell_receive(int file, bool *need, unsigned *from, unsigned *what)
{
    struct message message;
    struct sockaddr_ll source;
    socklen_t size = sizeof(source);
    ssize_t got;

    while ((got = recvfrom(file, &message, sizeof(message), 0, (struct sockaddr *)&source,
                           &size)) >= 0) {
        size = sizeof(source);
        if (got < (ssize_t)sizeof(message) || source.sll_pkttype == PACKET_OUTGOING ||
            memcmp(message.word, TELL, sizeof(message.word)) != 0 ||
            message.workload != own_workload)
            continue;
        *need = message.need != 0;
        *from = message.from;
        *what = (unsigned)message.what[0] << 8 | message.what[1];
        return true;
    }
    return false;
}
