/* SPDX-License-Identifier: Apache-2.0 */
/* A child that is forked while its parent has a client: whatever it does with
 * what is the parent's ends at once and says why, it holds none of the parent's
 * lanes open, it frees without touching a socket, and a client of its own
 * works. The parent's pushes are all there, once. */
#include <fcntl.h>
#include <psd.h>
#include <psd_data.h>
#include <psd_train.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fork_calls.h"
#include "support/check.h"
#include "support/daemon.h"
#include "support/lanes.h"

#define N_ROWS 64
#define MANY_MS 600000 /* nothing here waits for so long */
#define TIMES 5        /* of each call; the fastest counts */
#define CALL_US 10000
#define FREE_US 30000000 /* once each, on any machine */
#define CHILDREN 4
#define PUSHES 200

typedef struct things {
    psd_client_t *client;
    psd_table_t *table;
    psd_select_t *all;
    psd_seen_t *seen;
    psd_work_t *work;
    psd_draft_t *draft;
    psd_train_t *train;   /* between config_begin and config_end */
    psd_train_t *running; /* with its threads */
    psd_reader_t *reader;
    psd_samples_t *samples;
    psd_writer_t *writer;
    psd_localizer_t *localizer;
    psd_summary_t *summary;
    psd_ticket_t ticket; /* of a push that is under way */
    void *place;         /* where the draft's values are */
    size_t n_place;
    uint64_t rows[N_ROWS];
    int64_t values[N_ROWS];
    char in_path[PATH_MAX];
    char out_path[PATH_MAX];
    /* of calls that shall give nothing */
    psd_result_t *result;
    psd_table_t *made;
    psd_draft_t *begun;
    psd_work_t *other_work;
    psd_checkpoint_t *checkpoint;
    char *reply;
    psd_ticket_t other;
    double number;
    uint64_t count;
    uint32_t number_of;
    bool done;
} things_t;

/* ---- the lists and what is exported ---- */

#define NAME_OF(name) #name,
#define NAME_OF_CALL(name, arguments) #name,
static const char *const names[] = {FORK_CLOSED(NAME_OF_CALL) FORK_FREE(NAME_OF_CALL)
                                        FORK_LOOK(NAME_OF_CALL) FORK_ANYWHERE(NAME_OF)};
#define N_NAMES (sizeof names / sizeof *names)

static bool is_listed(const char *name)
{
    for (size_t i = 0; i < N_NAMES; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Every symbol of the map that the linker keeps to has its row. */
static bool every_function_has_a_row(void)
{
    const char *path = getenv("PSD_MAP");
    FILE *file = path == NULL ? NULL : fopen(path, "re");
    char line[256];
    size_t n = 0;
    bool all = true;

    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        const char *name = line + strspn(line, " ");

        line[strcspn(line, ";\n")] = '\0';
        if (strncmp(name, "psd_", 4) == 0) {
            n++;
            if (!is_listed(name)) {
                (void)fprintf(stderr, "%s has no row in fork_calls.h\n", name);
                all = false;
            }
        }
    }
    (void)fclose(file);
    CHECK(n > 200 && n <= N_NAMES);
    return all;
}

/* ---- the rows ---- */

#define CLOSED_CALL(name, arguments)                                 \
    static psd_status_t closed_##name(things_t *t, psd_error_t *err) \
    {                                                                \
        return name arguments;                                       \
    }
FORK_CLOSED(CLOSED_CALL)

#define CLOSED_ROW(name, arguments) {#name, closed_##name},
static const struct {
    const char *name;
    psd_status_t (*call)(things_t *t, psd_error_t *err);
} closed[] = {FORK_CLOSED(CLOSED_ROW)};

static uint64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool is_closed(size_t i, things_t *t, psd_error_t *err, uint64_t *ret_us)
{
    *ret_us = UINT64_MAX;
    for (int k = 0; k < TIMES; k++) {
        uint64_t start_us = now_us();
        uint64_t took_us = 0;
        psd_status_t rc = PSD_OK;

        psd_error_clear(err);
        (void)psd_error_set(err, PSD_NOMEM, "what was before");
        rc = closed[i].call(t, err);
        took_us = now_us() - start_us;
        *ret_us = took_us < *ret_us ? took_us : *ret_us;
        if (rc != PSD_CLOSED || psd_error_status(err) != PSD_CLOSED ||
            strstr(psd_error_text(err), "forked") == NULL ||
            strstr(psd_error_text(err), "before") != NULL) {
            (void)fprintf(stderr, "%s in a child: %s: %s\n", closed[i].name, psd_status_name(rc),
                          psd_error_text(err));
            return false;
        }
    }
    if (*ret_us > CALL_US) {
        (void)fprintf(stderr, "%s in a child took %llu us\n", closed[i].name,
                      (unsigned long long)*ret_us);
        return false;
    }
    return true;
}

static bool all_are_closed(things_t *t, psd_error_t *err)
{
    uint64_t most_us = 0;
    size_t slowest = 0;
    bool all = true;

    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++) {
        uint64_t took_us = 0;

        all = is_closed(i, t, err, &took_us) && all;
        if (took_us > most_us) {
            most_us = took_us;
            slowest = i;
        }
    }
    (void)fprintf(stderr, "%zu calls in a child; the slowest is %s, %llu us\n",
                  sizeof closed / sizeof *closed, closed[slowest].name,
                  (unsigned long long)most_us);
    psd_error_clear(err);
    CHECK(t->result == NULL && t->made == NULL && t->begun == NULL && t->checkpoint == NULL &&
          t->other_work == NULL && t->reply == NULL);
    return all;
}

/* What the parent could see goes on to be seen. */
static bool all_can_be_looked_at(things_t *t)
{
#define LOOK(name, arguments) (void)name arguments;
    FORK_LOOK(LOOK)
    CHECK(strcmp(psd_table_name(t->table), "sums") == 0);
    CHECK(psd_clock_count(t->client) == 0);
    /* The memory of a draft may be written to; it leads nowhere. */
    memset(t->place, 0x55, t->n_place * sizeof(int64_t));
    return true;
}

static bool all_are_freed(things_t *t)
{
    const uint64_t start_us = now_us();

#define FREE(name, arguments) name arguments;
    FORK_FREE(FREE)
    CHECK(t->client == NULL && t->table == NULL && t->draft == NULL && t->train == NULL &&
          t->running == NULL && t->reader == NULL);
    CHECK(now_us() - start_us < FREE_US);
    return true;
}

/* ---- a client of its own ---- */

static bool pushes_for_itself(const char *endpoint, uint64_t row, psd_error_t *err)
{
    const uint64_t rows[2] = {0, row};
    const int64_t ones[2] = {1, 1};
    int64_t values[2] = {0, 0};
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;

    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK_OK(psd_table_open(client, "sums", &table, err), err);
    for (int i = 0; i < PUSHES; i++) {
        CHECK_OK(psd_push(table, rows, 2, ones, 2, err), err);
    }
    CHECK_OK(psd_pull(table, rows, 2, values, 2, err), err);
    CHECK(values[0] >= PUSHES && values[1] == PUSHES);
    psd_table_close(&table);
    psd_close(&client);
    return true;
}

/* A grandchild is no child of the one that made a client either. */
static bool forks_once_more(const char *endpoint, psd_error_t *err)
{
    psd_client_t *client = NULL;
    pid_t pid = -1;
    int status = 0;

    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    pid = fork();
    if (pid == 0) {
        bool ok = psd_flush(client, MANY_MS, err) == PSD_CLOSED;

        psd_close(&client);
        _exit(ok && client == NULL ? 0 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK_OK(psd_flush(client, MANY_MS, err), err);
    psd_close(&client);
    return true;
}

/* ---- the parent ---- */

static bool open_table(things_t *t, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();

    CHECK_OK(psd_spec_set(spec, "rows", "64", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "versions", "true", err), err);
    CHECK_OK(psd_table_ensure(t->client, "sums", spec, &t->table, err), err);
    psd_spec_destroy(&spec);
    return true;
}

/* A call-back that forks: it has the loader's handle, and its child must not
 * use it. */
static psd_status_t fork_in_call_back(void *user, psd_loader_t *loader, void *block,
                                      psd_error_t *err)
{
    const uint64_t row = 1;
    pid_t pid = fork();
    int status = 0;

    (void)user;
    (void)block;
    if (pid == 0) {
        bool ok = psd_loader_rows(loader, 0, &row, 1, err) == PSD_CLOSED &&
                  psd_loader_table(loader, 0, err) == PSD_CLOSED &&
                  psd_loader_element(loader, 0, 1, 0, err) == PSD_CLOSED &&
                  strstr(psd_error_text(err), "forked") != NULL;

        _exit(ok ? 0 : 1);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0) {
        return psd_error_set(err, PSD_FAILED, "the loader's child failed");
    }
    return psd_loader_rows(loader, 0, &row, 1, err);
}

static psd_status_t step(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    (void)user;
    (void)block;
    (void)err;
    psd_trainer_add_i64(trainer, 0, 1, 0, 1);
    return PSD_OK;
}

static bool make_training(const char *job, psd_train_t **ret_train, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    uint32_t number = 0;

    *ret_train = psd_train_new(NULL);
    CHECK(*ret_train != NULL);
    CHECK_OK(psd_train_set(*ret_train, "job", job, err), err);
    CHECK_OK(psd_train_set(*ret_train, "worker", "0", err), err);
    CHECK_OK(psd_train_set(*ret_train, "workers", "1", err), err);
    CHECK_OK(psd_train_set(*ret_train, "staleness", "1", err), err);
    psd_train_on_load(*ret_train, fork_in_call_back);
    psd_train_on(*ret_train, PSD_TRAIN_STEP, step);
    CHECK_OK(psd_train_config_begin(*ret_train, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "64", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_train_table(*ret_train, job, spec, &number, err), err);
    psd_spec_destroy(&spec);
    return true;
}

static bool start_training(psd_train_t *train, psd_error_t *err)
{
    CHECK_OK(psd_train_config_end(train, err), err);
    CHECK_OK(psd_train_begin(train, err), err);
    CHECK_OK(psd_train_clock_begin(train, err), err);
    CHECK_OK(psd_train_push_block(train, train, NULL, MANY_MS, err), err);
    return true;
}

/* Files: one that is read, and one that is being written. */
static bool open_files(things_t *t, const char *directory, psd_error_t *err)
{
    psd_reader_t *whole = NULL;
    const char *path = t->in_path;
    FILE *file = NULL;

    (void)snprintf(t->in_path, sizeof t->in_path, "%.2000s/in", directory);
    (void)snprintf(t->out_path, sizeof t->out_path, "%.2000s/out", directory);
    file = fopen(t->in_path, "we");
    CHECK(file != NULL);
    for (int i = 0; i < 1000; i++) {
        (void)fprintf(file, "%d 1:0.5 %d:1\n", i % 2, i % 50 + 2);
    }
    CHECK(fclose(file) == 0);
    t->samples = psd_samples_new();
    CHECK_OK(psd_reader_open(&path, 1, NULL, &t->reader, err), err);
    CHECK_OK(psd_reader_next(t->reader, 10, t->samples, err), err);
    CHECK(psd_samples_count(t->samples) == 10);
    CHECK_OK(psd_writer_open(t->out_path, "libsvm", &t->writer, err), err);
    CHECK_OK(psd_writer_write(t->writer, t->samples, err), err);
    CHECK_OK(psd_localizer_new(2, &t->localizer, err), err);
    CHECK((t->summary = psd_summary_new()) != NULL);
    CHECK_OK(psd_localizer_run(t->localizer, t->rows, N_ROWS, err), err);
    psd_reader_close(&whole);
    return true;
}

static bool make_things(things_t *t, const daemon_t *daemon, psd_error_t *err)
{
    void *values = NULL;
    size_t n = 0;
    psd_draft_t *committed = NULL;

    *t = (things_t){.client = NULL};
    for (uint64_t i = 0; i < N_ROWS; i++) {
        t->rows[i] = i;
        t->values[i] = 1;
    }
    t->all = psd_select_new();
    psd_select_all_rows(t->all);
    t->seen = psd_seen_new();
    CHECK_OK(psd_connect(daemon->control, NULL, &t->client, err), err);
    CHECK_OK(psd_join(t->client, "forks", 0, 1, -1, err), err);
    CHECK(open_table(t, err));
    CHECK_OK(psd_push(t->table, t->rows, N_ROWS, t->values, N_ROWS, err), err);
    CHECK_OK(psd_work_open(t->client, "w", 2, 1, &t->work, err), err);
    CHECK(make_training("still", &t->train, err));
    CHECK(make_training("moving", &t->running, err));
    CHECK(start_training(t->running, err));
    CHECK(open_files(t, daemon->dir.path, err));
    /* Under way when the child is forked: a push, a draft that is committed. */
    CHECK_OK(psd_push_begin(t->table, t->all, &committed, &values, &n, err), err);
    memcpy(values, t->values, n * sizeof *t->values);
    CHECK_OK(psd_push_commit(&committed, NULL, &t->other, err), err);
    CHECK_OK(psd_push_start(t->table, t->all, t->values, N_ROWS, NULL, &t->ticket, err), err);
    CHECK_OK(psd_push_begin(t->table, t->all, &t->draft, &t->place, &t->n_place, err), err);
    return true;
}

/* All pushes came once, and what is the parent's works as if nothing had been.
 */
static bool parent_goes_on(things_t *t, psd_error_t *err)
{
    psd_ticket_t ticket = 0;

    memcpy(t->place, t->values, t->n_place * sizeof *t->values);
    CHECK_OK(psd_push_commit(&t->draft, NULL, &ticket, err), err);
    CHECK_OK(psd_wait(t->client, t->ticket, MANY_MS, err), err);
    CHECK_OK(psd_wait_all(t->client, MANY_MS, err), err);
    CHECK_OK(psd_pull(t->table, t->rows, N_ROWS, t->values, N_ROWS, err), err);
    for (int i = 0; i < N_ROWS; i++) {
        CHECK(t->values[i] == 4);
    }
    CHECK_OK(psd_train_clock_end(t->running, err), err);
    CHECK_OK(psd_train_end(t->running, MANY_MS, err), err);
    CHECK_OK(psd_train_config_end(t->train, err), err);
    CHECK_OK(psd_reader_next(t->reader, 10000, t->samples, err), err);
    CHECK(psd_samples_count(t->samples) == 990);
    CHECK_OK(psd_writer_write(t->writer, t->samples, err), err);
    CHECK_OK(psd_writer_commit(t->writer, err), err);
    CHECK(access(t->out_path, R_OK) == 0);
    CHECK_OK(psd_localizer_run(t->localizer, t->rows, N_ROWS, err), err);
    CHECK(psd_localizer_count(t->localizer) == N_ROWS);
    return true;
}

static bool ended_well(pid_t pid)
{
    int status = -1;

    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return true;
}

static bool child_of_a_busy_parent(things_t *t, const daemon_t *daemon, psd_error_t *err)
{
    pid_t pid = -1;

    CHECK(make_things(t, daemon, err));
    pid = fork();
    if (pid == 0) {
        bool ok = all_are_closed(t, err) && all_can_be_looked_at(t) && all_are_freed(t);

        _exit(ok ? 0 : 1);
    }
    CHECK(ended_well(pid));
    return parent_goes_on(t, err);
}

/* A child that ends as programs do, without freeing anything. */
static bool child_may_exit(void)
{
    pid_t pid = fork();

    if (pid == 0) {
#if defined(__SANITIZE_ADDRESS__)
        _exit(0); /* what the parent's threads hold would count as leaks */
#else
        exit(0);
#endif
    }
    return ended_well(pid);
}

/* Four at once, beside the parent, which pushes to the row of them all. */
static bool children_have_clients(things_t *t, const daemon_t *daemon, psd_error_t *err)
{
    const uint64_t rows[2] = {0, 1};
    const int64_t ones[2] = {1, 1};
    int64_t sums[CHILDREN + 2] = {0};
    uint64_t own[CHILDREN + 2];
    pid_t pids[CHILDREN];

    CHECK_OK(psd_table_fill(t->table, t->all, 0, NULL, err), err);
    for (uint64_t i = 0; i < CHILDREN; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            bool ok = pushes_for_itself(daemon->control, i + 2, err) &&
                      forks_once_more(daemon->control, err);

            psd_close(&t->client);
            _exit(ok ? 0 : 1);
        }
    }
    for (int i = 0; i < PUSHES; i++) {
        CHECK_OK(psd_push(t->table, rows, 2, ones, 2, err), err);
    }
    for (size_t i = 0; i < CHILDREN; i++) {
        CHECK(ended_well(pids[i]));
    }
    for (uint64_t i = 0; i < CHILDREN + 2; i++) {
        own[i] = i;
    }
    CHECK_OK(psd_pull(t->table, own, CHILDREN + 2, sums, CHILDREN + 2, err), err);
    CHECK(sums[0] == (CHILDREN + 1) * PUSHES);
    for (size_t i = 1; i < CHILDREN + 2; i++) {
        CHECK(sums[i] == PUSHES);
    }
    return true;
}

static void free_things(things_t *t)
{
    FORK_FREE(FREE)
}

/* With the parent's close its lanes end at the server, although a child lives.
 */
static bool lanes_end_with_the_parent(things_t *t, const daemon_t *daemon)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    const char *transport = getenv("PSD_TRANSPORT");
    bool has_lanes = transport == NULL || strcmp(transport, "lane") == 0;
    int ends[2];
    char byte = 0;
    pid_t pid = -1;

    CHECK((lanes_of(daemon->pid) > 0) == has_lanes);
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid = fork();
    if (pid == 0) { /* lives until the parent closes the pipe */
        (void)close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    (void)close(ends[0]);
    free_things(t);
    for (int i = 0; i < 4000 && lanes_of(daemon->pid) > 0; i++) {
        (void)nanosleep(&pause, NULL);
    }
    CHECK(lanes_of(daemon->pid) == 0);
    (void)close(ends[1]);
    return ended_well(pid);
}

/* What an earlier call said survives no later one that went well. */
static bool success_empties_the_error(psd_error_t *err)
{
    psd_options_t *options = psd_options_new();
    psd_spec_t *spec = psd_spec_new();

    CHECK(psd_options_set_spin_us(options, 10001, err) == PSD_INVALID);
    CHECK(strstr(psd_error_text(err), "spin_us") != NULL);
    CHECK(psd_options_set_spin_us(options, 10, err) == PSD_OK);
    CHECK(psd_error_status(err) == PSD_OK && psd_error_text(err)[0] == '\0');
    CHECK(psd_spec_set(spec, "rows", "none", err) == PSD_INVALID);
    CHECK(psd_options_set_transport(options, "rdma", err) == PSD_INVALID);
    CHECK(strstr(psd_error_text(err), "transport is \"rdma\"") != NULL);
    CHECK(psd_spec_set(spec, "rows", "5", err) == PSD_OK);
    CHECK(psd_error_status(err) == PSD_OK);
    psd_spec_destroy(&spec);
    psd_options_destroy(&options);
    return true;
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    things_t things = {.client = NULL};
    psd_error_t *err = psd_error_new();
    bool ok =
        every_function_has_a_row() && success_empties_the_error(err) && daemon_start(&daemon, NULL);

    if (ok) {
        ok = setenv("PSD_ENDPOINT", daemon.control, 1) == 0;
    }
    ok = ok && child_of_a_busy_parent(&things, &daemon, err);
    ok = ok && child_may_exit();
    ok = ok && children_have_clients(&things, &daemon, err);
    ok = ok && lanes_end_with_the_parent(&things, &daemon);
    free_things(&things);
    daemon_drop(&daemon, !ok);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
