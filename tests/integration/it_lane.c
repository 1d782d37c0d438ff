/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that share memory with the daemon and end badly: one is killed in the
 * middle of its pushes, one is frozen with its answers untaken, one writes over
 * the memory that it shares, through the library and without it. Workers beside
 * them notice nothing, and the daemon keeps nothing of them. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <psd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lane_scribbler.h"
#include "support/check.h"
#include "support/daemon.h"

#define WORKERS 3
#define PUSHES 3000 /* of each worker */
#define ROWS 64
#define WIDE_ROWS 100000 /* of a table whose answers are large */
#define IN_FLIGHT 64

static const char config[] = "shards: 1\n";

/* What the children know of the test. */
typedef struct place {
    const char *endpoint;
    const char *lane; /* path of the socket that hands lanes over */
} place_t;

/* ---- the good ones ---- */

static bool open_table(psd_client_t *client, const char *name, const char *rows,
                       psd_table_t **ret_table, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();

    CHECK_OK(psd_spec_set(spec, "rows", rows, err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_table_ensure(client, name, spec, ret_table, err), err);
    psd_spec_destroy(&spec);
    return true;
}

static bool add_ones(const place_t *place, uint32_t worker, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    uint64_t rows[ROWS];
    int64_t ones[ROWS];
    int64_t values[ROWS];

    for (uint64_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        ones[i] = 1;
    }
    CHECK_OK(psd_connect(place->endpoint, NULL, &client, err), err);
    CHECK_OK(psd_join(client, "good", worker, WORKERS, -1, err), err);
    CHECK(open_table(client, "sums", "64", &table, err));
    for (int i = 0; i < PUSHES; i++) {
        CHECK_OK(psd_push(table, rows, ROWS, ones, ROWS, err), err);
        if (i % 100 == 0) {
            CHECK_OK(psd_pull(table, rows, ROWS, values, ROWS, err), err);
            /* Others push between its partitions. */
            CHECK(values[0] > i && values[ROWS - 1] > i);
        }
        CHECK_OK(psd_clock(client, err), err);
    }
    CHECK_OK(psd_leave(client, 60000, err), err);
    psd_table_close(&table);
    psd_close(&client);
    return true;
}

/* ---- the bad ones; each says with a byte when it is at it ---- */

/* Pushes, without end. */
static bool push_on(const place_t *place, int out, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_select_t *all = psd_select_new();
    int64_t *ones = calloc(WIDE_ROWS, sizeof *ones);

    CHECK(ones != NULL && all != NULL);
    CHECK_OK(psd_connect(place->endpoint, NULL, &client, err), err);
    CHECK(open_table(client, "bad", "100000", &table, err));
    psd_select_all_rows(all);
    for (int i = 0;; i++) {
        psd_ticket_t ticket = 0;

        CHECK_OK(psd_push_start(table, all, ones, WIDE_ROWS, NULL, &ticket, err), err);
        if (i == 20) {
            say(out);
        }
        if (i >= 8) {
            CHECK_OK(psd_wait_all(client, 60000, err), err);
        }
    }
}

/* Asks for much and stops before it takes any of it. */
static bool ask_and_freeze(const place_t *place, int out, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_select_t *all = psd_select_new();
    int64_t *values = calloc((size_t)WIDE_ROWS * IN_FLIGHT, sizeof *values);

    CHECK(values != NULL && all != NULL);
    CHECK_OK(psd_connect(place->endpoint, NULL, &client, err), err);
    CHECK(open_table(client, "bad", "100000", &table, err));
    psd_select_all_rows(all);
    /* The first one, waited for, so that what follows goes out at once. */
    CHECK_OK(psd_push(table, &(uint64_t){1}, 1, &(int64_t){1}, 1, err), err);
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        psd_ticket_t ticket = 0;

        CHECK_OK(psd_pull_start(table, all, values + i * WIDE_ROWS, WIDE_ROWS, NULL, &ticket, err),
                 err);
    }
    say(out);
    (void)raise(SIGSTOP);
    return false;
}

/* A client of the library whose memory is written over while it pushes: what
 * comes out of that is its own misfortune. */
static bool push_and_scribble(const place_t *place, int out, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    pthread_t thread;
    const uint64_t row = 1;
    const int64_t one = 1;

    CHECK_OK(psd_connect(place->endpoint, NULL, &client, err), err);
    CHECK(open_table(client, "bad", "100000", &table, err));
    CHECK_OK(psd_push(table, &row, 1, &one, 1, err), err);
    CHECK(pthread_create(&thread, NULL, scribble_beside, &out) == 0);
    for (;;) {
        psd_status_t rc = psd_push(table, &row, 1, &one, 1, err);

        psd_error_clear(err);
        if (rc == PSD_CLOSED) {
            (void)pause();
        }
    }
}

/* ---- children ---- */

typedef enum part { GOOD, KILLED, FROZEN, ALONE, BESIDE } part_t;

static bool play(const place_t *place, part_t part, uint32_t worker, int out)
{
    psd_error_t *err = psd_error_new();

    switch (part) {
    case GOOD:
        return add_ones(place, worker, err);
    case KILLED:
        return push_on(place, out, err);
    case FROZEN:
        return ask_and_freeze(place, out, err);
    case ALONE:
        scribble_alone(place->lane, out);
    case BESIDE:
    default:
        return push_and_scribble(place, out, err);
    }
}

typedef struct child {
    pid_t pid;
    int in; /* what it says */
} child_t;

static bool start(const place_t *place, part_t part, uint32_t worker, child_t *ret_child)
{
    int ends[2];

    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    (void)fflush(NULL);
    ret_child->pid = fork();
    if (ret_child->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(ends[0]);
        _exit(play(place, part, worker, ends[1]) ? 0 : 1);
    }
    (void)close(ends[1]);
    ret_child->in = ends[0];
    CHECK(ret_child->pid > 0);
    return true;
}

/* It says that it is at it; it has 20 s. */
static bool is_at_it(const child_t *child)
{
    struct pollfd watch = {.fd = child->in, .events = POLLIN};
    char byte = 0;

    CHECK(poll(&watch, 1, 20000) == 1);
    CHECK(read(child->in, &byte, 1) == 1);
    return true;
}

/* Ends it where it is; one that is gone already ended by itself. */
static bool kill_it(child_t *child)
{
    int status = 0;

    (void)kill(child->pid, SIGKILL);
    CHECK(waitpid(child->pid, &status, 0) == child->pid);
    (void)close(child->in);
    return true;
}

static bool ended_well(child_t *child)
{
    int status = 0;

    CHECK(waitpid(child->pid, &status, 0) == child->pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    (void)close(child->in);
    return true;
}

/* ---- what the daemon has ---- */

typedef struct holdings {
    size_t n_files;
    size_t n_shared;      /* mappings of lanes */
    uint64_t own_bytes;   /* resident, its own */
    uint64_t share_bytes; /* resident, shared */
} holdings_t;

static uint64_t status_of(pid_t pid, const char *key)
{
    char path[64];
    char line[256];
    FILE *file = NULL;
    uint64_t bytes = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            bytes = strtoull(line + strlen(key), NULL, 10) * 1024;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return bytes;
}

static holdings_t look(pid_t pid)
{
    holdings_t holds = {.own_bytes = status_of(pid, "RssAnon:"),
                        .share_bytes = status_of(pid, "RssShmem:")};
    char path[64];
    char line[512];
    DIR *files = NULL;
    FILE *maps = NULL;

    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    files = opendir(path);
    while (files != NULL && readdir(files) != NULL) {
        holds.n_files++;
    }
    if (files != NULL) {
        (void)closedir(files);
    }
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    maps = fopen(path, "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        holds.n_shared += strstr(line, "memfd:") != NULL ? 1 : 0;
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return holds;
}

/* Memory of its own that a heap may keep for the next ones. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLACK_BYTES (UINT64_C(512) << 20)
#else
#define SLACK_BYTES (UINT64_C(48) << 20)
#endif

/* The daemon hears of an end when the kernel has told it: it has 20 s. */
static bool comes_back_to(pid_t pid, const holdings_t *before)
{
    const struct timespec step = {.tv_nsec = 5000000};
    holdings_t now = look(pid);

    for (int i = 0; i < 4000 && (now.n_files > before->n_files || now.n_shared > before->n_shared ||
                                 now.share_bytes > before->share_bytes);
         i++) {
        (void)nanosleep(&step, NULL);
        now = look(pid);
    }
    (void)printf("files %zu, were %zu; lanes' mappings %zu, were %zu; own "
                 "memory %" PRIu64 " KiB, was %" PRIu64 "; shared %" PRIu64 " KiB, was %" PRIu64
                 "\n",
                 now.n_files, before->n_files, now.n_shared, before->n_shared, now.own_bytes / 1024,
                 before->own_bytes / 1024, now.share_bytes / 1024, before->share_bytes / 1024);
    CHECK(now.n_files <= before->n_files);
    CHECK(now.n_shared <= before->n_shared);
    CHECK(now.share_bytes <= before->share_bytes);
    CHECK(now.own_bytes <= before->own_bytes + SLACK_BYTES);
    return true;
}

/* ---- the test ---- */

/* Where lanes are handed over: a socket in the data directory. */
static bool find_lane(const daemon_t *daemon, char *ret_path, size_t size)
{
    char folder[128];
    DIR *files = NULL;
    const struct dirent *entry = NULL;
    bool found = false;

    (void)snprintf(folder, sizeof folder, "%s", daemon->ipc + strlen("ipc://"));
    *strrchr(folder, '/') = '\0';
    files = opendir(folder);
    while (files != NULL && !found && (entry = readdir(files)) != NULL) {
        size_t length = strlen(entry->d_name);

        found = length > 5 && strcmp(entry->d_name + length - 5, ".lane") == 0;
        if (found) {
            (void)snprintf(ret_path, size, "%s/%s", folder, entry->d_name);
        }
    }
    if (files != NULL) {
        (void)closedir(files);
    }
    return found;
}

/* Everything of the kind that comes later was there once: tables, caches. */
static bool warm_up(const place_t *place)
{
    child_t child;

    CHECK(start(place, KILLED, 0, &child));
    CHECK(is_at_it(&child) && kill_it(&child));
    CHECK(start(place, FROZEN, 0, &child));
    CHECK(is_at_it(&child) && kill_it(&child));
    return true;
}

static bool sums_are_exact(const place_t *place)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    uint64_t rows[ROWS];
    int64_t values[ROWS];

    for (uint64_t i = 0; i < ROWS; i++) {
        rows[i] = i;
    }
    CHECK_OK(psd_connect(place->endpoint, NULL, &client, err), err);
    CHECK_OK(psd_table_open(client, "sums", &table, err), err);
    CHECK_OK(psd_pull(table, rows, ROWS, values, ROWS, err), err);
    for (size_t i = 0; i < ROWS; i++) {
        CHECK(values[i] == (int64_t)WORKERS * PUSHES);
    }
    psd_table_close(&table);
    psd_close(&client);
    psd_error_destroy(&err);
    return true;
}

static bool costs_nobody_anything(const place_t *place, pid_t daemon)
{
    child_t good[WORKERS];
    child_t killed;
    child_t frozen;
    child_t alone;
    child_t beside;
    holdings_t before;

    before = look(daemon);
    CHECK(warm_up(place) && comes_back_to(daemon, &before));
    before = look(daemon);
    CHECK(start(place, FROZEN, 0, &frozen) && is_at_it(&frozen));
    CHECK(start(place, ALONE, 0, &alone) && is_at_it(&alone));
    CHECK(start(place, BESIDE, 0, &beside) && is_at_it(&beside));
    CHECK(start(place, KILLED, 0, &killed));
    for (uint32_t i = 0; i < WORKERS; i++) {
        CHECK(start(place, GOOD, i, &good[i]));
    }
    CHECK(is_at_it(&killed) && kill_it(&killed));
    for (uint32_t i = 0; i < WORKERS; i++) {
        CHECK(ended_well(&good[i]));
    }
    CHECK(sums_are_exact(place));
    CHECK(kill_it(&frozen) && kill_it(&alone) && kill_it(&beside));
    return comes_back_to(daemon, &before);
}

int main(void)
{
    daemon_t daemon;
    char path[256] = "";
    place_t place = {.lane = path};
    bool ok = setenv("PSD_TRANSPORT", "lane", 1) == 0;

    ok = ok && daemon_start(&daemon, config);
    place.endpoint = daemon.control;
    if (ok && !find_lane(&daemon, path, sizeof path)) {
        (void)fprintf(stderr, "no socket for lanes beside %s\n", daemon.ipc);
        ok = false;
    }
    ok = ok && costs_nobody_anything(&place, daemon.pid);
    ok = ok && daemon_end(&daemon, SIGTERM);
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
