/* SPDX-License-Identifier: Apache-2.0 */
/* One list of cases that every carrier passes: tcp, ipc, lanes, and a plug-in
 * (carrier_queue.c). Threads send and release payloads, so this is a plain
 * program that also runs under TSan. On a busy machine each change of threads
 * may take a tenth of a second: cases are made of few, with much in each. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "carrier_kit.h"
#include "support/temp_dir.h"

#define HIGH_WATER 400
#define N_LINKS 2
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define N_RANDOM 10000
#else
#define N_RANDOM 100000
#endif

typedef struct way {
    const char *name;
    const char *endpoint;
    const char *file; /* a path's end, after the test's own directory; NULL: none */
    bool tells_port;  /* its ports name connections that are gone */
    bool can_stop;    /* its links hear that their context was stopped */
} way_t;

static const way_t WAYS[] = {
    {"tcp", "tcp://127.0.0.1:*", NULL, false, true},
    {"ipc", "ipc://", "/s.ipc", false, true},
    {"lane", "lane://", "/s.lane", true, false},
    {"plug-in", "ucx://queue", NULL, true, true},
};
/* Between the ends of one rank, and so through MPI. */
static const way_t BY_MPI = {"mpi", "mpi://", NULL, true, true};

typedef struct rig {
    const way_t *way;
    temp_dir_t dir;
    ps_context_t *context;
    ps_socket_args_t args;
    ps_socket_t *port;
    ps_socket_t *links[N_LINKS];
    psd_error_t *err;
} rig_t;

/* A lane's port takes in a link while that connects. */
typedef struct taker {
    pthread_t thread;
    ps_socket_t *port;
    atomic_bool stop;
} taker_t;

static void *take_in(void *of)
{
    taker_t *self = of;

    while (!atomic_load(&self->stop)) {
        bool ready = false;

        if (ps_socket_wait(&self->port, 1, 1, &ready, NULL) != PSD_OK) {
            break;
        }
    }
    return NULL;
}

static bool connect_link(rig_t *self, ps_socket_t **ret_link)
{
    taker_t taker = {.port = self->port};
    ps_socket_args_t args = self->args;
    psd_status_t rc = PSD_OK;

    args.is_watched = true;
    CHECK(pthread_create(&taker.thread, NULL, take_in, &taker) == 0);
    rc = ps_socket_connect(ps_socket_endpoint(self->port, 0), &args, ret_link, self->err);
    atomic_store(&taker.stop, true);
    CHECK(pthread_join(taker.thread, NULL) == 0);
    CHECK_OK(rc, self->err);
    return true;
}

static bool open_rig(rig_t *self, const way_t *way)
{
    char endpoint[PATH_MAX + 32];
    const char *endpoints[] = {endpoint};

    *self = (rig_t){.way = way, .err = psd_error_new()};
    CHECK_OK(ps_context_new(1, &self->context, self->err), self->err);
    self->args = (ps_socket_args_t){.context = self->context,
                                    .high_water = HIGH_WATER,
                                    .frame_bytes = 8 * MIB,
                                    .assembly_bytes = 256 * MIB,
                                    .chunk_bytes = CHUNK,
                                    .linger_ms = 1000,
                                    .lane = {.most = 4, .arena_bytes = 4 * MIB}};
    CHECK(temp_dir_make(&self->dir));
    (void)snprintf(endpoint, sizeof endpoint, "%s%s%s", way->endpoint,
                   way->file == NULL ? "" : self->dir.path, way->file == NULL ? "" : way->file);
    CHECK_OK(ps_socket_bind(endpoints, 1, &self->args, &self->port, self->err), self->err);
    for (int i = 0; i < N_LINKS; i++) {
        CHECK(connect_link(self, &self->links[i]));
    }
    return true;
}

static void close_rig(rig_t *self)
{
    for (int i = 0; i < N_LINKS; i++) {
        ps_socket_close(&self->links[i]);
    }
    ps_socket_close(&self->port);
    ps_context_destroy(&self->context);
    temp_dir_drop(&self->dir);
    psd_error_destroy(&self->err);
}

/* The port's number of a link. */
static bool conn_of(rig_t *self, ps_socket_t *link, uint64_t *ret_conn)
{
    CHECK_OK(send_numbered(link, 0, 1, 0, self->err), self->err);
    return receive_numbered(self->port, link, 1, 0, ret_conn, self->err);
}

/* ---- the cases ----------------------------------------------------------- */

/* Small ones go in batches, large ones as frames, larger ones in pieces; each
 * arrives after those that were sent before it. */
static bool order_is_kept(rig_t *self)
{
    const uint64_t sizes[] = {1, 0, 20, 300, 0, 2000, 1, 400000, 5, 256};
    const uint64_t n = sizeof sizes / sizeof *sizes;
    uint64_t conn = 0;

    CHECK(conn_of(self, self->links[0], &conn));
    for (int round = 0; round < 5; round++) {
        for (uint64_t i = 0; i < n; i++) {
            CHECK_OK(send_numbered(self->links[0], 0, i, sizes[i], self->err), self->err);
            CHECK_OK(send_numbered(self->port, conn, i, sizes[n - 1 - i], self->err), self->err);
        }
        for (uint64_t i = 0; i < n; i++) {
            CHECK(receive_numbered(self->port, self->links[0], i, sizes[i], NULL, self->err));
            CHECK(
                receive_numbered(self->links[0], self->port, i, sizes[n - 1 - i], NULL, self->err));
        }
    }
    return true;
}

static bool sizes_up_to_64_mib(rig_t *self)
{
    const uint64_t sizes[] = {0, 1, 2, 255, 256, 257, MIB / 4, MIB / 4 + 1, 16 * MIB};
    uint64_t conn = 0;

    for (uint64_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK_OK(send_numbered(self->links[0], 0, i, sizes[i], self->err), self->err);
        CHECK(receive_numbered(self->port, self->links[0], i, sizes[i], &conn, self->err));
        CHECK_OK(send_numbered(self->port, conn, i, sizes[i], self->err), self->err);
        CHECK(receive_numbered(self->links[0], self->port, i, sizes[i], NULL, self->err));
    }
    return true;
}

/* Who is not read gets a bounded number of messages; none of them is lost. */
static bool a_full_queue_is_busy(rig_t *self)
{
    const uint64_t n_values = 2048;
    psd_status_t rc = PSD_OK;
    uint64_t n = 0;

    while (rc == PSD_OK) {
        rc = send_numbered(self->links[0], 0, n, n_values, self->err);
        n += rc == PSD_OK ? 1 : 0;
        CHECK(n < 10000);
    }
    CHECK(rc == PSD_BUSY && strstr(psd_error_text(self->err), "gone") == NULL);
    psd_error_clear(self->err);
    CHECK(n >= HIGH_WATER / 2);
    for (uint64_t i = 0; i < n; i++) {
        CHECK(receive_numbered(self->port, self->links[0], i, n_values, NULL, self->err));
    }
    CHECK_OK(send_numbered(self->links[0], 0, n, n_values, self->err), self->err);
    return receive_numbered(self->port, self->links[0], n, n_values, NULL, self->err);
}

/* After a flush the sender has nothing more to do. */
static bool a_flush_is_enough(rig_t *self)
{
    for (uint64_t i = 0; i < 10; i++) {
        CHECK_OK(send_numbered(self->links[0], 0, i, i % 3, self->err), self->err);
        ps_socket_flush(self->links[0]);
        CHECK(ps_socket_n_collected(self->links[0]) == 0);
        CHECK(receive_numbered(self->port, NULL, i, i % 3, NULL, self->err));
    }
    return true;
}

typedef struct sleeper {
    rig_t *rig;
    uint64_t n;
    bool is_good;
} sleeper_t;

/* Sends back what comes. */
static void *answer(void *of)
{
    sleeper_t *self = of;
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint64_t conn = 0;

    self->is_good = true;
    for (uint64_t i = 0; self->is_good && i < self->n; i++) {
        self->is_good = receive_numbered(self->rig->port, NULL, i, i % 5, &conn, err) &&
                        send_numbered(self->rig->port, conn, i, i % 5, err) == PSD_OK;
        ps_socket_flush(self->rig->port);
    }
    return NULL;
}

/* Both ends sleep until the other one has sent something. One that is not woken
 * sleeps for all of its patience. */
static bool sleepers_are_woken(rig_t *self)
{
    sleeper_t sleeper = {.rig = self, .n = 40};
    uint64_t begin_ms = ps_now_ms();
    pthread_t thread;
    bool is_good = true;

    CHECK(pthread_create(&thread, NULL, answer, &sleeper) == 0);
    for (uint64_t i = 0; is_good && i < sleeper.n; i++) {
        is_good = send_numbered(self->links[0], 0, i, i % 5, self->err) == PSD_OK &&
                  receive_numbered(self->links[0], NULL, i, i % 5, NULL, self->err);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(is_good && sleeper.is_good);
    CHECK(ps_now_ms() - begin_ms < PATIENCE_MS);
    return true;
}

/* Until a send says so. What is small is only collected, so it is not. */
static bool sends_become_busy(rig_t *self, ps_socket_t *socket, uint64_t conn)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && ps_now_ms() < until_ms) {
        bool ready = false;

        CHECK_OK(ps_socket_wait(&socket, 1, 5, &ready, self->err), self->err);
        rc = send_numbered(socket, conn, 1, 300, self->err);
    }
    CHECK_ERROR(rc, PSD_BUSY, "", self->err);
    return true;
}

static bool port_is_told(rig_t *self, uint64_t conn)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    uint64_t gone = 0;
    got_t got;

    while (gone == 0 && ps_now_ms() < until_ms) {
        bool is_some = false;

        CHECK_OK(look(self->port, 5, &is_some, &got, self->err), self->err);
        CHECK(!is_some);
        if (!ps_socket_next_gone(self->port, &gone)) {
            gone = 0;
        }
    }
    CHECK(gone == conn);
    return true;
}

static bool a_peer_that_is_gone_is_told(rig_t *self)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    uint64_t conn = 0;
    ps_socket_t *link = NULL;

    /* A link leaves: its last message comes, then the port hears of it. */
    CHECK(connect_link(self, &link) && conn_of(self, link, &conn));
    CHECK_OK(send_numbered(link, 0, 2, 3, self->err), self->err);
    ps_socket_close(&link);
    CHECK(receive_numbered(self->port, NULL, 2, 3, NULL, self->err));
    CHECK(!self->way->tells_port || port_is_told(self, conn));
    CHECK(sends_become_busy(self, self->port, conn));

    /* The port leaves. */
    CHECK(connect_link(self, &link) && conn_of(self, link, &conn));
    CHECK_OK(send_numbered(self->port, conn, 3, 0, self->err), self->err);
    CHECK(receive_numbered(link, self->port, 3, 0, NULL, self->err));
    CHECK(!ps_socket_is_gone(link) && ps_socket_is_up(link));
    ps_socket_close(&self->port);
    while (!ps_socket_is_gone(link) && ps_now_ms() < until_ms) {
        bool ready = false;

        CHECK_OK(ps_socket_wait(&link, 1, 5, &ready, self->err), self->err);
    }
    CHECK(ps_socket_is_gone(link) && !ps_socket_is_up(link));
    ps_socket_drop(&link);
    return true;
}

/* Sleeps until the wait fails. */
static void *sleep_long(void *of)
{
    rig_t *self = of;
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && ps_now_ms() < until_ms) {
        bool ready = false;

        rc = ps_socket_wait(&self->links[0], 1, PATIENCE_MS, &ready, NULL);
    }
    return rc == PSD_IO ? NULL : of;
}

/* A thread that sleeps on a link ends, as that of heartbeats; and a later wait fails, too. */
static bool a_stopped_context_ends_waits(rig_t *self)
{
    pthread_t thread;
    void *failed = NULL;
    bool ready = false;
    got_t got;

    if (!self->way->can_stop) {
        return true;
    }
    CHECK(pthread_create(&thread, NULL, sleep_long, self) == 0);
    ps_context_stop(self->context);
    CHECK(pthread_join(thread, &failed) == 0 && failed == NULL);
    CHECK_ERROR(ps_socket_wait(&self->links[0], 1, PATIENCE_MS, &ready, self->err), PSD_IO, "wait",
                self->err);
    CHECK_ERROR(take(self->links[0], &ready, &got, self->err), PSD_IO, "receive", self->err);
    CHECK_ERROR(send_numbered(self->links[0], 0, 1, 2048, self->err), PSD_IO, "send", self->err);
    return true;
}

/* ---- random messages ----------------------------------------------------- */

/* One direction between the port and a link: messages are numbered. */
typedef struct flow {
    ps_socket_t *from;
    ps_socket_t *to;
    uint64_t conn; /* that is sent to */
    ps_rng_t sent; /* their sizes; the receiver makes the same */
    ps_rng_t got;
    uint64_t n_sent;
    uint64_t n_got;
} flow_t;

static uint64_t random_size(ps_rng_t *rng)
{
    uint64_t kind = ps_rng_below(rng, 1000);

    return kind < 100   ? 0
           : kind < 900 ? 1 + ps_rng_below(rng, 60)
           : kind < 998 ? 1 + ps_rng_below(rng, 2000)
                        : 1 + ps_rng_below(rng, 600000);
}

/* Takes what is there. */
static bool drain(flow_t *flows, ps_socket_t *to, uint64_t wait_ms, psd_error_t *err)
{
    got_t got;
    bool is_some = false;

    CHECK_OK(look(to, wait_ms, &is_some, &got, err), err);
    while (is_some) {
        flow_t *flow = NULL;
        bool ok = false;

        for (int i = 0; flow == NULL && i < 2 * N_LINKS; i++) {
            /* A port knows the link by what the link gets. */
            flow = flows[i].to == to && (got.conn == 0 || flows[i ^ 1].conn == got.conn) ? &flows[i]
                                                                                         : NULL;
        }
        if (flow != NULL) {
            ok = is_numbered(&got, flow->n_got, random_size(&flow->got));
            flow->n_got++;
        }
        ps_payload_destroy(&got.payload);
        CHECK(ok);
        CHECK_OK(take(to, &is_some, &got, err), err);
    }
    return true;
}

/* Few enough are on their way for every queue. */
static bool send_some(flow_t *flow, psd_error_t *err)
{
    while (flow->n_sent < N_RANDOM / (2 * N_LINKS) && flow->n_sent < flow->n_got + HIGH_WATER / 2) {
        CHECK_OK(send_numbered(flow->from, flow->conn, flow->n_sent, random_size(&flow->sent), err),
                 err);
        flow->n_sent++;
    }
    ps_socket_flush(flow->from);
    return true;
}

static bool all_flow(rig_t *self, flow_t *flows)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    uint64_t n = 0;

    while (n < N_RANDOM) {
        uint64_t before = n;

        for (int i = 0; i < 2 * N_LINKS; i++) {
            CHECK(send_some(&flows[i], self->err));
        }
        CHECK(drain(flows, self->port, 1, self->err));
        for (int i = 0; i < N_LINKS; i++) {
            CHECK(drain(flows, self->links[i], 0, self->err));
        }
        n = 0;
        for (int i = 0; i < 2 * N_LINKS; i++) {
            n += flows[i].n_got;
        }
        until_ms = n > before ? ps_now_ms() + PATIENCE_MS : until_ms;
        CHECK(ps_now_ms() < until_ms);
    }
    return true;
}

static bool random_messages_come(rig_t *self)
{
    flow_t flows[2 * N_LINKS];

    for (int i = 0; i < N_LINKS; i++) {
        uint64_t conn = 0;

        CHECK(conn_of(self, self->links[i], &conn));
        flows[2 * i] = (flow_t){.from = self->links[i], .to = self->port};
        flows[2 * i + 1] = (flow_t){.from = self->port, .to = self->links[i], .conn = conn};
    }
    for (uint64_t i = 0; i < 2 * N_LINKS; i++) {
        flows[i].sent = (ps_rng_t){.state = i};
        flows[i].got = flows[i].sent;
    }
    CHECK(all_flow(self, flows));
    for (int i = 0; i < N_LINKS; i++) {
        CHECK(ps_socket_n_lost(self->links[i]) == 0);
    }
    CHECK(ps_socket_n_lost(self->port) == 0 && ps_socket_n_unfinished(self->port) == 0);
    return true;
}

/* ---- plug-ins ------------------------------------------------------------ */

/* A directory of plug-ins that nobody else can change. */
static bool put_plugin(const temp_dir_t *dir, const char *name, const char *file)
{
    char path[PATH_MAX + 32];
    uint8_t bytes[4096];
    size_t n = 0;
    FILE *from = fopen(file, "rbe");
    FILE *to = NULL;

    (void)snprintf(path, sizeof path, "%s/libpsd-%s.so", dir->path, name);
    to = fopen(path, "wbe");
    CHECK(from != NULL && to != NULL);
    while ((n = fread(bytes, 1, sizeof bytes, from)) > 0) {
        CHECK(fwrite(bytes, 1, n, to) == n);
    }
    CHECK(fclose(from) == 0 && fclose(to) == 0);
    return chmod(path, 0644) == 0;
}

static bool plugins_are_checked(const char *carrier_dir)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_socket_args_t args = {
        .high_water = 10, .frame_bytes = MIB, .assembly_bytes = MIB, .chunk_bytes = CHUNK};
    const char *const two[] = {"ucx://a", "ucx://b"};
    ps_socket_t *socket = NULL;
    temp_dir_t dir = {""};
    char text[PATH_MAX + 64];

    CHECK(setenv("PSD_CARRIER_DIR", carrier_dir, 1) == 0);
    CHECK_ERROR(ps_socket_connect("ucx://nobody", &args, &socket, err), PSD_INVALID,
                "connect \"ucx://nobody\": no such port", err);
    CHECK_ERROR(ps_socket_bind(two, 2, &args, &socket, err), PSD_INVALID,
                "\"ucx://b\" is a second endpoint of a plug-in", err);
    (void)snprintf(text, sizeof text, "carrier mpi, %s/libpsd-mpi.so: No such file", carrier_dir);
    CHECK_ERROR(ps_socket_connect("mpi://x", &args, &socket, err), PSD_UNSUPPORTED, text, err);
    CHECK(setenv("PSD_CARRIER_DIR", "/nowhere", 1) == 0);
    CHECK_ERROR(ps_socket_connect("mpi://x", &args, &socket, err), PSD_UNSUPPORTED,
                "carrier mpi, /nowhere/libpsd-mpi.so: No such file", err);
    CHECK(temp_dir_make(&dir) && chmod(dir.path, 0777) == 0);
    CHECK(setenv("PSD_CARRIER_DIR", dir.path, 1) == 0);
    (void)snprintf(text, sizeof text, "carrier ucx, %s/libpsd-ucx.so: can be written by", dir.path);
    CHECK_ERROR(ps_socket_connect("ucx://x", &args, &socket, err), PSD_DENIED, text, err);
    temp_dir_drop(&dir);
    CHECK(socket == NULL);
    return setenv("PSD_CARRIER_DIR", carrier_dir, 1) == 0;
}

static bool every_case(const way_t *way)
{
    rig_t rig;
    bool ok = open_rig(&rig, way) && order_is_kept(&rig) && sizes_up_to_64_mib(&rig) &&
              a_full_queue_is_busy(&rig) && a_flush_is_enough(&rig) && sleepers_are_woken(&rig) &&
              random_messages_come(&rig) && a_peer_that_is_gone_is_told(&rig);

    close_rig(&rig);
    ok = ok && open_rig(&rig, way) && a_stopped_context_ends_waits(&rig);
    close_rig(&rig);
    (void)fprintf(stderr, "%s %s\n", ok ? "ok" : "FAIL", way->name);
    return ok;
}

static bool all_ways(const char *file)
{
    temp_dir_t dir = {""};
    bool ok = temp_dir_make(&dir) && put_plugin(&dir, "ucx", file) && plugins_are_checked(dir.path);

    for (size_t i = 0; ok && i < sizeof WAYS / sizeof *WAYS; i++) {
        ok = every_case(&WAYS[i]);
    }
    temp_dir_drop(&dir);
    return ok;
}

static bool mpi_alone(const char *file)
{
    temp_dir_t dir = {""};
    bool ok = temp_dir_make(&dir) && put_plugin(&dir, "mpi", file) &&
              setenv("PSD_CARRIER_DIR", dir.path, 1) == 0 && every_case(&BY_MPI);

    temp_dir_drop(&dir);
    return ok;
}

/* thread_transport_carriers PLUG-IN
 * thread_transport_carriers mpi PLUG-IN */
int main(int argc, char **argv)
{
    bool ok = make_pool() && (argc == 2   ? all_ways(argv[1])
                              : argc == 3 ? mpi_alone(argv[2])
                                          : false);

    free(pool);
    return ok ? 0 : 1;
}
