/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Threads of one node in a Linux process: whichever of them receives a frame, the one that waits
 * for it is woken. The peer is another process; its frames come over a socket pair in the place of
 * the network interface.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"
#include "linux/node_state.h"
#include "node.h"

enum { ROUNDS = 200, TASK = 2, KEY = 0x5a5a, RING = 4096, CLIENT = 1, SERVER = 2 };
#define SECOND 1000000000ull
#define PAUSE_NS                                                                                   \
    (SECOND / 50) /* until the server has no timer running that would wake it anyway               \
                   */
/* Both processes have their queue at the same address, where no AddressSanitizer has its heap. */
#define QUEUE_AT 0x200000000000ull

static int wire[2];

/* ---- in the place of raw.c ---- */

int node_socket_open(const char *interface, uint8_t mac[6])
{
    int end = *interface - '0';

    memcpy(mac, (uint8_t[]){2, 0x53, 0x44, 0, 0, (uint8_t)(end + 1)}, 6);
    return wire[end];
}

bool node_socket_send(int socket, const struct sss_frame *frame)
{
    return send(socket, frame->bytes, frame->length, MSG_DONTWAIT) == (ssize_t)frame->length;
}

size_t node_socket_receive(int socket, uint8_t *frame, size_t size)
{
    ssize_t length = recv(socket, frame, size, MSG_DONTWAIT);

    return length > 0 ? (size_t)length : 0;
}

/* ---- both sides ---- */

static struct node *open_node(uint16_t id)
{
    struct node_peer peer = {.node = id == CLIENT ? SERVER : CLIENT, .mac = {2, 0x53, 0x44, 0, 0}};
    struct node_config config = {.node = id, .epoch = 1000u + id, .peers = &peer, .peer_count = 1};

    peer.mac[5] = (uint8_t)peer.node;
    return node_open_raw(id == CLIENT ? "0" : "1", &config);
}

static struct mb_fifo *open_queue(void)
{
    struct mb_fifo *queue = sss_map((void *)(uintptr_t)QUEUE_AT, MB_FIFO_HEADER + RING,
                                    SSS_READ | SSS_WRITE);

    return queue != NULL && mb_fifo(queue, MB_FIFO_HEADER + RING) == 0 ? queue : NULL;
}

/* ---- the server: one thread waits and answers, another one receives whatever comes ---- */

static struct node *server;

static void receive_for_others(void *unused)
{
    (void)unused;
    for (;;)
        sss_yield();
}

static _Noreturn void serve(void)
{
    struct mb_fifo *queue;
    int ltn;

    server = open_node(SERVER);
    if (server == NULL || node_task(server, TASK) < 0 || mb_key(0, KEY, MB_WRITE_ALLOWED) != 0)
        exit(1);
    queue = open_queue();
    ltn = mb_connect(CLIENT, TASK, KEY);
    if (queue == NULL || ltn < 0 || sss_thread(receive_for_others, NULL, 0) < 0)
        exit(1);
    while (mb_fifo_wait(queue, SSS_FOREVER) == 0) {
        mb_fifo_pop(queue);
        mb_fifo_write(ltn, QUEUE_AT, "!", 1, NULL);
    }
    exit(1);
}

/* ---- the client ---- */

static bool is_answered(struct mb_fifo *answers)
{
    if (mb_fifo_wait(answers, 5 * SECOND) != 0)
        return false;
    mb_fifo_pop(answers);
    return true;
}

/* The server's queue may not be there yet. */
static int connect_to_server(void)
{
    for (unsigned i = 0; i < 100; i++) {
        int ltn = mb_connect(SERVER, TASK, KEY);
        struct mb_ack ack = {0};

        if (mb_fifo_write(ltn, QUEUE_AT, "?", 1, &ack) == 0 &&
            mb_ack_wait(&ack, 20 * SECOND) == MB_OK)
            return ltn;
        mb_close(ltn);
    }
    return -1;
}

static void test_the_waiter_is_woken(void)
{
    struct node *client;
    struct mb_fifo *answers;
    unsigned round = 0;
    pid_t child;
    int ltn;

    EXPECT(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, wire) == 0);
    child = fork();
    if (child == 0)
        serve();
    client = open_node(CLIENT);
    EXPECT(client != NULL && node_task(client, TASK) == TASK &&
           mb_key(0, KEY, MB_WRITE_ALLOWED) == 0);
    answers = open_queue();
    ltn = connect_to_server();
    EXPECT(ltn > 0 && is_answered(answers));
    while (round < ROUNDS && mb_fifo_wait(answers, PAUSE_NS) == -SSS_ETIMEDOUT &&
           mb_fifo_write(ltn, QUEUE_AT, "?", 1, NULL) == 0 && is_answered(answers))
        round++;
    EXPECT(round == ROUNDS);
    node_close(client);
    EXPECT(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

int main(void)
{
    static const struct test tests[] = {{"the_waiter_is_woken", test_the_waiter_is_woken}};

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
