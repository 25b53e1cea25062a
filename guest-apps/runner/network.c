/* SPDX-License-Identifier: Apache-2.0 */
#include "network.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "process.h"

static const char BRIDGE[] = "br0";

enum {
    PAUSE_NS = 10 * 1000 * 1000,
    PATIENCE = 500, /* pauses */
    PATH = 128,
    FORWARDING = '3', /* BR_STATE_FORWARDING, as sysfs writes it */
};

static int configuration_socket(void)
{
    return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static int write_setting(const char *path, const char *value)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    int result = file >= 0 && write(file, value, strlen(value)) == (ssize_t)strlen(value) ? 0 : -1;

    if (file >= 0)
        close(file);
    return result;
}

static void name_device(struct ifreq *request, const char *device)
{
    memset(request, 0, sizeof(*request));
    snprintf(request->ifr_name, IFNAMSIZ, "%s", device);
}

static int set_up(int handle, const char *device)
{
    struct ifreq request;

    name_device(&request, device);
    if (ioctl(handle, SIOCGIFFLAGS, &request) != 0)
        return -1;
    request.ifr_flags |= IFF_UP;
    return ioctl(handle, SIOCSIFFLAGS, &request);
}

static void pause_briefly(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    nanosleep(&pause, NULL);
}

static bool is_running(int handle, const char *device)
{
    struct ifreq request;

    name_device(&request, device);
    return ioctl(handle, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_RUNNING) != 0;
}

static int wait_until_running(int handle, const char *device)
{
    for (int i = 0; i < PATIENCE; i++) {
        if (is_running(handle, device))
            return 0;
        pause_briefly();
    }
    errno = ENETDOWN;
    return -1;
}

static bool is_ethernet(const struct if_nameindex *device)
{
    return strncmp(device->if_name, "eth", 3) == 0;
}

static int bring_up_all(int handle, const struct if_nameindex *devices)
{
    const struct if_nameindex *device;

    for (device = devices; device->if_index != 0; device++)
        if (is_ethernet(device) && set_up(handle, device->if_name) != 0)
            return -1;
    for (device = devices; device->if_index != 0; device++)
        if (is_ethernet(device) && wait_until_running(handle, device->if_name) != 0)
            return -1;
    return 0;
}

int network_bring_up(void)
{
    int handle = configuration_socket();
    struct if_nameindex *devices = if_nameindex();
    int result = handle < 0 || devices == NULL ? -1 : bring_up_all(handle, devices);

    if (devices != NULL)
        if_freenameindex(devices);
    if (handle >= 0)
        close(handle);
    return result;
}

static int set_mac(int handle, const struct job_interface *interface)
{
    struct ifreq request;

    if (!interface->has_mac)
        return 0;
    name_device(&request, interface->device);
    request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    memcpy(request.ifr_hwaddr.sa_data, interface->mac, ETH_ALEN);
    return ioctl(handle, SIOCSIFHWADDR, &request);
}

static int set_mtu(int handle, const char *device, int mtu)
{
    struct ifreq request;

    if (mtu == 0)
        return 0;
    name_device(&request, device);
    request.ifr_mtu = mtu;
    return ioctl(handle, SIOCSIFMTU, &request);
}

/*
 * Segmentation offloads would put frames on the wire that no Ethernet carries; transmit checksum
 * offload would leave half-made checksums in the captures.
 */
static int clear_offloads(int handle, const struct job_interface *interface)
{
    static const struct {
        uint32_t set;
        uint32_t get;
    } features[] = {{ETHTOOL_STSO, ETHTOOL_GTSO},
                    {ETHTOOL_SGSO, ETHTOOL_GGSO},
                    {ETHTOOL_SGRO, ETHTOOL_GGRO},
                    {ETHTOOL_STXCSUM, ETHTOOL_GTXCSUM}};

    if (interface->offloads)
        return 0;
    for (size_t i = 0; i < sizeof(features) / sizeof(*features); i++) {
        struct ethtool_value value = {.cmd = features[i].get};
        struct ifreq request;

        name_device(&request, interface->device);
        request.ifr_data = (void *)&value;
        if (ioctl(handle, SIOCETHTOOL, &request) != 0)
            return -1;
        if (value.data == 0)
            continue;
        value = (struct ethtool_value){.cmd = features[i].set, .data = 0};
        if (ioctl(handle, SIOCETHTOOL, &request) != 0)
            return -1;
    }
    return 0;
}

static void set_address_of(struct sockaddr *where, uint32_t address)
{
    const struct sockaddr_in inet = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};

    memcpy(where, &inet, sizeof(inet));
}

static int set_inet(int handle, unsigned long what, const char *device, uint32_t address)
{
    struct ifreq request;

    name_device(&request, device);
    set_address_of(&request.ifr_addr, address);
    return ioctl(handle, what, &request);
}

static int set_address(int handle, const struct job_interface *interface)
{
    uint32_t broadcast = interface->address | ~interface->netmask;

    if (interface->address == 0)
        return 0;
    if (set_inet(handle, SIOCSIFADDR, interface->device, interface->address) != 0 ||
        set_inet(handle, SIOCSIFNETMASK, interface->device, interface->netmask) != 0)
        return -1;
    return set_inet(handle, SIOCSIFBRDADDR, interface->device, broadcast);
}

static int set_neighbours(int handle, const struct job_interface *interface)
{
    for (unsigned i = 0; i < interface->neighbour_count; i++) {
        const struct job_neighbour *neighbour = &interface->neighbours[i];
        struct arpreq request = {.arp_flags = ATF_PERM | ATF_COM};

        set_address_of(&request.arp_pa, neighbour->address);
        request.arp_ha.sa_family = ARPHRD_ETHER;
        memcpy(request.arp_ha.sa_data, neighbour->mac, ETH_ALEN);
        snprintf(request.arp_dev, sizeof(request.arp_dev), "%s", interface->device);
        if (ioctl(handle, SIOCSARP, &request) != 0)
            return -1;
    }
    return 0;
}

int network_configure(const struct job_interface *interface, char error[JOB_ERROR])
{
    int handle = configuration_socket();
    const char *failed = NULL;

    if (handle < 0)
        failed = "opening a socket";
    else if (set_mac(handle, interface) != 0)
        failed = "setting the MAC address";
    else if (set_mtu(handle, interface->device, interface->mtu) != 0)
        failed = "setting the MTU";
    else if (clear_offloads(handle, interface) != 0)
        failed = "turning offloads off";
    else if (set_up(handle, interface->device) != 0)
        failed = "bringing it up";
    else if (set_address(handle, interface) != 0)
        failed = "setting the address";
    else if (set_neighbours(handle, interface) != 0)
        failed = "setting a neighbour";
    if (failed != NULL)
        snprintf(error, JOB_ERROR, "interface %s: %s: %s", interface->device, failed,
                 strerror(errno));
    if (handle >= 0)
        close(handle);
    return failed == NULL ? 0 : -1;
}

static int add_route(int handle, const struct job_route *route)
{
    struct rtentry request = {.rt_flags = RTF_UP | RTF_GATEWAY};

    set_address_of(&request.rt_dst, route->network);
    set_address_of(&request.rt_genmask, route->netmask);
    set_address_of(&request.rt_gateway, route->via);
    return ioctl(handle, SIOCADDRT, &request);
}

static int forward_from(const char *device)
{
    char path[PATH];

    /* Redirects would be packets that no application asked for. */
    snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/send_redirects", device);
    return write_setting(path, "0");
}

static int forward(const struct job *job)
{
    int result = forward_from("all");

    for (unsigned i = 0; result == 0 && i < job->interface_count; i++)
        result = forward_from(job->interfaces[i].device);
    return result == 0 ? write_setting("/proc/sys/net/ipv4/ip_forward", "1") : -1;
}

int network_configure_routes(const struct job *job, char error[JOB_ERROR])
{
    int handle = configuration_socket();
    const char *failed = handle < 0 ? "opening a socket" : NULL;

    for (unsigned i = 0; failed == NULL && i < job->route_count; i++)
        if (add_route(handle, &job->routes[i]) != 0)
            failed = "adding one";
    if (failed == NULL && job->forward && forward(job) != 0)
        failed = "turning forwarding on";
    if (failed != NULL)
        snprintf(error, JOB_ERROR, "routes: %s: %s", failed, strerror(errno));
    if (handle >= 0)
        close(handle);
    return failed == NULL ? 0 : -1;
}

static int add_port(int handle, const char *device)
{
    struct ifreq request;

    name_device(&request, BRIDGE);
    request.ifr_ifindex = (int)if_nametoindex(device);
    return request.ifr_ifindex == 0 ? -1 : ioctl(handle, SIOCBRADDIF, &request);
}

/*
 * tc is the authority on netem's grammar, so its own text goes to it, word for word. By its path:
 * busybox's shell would take its own tc, which knows no netem.
 */
static int add_netem(const struct job_bridge_port *port)
{
    char command[PATH + JOB_NETEM];

    if (*port->netem == '\0')
        return 0;
    if (snprintf(command, sizeof(command), "exec /bin/tc qdisc replace dev %s root netem %s",
                 port->device, port->netem) >= (int)sizeof(command))
        return -1;
    return process_run_shell(command);
}

/*
 * A bridge that snoops on multicast joins a group of its own, and so sends frames that no
 * application asked for.
 */
static int keep_quiet(void)
{
    return write_setting("/sys/class/net/br0/bridge/multicast_snooping", "0");
}

static char port_state(const char *device)
{
    char path[PATH];
    char state = '\0';
    int file;

    snprintf(path, sizeof(path), "/sys/class/net/%s/brport/state", device);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, &state, 1) != 1)
            state = '\0';
        close(file);
    }
    return state;
}

static int wait_until_forwarding(const char *device)
{
    for (int i = 0; i < PATIENCE; i++) {
        if (port_state(device) == FORWARDING)
            return 0;
        pause_briefly();
    }
    errno = ENETDOWN;
    return -1;
}

/* The module may be part of the kernel. That of netem is the kernel's to ask for. */
static int load_bridge(void)
{
    return access("/sys/module/bridge", F_OK) == 0 ? 0 : process_run_shell("exec modprobe bridge");
}

int network_configure_bridge(const struct job_bridge_port *ports, size_t count,
                             char error[JOB_ERROR])
{
    int handle = configuration_socket();
    const char *failed = NULL;
    const char *device = BRIDGE;

    if (handle < 0)
        failed = "opening a socket";
    else if (load_bridge() != 0)
        failed = "loading its module";
    else if (ioctl(handle, SIOCBRADDBR, BRIDGE) != 0)
        failed = "creating the bridge";
    else if (keep_quiet() != 0)
        failed = "turning multicast snooping off";
    for (size_t i = 0; failed == NULL && i < count; i++) {
        device = ports[i].device;
        if (add_port(handle, device) != 0)
            failed = "adding it to the bridge";
        else if (add_netem(&ports[i]) != 0)
            failed = "adding netem";
    }
    if (failed == NULL && set_up(handle, BRIDGE) != 0)
        failed = "bringing the bridge up";
    for (size_t i = 0; failed == NULL && i < count; i++) {
        device = ports[i].device;
        if (wait_until_forwarding(device) != 0)
            failed = "waiting for it to forward";
    }
    if (failed != NULL)
        snprintf(error, JOB_ERROR, "bridge: %s: %s: %s", device, failed, strerror(errno));
    if (handle >= 0)
        close(handle);
    return failed == NULL ? 0 : -1;
}
