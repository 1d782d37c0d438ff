/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks of an MPI world, started by mpirun: rank 1 has a port and sends back
 * what comes, rank 0 has links.
 *
 *   mpi_ranks talk DIR        both end well
 *   mpi_ranks die DIR FILE    rank 1 kills itself; rank 0 is told, and writes
 *                             FILE */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/rng.h"
#include "carrier_kit.h"
#include "transport/sockets/plugin_socket.h"

#define HIGH_WATER 100
#define PORT "mpi://1:1" /* the first number of a process */
#define N_LINKS 3
#define N_RANDOM 20000

static const ps_socket_args_t ARGS = {.high_water = HIGH_WATER,
                                      .frame_bytes = 8 * MIB,
                                      .assembly_bytes = 256 * MIB,
                                      .chunk_bytes = CHUNK,
                                      .linger_ms = 1000};

/* ---- both ---------------------------------------------------------------- */

static const ps_carrier_plugin_t *mpi;

static bool enter(int rank, psd_error_t *err)
{
    char reason[PS_CARRIER_REASON] = "";
    char value[PS_CARRIER_TEXT];
    int mine = -1;
    int size = 0;

    CHECK_OK(ps_plugin_load("mpi", &mpi, err), err);
    CHECK(ps_plugin_loaded("ucx") == NULL && ps_plugin_loaded("mpi") == mpi);
    CHECK(mpi->find("name 0", value) == ENOENT);
    CHECK(mpi->enter(&mine, &size, reason) == 0);
    return mine == rank && size == 2;
}

static bool hear(const char *key, const char *wanted)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    char value[PS_CARRIER_TEXT];

    while (mpi->find(key, value) != 0) {
        CHECK(ps_now_ms() < until_ms);
        CHECK(ps_socket_wait(NULL, 0, 1, NULL, NULL) == PSD_OK);
    }
    CHECK(strcmp(value, wanted) == 0);
    return true;
}

static bool names_are_known(int rank, psd_error_t *err)
{
    char long_text[2 * PS_CARRIER_TEXT];

    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    CHECK(enter(rank, err));
    CHECK(mpi->say(long_text, "") == EINVAL && mpi->say("", long_text) == EINVAL);
    CHECK(mpi->say(rank == 0 ? "name 0" : "name 1", rank == 0 ? "anne" : "") == 0);
    CHECK(hear("name 0", "anne") && hear("name 1", ""));
    return mpi->is_lost(0) == 0 && mpi->is_lost(1) == 0;
}

/* ---- rank 1 -------------------------------------------------------------- */

static uint64_t n_values_of(const got_t *got)
{
    uint64_t bytes = 0;

    for (size_t i = 0; got->payload != NULL && i < got->payload->n_spans; i++) {
        bytes += got->payload->spans[i].size;
    }
    return bytes / 4;
}

/* Sends it back; who has sent much and reads nothing has to wait. */
static bool send_back(ps_socket_t *port, const got_t *got, psd_error_t *err)
{
    uint64_t number = got->payload == NULL ? got->message.bye.session : got->message.push.request;
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    psd_status_t rc = PSD_BUSY;

    while (rc == PSD_BUSY && ps_now_ms() < until_ms) {
        bool ready = false;

        rc = send_numbered(port, got->conn, number, n_values_of(got), err);
        if (rc == PSD_BUSY) {
            psd_error_clear(err);
            CHECK_OK(ps_socket_wait(&port, 1, 0, &ready, err), err);
        }
    }
    CHECK_OK(rc, err);
    return true;
}

/* Until all links were there, and have left. */
static bool answer(psd_error_t *err)
{
    const char *endpoint = "mpi://";
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    ps_socket_t *port = NULL;
    int n_gone = 0;

    CHECK(names_are_known(1, err));
    CHECK_OK(ps_socket_bind(&endpoint, 1, &ARGS, &port, err), err);
    CHECK(strcmp(ps_socket_endpoint(port, 0), PORT) == 0);
    while (n_gone < N_LINKS && ps_now_ms() < until_ms) {
        got_t got;
        bool is_some = false;
        uint64_t conn = 0;
        bool ok = true;

        CHECK_OK(look(port, 1000, &is_some, &got, err), err);
        if (is_some) {
            until_ms = ps_now_ms() + PATIENCE_MS;
            ok = send_back(port, &got, err);
            ps_payload_destroy(&got.payload);
        }
        CHECK(ok);
        while (ps_socket_next_gone(port, &conn)) {
            n_gone++;
        }
    }
    CHECK(n_gone == N_LINKS && ps_socket_n_lost(port) == 0);
    ps_socket_close(&port);
    return true;
}

/* ---- rank 0 -------------------------------------------------------------- */

/* A link whose port is there: one that is not says so. */
static bool connect_link(ps_socket_t **ret_link, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    while (ps_now_ms() < until_ms) {
        bool is_some = false;
        got_t got;

        CHECK_OK(ps_socket_connect(PORT, &ARGS, ret_link, err), err);
        CHECK_OK(send_numbered(*ret_link, 0, 1, 0, err), err);
        while (!is_some && !ps_socket_is_gone(*ret_link) && ps_now_ms() < until_ms) {
            CHECK_OK(look(*ret_link, 100, &is_some, &got, err), err);
        }
        if (is_some) {
            return is_numbered(&got, 1, 0);
        }
        ps_socket_drop(ret_link);
    }
    CHECK(!"the port is not there");
    return false;
}

static bool sizes_come_back(ps_socket_t *link, psd_error_t *err)
{
    const uint64_t sizes[] = {0, 1, 255, 256, 257, 4000, MIB / 4, MIB / 4 + 1, 3 * MIB};

    for (uint64_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK_OK(send_numbered(link, 0, i, sizes[i], err), err);
        CHECK(receive_numbered(link, NULL, i, sizes[i], NULL, err));
    }
    return true;
}

/* Of all links at once; each gets its own, in order. */
static bool random_ones_come_back(ps_socket_t *const *links, psd_error_t *err)
{
    ps_rng_t sent[N_LINKS];
    ps_rng_t back[N_LINKS];
    uint64_t n_sent[N_LINKS] = {0};
    uint64_t n_back[N_LINKS] = {0};

    for (uint64_t i = 0; i < N_LINKS; i++) {
        sent[i] = (ps_rng_t){.state = i};
        back[i] = sent[i];
    }
    for (uint64_t n = 0; n < N_RANDOM; n++) {
        uint64_t i = n % N_LINKS;

        CHECK_OK(send_numbered(links[i], 0, n_sent[i], 1 + ps_rng_below(&sent[i], 600), err), err);
        n_sent[i]++;
        ps_socket_flush(links[i]);
        if (n_sent[i] - n_back[i] < HIGH_WATER / 2) {
            continue;
        }
        while (n_back[i] < n_sent[i]) {
            CHECK(receive_numbered(links[i], NULL, n_back[i], 1 + ps_rng_below(&back[i], 600), NULL,
                                   err));
            n_back[i]++;
        }
    }
    for (uint64_t i = 0; i < N_LINKS; i++) {
        while (n_back[i] < n_sent[i]) {
            CHECK(receive_numbered(links[i], NULL, n_back[i], 1 + ps_rng_below(&back[i], 600), NULL,
                                   err));
            n_back[i]++;
        }
    }
    return true;
}

/* Rank 1 cannot send back any more, so it does not read; then it can. */
static bool who_does_not_read_waits(ps_socket_t *link, psd_error_t *err)
{
    const uint64_t n_values = 2048;
    psd_status_t rc = PSD_OK;
    uint64_t n = 0;
    uint64_t until_ms = 0;

    while (rc == PSD_OK) {
        rc = send_numbered(link, 0, n, n_values, err);
        n += rc == PSD_OK ? 1 : 0;
        CHECK(n < 100000);
    }
    CHECK(rc == PSD_BUSY && !ps_socket_is_gone(link));
    psd_error_clear(err);
    for (uint64_t i = 0; i < n; i++) {
        CHECK(receive_numbered(link, NULL, i, n_values, NULL, err));
    }
    until_ms = ps_now_ms() + PATIENCE_MS;
    rc = PSD_BUSY;
    while (rc == PSD_BUSY && ps_now_ms() < until_ms) {
        psd_error_clear(err);
        rc = send_numbered(link, 0, n, n_values, err);
    }
    CHECK_OK(rc, err);
    return receive_numbered(link, NULL, n, n_values, NULL, err);
}

static bool ask(psd_error_t *err)
{
    ps_socket_t *links[N_LINKS] = {NULL};
    ps_socket_t *other = NULL;
    uint64_t n_sent = 0;
    uint64_t n_received = 0;
    bool ok = true;

    CHECK(names_are_known(0, err));
    CHECK_ERROR(ps_socket_connect("mpi://2:1", &ARGS, &other, err), PSD_INVALID,
                "connect \"mpi://2:1\": the world has 2 ranks", err);
    CHECK_ERROR(ps_socket_connect("mpi://1", &ARGS, &other, err), PSD_INVALID,
                "connect \"mpi://1\": allowed: mpi://RANK:NUMBER", err);
    for (int i = 0; i < N_LINKS; i++) {
        CHECK(connect_link(&links[i], err));
    }
    ok = sizes_come_back(links[0], err) && random_ones_come_back(links, err) &&
         who_does_not_read_waits(links[1], err);
    for (int i = 0; i < N_LINKS; i++) {
        ps_socket_close(&links[i]);
    }
    mpi->count(&n_sent, &n_received);
    CHECK(n_sent > 12 * MIB && n_received > 12 * MIB);
    return ok;
}

/* ---- a rank that dies ---------------------------------------------------- */

static bool die(psd_error_t *err)
{
    const char *endpoint = "mpi://";
    ps_socket_t *port = NULL;
    got_t got;

    CHECK(enter(1, err));
    CHECK_OK(ps_socket_bind(&endpoint, 1, &ARGS, &port, err), err);
    CHECK_OK(receive(port, NULL, &got, err), err);
    CHECK(send_back(port, &got, err));
    ps_socket_flush(port);
    CHECK_OK(receive(port, NULL, &got, err), err); /* it has arrived */
    return kill(getpid(), SIGKILL) == 0;
}

static bool outlive(const char *file, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    ps_socket_t *link = NULL;
    FILE *to = NULL;

    CHECK(enter(0, err));
    CHECK(connect_link(&link, err));
    CHECK_OK(send_numbered(link, 0, 2, 0, err), err);
    while (!ps_socket_is_gone(link) && ps_now_ms() < until_ms) {
        bool ready = false;

        CHECK_OK(ps_socket_wait(&link, 1, 1000, &ready, err), err);
    }
    CHECK(ps_socket_is_gone(link) && mpi->is_lost(1) == 1);
    CHECK_ERROR(send_numbered(link, 0, 3, 300, err), PSD_BUSY, "send: peer is gone", err);
    ps_socket_close(&link);
    to = fopen(file, "we");
    return to != NULL && fclose(to) == 0;
}

int main(int argc, char **argv)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    psd_error_t *err = psd_error_new();
    bool dies = argc == 4 && strcmp(argv[1], "die") == 0;
    bool ok = false;

    if (argc < 3 || rank == NULL || setenv("PSD_CARRIER_DIR", argv[2], 1) != 0 || !make_pool()) {
        return 2;
    }
    if (strcmp(rank, "0") == 0) {
        ok = dies ? outlive(argv[3], err) : ask(err);
    } else {
        ok = dies ? die(err) : answer(err);
    }
    psd_error_destroy(&err);
    free(pool);
    return ok ? 0 : 1;
}
