/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a good client notices of strangers who connect at security.level encrypt.
 *
 *   flood [SECONDS]
 *
 * PSD_PROGRAM names psd. For SECONDS (60), processes of low priority make 500 handshakes
 * a second at the control port and the ports of the shards, every other one under a wrong
 * key of psd, the rest under keys that psd does not know, and hold 500 connections that
 * say nothing. Meanwhile a client pulls 64 bytes over tcp, one pull after the other, over
 * a connection that it had before, and a new client comes every 2 s. Prints what a pull
 * took in the quiet half and in the other, what a new client took, and the memory of psd.
 * Ends with 1 when the median is above 2 times or p99 above 5 times the quiet one, a new
 * client took above 2 s, or psd took above 64 MiB more or has not given them back 30 s
 * later.
 */
#include <math.h>
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <zmq.h>

#include "support/check.h"
#include "support/daemon.h"
#include "support/zmtp.h"

#define SECONDS 60
#define HANDSHAKES 500 /* a second */
#define SILENT 500
#define OPEN 200 /* sockets of the strangers at once */
#define PORTS 8
#define VALUES 16
#define PULLS 4000000
#define NEW_EVERY_S 2.0
#define MEDIAN_TIMES 2
#define P99_TIMES 5
#define NEW_MOST_S 2.0
#define MEMORY_MOST_KB (64 << 10)
#define MEMORY_LEFT_KB (8 << 10) /* that an allocator may keep */
#define BACK_S 30
#define KEY_BYTES 32
#define STRANGERS_NICE 19

/* Between the processes. */
typedef struct shared {
    double slowest_s; /* of the new clients */
    uint64_t n_handshakes;
    uint64_t n_silent; /* open now */
} shared_t;

typedef struct bench {
    daemon_t daemon;
    psd_error_t *err;
    char ports[PORTS][64]; /* tcp://127.0.0.1:PORT */
    size_t n_ports;
    uint8_t key[KEY_BYTES]; /* of psd */
    float *took;            /* ms, of each pull */
    volatile shared_t *shared;
} bench_t;

typedef struct phase {
    double median_ms;
    double p99_ms;
    double new_s; /* the slowest new client */
    long memory_kb;
} phase_t;

static double now_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void sleep_s(double s)
{
    struct timespec left = {.tv_sec = (time_t)s};

    left.tv_nsec = (long)((s - (double)left.tv_sec) * 1e9);
    (void)nanosleep(&left, NULL);
}

static long memory_kb(const bench_t *self)
{
    char path[64];
    char line[256];
    long kb = 0;
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "/proc/%d/status", self->daemon.pid);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "VmRSS: %ld", &kb);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kb;
}

/* ---- where psd listens ---- */

static bool is_of(pid_t pid, unsigned long inode)
{
    char target[64];
    char wanted[64];
    char path[64];

    (void)snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    for (int fd = 0; fd < 256; fd++) {
        ssize_t n = 0;

        (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
        n = readlink(path, target, sizeof target - 1);
        if (n > 0) {
            target[n] = '\0';
            if (strcmp(target, wanted) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Its tcp ports, but for that of http, which takes no handshake. */
static bool find_ports(bench_t *self)
{
    const char *key = strchr(self->daemon.control, '#');
    char line[512];
    FILE *file = fopen("/proc/net/tcp", "re");

    CHECK(file != NULL && key != NULL && strlen(key + 1) == 2 * KEY_BYTES);
    for (size_t i = 0; i < KEY_BYTES; i++) {
        char digits[3] = {key[1 + 2 * i], key[2 + 2 * i], '\0'};

        self->key[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    while (fgets(line, sizeof line, file) != NULL && self->n_ports < PORTS) {
        unsigned port = 0;
        unsigned long inode = 0;

        if (sscanf(line, " %*d: 0100007F:%x %*x:%*x 0A %*x:%*x %*x:%*x %*x %*u %*u %lu", &port,
                   &inode) == 2 &&
            is_of(self->daemon.pid, inode)) {
            (void)snprintf(self->ports[self->n_ports++], sizeof self->ports[0],
                           "tcp://127.0.0.1:%u", port);
        }
    }
    (void)fclose(file);
    CHECK(self->n_ports >= 3); /* control, and a port of each of two shards */
    return true;
}

/* ---- the strangers ---- */

/* One handshake; NULL: no memory or descriptors. */
static void *shake_hands(const bench_t *self, void *zmq, unsigned i)
{
    const int no = 0;
    uint8_t key[KEY_BYTES];
    char public_key[41];
    char secret_key[41];
    void *socket = zmq_socket(zmq, ZMQ_DEALER);

    memcpy(key, self->key, sizeof key);
    if (i % 2 == 0) {
        key[0] ^= 1;
    }
    if (socket == NULL || zmq_curve_keypair(public_key, secret_key) != 0) {
        return socket;
    }
    (void)zmq_setsockopt(socket, ZMQ_LINGER, &no, sizeof no);
    (void)zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, key, sizeof key);
    (void)zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, public_key, sizeof public_key);
    (void)zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret_key, sizeof secret_key);
    (void)zmq_connect(socket, self->ports[i / 2 % self->n_ports]);
    (void)zmq_send(socket, "let me in", 9, ZMQ_DONTWAIT);
    return socket;
}

static void flood(const bench_t *self)
{
    void *zmq = zmq_ctx_new();
    void *sockets[OPEN] = {NULL};
    double since_s = now_s();

    for (unsigned i = 0;; i++) {
        double left_s = since_s + (double)i / HANDSHAKES - now_s();

        if (left_s > 0) {
            sleep_s(left_s);
        }
        if (sockets[i % OPEN] != NULL) {
            (void)zmq_close(sockets[i % OPEN]);
        }
        sockets[i % OPEN] = shake_hands(self, zmq, i);
        self->shared->n_handshakes = i + 1;
    }
}

/* Who is closed connects again. */
static void say_nothing(const bench_t *self)
{
    int fds[SILENT];
    uint64_t n_open = 0;

    for (size_t i = 0; i < SILENT; i++) {
        fds[i] = zmtp_dial(self->ports[i % self->n_ports], 0);
    }
    for (size_t i = 0;; i = (i + 1) % SILENT) {
        char byte = 0;

        if (i == 0) {
            self->shared->n_silent = n_open;
            n_open = 0;
            sleep_s(0.2);
        }
        if (fds[i] >= 0 && recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0) {
            (void)close(fds[i]);
            fds[i] = zmtp_dial(self->ports[i % self->n_ports], 0);
        }
        n_open += fds[i] >= 0 ? 1 : 0;
    }
}

static pid_t start(const bench_t *self, void (*does)(const bench_t *self), int nice)
{
    pid_t parent = getpid();
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setpriority(PRIO_PROCESS, 0, nice);
        if (getppid() == parent) {
            does(self);
        }
        _exit(0);
    }
    return pid;
}

static void stop(pid_t pid)
{
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
}

/* ---- the good clients ---- */

static int compare(const void *a, const void *b)
{
    const float *left = a;
    const float *right = b;

    return *left < *right ? -1 : *left > *right ? 1 : 0;
}

/* Connects and pulls a row. */
static bool come_new(const bench_t *self, double *ret_s)
{
    const uint64_t row = 0;
    float values[VALUES];
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    double since_s = now_s();

    CHECK_OK(psd_connect(self->daemon.control, NULL, &client, self->err), self->err);
    CHECK_OK(psd_table_open(client, "t", &table, self->err), self->err);
    CHECK_OK(psd_pull(table, &row, 1, values, VALUES, self->err), self->err);
    *ret_s = now_s() - since_s;
    psd_table_close(&table);
    psd_close(&client);
    return true;
}

/* Every NEW_EVERY_S, until it is stopped. */
static void come_again(const bench_t *self)
{
    for (;;) {
        double took_s = 0;

        if (!come_new(self, &took_s)) {
            took_s = HUGE_VAL;
        }
        self->shared->slowest_s =
            took_s > self->shared->slowest_s ? took_s : self->shared->slowest_s;
        sleep_s(NEW_EVERY_S);
    }
}

/* Pulls for so long. */
static bool measure(bench_t *self, psd_table_t *table, int seconds, phase_t *ret)
{
    const uint64_t row = 1;
    double since_s = now_s();
    double seen_s = since_s;
    size_t n = 0;
    pid_t pid = -1;

    self->shared->slowest_s = 0;
    pid = start(self, come_again, 0);
    *ret = (phase_t){.memory_kb = memory_kb(self)};
    while (n < PULLS && now_s() - since_s < seconds) {
        float values[VALUES];
        double begun_s = now_s();
        psd_status_t rc = psd_pull(table, &row, 1, values, VALUES, self->err);

        if (rc != PSD_OK) {
            stop(pid);
        }
        CHECK_OK(rc, self->err);
        self->took[n++] = (float)((now_s() - begun_s) * 1000);
        if (begun_s - seen_s > 0.5) {
            long kb = memory_kb(self);

            ret->memory_kb = kb > ret->memory_kb ? kb : ret->memory_kb;
            seen_s = begun_s;
        }
    }
    stop(pid);
    CHECK(n > 100);
    qsort(self->took, n, sizeof self->took[0], compare);
    ret->median_ms = (double)self->took[n / 2];
    ret->p99_ms = (double)self->took[n * 99 / 100];
    ret->new_s = self->shared->slowest_s;
    return true;
}

static void print(const char *name, const phase_t *phase)
{
    (void)printf("%s: pull p50 %.3f ms, p99 %.3f ms; slowest new client %.3f s; memory %ld MiB\n",
                 name, phase->median_ms, phase->p99_ms, phase->new_s, phase->memory_kb >> 10);
}

static bool run(bench_t *self, int seconds)
{
    psd_spec_t *spec = psd_spec_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    phase_t quiet;
    phase_t flooded;
    pid_t strangers = -1;
    pid_t silent = -1;
    long left_kb = 0;
    bool good = false;

    CHECK(find_ports(self));
    CHECK_OK(psd_connect(self->daemon.control, NULL, &client, self->err), self->err);
    CHECK_OK(psd_spec_set(spec, "rows", "1000", self->err), self->err);
    CHECK_OK(psd_spec_set(spec, "cols", "16", self->err), self->err);
    CHECK_OK(psd_table_create(client, "t", spec, &table, self->err), self->err);
    psd_spec_destroy(&spec);
    CHECK(measure(self, table, seconds / 10, &quiet)); /* warms up */
    CHECK(measure(self, table, seconds, &quiet));
    strangers = start(self, flood, STRANGERS_NICE);
    silent = start(self, say_nothing, STRANGERS_NICE);
    good = measure(self, table, seconds, &flooded);
    stop(strangers);
    stop(silent);
    CHECK(good);
    (void)printf("%.0f handshakes a second, %llu silent connections\n",
                 (double)self->shared->n_handshakes / seconds,
                 (unsigned long long)self->shared->n_silent);
    CHECK(self->shared->n_handshakes >= (uint64_t)seconds * HANDSHAKES * 9 / 10 &&
          self->shared->n_silent >= SILENT * 9 / 10);
    for (double until_s = now_s() + BACK_S; now_s() < until_s;) {
        left_kb = memory_kb(self) - quiet.memory_kb;
        if (left_kb <= MEMORY_LEFT_KB) {
            break;
        }
        sleep_s(0.5);
    }
    psd_table_close(&table);
    psd_close(&client);
    print("quiet", &quiet);
    print("strangers", &flooded);
    (void)printf("p50 %.2f times, p99 %.2f times, %ld MiB more, %ld MiB of them at the end\n",
                 flooded.median_ms / quiet.median_ms, flooded.p99_ms / quiet.p99_ms,
                 (flooded.memory_kb - quiet.memory_kb) >> 10, left_kb >> 10);
    return flooded.median_ms <= MEDIAN_TIMES * quiet.median_ms &&
           flooded.p99_ms <= P99_TIMES * quiet.p99_ms && flooded.new_s <= NEW_MOST_S &&
           flooded.memory_kb - quiet.memory_kb <= MEMORY_MOST_KB && left_kb <= MEMORY_LEFT_KB;
}

int main(int argc, char **argv)
{
    bench_t self = {.err = psd_error_new(), .took = malloc(PULLS * sizeof *self.took)};
    int seconds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : SECONDS;
    char key[4096];
    bool good = false;

    self.shared =
        mmap(NULL, sizeof *self.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    good = self.took != NULL && self.shared != MAP_FAILED && seconds >= 10 &&
           setenv("PSD_TRANSPORT", "tcp", 1) == 0 &&
           daemon_start(&self.daemon, "shards: 2\nsecurity:\n  level: encrypt\n");
    (void)snprintf(key, sizeof key, "%.4000s/data/admin.key", self.daemon.dir.path);
    good = good && setenv("PSD_KEY_FILE", key, 1) == 0 && run(&self, seconds);
    daemon_drop(&self.daemon, !good);
    free(self.took);
    psd_error_destroy(&self.err);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
