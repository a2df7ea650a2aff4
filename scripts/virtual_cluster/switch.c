/*
 * A software Ethernet switch with a rate and a delay.
 *
 *   switch SHAPE_FILE INTERFACE NETWORK_NAMESPACE_FILE...
 *
 * It makes one TAP interface of the given name in each network namespace. SHAPE_FILE holds two
 * numbers: the rate of a port in bit/s (0 = no limit) and the one-way delay in ns. It is read at
 * the start and again at SIGHUP. "ready" is printed once all interfaces exist.
 *
 * A frame takes its length divided by the rate at the sender's port, then the delay, then waits
 * until the receiver's port is free: a switch that cuts through when idle. No frame passes faster,
 * not even the first after a pause, as it would in a token bucket.
 *
 * The kernel hands over TCP segments undivided, up to 64 KiB at once. They take the time of the
 * frames that a card would make of them, and are delivered when the last of those would be: the
 * time of a message is that of single frames, but this process is woken once for 64 KiB.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
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
    HEADER = sizeof(struct virtio_net_hdr), /* before each frame, says how to divide it */
    ETHERNET = 14,
    MAX_FRAME = 1 << 17,
    READS_PER_TURN = 64,   /* so that no port starves the others */
    SPIN_NS = 20000,       /* a virtual machine's kernel wakes a sleeper that late */
    QUEUE_NS = 50000000,   /* a port drops what would wait longer than this behind other frames, */
    QUEUE_LEAST = 1 << 18, /* if they are more bytes than this */
    QUEUE_BYTES = 1 << 26, /* and what would not fit, where there is no rate */
};

struct frame {
    struct frame *next;
    int64_t due;
    size_t length;
    unsigned char bytes[]; /* HEADER, then the frame itself */
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
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    if (ioctl(tap, TUNSETIFF, &request))
        fail("TUNSETIFF");
    if (ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6))
        fail("TUNSETOFFLOAD");
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

/* How long the frames take on the wire that a card would make of what was read. */
static int64_t wire_time(const unsigned char *bytes, size_t length)
{
    struct virtio_net_hdr header;
    memcpy(&header, bytes, HEADER);
    const unsigned char *frame = bytes + HEADER;
    size_t wire = length - HEADER;
    size_t tcp = header.csum_start;
    if (header.gso_type != VIRTIO_NET_HDR_GSO_NONE && header.gso_size && tcp + 20 < wire) {
        size_t headers = tcp + 4 * (frame[tcp + 12] >> 4);
        if (headers + header.gso_size < wire)
            wire += (wire - headers - 1) / header.gso_size * headers;
    }
    return (int64_t)(wire * ns_per_byte);
}

/* Whether a port would drop what has to wait so long for it. */
static int overflows(int64_t waits)
{
    return ns_per_byte > 0 && waits > QUEUE_NS && waits > QUEUE_LEAST * ns_per_byte;
}

static void enqueue(
    struct port *port, const unsigned char *bytes, size_t length, int64_t takes, int64_t arrives)
{
    int64_t starts = arrives - takes;
    if (port->received_until > starts)
        starts = port->received_until;
    if (overflows(starts + takes - arrives) || port->queued + length > QUEUE_BYTES)
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

static void receive(int from)
{
    static unsigned char buffer[HEADER + MAX_FRAME];
    struct port *sender = &ports[from];
    for (int count = 0; count < READS_PER_TURN; count++) {
        ssize_t length = read(sender->tap, buffer, sizeof buffer);
        if (length < 0 && errno == EBADFD)
            fail("read");
        if (length < HEADER + ETHERNET)
            break;
        int64_t t = now();
        if (sender->sent_until < t)
            sender->sent_until = t;
        if (overflows(sender->sent_until - t))
            continue; /* a TAP is read at once, so its own queue never fills */
        int64_t takes = wire_time(buffer, length);
        sender->sent_until += takes;
        learn(buffer + HEADER + 6, from);
        int to = port_of(buffer + HEADER);
        for (int i = 0; i < port_count; i++)
            if (i != from && (to < 0 || to == i))
                enqueue(&ports[i], buffer, length, takes, sender->sent_until + delay_ns);
    }
}

/* Send what is due; lower *next to when the port wants to be served again. */
static void deliver(struct port *port, int64_t *next)
{
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
    }
    if (port->first && port->first->due < *next)
        *next = port->first->due;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: switch SHAPE_FILE INTERFACE NETWORK_NAMESPACE_FILE...\n");
        return 2;
    }
    sigset_t hangup, none;
    sigemptyset(&none);
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    sigprocmask(SIG_BLOCK, &hangup, NULL); /* but while it sleeps */
    struct sigaction action = {.sa_handler = on_hangup};
    sigaction(SIGHUP, &action, NULL);
    prctl(PR_SET_TIMERSLACK, 1UL); /* the default lets the kernel wake us 50 us late */
    /* Ranks that poll for messages must not keep the network waiting for a core. Where this is
     * refused, times are less even. */
    struct sched_param before_all_others = {.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &before_all_others);
    read_shape(argv[1]);
    for (int i = 3; i < argc; i++)
        open_port(argv[2], argv[i]);
    puts("ready");
    fflush(stdout);
    for (;;) {
        int64_t next = INT64_MAX;
        for (int i = 0; i < port_count; i++)
            deliver(&ports[i], &next);
        int64_t wait = next - SPIN_NS - now();
        if (wait < 0)
            wait = 0; /* too short to sleep; what is sent meanwhile is read at once */
        struct timespec t = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
        if (ppoll(polls, port_count, next == INT64_MAX ? NULL : &t, &none) > 0)
            for (int i = 0; i < port_count; i++)
                if (polls[i].revents)
                    receive(i);
        if (shape_changed) {
            shape_changed = 0;
            read_shape(argv[1]);
        }
    }
}
