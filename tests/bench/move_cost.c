/* SPDX-License-Identifier: Apache-2.0 */
/*
 * move_cost - what a job notices of a table that moves to a node that joins
 *
 *   move_cost [MB [BYTES_PER_S…]]
 *
 * One node with a table of f32 (default 2048 MB, 8 partitions), every row of
 * it filled; a second node joins and the first is drained, so that all of the
 * table moves. First with nobody there, then while a client pushes 1 MB of it
 * and pulls it, over and over, and so again with each limit of
 * copies.bytes_per_s that is given. Prints, for each, the bytes that moved in a
 * second and the client's rounds before and meanwhile; and in front of that
 * what the link and the machine allow: as many bytes down a plain tcp
 * connection between two threads, with nobody there and beside that client, as
 * fast as it goes and no faster than rows do beside a client, each byte copied
 * on either side; and that client's rounds where two nodes have half of the
 * table each, and nothing moves.
 * The client does nothing else; then a second one works on what it has pulled,
 * about as long as that took, as a job that trains does.
 * PSD_PROGRAM names the daemon.
 */
#include <arpa/inet.h>
#include <psd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/cluster.h"

#define COLS 1024
#define PART_ROWS 256
#define PART_BYTES ((size_t)PART_ROWS * COLS * 4)
#define CALL_MS 60000
#define BEFORE_S 3.0
#define MOST_S 55.0
#define LOOK_NS 20000000L
#define JOB_PASSES 2
#define BUSY_RATE ((uint64_t)64 << 20) /* copies.busy_bytes_per_s */

typedef struct watch {
    const char *endpoint;
    double from_s;
    double done_s; /* 0: it did not end in time */
    atomic_bool ended;
} watch_t;

typedef struct stream {
    int from;
    int to;
    uint64_t bytes;
    uint64_t rate; /* in a second; 0: any */
    double from_s;
    double done_s;
    atomic_bool ended;
} stream_t;

/* A node with the table, and the client that uses it. */
typedef struct place {
    char config[128];
    cluster_t cluster;
    psd_client_t *client;
    psd_table_t *table;
    uint64_t n_rows;
    uint64_t round;
    unsigned n_passes; /* over what it has pulled, in each round */
    float sum;
    psd_error_t *err;
} place_t;

static float values[PART_ROWS * COLS];
static float pulled[PART_ROWS * COLS];
static uint64_t rows[PART_ROWS];

static double now_s(void)
{
    struct timespec now = {.tv_sec = 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- a plain stream ---- */

static void await_turn(const stream_t *self, uint64_t sent)
{
    double ahead =
        self->rate == 0 ? 0 : (double)sent / (double)self->rate - (now_s() - self->from_s);

    if (ahead > 0) {
        (void)nanosleep(
            &(struct timespec){.tv_sec = (time_t)ahead,
                               .tv_nsec = (long)((ahead - (double)(time_t)ahead) * 1e9)},
            NULL);
    }
}

static void *send_all(void *arg)
{
    stream_t *self = arg;
    char *bytes = calloc(1, PART_BYTES);
    char *from = calloc(1, PART_BYTES);
    uint64_t sent = bytes == NULL || from == NULL ? self->bytes : 0;

    while (sent < self->bytes) {
        uint64_t left = self->bytes - sent;
        ssize_t n = 0;

        await_turn(self, sent);
        memcpy(bytes, from, PART_BYTES);
        n = send(self->from, bytes, left < PART_BYTES ? left : PART_BYTES, MSG_NOSIGNAL);
        if (n <= 0) {
            break;
        }
        sent += (uint64_t)n;
    }
    (void)shutdown(self->from, SHUT_WR);
    free(bytes);
    free(from);
    return NULL;
}

static void *receive_all(void *arg)
{
    stream_t *self = arg;
    char *bytes = calloc(1, PART_BYTES);
    char *to = calloc(1, PART_BYTES);
    ssize_t n = bytes != NULL && to != NULL ? 1 : 0;

    while (n > 0) {
        n = recv(self->to, bytes, PART_BYTES, 0);
        if (n > 0) {
            memcpy(to, bytes, (size_t)n);
        }
    }
    self->done_s = now_s();
    atomic_store(&self->ended, true);
    free(bytes);
    free(to);
    return NULL;
}

static bool open_stream(stream_t *self)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = listener >= 0 && bind(listener, (struct sockaddr *)&at, sizeof at) == 0 &&
                listen(listener, 1) == 0 &&
                getsockname(listener, (struct sockaddr *)&at, &size) == 0;

    self->from = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    good = good && self->from >= 0 && connect(self->from, (struct sockaddr *)&at, sizeof at) == 0;
    self->to = good ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
    (void)close(listener);
    return self->to >= 0;
}

/* ---- the client ---- */

/* Every partition in turn. */
static bool run_round(place_t *self)
{
    uint64_t first = self->round++ * (self->n_rows / 8) % (self->n_rows - PART_ROWS);

    for (size_t i = 0; i < PART_ROWS; i++) {
        rows[i] = first + i;
    }
    CHECK_OK(psd_push(self->table, rows, PART_ROWS, values, (size_t)PART_ROWS * COLS, self->err),
             self->err);
    CHECK_OK(psd_pull(self->table, rows, PART_ROWS, pulled, (size_t)PART_ROWS * COLS, self->err),
             self->err);
    for (unsigned pass = 0; pass < self->n_passes; pass++) {
        for (size_t i = 0; i < (size_t)PART_ROWS * COLS; i++) {
            self->sum += pulled[i] * (float)pass;
        }
    }
    return true;
}

/* Rounds in a second, for so long or until it has ended. */
static bool run_rounds(place_t *self, double most_s, const atomic_bool *ended, double *ret_rate,
                       double *ret_worst_ms)
{
    double from = now_s();
    double last = from;
    double worst = 0;
    uint64_t n = 0;

    while (last - from < most_s && !(ended != NULL && atomic_load(ended))) {
        double now = 0;

        CHECK(run_round(self));
        n++;
        now = now_s();
        worst = now - last > worst ? now - last : worst;
        last = now;
    }
    *ret_rate = (double)n / (last - from);
    *ret_worst_ms = worst * 1000;
    return true;
}

static bool fill(place_t *self)
{
    for (uint64_t i = 0; i < self->n_rows; i += PART_ROWS) {
        for (size_t k = 0; k < PART_ROWS; k++) {
            rows[k] = i + k;
        }
        for (size_t k = 0; k < (size_t)PART_ROWS * COLS; k++) {
            values[k] = (float)((i + k) % 251);
        }
        CHECK_OK(
            psd_push(self->table, rows, PART_ROWS, values, (size_t)PART_ROWS * COLS, self->err),
            self->err);
    }
    return true;
}

static bool open_place(place_t *self, uint64_t mb, const char *limit, unsigned n_nodes)
{
    cluster_args_t args = {.n_nodes = n_nodes, .net = CLUSTER_DIRECT, .config = self->config};
    psd_options_t *options = psd_options_new();
    psd_spec_t *spec = psd_spec_new();
    char text[32];
    bool good = false;

    *self = (place_t){.n_rows = mb * PART_ROWS, .err = psd_error_new()};
    (void)snprintf(self->config, sizeof self->config, "shards: 1\ncopies:\n  bytes_per_s: %s\n",
                   limit);
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)self->n_rows);
    psd_options_set_timeout_ms(options, CALL_MS);
    good =
        cluster_start(&self->cluster, &args) &&
        psd_connect(self->cluster.nodes[0].control, options, &self->client, self->err) == PSD_OK &&
        psd_spec_set(spec, "rows", text, self->err) == PSD_OK &&
        psd_spec_set(spec, "cols", "1024", self->err) == PSD_OK &&
        psd_spec_set(spec, "partitions", "8", self->err) == PSD_OK &&
        psd_table_create(self->client, "big", spec, &self->table, self->err) == PSD_OK &&
        fill(self);
    psd_spec_destroy(&spec);
    psd_options_destroy(&options);
    return good;
}

static void close_place(place_t *self, bool good)
{
    if (!good) {
        (void)fprintf(stderr, "%s\n", psd_error_text(self->err));
    }
    psd_table_close(&self->table);
    psd_close(&self->client);
    cluster_drop(&self->cluster, !good);
    psd_error_destroy(&self->err);
}

/* ---- a move ---- */

static bool has_all(psd_client_t *client, psd_error_t *err)
{
    char *reply = NULL;
    bool found = psd_request(client, "{\"op\":\"node_drain\",\"name\":\"n0\"}", CALL_MS, &reply,
                             err) == PSD_OK &&
                 strstr(reply, "\"left\":{\"copies\":0,") != NULL;

    psd_free(reply);
    return found;
}

static void *watch_move(void *arg)
{
    const struct timespec step = {.tv_nsec = LOOK_NS};
    watch_t *self = arg;
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;

    if (psd_connect(self->endpoint, NULL, &client, err) == PSD_OK) {
        while (now_s() - self->from_s < MOST_S && self->done_s == 0) {
            if (has_all(client, err)) {
                self->done_s = now_s();
            } else {
                (void)nanosleep(&step, NULL);
            }
        }
    }
    if (self->done_s == 0) {
        (void)fprintf(stderr, "the move did not end: %s\n", psd_error_text(err));
    }
    psd_close(&client);
    psd_error_destroy(&err);
    atomic_store(&self->ended, true);
    return NULL;
}

/* The second node is there, and has nothing yet. */
static bool move(place_t *self, const char *limit, bool with_job)
{
    double bytes = (double)self->n_rows * COLS * 4;
    watch_t watch = {.endpoint = self->cluster.nodes[0].control};
    pthread_t thread;
    double before = 0;
    double meanwhile = 0;
    double worst_ms = 0;

    if (with_job) {
        CHECK(run_rounds(self, BEFORE_S, NULL, &before, &worst_ms));
    }
    CHECK(cluster_add(&self->cluster));
    watch.from_s = now_s();
    CHECK(pthread_create(&thread, NULL, watch_move, &watch) == 0);
    if (with_job && !run_rounds(self, 2 * MOST_S, &watch.ended, &meanwhile, &worst_ms)) {
        (void)pthread_join(thread, NULL);
        return false;
    }
    (void)pthread_join(thread, NULL);
    CHECK(watch.done_s > 0);
    (void)printf("moved at %5.0f MB/s, limit %s", bytes / 1e6 / (watch.done_s - watch.from_s),
                 limit);
    if (with_job) {
        (void)printf(", %s %.0f of %.0f rounds/s (%.0f %%), the longest took "
                     "%.0f ms; none failed",
                     self->n_passes > 0 ? "job that computes" : "job", meanwhile, before,
                     100 * meanwhile / before, worst_ms);
    }
    (void)printf("\n");
    (void)fflush(stdout);
    return true;
}

/* As many bytes by a plain connection. */
static bool stream(place_t *self, bool with_job, uint64_t rate)
{
    double bytes = (double)self->n_rows * COLS * 4;
    stream_t way = {.bytes = (uint64_t)bytes, .rate = rate, .from = -1, .to = -1};
    pthread_t sender;
    pthread_t receiver;
    double before = 0;
    double meanwhile = 0;
    double worst_ms = 0;
    bool good = open_stream(&way);

    if (good && with_job) {
        good = run_rounds(self, BEFORE_S, NULL, &before, &worst_ms);
    }
    way.from_s = now_s();
    if (good && pthread_create(&sender, NULL, send_all, &way) == 0) {
        good = pthread_create(&receiver, NULL, receive_all, &way) == 0;
        if (good && with_job) {
            good = run_rounds(self, MOST_S, &way.ended, &meanwhile, &worst_ms);
        }
        (void)shutdown(way.to, good ? SHUT_WR : SHUT_RDWR);
        (void)pthread_join(sender, NULL);
        (void)pthread_join(receiver, NULL);
    }
    (void)close(way.from);
    (void)close(way.to);
    (void)printf("plain tcp %5.0f MB/s", bytes / 1e6 / (way.done_s - way.from_s));
    if (with_job) {
        (void)printf(", job %.0f of %.0f rounds/s (%.0f %%)", meanwhile, before,
                     100 * meanwhile / before);
    }
    (void)printf("\n");
    (void)fflush(stdout);
    return good;
}

typedef struct plan {
    const char *limit;
    bool has_stream; /* in front of the move */
    bool has_job;
    unsigned n_passes;
} plan_t;

static bool run(uint64_t mb, const plan_t *plan)
{
    place_t place;
    bool good = open_place(&place, mb, plan->limit, 1);

    place.n_passes = plan->n_passes;
    good = good && (!plan->has_stream || (stream(&place, false, 0) && stream(&place, true, 0) &&
                                          stream(&place, true, BUSY_RATE)));
    good = good && move(&place, plan->limit, plan->has_job);
    close_place(&place, good);
    return good;
}

/* What the job pays for two nodes, also when nothing moves. */
static bool run_halves(uint64_t mb)
{
    place_t place;
    double rate = 0;
    double worst_ms = 0;
    bool good =
        open_place(&place, mb, "0", 2) && run_rounds(&place, BEFORE_S, NULL, &rate, &worst_ms);

    (void)printf("half on each of two nodes, nothing moves: job %.0f rounds/s\n", rate);
    (void)fflush(stdout);
    close_place(&place, good);
    return good;
}

int main(int argc, char **argv)
{
    uint64_t mb = argc > 1 ? strtoull(argv[1], NULL, 10) : 2048;
    bool good = mb > 0 && run(mb, &(plan_t){.limit = "0", .has_stream = true}) && run_halves(mb) &&
                run(mb, &(plan_t){.limit = "0", .has_job = true}) &&
                run(mb, &(plan_t){.limit = "0", .has_job = true, .n_passes = JOB_PASSES});

    for (int i = 2; good && i < argc; i++) {
        good = run(mb, &(plan_t){.limit = argv[i], .has_job = true}) &&
               run(mb, &(plan_t){.limit = argv[i], .has_job = true, .n_passes = JOB_PASSES});
    }
    return good ? 0 : 1;
}
