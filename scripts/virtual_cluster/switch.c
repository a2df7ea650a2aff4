/*
 * A software Ethernet switch with a rate and a delay, for kernels without netem.
 *
 *   switch SHAPE_FILE INTERFACE NETWORK_NAMESPACE_FILE...
 *
 * It makes one TAP interface of the given name in each network namespace. SHAPE_FILE holds two
 * numbers: the rate of a port in bit/s (0 = no limit) and the one-way delay in ns. It is read at
 * the start and again at SIGHUP. "ready" is printed once all interfaces exist.
 *
 * A frame takes its length divided by the rate at the sender's port, then the delay, then waits
 * until the receiver's port is free: a store-and-forward switch that cuts through when idle.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_PORTS = 256,
    MAX_FRAME = 65536,
    READS_PER_TURN = 64,   /* so that no port starves the others */
    SPIN_NS = 15000,       /* the kernel wakes a sleeper that late */
    QUEUE_NS = 50000000,   /* a port drops what would wait longer than this behind other frames */
    QUEUE_BYTES = 1 << 26, /* and what would not fit, where there is no rate */
};

struct frame {
    struct frame *next;
    int64_t due;
    size_t length;
    unsigned char bytes[];
};

struct port {
    int tap;
    int64_t sent_until;     /* the sender's side is busy until then */
    int64_t received_until; /* the receiver's side */
    struct frame *first, *last;
    size_t queued;
};

struct address {
    unsigned char bytes[6];
    int port;
};

static struct port ports[MAX_PORTS];
static struct pollfd polls[MAX_PORTS];
static int port_count;
static struct address addresses[4 * MAX_PORTS];
static int address_count;
static double ns_per_byte;
static int64_t delay_ns;
static volatile sig_atomic_t shape_changed;

static void fail(const char *what)
{
    fprintf(stderr, "switch: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void on_hangup(int signal_number)
{
    (void)signal_number;
    shape_changed = 1;
}

static void read_shape(const char *path)
{
    double rate;
    long long delay;
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%lf %lld", &rate, &delay) != 2)
        fail(path);
    fclose(file);
    ns_per_byte = rate > 0 ? 8e9 / rate : 0;
    delay_ns = delay;
}

static void open_port(const char *interface, const char *namespace)
{
    if (port_count == MAX_PORTS) {
        errno = E2BIG;
        fail("too many network namespaces");
    }
    int descriptor = open(namespace, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || setns(descriptor, CLONE_NEWNET))
        fail(namespace);
    close(descriptor);
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tap < 0)
        fail("/dev/net/tun");
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    if (ioctl(tap, TUNSETIFF, &request))
        fail("TUNSETIFF");
    ports[port_count].tap = tap;
    polls[port_count] = (struct pollfd){.fd = tap, .events = POLLIN};
    port_count++;
}

static void learn(const unsigned char *mac, int port)
{
    for (int i = 0; i < address_count; i++)
        if (!memcmp(addresses[i].bytes, mac, 6)) {
            addresses[i].port = port;
            return;
        }
    if (address_count < 4 * MAX_PORTS) {
        memcpy(addresses[address_count].bytes, mac, 6);
        addresses[address_count++].port = port;
    }
}

/* The port of a unicast address; -1 means all ports. */
static int port_of(const unsigned char *mac)
{
    if (mac[0] & 1)
        return -1;
    for (int i = 0; i < address_count; i++)
        if (!memcmp(addresses[i].bytes, mac, 6))
            return addresses[i].port;
    return -1;
}

static void enqueue(struct port *port, const unsigned char *bytes, size_t length, int64_t arrives)
{
    int64_t takes = (int64_t)(length * ns_per_byte);
    int64_t starts = arrives - takes;
    if (port->received_until > starts)
        starts = port->received_until;
    if (starts - arrives > QUEUE_NS || port->queued + length > QUEUE_BYTES)
        return;
    struct frame *frame = malloc(sizeof *frame + length);
    if (!frame)
        return;
    port->received_until = starts + takes;
    *frame = (struct frame){.due = port->received_until, .length = length};
    memcpy(frame->bytes, bytes, length);
    if (port->last)
        port->last->next = frame;
    else
        port->first = frame;
    port->last = frame;
    port->queued += length;
}

static int receive(int from)
{
    static unsigned char buffer[MAX_FRAME];
    struct port *sender = &ports[from];
    int count = 0;
    for (; count < READS_PER_TURN; count++) {
        ssize_t length = read(sender->tap, buffer, sizeof buffer);
        if (length < 14)
            break;
        int64_t t = now();
        if (sender->sent_until < t)
            sender->sent_until = t;
        if (ns_per_byte > 0 && sender->sent_until - t > QUEUE_NS)
            continue; /* a TAP is read at once, so its own queue never fills */
        sender->sent_until += (int64_t)(length * ns_per_byte);
        learn(buffer + 6, from);
        int to = port_of(buffer);
        for (int i = 0; i < port_count; i++)
            if (i != from && (to < 0 || to == i))
                enqueue(&ports[i], buffer, length, sender->sent_until + delay_ns);
    }
    return count;
}

/* Send what is due; lower *next to when the port wants to be served again. */
static int deliver(struct port *port, int64_t *next)
{
    int count = 0;
    while (port->first && port->first->due <= now()) {
        struct frame *frame = port->first;
        /* An interface that is down or full loses the frame, as a cable would. */
        if (write(port->tap, frame->bytes, frame->length) < 0 && errno == EBADFD)
            fail("write");
        port->first = frame->next;
        if (!port->first)
            port->last = NULL;
        port->queued -= frame->length;
        free(frame);
        count++;
    }
    if (port->first && port->first->due < *next)
        *next = port->first->due;
    return count;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: switch SHAPE_FILE INTERFACE NETWORK_NAMESPACE_FILE...\n");
        return 2;
    }
    struct sigaction action = {.sa_handler = on_hangup};
    sigaction(SIGHUP, &action, NULL);
    prctl(PR_SET_TIMERSLACK, 1UL); /* the default lets the kernel wake us 50 us late */
    read_shape(argv[1]);
    for (int i = 3; i < argc; i++)
        open_port(argv[2], argv[i]);
    puts("ready");
    fflush(stdout);
    for (;;) {
        if (shape_changed) {
            shape_changed = 0;
            read_shape(argv[1]);
        }
        int work = 0;
        int64_t next = INT64_MAX;
        for (int i = 0; i < port_count; i++)
            work += receive(i);
        for (int i = 0; i < port_count; i++)
            work += deliver(&ports[i], &next);
        if (work)
            continue;
        if (next == INT64_MAX) {
            /* Not for ever: a SIGHUP may have come just before. */
            struct timespec second = {.tv_sec = 1};
            ppoll(polls, port_count, &second, NULL);
            continue;
        }
        int64_t wait = next - now() - SPIN_NS;
        if (wait > 0) {
            struct timespec t = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
            ppoll(polls, port_count, &t, NULL);
        } else {
            sched_yield();
        }
    }
}
