/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ETHERTYPE_CONTROL = 0x88b5, FRAME_LIMIT = 64 };

static int send_frame(const char *device, const void *payload, size_t length)
{
    unsigned char frame[FRAME_LIMIT];
    struct ether_header *header = (struct ether_header *)frame;
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_halen = ETH_ALEN};
    struct ifreq request = {0};
    int wire = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* protocol 0: hears nothing */
    int result = -1;

    if (wire < 0)
        return -1;
    snprintf(request.ifr_name, IFNAMSIZ, "%s", device);
    if (ioctl(wire, SIOCGIFHWADDR, &request) == 0) {
        memset(header->ether_dhost, 0xff, ETH_ALEN);
        memcpy(header->ether_shost, request.ifr_hwaddr.sa_data, ETH_ALEN);
        header->ether_type = htons(ETHERTYPE_CONTROL);
        memcpy(frame + sizeof(*header), payload, length);
        if (ioctl(wire, SIOCGIFINDEX, &request) == 0) {
            to.sll_ifindex = request.ifr_ifindex;
            if (sendto(wire, frame, sizeof(*header) + length, 0, (struct sockaddr *)&to,
                       sizeof(to)) > 0)
                result = 0;
        }
    }
    close(wire);
    return result;
}

int control_say_ready(const char *device)
{
    static const char payload[] = "sundial-ready";

    return send_frame(device, payload, sizeof(payload) - 1);
}

int control_say_done(const char *device, unsigned char status)
{
    unsigned char payload[] = "sundial-done"; /* the final zero byte becomes the status */

    payload[sizeof(payload) - 1] = status;
    return send_frame(device, payload, sizeof(payload));
}
