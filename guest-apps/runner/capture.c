/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel puts each frame into a ring of blocks (PACKET_RX_RING, TPACKET_V3) and wakes this
 * process when a block is full or old; blocks are written as they are. So a frame costs the guest
 * what the kernel needs to copy it, and the sorting is the host's work.
 */
#include "capture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "ports.h"
#include "process.h"
#include "samples.h"

static const char PORT[] = "sundial.loopback";
static const char MAGIC[8] = "SDLLOOP1";
static const char DEVICE[] = "lo";

enum {
    BLOCK_BYTES = 256 * 1024, /* holds the longest frame, 65,549 bytes, three times */
    BLOCKS = 32,
    OLD_MS = 50,       /* a block that is not full is handed over once or twice so late */
    CHUNK = 32 * 1024, /* the virtio port takes no more in one write */
    FIRST = -20,
    NS_PER_MS = 1000 * 1000,
};

/* In front of each block; little endian, as the blocks are. */
struct block_header {
    char magic[8];
    uint64_t tsc_before; /* the kernel's clock, which stamps frames, was read between these two */
    uint64_t clock_ns;
    uint64_t tsc_after;
    uint64_t packets; /* since the block before, those dropped among them */
    uint64_t dropped;
    uint64_t bytes; /* of the block */
};

static int ring = -1; /* the packet socket */
static int port = -1;

static void fail(const char *what)
{
    char message[128];

    snprintf(message, sizeof(message), "capture of the loopback: %s: %s", what, strerror(errno));
    samples_put(json_pack("{ss ss ss}", "type", "error", "app", "runner", "message", message));
    exit(EXIT_FAILURE);
}

static void write_all(const void *bytes, size_t length)
{
    for (size_t put = 0; put < length;) {
        size_t part = length - put < CHUNK ? length - put : CHUNK;
        ssize_t written = write(port, (const char *)bytes + put, part);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            fail("writing");
        put += (size_t)written;
    }
}

/* Reading the counters sets them to 0. */
static void count(struct block_header *header)
{
    struct tpacket_stats_v3 since;
    socklen_t length = sizeof(since);

    if (getsockopt(ring, SOL_PACKET, PACKET_STATISTICS, &since, &length) != 0)
        fail("counting");
    header->packets = since.tp_packets;
    header->dropped = since.tp_drops;
}

static void read_clocks(struct block_header *header)
{
    struct timespec now;

    header->tsc_before = __rdtsc();
    clock_gettime(CLOCK_REALTIME, &now);
    header->tsc_after = __rdtsc();
    header->clock_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void serve(void)
{
    struct block_header header = {0};
    struct pollfd blocks_full = {.fd = ring, .events = POLLIN};
    char *blocks = mmap(NULL, (size_t)BLOCKS * BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                        ring, 0);

    if (blocks == MAP_FAILED)
        fail("mapping its blocks");
    setpriority(PRIO_PROCESS, 0, FIRST); /* else others may fill the ring meanwhile */
    memcpy(header.magic, MAGIC, sizeof(header.magic));
    read_clocks(&header); /* the first reading fetches pages: none of the run may be so long */
    for (size_t place = 0;; place = (place + 1) % BLOCKS) {
        struct tpacket_block_desc *block = (void *)(blocks + place * BLOCK_BYTES);

        while ((__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER) ==
               0)
            if (poll(&blocks_full, 1, -1) < 0 && errno != EINTR)
                fail("waiting");
        count(&header);
        read_clocks(&header);
        header.bytes = block->hdr.bh1.blk_len;
        write_all(&header, sizeof(header));
        write_all(block, header.bytes);
        __atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    }
}

static int open_ring(void)
{
    const int version = TPACKET_V3;
    const struct tpacket_req3 shape = {
        .tp_block_size = BLOCK_BYTES,
        .tp_block_nr = BLOCKS,
        .tp_frame_size = BLOCK_BYTES,
        .tp_frame_nr = BLOCKS,
        .tp_retire_blk_tov = OLD_MS,
    };
    struct sockaddr_ll where = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    int handle = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC,
                        0); /* hears nothing before it is bound */

    where.sll_ifindex = (int)if_nametoindex(DEVICE);
    if (handle < 0 || where.sll_ifindex == 0 ||
        setsockopt(handle, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) != 0 ||
        setsockopt(handle, SOL_PACKET, PACKET_RX_RING, &shape, sizeof(shape)) != 0 ||
        bind(handle, (struct sockaddr *)&where, sizeof(where)) != 0)
        return -1;
    return handle;
}

int capture_start(void)
{
    port = ports_open(PORT, O_WRONLY | O_CLOEXEC);
    if (port < 0)
        return 0;
    ring = open_ring();
    return ring < 0 ? -1 : process_fork_helper(serve);
}

void capture_settle(void)
{
    const struct timespec pause = {.tv_nsec = 3 * OLD_MS * NS_PER_MS};

    if (ring >= 0)
        nanosleep(&pause, NULL);
}
