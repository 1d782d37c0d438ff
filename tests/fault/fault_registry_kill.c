/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 while tables are created and dropped, 200 times
 *
 * A child makes and drops tables as fast as it can and says, through a pipe,
 * what has been stored. It is killed at a random moment, be that while it opens
 * or even makes the file. Then: the registry opens, every table in it is whole,
 * what is there is what the child said, and at most the one command that it was
 * at, and the place is that of the last command.
 */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/rng.h"
#include "storage/registry/registry_db.h"
#include "support/registry_fixture.h"
#include "support/temp_dir.h"

#define ROUNDS 200 /* or as FAULT_KILLS says */
#define N_TABLES 8
#define ROUNDS_PER_DIR                                    \
    20 /* then a fresh one, to be killed while it is made \
        */

typedef struct record { /* one stored command; seed 0: dropped */
    uint64_t seed;
    uint32_t table;
} record_t;

/* What must be found: the seed of each table, 0 for those that are absent. */
typedef struct ledger {
    uint64_t seeds[N_TABLES];
} ledger_t;

typedef struct psd { /* what a daemon has of a registry */
    ps_registry_db_t *db;
    ps_registry_t *registry;
} psd_t;

static psd_error_t *err;

static bool complain(const char *what)
{
    (void)fprintf(stderr, "%s: %s\n", what, psd_error_text(err));
    return false;
}

static void close_psd(psd_t *self)
{
    ps_registry_destroy(&self->registry);
    ps_registry_db_close(&self->db);
}

static bool open_psd(psd_t *self, const char *dir)
{
    ps_registry_args_t args = fixture_args();

    psd_error_clear(err);
    if (ps_registry_new(&args, &self->registry, err) != PSD_OK ||
        ps_registry_db_open(dir, &self->db, err) != PSD_OK ||
        ps_registry_db_load(self->db, self->registry, 1, err) != PSD_OK) {
        return complain("open");
    }
    return true;
}

static psd_status_t store_in(void *context, const ps_registry_t *registry,
                             const ps_command_t *command, psd_error_t *error)
{
    return ps_registry_db_store(context, registry, command, ps_registry_db_next(context), error);
}

static bool do_planned(psd_t *self, psd_status_t planned, ps_command_t *command)
{
    return fixture_do(self->registry, planned, command, 1, store_in, self->db, err) == PSD_OK;
}

/* What a daemon does first. */
static bool start(psd_t *self)
{
    ps_command_t command = {0};
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n0", ps_registry_epoch(self->registry) + 1000, 2, shards);
    ps_id_t uuid = fixture_uuid();
    psd_status_t rc = ps_registry_plan_cluster(self->registry, "psd", &uuid, 1, &command, err);

    if (!do_planned(self, rc, &command)) {
        return false;
    }
    rc = ps_registry_plan_node(self->registry, &node, 1, &command, err);
    return do_planned(self, rc, &command);
}

/* The number of partitions follows from the seed, so that a table that was
 * mixed from two would show. */
static ps_table_spec_t spec_of(uint32_t table, uint64_t seed)
{
    char name[16];
    ps_table_spec_t spec;

    (void)snprintf(name, sizeof name, "t%u", table);
    spec = fixture_spec(name);
    spec.seed = seed;
    spec.n_rows = 1000;
    spec.n_partitions = 1 + (uint32_t)(seed % 64);
    return spec;
}

static bool change_one(psd_t *self, ps_rng_t *rng, record_t *ret_record)
{
    ps_command_t command = {0};
    uint32_t table = (uint32_t)ps_rng_below(rng, N_TABLES);
    uint64_t seed = 1 + ps_rng_below(rng, UINT64_MAX);
    ps_table_spec_t spec = spec_of(table, seed);
    bool exists = ps_registry_table(self->registry, spec.name) != NULL;
    psd_status_t rc = exists ? ps_registry_plan_drop(self->registry, spec.name, 1, &command, err)
                             : ps_registry_plan_table(self->registry, &spec, 1, &command, err);

    *ret_record = (record_t){.seed = exists ? 0 : seed, .table = table};
    return do_planned(self, rc, &command);
}

/* Never returns unless something is wrong. */
static int run_child(const char *dir, int pipe_fd, uint64_t seed)
{
    psd_t self = {0};
    ps_rng_t rng = {seed};
    record_t record = {0};
    bool good = open_psd(&self, dir) && start(&self);

    while (good) {
        good = change_one(&self, &rng, &record) &&
               write(pipe_fd, &record, sizeof record) == sizeof record;
    }
    close_psd(&self);
    (void)complain("child");
    return 1;
}

/* Waits for some commands, then a moment more, which is the randomness that is
 * wanted here. */
static void wait_some(int pipe_fd, ps_rng_t *rng, ledger_t *ledger)
{
    uint64_t n_records = ps_rng_below(rng, 8);
    struct timespec moment = {.tv_nsec = (long)ps_rng_below(rng, 3000000)};

    for (uint64_t i = 0; i < n_records; i++) {
        struct pollfd ready = {.fd = pipe_fd, .events = POLLIN};
        record_t record;

        if (poll(&ready, 1, 60000) != 1 || read(pipe_fd, &record, sizeof record) != sizeof record) {
            return;
        }
        ledger->seeds[record.table] = record.seed;
    }
    (void)nanosleep(&moment, NULL);
}

/* Kills the child and takes what it had said until then. */
static bool kill_child(pid_t child, int pipe_fd, ledger_t *ledger)
{
    record_t record;
    int status = 0;

    (void)kill(child, SIGKILL);
    if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) {
        (void)fprintf(stderr, "the child ended by itself\n");
        return false;
    }
    while (read(pipe_fd, &record, sizeof record) == sizeof record) {
        ledger->seeds[record.table] = record.seed;
    }
    return true;
}

static bool is_whole(const ps_table_t *table, const char *name)
{
    uint32_t n = 1 + (uint32_t)(table->spec.seed % 64);

    if (table->spec.n_partitions == n && table->routes[n - 1].partition == n - 1) {
        return true;
    }
    (void)fprintf(stderr, "table %s is not whole\n", name);
    return false;
}

/* The ledger then says what was found. */
static bool check_found(const ps_registry_t *registry, ledger_t *ledger)
{
    int n_different = 0;

    for (uint32_t i = 0; i < N_TABLES; i++) {
        char name[16];
        const ps_table_t *table = NULL;
        uint64_t found = 0;

        (void)snprintf(name, sizeof name, "t%u", i);
        table = ps_registry_table(registry, name);
        if (table != NULL && !is_whole(table, name)) {
            return false;
        }
        found = table == NULL ? 0 : table->spec.seed;
        n_different += found != ledger->seeds[i] ? 1 : 0;
        ledger->seeds[i] = found;
    }
    if (n_different > 1) {
        (void)fprintf(stderr, "%d tables are not as they were stored\n", n_different);
    }
    return n_different <= 1;
}

/* Each command has left a line of the history, and its place. */
static bool check_place(const psd_t *self)
{
    PSD_AUTO(ps_free_at) ps_event_row_t *rows = NULL;
    uint64_t index = ps_registry_db_applied(self->db).index;
    size_t n = 0;

    if (ps_registry_db_events(self->db, 0, 1, &rows, &n, err) != PSD_OK) {
        return complain("events");
    }
    if (index == (n == 0 ? 0 : rows[0].id)) {
        return true;
    }
    (void)fprintf(stderr, "%" PRIu64 " commands are stored, the place is %" PRIu64 "\n",
                  n == 0 ? 0 : rows[0].id, index);
    return false;
}

static bool run_round(const char *dir, uint64_t seed, ledger_t *ledger)
{
    ps_rng_t rng = {seed};
    psd_t self = {0};
    int fds[2] = {-1, -1};
    pid_t child = -1;
    bool good = pipe(fds) == 0;

    child = good ? fork() : -1;
    if (child == 0) {
        (void)close(fds[0]);
        _exit(run_child(dir, fds[1], seed));
    }
    if (child < 0) {
        return complain("fork");
    }
    (void)close(fds[1]);
    wait_some(fds[0], &rng, ledger);
    good = kill_child(child, fds[0], ledger);
    (void)close(fds[0]);
    good = good && open_psd(&self, dir) && check_found(self.registry, ledger) && check_place(&self);
    close_psd(&self);
    return good;
}

int main(void)
{
    temp_dir_t temp = {""};
    ledger_t ledger = {{0}};
    bool good = temp_dir_make(&temp);
    const char *asked = getenv("FAULT_KILLS");
    uint64_t n_rounds = asked == NULL ? ROUNDS : strtoull(asked, NULL, 10);
    uint64_t round = 0;

    err = psd_error_new();
    for (round = 0; round < n_rounds && good; round++) {
        char dir[PATH_MAX + 32];

        if (round % ROUNDS_PER_DIR == 0) {
            ledger = (ledger_t){{0}};
        }
        (void)snprintf(dir, sizeof dir, "%s/data%u", temp.path, (unsigned)(round / ROUNDS_PER_DIR));
        good = run_round(dir, round, &ledger);
    }
    (void)fprintf(stderr, "%u of %u kills, %s\n", (unsigned)round, (unsigned)n_rounds,
                  good ? "every table whole or absent" : "failed in the last");
    temp_dir_drop(&temp);
    psd_error_destroy(&err);
    return good && round > 0 ? 0 : 1;
}
