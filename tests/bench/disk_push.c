/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_push - pushes of 1 MiB at level disk beside what the disk can do
 *
 * In one run, alternating: plain writes of the same bytes with one flush at the
 * end, then pushes to a psd of its own in the same directory, so many under way
 * at once. Prints MiB/s of each turn. TMPDIR says which disk.
 *
 *   disk_push [MIB [IN_FLIGHT [ack]]]
 */
#include <fcntl.h>
#include <psd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"

#define TURNS 3
#define ROWS 16
#define COLS (1U << 18)
#define MIB ((size_t)1 << 20)
#define IN_FLIGHT_MAX 64

static double now_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool write_plain(const daemon_t *daemon, const float *values, unsigned mib)
{
    char path[PATH_MAX];
    double since = 0;
    int fd = -1;

    (void)snprintf(path, sizeof path, "%.3000s/plain", daemon->dir.path);
    since = now_s();
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    for (unsigned i = 0; i < mib; i++) {
        CHECK(write(fd, values, MIB) == (ssize_t)MIB);
    }
    CHECK(fdatasync(fd) == 0);
    (void)printf("plain  %6.0f MiB/s\n", (double)mib / (now_s() - since));
    (void)close(fd);
    (void)unlink(path);
    return true;
}

static bool push_all(psd_client_t *client, psd_table_t *table, const float *values, unsigned mib,
                     unsigned in_flight, psd_error_t *err)
{
    psd_ticket_t tickets[IN_FLIGHT_MAX];
    double since = now_s();

    for (unsigned i = 0; i < mib + in_flight; i++) {
        uint64_t row = i % ROWS;

        if (i >= in_flight) {
            CHECK_OK(psd_wait(client, tickets[i % in_flight], 60000, err), err);
        }
        if (i < mib) {
            psd_select_t *select = psd_select_new();
            psd_status_t rc = PSD_OK;

            psd_select_rows(select, &row, 1);
            rc = psd_push_start(table, select, values, COLS, NULL, &tickets[i % in_flight], err);
            psd_select_destroy(&select);
            CHECK_OK(rc, err);
        }
    }
    (void)printf("pushes %6.0f MiB/s\n", (double)mib / (now_s() - since));
    return true;
}

static bool measure(const daemon_t *daemon, unsigned mib, unsigned in_flight, const char *ack,
                    const float *values, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_spec_t *spec = psd_spec_new();
    char cols[24];

    (void)snprintf(cols, sizeof cols, "%u", COLS);
    CHECK_OK(psd_connect(daemon->control, NULL, &client, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "16", err), err);
    CHECK_OK(psd_spec_set(spec, "cols", cols, err), err);
    CHECK_OK(psd_spec_set(spec, "ack", ack, err), err);
    CHECK_OK(psd_table_ensure(client, "w", spec, &table, err), err);
    for (int i = 0; i < TURNS; i++) {
        CHECK(write_plain(daemon, values, mib));
        CHECK(push_all(client, table, values, mib, in_flight, err));
    }
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

int main(int argc, char **argv)
{
    unsigned mib = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 256;
    unsigned in_flight = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 16;
    float *values = calloc(COLS, sizeof *values);
    psd_error_t *err = psd_error_new();
    daemon_t daemon;
    bool ok = false;

    if (values == NULL || in_flight == 0 || in_flight > IN_FLIGHT_MAX) {
        return 2;
    }
    for (uint32_t i = 0; i < COLS; i++) {
        values[i] = (float)(i * 2654435761U >> 8);
    }
    ok = daemon_start(&daemon, "shards: 1\n") &&
         measure(&daemon, mib, in_flight, argc > 3 ? argv[3] : "disk", values, err);
    daemon_drop(&daemon, !ok);
    psd_error_destroy(&err);
    free(values);
    return ok ? 0 : 1;
}
