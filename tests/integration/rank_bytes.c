/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank of MPI that pushes and pulls a table a few times. While all ranks are there, the first
 * one of each host looks there for connections of tcp and unix sockets to ports of psd: there
 * shall be none, since MPI carries all; and each rank compares what the carrier has sent and
 * received with what it moved.
 *
 *     rank_bytes [SECONDS]    and does nothing for so long, and tells its processor time
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <psd.h>

#include "transport/sockets/carrier_plugin.h"

#define ROWS 16384
#define TIMES 8
#define WAIT_MS 60000
#define LINE 512

static uint64_t rows[ROWS];
static float ones[ROWS];
static float pulled[ROWS];

/* The carrier of this process, which libpsd has loaded. */
static const ps_carrier_plugin_t *find_carrier(void)
{
    const char *dir = getenv("PSD_CARRIER_DIR");
    char path[LINE];
    void *object = NULL;
    void *symbol = NULL;
    ps_carrier_entry_t *entry = NULL;

    (void)snprintf(path, sizeof path, "%s/libpsd-mpi.so", dir == NULL ? "" : dir);
    object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    symbol = object == NULL ? NULL : dlsym(object, PS_CARRIER_ENTRY);
    if (symbol == NULL) {
        return NULL;
    }
    memcpy(&entry, &symbol, sizeof entry);
    return entry();
}

/* The servers of ranks listen at 127.64.x.y, "…407F:" in the kernel's list; 01 is a connection. */
static bool is_tcp(const char *line)
{
    char local[32] = "";
    char remote[32] = "";
    char state[8] = "";

    return sscanf(line, "%*s %31s %31s %7s", local, remote, state) == 3 &&
           strcmp(state, "01") == 0 &&
           (strncmp(local + 4, "407F:", 5) == 0 || strncmp(remote + 4, "407F:", 5) == 0);
}

/* 03 is a connection; those to servers of ranks have the name of a file of theirs. */
static bool is_unix(const char *line)
{
    const char *base = getenv("TMPDIR");
    char servers[LINE];
    char state[8] = "";

    (void)snprintf(servers, sizeof servers, "%s/psd-embed-", base == NULL ? "/tmp" : base);
    return sscanf(line, "%*s %*s %*s %*s %*s %7s", state) == 1 && strcmp(state, "03") == 0 &&
           strstr(line, servers) != NULL;
}

static int count_lines(const char *file, bool (*is_one)(const char *line))
{
    FILE *from = fopen(file, "re");
    char line[LINE];
    int n = from == NULL ? -1 : 0;

    while (from != NULL && fgets(line, sizeof line, from) != NULL) {
        if (is_one(line)) {
            n++;
            (void)fputs(line, stderr);
        }
    }
    if (from != NULL) {
        (void)fclose(from);
    }
    return n;
}

static psd_status_t move(psd_table_t *table, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        ones[i] = 1;
    }
    for (int i = 0; rc == PSD_OK && i < TIMES; i++) {
        rc = psd_push(table, rows, ROWS, ones, ROWS, err);
    }
    for (int i = 0; rc == PSD_OK && i < TIMES; i++) {
        rc = psd_pull(table, rows, ROWS, pulled, ROWS, err);
    }
    return rc;
}

/* mpirun's number of the rank on its host. */
static bool is_first(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");

    return rank != NULL && strcmp(rank, "0") == 0;
}

static void tell(void)
{
    char host[LINE] = "";
    const ps_carrier_plugin_t *carrier = find_carrier();
    const uint64_t moved = (uint64_t)TIMES * ROWS * sizeof ones[0];
    uint64_t sent = 0;
    uint64_t received = 0;

    if (carrier != NULL) {
        carrier->count(&sent, &received);
    }
    (void)printf("carrier: %s what was pushed, %s what was pulled\n",
                 sent >= moved ? "at least" : "less than",
                 received >= moved ? "at least" : "less than");
    if (is_first()) {
        (void)gethostname(host, sizeof host - 1);
        (void)printf("%s: %d connections, %d unix sockets\n", host,
                     count_lines("/proc/net/tcp", is_tcp), count_lines("/proc/net/unix", is_unix));
    }
}

static double processor_s(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void idle(int seconds)
{
    const struct timespec span = {.tv_sec = seconds};
    double begin_s = processor_s();

    if (seconds > 0) {
        (void)nanosleep(&span, NULL);
        (void)printf("idle: %.2f %% of a processor\n", (processor_s() - begin_s) * 100 / seconds);
    }
}

static psd_status_t run(psd_client_t *client, psd_table_t *table, int seconds, psd_error_t *err)
{
    psd_status_t rc = move(table, err);

    if (rc == PSD_OK) {
        rc = psd_barrier(client, WAIT_MS, err);
    }
    if (rc == PSD_OK) {
        tell();
        idle(seconds);
        rc = psd_barrier(client, WAIT_MS, err);
    }
    return rc == PSD_OK ? psd_leave(client, WAIT_MS, err) : rc;
}

int main(int argc, char **argv)
{
    psd_error_t *err = psd_error_new();
    psd_spec_t *spec = psd_spec_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_status_t rc = psd_spec_set(spec, "rows", "16384", err);

    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "partitions", "6", err);
    }
    if (rc == PSD_OK) {
        rc = psd_connect(NULL, NULL, &client, err);
    }
    if (rc == PSD_OK) {
        rc = psd_join(client, NULL, -1, 0, PSD_DELAY_ENV, err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_ensure(client, "bytes", spec, &table, err);
    }
    if (rc == PSD_OK) {
        rc = run(client, table, argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0, err);
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "rank_bytes: %s\n", psd_error_text(err));
    }
    psd_table_close(&table);
    psd_close(&client);
    psd_spec_destroy(&spec);
    psd_error_destroy(&err);
    return rc == PSD_OK ? 0 : 1;
}
