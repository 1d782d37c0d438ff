/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/quorum/replica.h: a member that meets a command of another build; commands that
 * are proposed together. */
#include "server/quorum/replica.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "protocol/registry/command_code.h"
#include "server/quorum/quorum_inner.h"
#include "server/quorum/replica_inner.h"
#include "support/temp_dir.h"

#define WAIT_STEPS 6000   /* of 10 ms */
#define PATIENCE_MS 60000 /* of a busy machine */
#define VERSION_AT 4      /* in the bytes of a command */

#define MUST(good) must(good, #good, world->err)

typedef struct world {
    temp_dir_t dir;
    ps_context_t *context;
    ps_registry_args_t args;
    ps_replica_net_t net;
    ps_replica_t *replica;
    psd_error_t *err;
    uint64_t request; /* of the last command */
} world_t;

static void must(bool good, const char *what, const psd_error_t *err)
{
    if (!good) {
        (void)fprintf(stderr, "not true: %s: %s\n", what, psd_error_text(err));
        exit(1);
    }
}

static void open_replica(world_t *world)
{
    MUST(ps_replica_open(world->dir.path, &world->args, &world->replica, world->err) == PSD_OK);
}

/* The only member of a replicated registry. */
static void begin(world_t *world)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_id_t uuid = {{1, 2, 3}};

    MUST(temp_dir_make(&world->dir));
    world->err = psd_error_new();
    world->args = (ps_registry_args_t){.default_partitions = 1,
                                       .lost_after_ms = 1000,
                                       .join_within_ms = 1000,
                                       .tables_max = 4,
                                       .jobs_max = 4,
                                       .nodes_max = 4};
    MUST(ps_context_new(1, &world->context, world->err) == PSD_OK);
    world->net = (ps_replica_net_t){.node = "n0",
                                    .host = "",
                                    .advertise = "",
                                    .run_dir = world->dir.path,
                                    .cluster = uuid,
                                    .incarnation = 7,
                                    .secret = {{5}},
                                    .socket = {.context = world->context,
                                               .high_water = 100,
                                               .frame_bytes = 1 << 20,
                                               .chunk_bytes = 1 << 20}};
    open_replica(world);
    MUST(ps_registry_plan_cluster(ps_replica_registry(world->replica), "psd", &uuid, 1, &command,
                                  world->err) == PSD_OK);
    MUST(ps_replica_commit(world->replica, &command, PS_LOG_DEBUG, world->err) == PSD_OK);
    MUST(ps_replica_begin(world->replica, &world->net, world->err) == PSD_OK);
    ps_replica_close(&world->replica);
}

static void end(world_t *world)
{
    ps_replica_close(&world->replica);
    ps_context_destroy(&world->context);
    psd_error_destroy(&world->err);
    temp_dir_drop(&world->dir);
}

/* As a build with other commands would have written it. */
static void append(const world_t *world, int version)
{
    PSD_AUTO(ps_registry_log_close) ps_registry_log_t *log = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    const ps_command_t note = {.kind = PS_COMMAND_NOTE, .unix_ms = 1, .text = "x"};
    ps_registry_entry_t entry = {.kind = (ps_registry_entry_kind_t)PS_QUORUM_COMMAND};
    char dir[sizeof world->dir.path + 16];
    const ps_registry_log_args_t args = {.disk = ps_disk_real(),
                                         .dir = dir,
                                         .cluster = world->net.cluster,
                                         .segment_bytes = 1 << 20};

    (void)snprintf(dir, sizeof dir, "%s/registry-log", world->dir.path);
    MUST(ps_command_encode(&note, &bytes));
    bytes.data[VERSION_AT] = (uint8_t)version;
    MUST(ps_registry_log_open(&args, &log, world->err) == PSD_OK);
    entry.index = ps_registry_log_last(log) + 1;
    entry.term = ps_registry_log_term(log);
    entry.bytes = (ps_bytes_t){.data = bytes.data, .size = bytes.size};
    MUST(ps_registry_log_append(log, &entry, 1, world->err) == PSD_OK);
    MUST(ps_registry_log_flush(log, world->err) == PSD_OK);
}

static psd_status_t take_until_it_ends(world_t *world)
{
    ps_quorum_view_t view;
    psd_status_t rc = PSD_OK;

    for (int i = 0; i < WAIT_STEPS && rc == PSD_OK; i++) {
        const struct timespec gap = {.tv_nsec = 10000000};

        rc = ps_replica_take(world->replica, &view, world->err);
        (void)nanosleep(&gap, NULL);
    }
    return rc;
}

static void names_another_build(world_t *world)
{
    uint64_t before = 0;

    begin(world);
    append(world, PS_COMMAND_VERSION + 1);
    open_replica(world);
    MUST(ps_replica_start(world->replica, &world->net, world->err) == PSD_OK);
    before = ps_registry_db_applied(ps_replica_db(world->replica)).index;
    MUST(take_until_it_ends(world) == PSD_FOREIGN);
    MUST(strstr(psd_error_text(world->err), "is of another build than psd ") != NULL);
    MUST(ps_registry_db_applied(ps_replica_db(world->replica)).index == before);
    end(world);
}

/* ---- groups ---- */

static void note(world_t *world, const char *text)
{
    ps_command_t command = ps_registry_plan_note(ps_replica_registry(world->replica), 1, text);

    command.session = 1; /* so it is in the state */
    command.request = ++world->request;
    MUST(ps_replica_commit(world->replica, &command, PS_LOG_DEBUG, world->err) == PSD_OK);
}

static uint64_t hash_of(const world_t *world)
{
    return ps_registry_hash(ps_replica_registry(world->replica));
}

static uint64_t applied(const world_t *world)
{
    return ps_registry_db_applied(ps_replica_db(world->replica)).index;
}

/* A member that votes alone, and leads. */
static void lead(world_t *world)
{
    ps_quorum_view_t view = {0};

    begin(world);
    open_replica(world);
    MUST(ps_replica_start(world->replica, &world->net, world->err) == PSD_OK);
    for (int i = 0; i < WAIT_STEPS && view.state != PS_QUORUM_LEADER; i++) {
        const struct timespec gap = {.tv_nsec = 10000000};

        MUST(ps_replica_take(world->replica, &view, world->err) == PSD_OK);
        (void)nanosleep(&gap, NULL);
    }
    MUST(view.state == PS_QUORUM_LEADER);
    world->replica->commit_ms = PATIENCE_MS;
    ps_replica_lead(world->replica, view.term);
    note(world, "the first one of a term waits for what is in the log");
    MUST(ps_replica_flush(world->replica, world->err) == PSD_OK);
}

/* More than one proposal takes: all are there, in one order, also after a start. */
static void proposes_what_was_committed_together(world_t *world)
{
    uint64_t before = 0;
    uint64_t hash = 0;

    lead(world);
    before = applied(world);
    for (int i = 0; i < PS_QUORUM_COMMANDS_MAX + 2; i++) {
        note(world, "one of many");
    }
    MUST(!ps_replica_is_flushed(world->replica));
    MUST(ps_quorum_thread_last(ps_replica_thread(world->replica)) ==
         before + PS_QUORUM_COMMANDS_MAX);
    MUST(ps_replica_flush(world->replica, world->err) == PSD_OK);
    MUST(ps_replica_is_flushed(world->replica));
    MUST(applied(world) == before + PS_QUORUM_COMMANDS_MAX + 2);
    MUST(ps_quorum_thread_last(ps_replica_thread(world->replica)) == applied(world));
    hash = hash_of(world);
    before = applied(world);
    note(world, "never proposed");
    MUST(hash_of(world) != hash);
    ps_replica_close(&world->replica);
    open_replica(world);
    MUST(hash_of(world) == hash);
    MUST(applied(world) == before);
    end(world);
}

/* It does not lead any more when it is to propose them: they never were. */
static void loads_again_what_is_unknown(world_t *world)
{
    ps_quorum_view_t view;
    ps_command_t command = {0};
    uint64_t hash = 0;
    uint64_t before = 0;

    lead(world);
    before = applied(world);
    hash = hash_of(world);
    ps_replica_lead(world->replica, ps_replica_led_term(world->replica) + 1);
    note(world, "of a term that it does not lead");
    note(world, "another one");
    MUST(applied(world) == before + 2);
    MUST(ps_replica_flush(world->replica, world->err) == PSD_NOT_LEADER);
    MUST(ps_replica_is_ahead(world->replica));
    MUST(!ps_replica_is_flushed(world->replica) && !ps_replica_may_answer(world->replica));
    MUST(ps_replica_led_term(world->replica) == 0);
    command = ps_registry_plan_note(ps_replica_registry(world->replica), 1, "later");
    psd_error_clear(world->err);
    MUST(ps_replica_commit(world->replica, &command, PS_LOG_DEBUG, world->err) == PSD_NOT_LEADER);
    psd_error_clear(world->err);
    MUST(ps_replica_flush(world->replica, world->err) == PSD_NOT_LEADER);
    psd_error_clear(world->err);
    MUST(ps_replica_take(world->replica, &view, world->err) == PSD_OK);
    MUST(!ps_replica_is_ahead(world->replica) && ps_replica_is_flushed(world->replica));
    MUST(hash_of(world) == hash);
    MUST(applied(world) == before);
    ps_replica_lead(world->replica, view.term);
    note(world, "it leads again");
    MUST(ps_replica_flush(world->replica, world->err) == PSD_OK);
    MUST(applied(world) == before + 1);
    end(world);
}

/* ---- lines ---- */

typedef struct lines {
    ps_log_sink_t sink;
    char last[256];
    int n;
} lines_t;

static void take_line(void *user, ps_log_level_t level, const char *line)
{
    lines_t *lines = user;

    (void)level;
    lines->n++;
    (void)snprintf(lines->last, sizeof lines->last, "%s", line);
}

static void lose_worker(world_t *world, int rank)
{
    ps_replica_log(world->replica, PS_LOG_WARN, "worker_lost", "worker=%d", rank);
}

/* A line tells of what is agreed on, and nothing of what never was. */
static void logs_what_was_agreed_on(world_t *world)
{
    static lines_t lines;
    ps_quorum_view_t view;

    lead(world);
    lines.sink = (ps_log_sink_t){.take = take_line, .user = &lines, .fd = -1};
    atomic_store(&lines.sink.level, PS_LOG_WARN);
    ps_log_use(&lines.sink);
    note(world, "a loss");
    lose_worker(world, 1);
    lose_worker(world, 2);
    MUST(lines.n == 0);
    MUST(ps_replica_flush(world->replica, world->err) == PSD_OK);
    MUST(lines.n == 2 && strstr(lines.last, "worker_lost worker=2") != NULL);
    lose_worker(world, 3); /* of what is there */
    MUST(lines.n == 3 && strstr(lines.last, "worker=3") != NULL);
    ps_replica_lead(world->replica, ps_replica_led_term(world->replica) + 1);
    note(world, "of a term that it does not lead");
    lose_worker(world, 4);
    MUST(ps_replica_flush(world->replica, world->err) == PSD_NOT_LEADER);
    lose_worker(world, 5);
    psd_error_clear(world->err);
    MUST(ps_replica_take(world->replica, &view, world->err) == PSD_OK);
    ps_replica_lead(world->replica, view.term);
    note(world, "it leads again");
    MUST(ps_replica_flush(world->replica, world->err) == PSD_OK);
    MUST(lines.n == 3);
    ps_log_use(NULL);
    end(world);
}

/* ---- a busy thread ---- */

#define BUSY_MS 3500

/* It waits for a database for a while, as far as it knows. */
static void *be_busy(void *argument)
{
    const struct timespec gap = {.tv_sec = BUSY_MS / 1000, .tv_nsec = BUSY_MS % 1000 * 1000000};
    ps_quorum_thread_t *thread = argument;

    (void)nanosleep(&gap, NULL);
    ps_quorum_lock(thread);
    thread->installs = false;
    ps_quorum_unlock(thread);
    ps_quorum_ring(thread->wake_fd);
    return NULL;
}

/* Nothing is in doubt while the thread has not come to the proposal: the lead is kept. */
static void waits_for_a_busy_thread(world_t *world)
{
    pthread_t helper;
    ps_quorum_thread_t *thread = NULL;
    uint64_t before = 0;

    lead(world);
    thread = ps_replica_thread(world->replica);
    before = applied(world);
    note(world, "proposed late");
    world->replica->commit_ms = BUSY_MS - 500;
    ps_quorum_lock(thread);
    thread->take_ms = PATIENCE_MS;
    thread->installs = true;
    ps_quorum_unlock(thread);
    MUST(pthread_create(&helper, NULL, be_busy, thread) == 0);
    MUST(ps_replica_flush(world->replica, world->err) == PSD_OK);
    MUST(pthread_join(helper, NULL) == 0);
    MUST(applied(world) == before + 1 && ps_replica_led_term(world->replica) != 0);
    end(world);
}

int main(void)
{
    static world_t world;

    names_another_build(&world);
    proposes_what_was_committed_together(&world);
    loads_again_what_is_unknown(&world);
    logs_what_was_agreed_on(&world);
    waits_for_a_busy_thread(&world);
    return 0;
}
