// pingpong is the plain loop that the load engines are held against: blocking sockets, clock_gettime around each round
// trip, nothing else.
//
//   pingpong server tcp|udp PORT SIZE CPU
//   pingpong client tcp|udp ADDRESS PORT SIZE CPU
//
// The client reads a number of milliseconds per line from standard input, plays ping-pong for so long (after a fiftieth of
// it as warm-up), and answers with a line: count, minimum, p50, p90, p99 and mean in nanoseconds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { most_samples = 1 << 20 };

static uint64_t samples[most_samples];
static char buffer[1 << 16];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) fail("sched_setaffinity");
}

static int open_socket(int udp) {
    int one = 1, fd = socket(AF_INET, udp ? SOCK_DGRAM : SOCK_STREAM, 0);
    if (fd < 0) fail("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (!udp) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static int receive_all(int fd, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t n = recv(fd, buffer + done, size - done, 0);
        if (n <= 0) return 0;
        done += (size_t)n;
    }
    return 1;
}

static void serve(int udp, struct sockaddr_in *address, size_t size) {
    int fd = open_socket(udp);
    if (bind(fd, (struct sockaddr *)address, sizeof *address)) fail("bind");
    if (udp) {
        // The first datagram says who the client is.
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        ssize_t n = recvfrom(fd, buffer, sizeof buffer, 0, (struct sockaddr *)&peer, &length);
        if (n < 0 || connect(fd, (struct sockaddr *)&peer, length)) fail("connect");
        if (send(fd, buffer, (size_t)n, 0) < 0) fail("send");
    } else {
        if (listen(fd, 1)) fail("listen");
        if ((fd = accept(fd, NULL, NULL)) < 0) fail("accept");
    }
    while (receive_all(fd, size) && send(fd, buffer, size, 0) == (ssize_t)size) {
    }
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int round_trip(int fd, size_t size) {
    return send(fd, buffer, size, 0) == (ssize_t)size && receive_all(fd, size);
}

static void play(int fd, size_t size, uint64_t span) {
    uint64_t until = now() + span / 50, end;
    do {
        if (!round_trip(fd, size)) fail("round trip");
    } while (now() < until);
    size_t n = 0;
    until = now() + span;
    do {
        uint64_t start = now();
        if (!round_trip(fd, size)) fail("round trip");
        end = now();
        samples[n++] = end - start;
    } while (end < until && n < most_samples);
    qsort(samples, n, sizeof *samples, ascending);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)samples[i];
    printf("%zu %lu %lu %lu %lu %.1f\n", n, samples[0], samples[n / 2], samples[n * 9 / 10], samples[n * 99 / 100], sum / (double)n);
    fflush(stdout);
}

int main(int argc, char **argv) {
    int server = argc == 6 && !strcmp(argv[1], "server");
    if (!server && !(argc == 7 && !strcmp(argv[1], "client"))) {
        fprintf(stderr, "usage: pingpong server tcp|udp PORT SIZE CPU | pingpong client tcp|udp ADDRESS PORT SIZE CPU\n");
        return 2;
    }
    int udp = !strcmp(argv[2], "udp");
    char **rest = argv + (server ? 3 : 4);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(rest[0]))};
    size_t size = (size_t)atol(rest[1]);
    if (size < 1 || size > sizeof buffer) return 2;
    pin(atoi(rest[2]));
    if (server) {
        serve(udp, &address, size);
        return 0;
    }
    if (inet_pton(AF_INET, argv[3], &address.sin_addr) != 1) return 2;
    int fd = open_socket(udp);
    for (int tries = 0; connect(fd, (struct sockaddr *)&address, sizeof address); tries++) {
        if (tries == 500) fail("connect");
        usleep(10000);
    }
    char line[64];
    while (fgets(line, sizeof line, stdin)) play(fd, size, (uint64_t)(atof(line) * 1e6));
    return 0;
}
