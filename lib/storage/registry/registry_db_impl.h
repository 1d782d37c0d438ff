/* SPDX-License-Identifier: Apache-2.0 */
/* ps_registry_db from inside: its statements; for the files of registry_db. */
#ifndef PS_STORAGE_REGISTRY_DB_IMPL_H
#define PS_STORAGE_REGISTRY_DB_IMPL_H

#include "storage/disk/commit_note.h"
#include "storage/registry/query.h"
#include "storage/registry/registry_db.h"

#define PS_REGISTRY_DB_ID INT64_C(0x70735247) /* application_id: "psRG" */
#define PS_EVENTS_KEPT 100000                 /* rows of the history */

/* X(NAME, table that errors name, SQL). What is done here in SQL, registry.c's
 * apply does in memory: the two must agree. */
#define PS_STATEMENTS(X)                                                                          \
    X(BEGIN, "cluster", "BEGIN IMMEDIATE")                                                        \
    X(COMMIT, "cluster", "COMMIT")                                                                \
    X(ROLLBACK, "cluster", "ROLLBACK")                                                            \
    X(EVENT_ADD, "events", "INSERT INTO events(unix_ms, epoch, kind, text) VALUES(?, ?, ?, ?)")   \
    X(EVENT_CUT, "events", "DELETE FROM events WHERE id <= ?")                                    \
    X(CLUSTER_ADD, "cluster",                                                                     \
      "INSERT INTO cluster(id, name, uuid, epoch, sessions, last_table, "                         \
      "last_job, created_unix_ms) VALUES(1, ?, ?, ?, ?, ?, ?, ?)")                                \
    X(CLUSTER_SET, "cluster",                                                                     \
      "UPDATE cluster SET epoch = ?, sessions = max(sessions, ?), "                               \
      "last_table = max(last_table, ?), last_job = max(last_job, ?), "                            \
      "commits = commits + 1")                                                                    \
    X(NODE_PUT, "nodes",                                                                          \
      "INSERT INTO nodes(name, incarnation, control, started_unix_ms, "                           \
      "weight, secret) VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(name) DO UPDATE "                     \
      "SET incarnation = excluded.incarnation, control = excluded.control, "                      \
      "started_unix_ms = excluded.started_unix_ms, "                                              \
      "weight = excluded.weight, secret = excluded.secret RETURNING id")                          \
    X(NODE_STATE, "nodes", "UPDATE nodes SET state = ? WHERE name = ?")                           \
    X(NODE_REMOVE, "nodes", "DELETE FROM nodes WHERE name = ?")                                   \
    X(SHARD_PUT, "shards",                                                                        \
      "INSERT INTO shards(node_id, shard, tcp, ipc) VALUES(?, ?, ?, ?) "                          \
      "ON CONFLICT(node_id, shard) DO UPDATE SET tcp = excluded.tcp, "                            \
      "ipc = excluded.ipc")                                                                       \
    X(SHARD_CUT, "shards", "DELETE FROM shards WHERE node_id = ? AND shard >= ?")                 \
    X(TABLE_LOST, "tables",                                                                       \
      "UPDATE tables SET rows_lost = 1, loss_acked = 0, "                                         \
      "lost_sessions = (SELECT sessions FROM cluster), "                                          \
      "lost_jobs = (SELECT last_job FROM cluster) WHERE id = ?")                                  \
    X(TABLE_ACKED, "tables", "UPDATE tables SET loss_acked = 1 WHERE id = ?")                     \
    X(TABLE_TOLD, "tables", "UPDATE tables SET lost_jobs = 0 WHERE id = ?")                       \
    X(TABLE_ADD, "tables",                                                                        \
      "INSERT INTO tables(id, name, created_unix_ms, rows_lost, n_rows, "                         \
      "n_cols, type, row_format, keys, updater, init, seed, n_partitions, "                       \
      "n_col_slices, partition_by, replicas, ack, allow_nonfinite, filter, "                      \
      "versions, lost_sessions, lost_jobs, restoring, loss_acked) "                               \
      "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "                       \
      "?, ?, ?, ?)")                                                                              \
    X(TABLE_RESTORED, "tables", "UPDATE tables SET restoring = 0 WHERE id = ?")                   \
    X(PARTITION_PUT, "partitions",                                                                \
      "INSERT INTO partitions(table_id, partition, epoch, fenced) "                               \
      "VALUES(?, ?, ?, ?) ON CONFLICT(table_id, partition) DO UPDATE SET "                        \
      "epoch = excluded.epoch, fenced = excluded.fenced")                                         \
    X(COPIES_CUT, "copies", "DELETE FROM copies WHERE table_id = ? AND partition = ?")            \
    X(COPY_ADD, "copies",                                                                         \
      "INSERT INTO copies(table_id, partition, place, node_id, shard, "                           \
      "state, leaving, dropped) VALUES(?, ?, ?, "                                                 \
      "(SELECT id FROM nodes WHERE incarnation = ?), ?, ?, ?, ?)")                                \
    X(TABLE_CLOSE, "jobs",                                                                        \
      "UPDATE jobs SET version = version + 1 WHERE id IN "                                        \
      "(SELECT job_id FROM job_tables WHERE table_id = ?)")                                       \
    X(TABLE_DROP, "tables", "DELETE FROM tables WHERE id = ?")                                    \
    X(JOB_PUT, "jobs",                                                                            \
      "INSERT INTO jobs(id, name, max_delay, version, stopped, n_expected, "                      \
      "created_unix_ms, ended) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, CASE WHEN "                     \
      "?8 THEN 0 ELSE (SELECT coalesce(max(ended), 0) + 1 FROM jobs) END) "                       \
      "ON CONFLICT(id) DO UPDATE SET version = excluded.version, "                                \
      "stopped = excluded.stopped, ended = CASE WHEN ended <> 0 THEN ended "                      \
      "ELSE excluded.ended END")                                                                  \
    X(WORKER_PUT, "workers",                                                                      \
      "INSERT INTO workers(job_id, worker, state, n_members, joins, start) "                      \
      "VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(job_id, worker) DO UPDATE SET "                       \
      "state = excluded.state, n_members = excluded.n_members, "                                  \
      "joins = excluded.joins, start = excluded.start "                                           \
      "WHERE (state, n_members, joins, start) IS NOT "                                            \
      "(excluded.state, excluded.n_members, excluded.joins, excluded.start)")                     \
    X(JOBS_CUT, "jobs",                                                                           \
      "DELETE FROM jobs WHERE ended <> 0 AND id NOT IN (SELECT id FROM jobs "                     \
      "WHERE ended <> 0 ORDER BY ended DESC LIMIT ?)")                                            \
    X(JOB_TABLE_ADD, "job_tables",                                                                \
      "INSERT INTO job_tables(job_id, place, table_id) VALUES(?1, "                               \
      "(SELECT coalesce(max(place), 0) + 1 FROM job_tables "                                      \
      "WHERE job_id = ?1), ?2)")                                                                  \
    X(JOB_VERSION, "jobs", "UPDATE jobs SET version = ?2 WHERE id = ?1")                          \
    X(QUEUE_ADD, "queues",                                                                        \
      "INSERT INTO queues(job_id, queue, name, n_slices, n_epochs, epoch) "                       \
      "VALUES(?, ?, ?, ?, ?, ?)")                                                                 \
    X(QUEUE_TURN, "queues", "UPDATE queues SET epoch = epoch + 1 WHERE job_id = ? AND queue = ?") \
    X(DONE_ADD, "slices_done", "INSERT INTO slices_done(job_id, queue, slice) VALUES(?, ?, ?)")   \
    X(DONE_CUT, "slices_done", "DELETE FROM slices_done WHERE job_id = ? AND queue = ?")          \
    X(GIVEN_ADD, "slices_given",                                                                  \
      "INSERT INTO slices_given(job_id, queue, session, ask, epoch, slice, "                      \
      "worker, joins, done) VALUES(?, ?, ?, ?, ?, ?, ?, ?, 0)")                                   \
    X(GIVEN_DONE, "slices_given",                                                                 \
      "UPDATE slices_given SET done = 1 WHERE job_id = ? AND queue = ? "                          \
      "AND session = ? AND ask = ?")                                                              \
    X(GIVEN_FORGET, "slices_given",                                                               \
      "DELETE FROM slices_given WHERE job_id = ? AND queue = ? "                                  \
      "AND session = ? AND done = 1")                                                             \
    X(GIVEN_RETURN, "slices_given",                                                               \
      "DELETE FROM slices_given WHERE job_id = ?1 AND NOT EXISTS (SELECT 1 "                      \
      "FROM workers w WHERE w.job_id = ?1 AND "                                                   \
      "w.worker = slices_given.worker AND w.joins = slices_given.joins AND "                      \
      "w.state = 'running')")                                                                     \
    X(CLUSTER_ALL, "cluster",                                                                     \
      "SELECT id, name, uuid, epoch, sessions, last_table, last_job, "                            \
      "created_unix_ms FROM cluster")                                                             \
    X(NODE_ALL, "nodes",                                                                          \
      "SELECT id, name, incarnation, control, state, weight, secret FROM "                        \
      "nodes ORDER BY id")                                                                        \
    X(SHARD_ALL, "shards",                                                                        \
      "SELECT node_id, shard, tcp, ipc FROM shards WHERE node_id = ? "                            \
      "ORDER BY shard")                                                                           \
    X(TABLE_ALL, "tables",                                                                        \
      "SELECT id, name, created_unix_ms, rows_lost, n_rows, n_cols, type, "                       \
      "row_format, keys, updater, init, seed, n_partitions, n_col_slices, "                       \
      "partition_by, replicas, ack, allow_nonfinite, filter, versions, "                          \
      "lost_sessions, lost_jobs, restoring, loss_acked FROM tables "                              \
      "ORDER BY id")                                                                              \
    X(PARTITION_ALL, "partitions",                                                                \
      "SELECT table_id, partition, epoch, fenced FROM partitions "                                \
      "WHERE table_id = ? ORDER BY partition")                                                    \
    X(COPY_ALL, "copies",                                                                         \
      "SELECT c.table_id, c.partition, c.place, n.incarnation, c.shard, "                         \
      "c.state, c.leaving, c.dropped FROM copies c LEFT JOIN nodes n "                            \
      "ON n.id = c.node_id WHERE c.table_id = ? "                                                 \
      "ORDER BY c.partition, c.place")                                                            \
    X(JOB_ALL, "jobs",                                                                            \
      "SELECT id, name, max_delay, version, stopped, n_expected, "                                \
      "created_unix_ms FROM jobs ORDER BY ended = 0, ended, id")                                  \
    X(WORKER_ALL, "workers",                                                                      \
      "SELECT job_id, worker, state, n_members, joins, start FROM workers "                       \
      "WHERE job_id = ? ORDER BY worker")                                                         \
    X(JOB_TABLE_ALL, "job_tables",                                                                \
      "SELECT job_id, table_id FROM job_tables WHERE job_id = ? "                                 \
      "ORDER BY place")                                                                           \
    X(QUEUE_ALL, "queues",                                                                        \
      "SELECT job_id, queue, name, n_slices, n_epochs, epoch FROM queues "                        \
      "WHERE job_id = ? ORDER BY queue")                                                          \
    X(DONE_ALL, "slices_done",                                                                    \
      "SELECT job_id, queue, slice FROM slices_done WHERE job_id = ? "                            \
      "AND queue = ? ORDER BY slice")                                                             \
    X(GIVEN_ALL, "slices_given",                                                                  \
      "SELECT job_id, queue, session, ask, epoch, slice, worker, joins, "                         \
      "done FROM slices_given WHERE job_id = ? AND queue = ? "                                    \
      "ORDER BY session, ask")                                                                    \
    X(EVENT_LAST, "events",                                                                       \
      "SELECT id, unix_ms, epoch, kind, text FROM events "                                        \
      "ORDER BY id DESC LIMIT ?")

#define PS_STATEMENT_ENUM(name, table, sql) STATEMENT_##name,
typedef enum ps_statement { PS_STATEMENTS(PS_STATEMENT_ENUM) STATEMENT_COUNT } ps_statement_t;
#undef PS_STATEMENT_ENUM

struct ps_registry_db {
    int lock_fd; /* of the data directory; -1 */
    sqlite3 *db; /* owned */
    ps_commit_note_t note;
    uint64_t n_commits; /* ever */
    sqlite3_stmt *statements[STATEMENT_COUNT];
};

ps_query_t ps_registry_db_query(ps_registry_db_t *self, ps_statement_t statement);

/* registry_db_store.c: runs a statement that takes n numbers. Errors: PSD_IO,
 * PSD_DAMAGED, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_db_run(ps_registry_db_t *self, ps_statement_t statement,
                                               const uint64_t *numbers, size_t n, psd_error_t *err);
/* registry_db_work.c: work queues. Errors as there. */
PSD_MUST_CHECK psd_status_t ps_registry_db_store_queue(ps_registry_db_t *self,
                                                       const ps_command_t *command,
                                                       psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_registry_db_store_resumed(ps_registry_db_t *self,
                                                         const ps_command_t *command,
                                                         psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_registry_db_store_work(ps_registry_db_t *self,
                                                      const ps_command_t *command,
                                                      psd_error_t *err);

/* What a load goes by. */
typedef struct ps_registry_load {
    ps_registry_db_t *db;
    ps_registry_t *registry;
    uint64_t now_ms;
    uint64_t epoch; /* of the map as it was stored */
} ps_registry_load_t;
/* registry_db_load.c: a row became the command. Errors: PSD_DAMAGED, naming the
 * row, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_load_apply(const ps_registry_load_t *load,
                                                   const ps_query_t *query, ps_command_t *command,
                                                   psd_error_t *err);
/* Ends a query whose row made `rc`; that came first and wins. */
PSD_MUST_CHECK psd_status_t ps_registry_load_end(ps_query_t *query, psd_status_t rc,
                                                 psd_error_t *err);
/* registry_db_work.c: a job's work queues. Errors as there. */
PSD_MUST_CHECK psd_status_t ps_registry_db_load_queues(const ps_registry_load_t *load, uint32_t job,
                                                       psd_error_t *err);

/* registry_db_open.c: opens the file, checks that it is a registry and whole,
 * and brings its schema up to date. *ret_db is set on failure too, where there
 * is one; the caller closes it. Errors: PSD_IO, PSD_FOREIGN, PSD_DAMAGED,
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_db_open_file(const char *path, sqlite3 **ret_db,
                                                     psd_error_t *err);
#endif
