/* SPDX-License-Identifier: Apache-2.0 */
/* pscli checkpoint create, list, inspect, verify, restore, drop. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "cli/jobs/checkpoint.h"
#include "cli/jobs/jobs.h"
#include "cli/run/confirm.h"

#define LOOK_MS 100    /* poll interval */
#define STILL_MS 60000 /* without any progress */
#define BUSY_S 90      /* until other work is done */

static const ps_column_t WORKED[] = {{"CHECKPOINT", "name", PS_UNIT_NONE, false},
                                     {"FILES", "of", PS_UNIT_NONE, false},
                                     {"ROW_BYTES", "row_bytes", PS_UNIT_BYTES, false},
                                     {"BYTES", "file_bytes", PS_UNIT_BYTES, false},
                                     {NULL, NULL, PS_UNIT_NONE, false}};
static const ps_column_t READ[] = {{"CHECKPOINT", "name", PS_UNIT_NONE, false},
                                   {"ROW_BYTES", "row_bytes", PS_UNIT_BYTES, false},
                                   {NULL, NULL, PS_UNIT_NONE, false}};
static const ps_column_t RESTORED[] = {{"TABLE", "table", PS_UNIT_NONE, false},
                                       {"FROM", "from", PS_UNIT_NONE, true},
                                       {"ROW_BYTES", "row_bytes", PS_UNIT_BYTES, false},
                                       {NULL, NULL, PS_UNIT_NONE, false}};
static const ps_column_t RESUMED[] = {{"JOB", "job", PS_UNIT_NONE, false},
                                      {"CLOCK", "clock", PS_UNIT_NONE, false},
                                      {"WORKERS", "workers", PS_UNIT_NONE, false},
                                      {"QUEUES", "queues", PS_UNIT_NONE, false},
                                      {NULL, NULL, PS_UNIT_NONE, false}};
static const ps_column_t LIST[] = {{"NAME", "name", PS_UNIT_NONE, false},
                                   {"STATE", "state", PS_UNIT_NONE, false},
                                   {"CONSISTENT", "consistent", PS_UNIT_NONE, false},
                                   {"TABLES", "tables", PS_UNIT_NONE, false},
                                   {"BYTES", "bytes", PS_UNIT_BYTES, false},
                                   {"SINCE", "since", PS_UNIT_NONE, false},
                                   {"CREATED", "created_unix_ms", PS_UNIT_UNIX_MS, false},
                                   {NULL, NULL, PS_UNIT_NONE, false}};
static const ps_column_t FILES[] = {{"TABLE", "table", PS_UNIT_NONE, false},
                                    {"PARTITION", "partition", PS_UNIT_NONE, false},
                                    {"NODE", "node", PS_UNIT_NONE, false},
                                    {"LSN", "lsn", PS_UNIT_NONE, false},
                                    {"EPOCH", "epoch", PS_UNIT_NONE, false},
                                    {"CLOCK", "clock", PS_UNIT_NONE, false},
                                    {"ROWS", "rows", PS_UNIT_NONE, false},
                                    {"BYTES", "bytes", PS_UNIT_BYTES, false},
                                    {"VERSION", "version", PS_UNIT_NONE, false},
                                    {"SINCE", "since", PS_UNIT_NONE, false},
                                    {NULL, NULL, PS_UNIT_NONE, false}};
static const ps_column_t DROPPED[] = {{"CHECKPOINT", "name", PS_UNIT_NONE, false},
                                      {"DROPPED", "dropped", PS_UNIT_NONE, false},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

/* One poll. */
static psd_status_t look(ps_cli_t *cli, uint64_t number, json_t **reply_p, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *request = json_pack("{s:s,s:I}", "op", "checkpoint_look", "number", (json_int_t)number);

    ps_json_unref(reply_p);
    return ps_cli_ask(cli, request, reply_p, err);
}

/* Polls until everything is done, and shows every change of the progress.
 * After Ctrl-C it stops polling, so psd cancels the work. */
static psd_status_t wait_done(ps_cli_t *cli, uint64_t number, json_t **reply_p, psd_error_t *err)
{
    const struct timespec gap = {.tv_nsec = LOOK_MS * 1000000L};
    uint64_t shown = 0;
    uint64_t bytes = 0;
    double moved_s = ps_cli_now_s();

    for (;;) {
        psd_status_t rc = look(cli, number, reply_p, err);
        uint64_t done = ps_json_u64(*reply_p, "done");

        if (rc != PSD_OK || json_is_true(ps_json_at(*reply_p, "is_done"))) {
            return rc;
        }
        if (done != shown || bytes != ps_json_u64(*reply_p, "row_bytes")) {
            moved_s = ps_cli_now_s();
            bytes = ps_json_u64(*reply_p, "row_bytes");
        }
        if (done != shown) {
            ps_say(&cli->out, "%" PRIu64 " of %" PRIu64 " files, %" PRIu64 " MiB", done,
                   ps_json_u64(*reply_p, "of"), bytes >> 20);
            shown = done;
        }
        if (ps_cli_now_s() - moved_s > STILL_MS / 1000.0) {
            return psd_error_set(err, PSD_DEADLINE,
                                 "nothing was written or read for %d s: %" PRIu64 " of %" PRIu64
                                 " files are done; a partition may be waiting for a clock (see "
                                 "\"pscli why\") or for its copies",
                                 STILL_MS / 1000, done, ps_json_u64(*reply_p, "of"));
        }
        (void)nanosleep(&gap, NULL);
    }
}

psd_status_t ps_checkpoint_work(ps_cli_t *cli, const json_t *request, json_t **ret_reply,
                                psd_error_t *err)
{
    psd_status_t rc = ps_cli_ask(cli, request, ret_reply, err);

    if (rc == PSD_OK) {
        rc = wait_done(cli, ps_json_u64(*ret_reply, "number"), ret_reply, err);
    }
    return rc;
}

psd_status_t ps_checkpoint_work_soon(ps_cli_t *cli, const json_t *request, json_t **ret_reply,
                                     psd_error_t *err)
{
    const struct timespec gap = {.tv_nsec = LOOK_MS * 1000000L};
    double until_s = ps_cli_now_s() + BUSY_S;
    bool has_said = false;
    psd_status_t rc = ps_checkpoint_work(cli, request, ret_reply, err);

    while (rc == PSD_BUSY && ps_cli_now_s() < until_s) {
        if (!has_said) {
            ps_say(&cli->out, "waiting: %s", psd_error_text(err));
            has_said = true;
        }
        psd_error_clear(err);
        ps_json_unref(ret_reply);
        (void)nanosleep(&gap, NULL);
        rc = ps_checkpoint_work(cli, request, ret_reply, err);
    }
    return rc;
}

/* The names of all --table, in order; NULL when there is none. The caller owns
 * them. */
static psd_status_t table_names(const ps_cli_t *cli, json_t **ret_names, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *names = NULL;
    const char *at = ps_args_text(&cli->args, "table");

    for (names = at == NULL ? NULL : json_array(); at != NULL;) {
        size_t size = strcspn(at, ",");

        if (size == 0 || json_array_append_new(names, json_stringn(at, size)) != 0) {
            return psd_error_set(err, PSD_USAGE,
                                 "--table is \"%s\"; allowed: table names, separated by commas",
                                 ps_args_text(&cli->args, "table"));
        }
        at = at[size] == ',' ? at + size + 1 : NULL;
    }
    *ret_names = names;
    names = NULL;
    return PSD_OK;
}

psd_status_t ps_cmd_checkpoint_create(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *request = NULL;
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    PSD_AUTO(ps_json_unref) json_t *names = NULL;
    const char *since = ps_args_text(&cli->args, "since");
    const char *job = ps_args_text(&cli->args, "job");
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (job != NULL && ps_args_given(&cli->args, "table")) {
        return psd_error_set(err, PSD_USAGE,
                             "--table and --job are both given; allowed: one of them, as --job "
                             "takes all tables of the job");
    }
    if (since != NULL && ps_args_given(&cli->args, "every")) {
        return psd_error_set(err, PSD_USAGE,
                             "--since and --every are both given; allowed: one of them");
    }
    if (ps_args_given(&cli->args, "keep") && !ps_args_given(&cli->args, "every")) {
        return psd_error_set(
            err, PSD_USAGE,
            "--keep without --every; it limits the number of checkpoints in a series");
    }
    rc = table_names(cli, &names, err);
    if (rc != PSD_OK) {
        return rc;
    }
    request = json_pack("{s:s,s:s}", "op", "checkpoint_create", "name", name);
    if (since != NULL) {
        (void)json_object_set_new(request, "since", json_string(since));
    }
    if (job != NULL) {
        (void)json_object_set_new(request, "job", json_string(job));
    }
    if (names != NULL) {
        (void)json_object_set(request, "tables", names);
    }
    if (ps_args_given(&cli->args, "every")) {
        return ps_checkpoint_series(cli, name, request, err);
    }
    rc = ps_checkpoint_work(cli, request, &reply, err);
    if (rc == PSD_OK) {
        ps_out_object(&cli->out, reply, WORKED);
    }
    if (rc == PSD_OK && since != NULL && ps_json_u64(reply, "whole") > 0) {
        ps_say(&cli->out,
               "%" PRIu64 " of %" PRIu64
               " partitions were written with all rows: \"%s\" does not have the table, the table "
               "keeps no versions, or records of it were lost since",
               ps_json_u64(reply, "whole"), ps_json_u64(reply, "of"), since);
    }
    return rc;
}

psd_status_t ps_cmd_checkpoint_verify(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    PSD_AUTO(ps_json_unref) json_t *request = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    request = json_pack("{s:s,s:s}", "op", "checkpoint_verify", "name", name);
    rc = ps_checkpoint_work(cli, request, &reply, err);
    if (rc == PSD_OK) {
        ps_out_object(&cli->out, reply, READ);
    }
    return rc;
}

psd_status_t ps_cmd_checkpoint_list(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "checkpoint_list", NULL, NULL, &reply, err);

    if (rc == PSD_OK) {
        ps_out_list(&cli->out, reply, "checkpoints", LIST);
    }
    return rc;
}

/* Parses the manifest from its text. */
psd_status_t ps_checkpoint_manifest(ps_cli_t *cli, const char *name, json_t **ret_manifest,
                                    psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "checkpoint_inspect", "name", name, &reply, err);

    if (rc != PSD_OK) {
        return rc;
    }
    *ret_manifest = json_loads(ps_json_text(reply, "manifest"), 0, NULL);
    return *ret_manifest != NULL ? PSD_OK
                                 : psd_error_set(err, PSD_PROTO, "the manifest is not JSON");
}

psd_status_t ps_cmd_checkpoint_inspect(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *manifest = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK) {
        rc = ps_checkpoint_manifest(cli, name, &manifest, err);
    }
    if (rc == PSD_OK) {
        ps_say(&cli->out, "consistent: %s, clock %" PRIu64, ps_json_text(manifest, "consistent"),
               ps_json_u64(manifest, "clock"));
        ps_out_list(&cli->out, manifest, "files", FILES);
    }
    return rc;
}

psd_status_t ps_cmd_checkpoint_drop(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    char what[256];
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK) {
        (void)snprintf(what, sizeof what, "checkpoint \"%s\"", name);
        rc = ps_confirm_drop(cli, what, err);
    }
    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "checkpoint_drop", "name", name, &reply, err);
    }
    if (rc == PSD_OK) {
        ps_out_object(&cli->out, reply, DROPPED);
    }
    return rc;
}

/* ---- restore ---- */

/* The settings of the restored tables that differ from the checkpoint's. */
static json_t *shape_of(const ps_cli_t *cli)
{
    json_t *shape = json_object();
    const char *as = ps_args_text(&cli->args, "as");
    const char *ack = ps_args_text(&cli->args, "ack");
    uint64_t partitions = ps_args_u64(&cli->args, "partitions");
    uint64_t replicas = ps_args_u64(&cli->args, "replicas");

    if (as != NULL) {
        (void)json_object_set_new(shape, "as", json_string(as));
    }
    if (ack != NULL) {
        (void)json_object_set_new(shape, "ack", json_string(ack));
    }
    if (partitions != 0) {
        (void)json_object_set_new(shape, "partitions", json_integer((json_int_t)partitions));
    }
    if (replicas != 0) {
        (void)json_object_set_new(shape, "replicas", json_integer((json_int_t)replicas));
    }
    return shape;
}

/* Restores a table, and adds it to the restored ones. */
static psd_status_t restore_table(ps_cli_t *cli, const char *name, const char *table,
                                  const json_t *shape, json_t *restored, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *request =
        json_pack("{s:s,s:s,s:s}", "op", "checkpoint_restore", "name", name, "table", table);
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const json_t *as = json_object_get(shape, "as");
    psd_status_t rc = PSD_OK;

    (void)json_object_update(request, (json_t *)shape); /* only reads it */
    rc = ps_checkpoint_work_soon(cli, request, &reply, err);
    if (rc == PSD_OK) {
        (void)json_array_append_new(
            restored,
            json_pack("{s:s,s:s,s:I}", "table", as == NULL ? table : json_string_value(as), "from",
                      table, "row_bytes", (json_int_t)ps_json_u64(reply, "row_bytes")));
    }
    return psd_error_wrap(err, rc, "table \"%s\"", table);
}

static psd_status_t restore_job(ps_cli_t *cli, const char *name, const char *job,
                                json_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *request =
        json_pack("{s:s,s:s,s:s}", "op", "checkpoint_restore", "name", name, "job", job);
    uint64_t workers = ps_args_u64(&cli->args, "workers");
    uint64_t epochs = ps_args_u64(&cli->args, "epochs");

    if (workers != 0) {
        (void)json_object_set_new(request, "workers", json_integer((json_int_t)workers));
    }
    if (epochs != 0) {
        (void)json_object_set_new(request, "epochs", json_integer((json_int_t)epochs));
    }
    return psd_error_wrap(
        err, ps_cli_ask(cli, request, ret_reply, err),
        "job \"%s\" (its tables are restored; \"checkpoint restore %s --job %s\" retries the job)",
        job, name, job);
}

const char *ps_checkpoint_table(const json_t *tables, size_t i)
{
    return ps_json_text(json_array_get(tables, i), "spec.name");
}

/* Checked before anything is created. */
static psd_status_t check_names_are_free(ps_cli_t *cli, const json_t *tables, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const json_t *list = NULL;
    psd_status_t rc = ps_cli_request(cli, "table_list", NULL, NULL, &reply, err);

    list = rc == PSD_OK ? ps_json_at(reply, "tables") : NULL;
    for (size_t i = 0; rc == PSD_OK && i < json_array_size(list); i++) {
        const char *there = ps_json_text(json_array_get(list, i), "name");

        for (size_t k = 0; rc == PSD_OK && k < json_array_size(tables); k++) {
            if (strcmp(there, ps_checkpoint_table(tables, k)) == 0) {
                rc = psd_error_set(err, PSD_TABLE_EXISTS,
                                   "table \"%s\" exists already, nothing was restored; drop it, or "
                                   "restore tables one by one with --table and --as",
                                   there);
            }
        }
    }
    return rc;
}

static psd_status_t restore_some(ps_cli_t *cli, const char *name, const json_t *names,
                                 const json_t *shape, json_t *restored, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < json_array_size(names); i++) {
        rc = restore_table(cli, name, json_string_value(json_array_get(names, i)), shape, restored,
                           err);
    }
    return rc;
}

/* All tables of the checkpoint, then its jobs. */
static psd_status_t restore_all(ps_cli_t *cli, const char *name, const json_t *shape,
                                json_t *restored, json_t *resumed, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *manifest = NULL;
    psd_status_t rc = ps_checkpoint_manifest(cli, name, &manifest, err);
    const json_t *tables = rc == PSD_OK ? ps_json_at(manifest, "tables") : NULL;
    const json_t *jobs = rc == PSD_OK ? ps_json_at(manifest, "jobs") : NULL;

    if (rc == PSD_OK) {
        rc = check_names_are_free(cli, tables, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < json_array_size(tables); i++) {
        rc = restore_table(cli, name, ps_checkpoint_table(tables, i), shape, restored, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < json_array_size(jobs); i++) {
        json_t *reply = NULL;

        rc = restore_job(cli, name, ps_json_text(json_array_get(jobs, i), "job"), &reply, err);
        if (rc == PSD_OK) {
            (void)json_array_append_new(resumed, reply);
        }
    }
    return rc;
}

/* One document: everything restored, even when a later step failed. */
static void show_restored(const ps_cli_t *cli, const char *name, json_t *restored, json_t *resumed)
{
    PSD_AUTO(ps_json_unref)
    json_t *doc = json_pack("{s:s,s:O,s:O}", "name", name, "tables", restored, "jobs", resumed);

    ps_out_list(&cli->out, doc, "tables", RESTORED);
    if (json_array_size(resumed) > 0 &&
        (cli->out.format == PS_FORMAT_TABLE || cli->out.format == PS_FORMAT_WIDE)) {
        ps_out_table(&cli->out, resumed, RESUMED);
    }
}

psd_status_t ps_checkpoint_restore(ps_cli_t *cli, const char *name, const json_t *shape,
                                   psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *restored = json_array();
    PSD_AUTO(ps_json_unref) json_t *resumed = json_array();
    psd_status_t rc = restore_all(cli, name, shape, restored, resumed, err);

    if (rc == PSD_OK || json_array_size(restored) > 0) {
        show_restored(cli, name, restored, resumed);
    }
    return rc;
}

static psd_status_t check_restore(const ps_cli_t *cli, const json_t *names, psd_error_t *err)
{
    if (json_array_size(names) != 1 && ps_args_given(&cli->args, "as")) {
        return psd_error_set(err, PSD_USAGE, "--as needs one --table");
    }
    if (names != NULL && ps_args_given(&cli->args, "job")) {
        return psd_error_set(err, PSD_USAGE,
                             "--table and --job are both given; allowed: one of them");
    }
    return PSD_OK;
}

psd_status_t ps_cmd_checkpoint_restore(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *restored = json_array();
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    PSD_AUTO(ps_json_unref) json_t *names = NULL;
    PSD_AUTO(ps_json_unref) json_t *none = json_array();
    PSD_AUTO(ps_json_unref) json_t *shape = shape_of(cli);
    const char *job = ps_args_text(&cli->args, "job");
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK) {
        rc = table_names(cli, &names, err);
    }
    if (rc == PSD_OK) {
        rc = check_restore(cli, names, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (job != NULL) {
        rc = restore_job(cli, name, job, &reply, err);
        if (rc == PSD_OK) {
            ps_out_object(&cli->out, reply, RESUMED);
        }
        return rc;
    }
    if (names == NULL) {
        return ps_checkpoint_restore(cli, name, shape, err);
    }
    rc = restore_some(cli, name, names, shape, restored, err);
    if (rc == PSD_OK || json_array_size(restored) > 0) {
        show_restored(cli, name, restored, none);
    }
    return rc;
}
