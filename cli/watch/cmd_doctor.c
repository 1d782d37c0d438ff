/* SPDX-License-Identifier: Apache-2.0 */
/* pscli doctor: what is wrong as seen from here, each with its cure. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/watch/watch.h"

#define LITTLE_BYTES (UINT64_C(64) << 20) /* free: of shared memory, and of a disk */
#define LITTLE_FILES 1024
#define LITTLE_LOCKED (UINT64_C(64) << 10) /* bytes: what Linux gave every user long ago */
#define FINDING_EXIT 1
#define TEXT_SIZE 600

static const ps_column_t COLUMNS[] = {{"CHECK", "check", PS_UNIT_NONE, false},
                                      {"STATE", "state", PS_UNIT_NONE, false},
                                      {"WHAT", "text", PS_UNIT_NONE, false},
                                      {"CURE", "cure", PS_UNIT_NONE, false},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

typedef struct doctor {
    ps_cli_t *cli;
    json_t *checks; /* borrowed from the document */
    size_t n_findings;
    bool is_known; /* psd lets this caller in: what it refuses is not for it */
} doctor_t;

static void add(doctor_t *self, const char *check, const char *state, const char *text,
                const char *cure)
{
    (void)json_array_append_new(
        self->checks,
        json_pack("{s:s,s:s,s:s,s:s}", "check", check, "state", state, "text", text, "cure", cure));
}

/* cure NULL: nothing is wrong. */
static void say(doctor_t *self, const char *check, const char *text, const char *cure)
{
    add(self, check, cure == NULL ? "ok" : "finding", text, cure == NULL ? "" : cure);
    self->n_findings += cure == NULL ? 0 : 1;
}

/* It was not looked at, as this caller may not: nothing is wrong. */
static void skip(doctor_t *self, const char *check, const psd_error_t *why)
{
    add(self, check, "skipped", psd_error_text(why), "");
}

/* ---- this process ---- */

static void look_at_settings(doctor_t *self)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();

    if (ps_environment_check(why) == PSD_OK) {
        say(self, "settings", "every PSD_ variable that pscli knows has a value that it allows",
            NULL);
        return;
    }
    say(self, "settings", psd_error_text(why), "unset the variable, or give it an allowed value");
}

static void look_at_key(doctor_t *self)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    ps_environment_t said = {0};
    bool names_key = strchr(self->cli->endpoint, '#') != NULL;
    struct stat is;
    char text[TEXT_SIZE];
    char cure[TEXT_SIZE];

    if (ps_environment_read("PSD_KEY_FILE", &said, why) != PSD_OK) {
        say(self, "key", psd_error_text(why), "set PSD_KEY_FILE to a key file");
    } else if (said.text == NULL && names_key) {
        say(self, "key", "the endpoint has psd's public key in it, but PSD_KEY_FILE is not set",
            "ask an admin for a token (pscli auth invite NAME), run \"pscli auth accept\" with it, "
            "and set what that prints");
    } else if (said.text == NULL) {
        say(self, "key",
            "PSD_KEY_FILE is not set; nobody needs a key on psd's own host, or at security.level "
            "plain",
            NULL);
    } else if (stat(said.text, &is) != 0) {
        (void)snprintf(text, sizeof text, "%s names %.300s: %s", said.origin, said.text,
                       strerror(errno));
        (void)snprintf(cure, sizeof cure, "pscli auth keygen me --file %.300s", said.text);
        say(self, "key", text, cure);
    } else if (access(said.text, R_OK) != 0) {
        (void)snprintf(text, sizeof text, "%.300s cannot be read: %s", said.text, strerror(errno));
        say(self, "key", text, "set PSD_KEY_FILE to a key file of yours");
    } else if ((is.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        (void)snprintf(text, sizeof text, "%.300s may be read by others than its owner", said.text);
        (void)snprintf(cure, sizeof cure, "chmod 600 %.300s", said.text);
        say(self, "key", text, cure);
    } else {
        say(self, "key", said.text, NULL);
    }
}

static void look_at_files(doctor_t *self)
{
    struct rlimit limit = {0};
    char text[TEXT_SIZE];

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return;
    }
    (void)snprintf(text, sizeof text, "a process may open %" PRIu64 " files",
                   (uint64_t)limit.rlim_cur);
    say(self, "files", text,
        limit.rlim_cur < LITTLE_FILES
            ? "run \"ulimit -n 65536\"; in a systemd unit set LimitNOFILE=65536"
            : NULL);
}

static void look_at_locked(doctor_t *self)
{
    struct rlimit limit = {0};
    char text[TEXT_SIZE];

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
        return;
    }
    if (limit.rlim_cur == RLIM_INFINITY) {
        say(self, "locked", "a process may lock as much memory as there is", NULL);
        return;
    }
    (void)snprintf(text, sizeof text, "a process may lock %" PRIu64 " KiB of memory",
                   (uint64_t)limit.rlim_cur >> 10);
    say(self, "locked", text,
        limit.rlim_cur < LITTLE_LOCKED
            ? "carriers that write from memory to memory need it: run \"ulimit -l 65536\"; in a "
              "systemd unit set LimitMEMLOCK=64M"
            : NULL);
}

/* ---- memory and disk of this host ---- */

static void look_at_space(doctor_t *self, const char *check, const char *path, const char *cure)
{
    struct statvfs is;
    char text[TEXT_SIZE];
    uint64_t bytes = 0;

    if (statvfs(path, &is) != 0) {
        (void)snprintf(text, sizeof text, "%.300s: %s", path, strerror(errno));
        say(self, check, text, "check the path and its permissions");
        return;
    }
    bytes = (uint64_t)is.f_bavail * is.f_frsize;
    (void)snprintf(text, sizeof text, "%" PRIu64 " MiB are free in %.300s", bytes >> 20, path);
    say(self, check, text, bytes < LITTLE_BYTES ? cure : NULL);
}

static void look_at_disk(doctor_t *self)
{
    const char *path = ps_args_given(&self->cli->args, "data-dir")
                           ? ps_args_text(&self->cli->args, "data-dir")
                           : getenv("PSD_DATA_DIR");

    if (path != NULL && path[0] != '\0') {
        look_at_space(self, "disk", path,
                      "free space there, or move psd's data directory to a larger disk");
    }
}

/* ---- the cluster ---- */

static void add_each(doctor_t *self, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *text =
            json_is_string(item) ? json_string_value(item) : ps_json_text(item, "text");
        const char *hint = ps_json_text(item, "hint");

        say(self, "cluster", text, hint[0] == '\0' ? "pscli cluster status" : hint);
    }
}

static void look_at_cluster(doctor_t *self, const json_t *status)
{
    const json_t *problems = ps_json_at(status, "problems");
    const json_t *warnings = ps_json_at(status, "warnings");
    char text[TEXT_SIZE];

    add_each(self, problems);
    add_each(self, warnings);
    if (json_array_size(problems) + json_array_size(warnings) == 0) {
        (void)snprintf(text, sizeof text, "healthy, %zu nodes, %" PRIu64 " tables",
                       json_array_size(ps_json_at(status, "nodes")), ps_json_u64(status, "tables"));
        say(self, "cluster", text, NULL);
    }
}

static void look_at_version(doctor_t *self, const json_t *status)
{
    const char *version = ps_json_text(status, "cluster.version");
    bool is_same = strcmp(version, PSD_RELEASE) == 0;
    char text[TEXT_SIZE];

    (void)snprintf(text, sizeof text, "psd has version %.100s, pscli %s", version, PSD_RELEASE);
    say(self, "version", text, is_same ? NULL : "install the same version of psd and pscli");
}

/* A row of the first table, by the way that libpsd chooses. */
static psd_status_t pull_once(doctor_t *self, const char *name, psd_trace_t *trace,
                              psd_error_t *err)
{
    PSD_AUTO(psd_call_destroy) psd_call_t *call = psd_call_new();
    PSD_AUTO(psd_select_destroy) psd_select_t *select = psd_select_new();
    PSD_AUTO(psd_result_destroy) psd_result_t *result = NULL;
    const uint64_t row = 0;
    psd_table_t *table = NULL;
    psd_status_t rc = psd_table_open(self->cli->client, name, &table, err);

    if (rc == PSD_OK && (call == NULL || select == NULL || trace == NULL)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a pull");
    }
    if (rc == PSD_OK) {
        psd_select_rows(select, &row, 1);
        psd_call_set_timeout_ms(call, self->cli->timeout_ms);
        psd_call_set_trace(call, trace);
        rc = psd_fetch(table, select, false, 0, call, &result, err);
    }
    psd_table_close(&table);
    return rc;
}

/* psd says that this caller may not read the table: that it refuses a pull is no fault. */
static bool may_not_read(doctor_t *self, const char *name)
{
    PSD_AUTO(ps_json_unref)
    json_t *request = json_pack("{s:s,s:s,s:s,s:s}", "op", "auth_can", "verb", "read", "object",
                                "table", "name", name);
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;

    return ps_cli_ask(self->cli, request, &reply, NULL) == PSD_OK &&
           json_is_false(ps_json_at(reply, "may"));
}

static void look_at_shards(doctor_t *self)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    PSD_AUTO(psd_trace_destroy) psd_trace_t *trace = psd_trace_new();
    PSD_AUTO(ps_json_unref) json_t *list = NULL;
    const char *name = "";
    bool is_barred = false;
    char text[TEXT_SIZE];
    psd_status_t rc = ps_cli_request(self->cli, "table_list", NULL, NULL, &list, why);

    if (rc == PSD_OK) {
        name = ps_json_text(json_array_get(ps_json_at(list, "tables"), 0), "name");
        if (name[0] == '\0') {
            say(self, "shards", "there is no table to pull a row of", NULL);
            return;
        }
        is_barred = may_not_read(self, name);
        rc = pull_once(self, name, trace, why);
    } else {
        is_barred = self->is_known;
    }
    if (rc == PSD_DENIED && is_barred) {
        skip(self, "shards", why);
        return;
    }
    if (rc != PSD_OK) {
        say(self, "shards", psd_error_text(why), psd_status_hint(rc));
        return;
    }
    (void)snprintf(text, sizeof text, "row 0 of table \"%.64s\" came in %.1f ms from %.200s", name,
                   (double)psd_trace_us(trace, 0, PSD_PHASE_WHOLE) / 1e3,
                   psd_trace_count(trace) > 0 ? psd_trace_endpoint(trace, 0) : "");
    say(self, "shards", text, NULL);
}

/* A principal that is let in, and may not look at the cluster. */
static void look_as_guest(doctor_t *self, double began_s, const psd_error_t *why)
{
    PSD_AUTO(ps_json_unref) json_t *caller = NULL;
    char text[TEXT_SIZE];
    psd_status_t rc = ps_cli_request(self->cli, "auth_whoami", NULL, NULL, &caller, NULL);

    if (rc != PSD_OK || strcmp(ps_json_text(caller, "state"), "allowed") != 0) {
        say(self, "endpoint", psd_error_text(why), psd_status_hint(PSD_DENIED));
        return;
    }
    self->is_known = true;
    (void)snprintf(text, sizeof text, "%.300s answers, in %.1f ms, and knows you as %.150s",
                   self->cli->endpoint, (ps_cli_now_s() - began_s) * 1e3,
                   ps_json_text(caller, "who"));
    say(self, "endpoint", text, NULL);
    skip(self, "version", why);
    skip(self, "cluster", why);
    look_at_shards(self);
}

static void look_from_here(doctor_t *self)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    PSD_AUTO(ps_json_unref) json_t *status = NULL;
    double began_s = ps_cli_now_s();
    psd_status_t rc = ps_cli_request(self->cli, "cluster_status", NULL, NULL, &status, why);
    char text[TEXT_SIZE];

    if (rc == PSD_DENIED && self->cli->client != NULL) {
        look_as_guest(self, began_s, why);
        return;
    }
    if (rc != PSD_OK) {
        say(self, "endpoint", psd_error_text(why), psd_status_hint(rc));
        return;
    }
    self->is_known = true;
    (void)snprintf(text, sizeof text, "%.300s answers, in %.1f ms", self->cli->endpoint,
                   (ps_cli_now_s() - began_s) * 1e3);
    say(self, "endpoint", text, NULL);
    look_at_version(self, status);
    look_at_cluster(self, status);
    look_at_shards(self);
}

psd_status_t ps_cmd_doctor(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = json_pack("{s:[]}", "checks");
    doctor_t self = {.cli = cli, .checks = json_object_get(doc, "checks")};

    if (doc == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for findings");
    }
    cli->only_reads = true;
    look_at_settings(&self);
    look_at_key(&self);
    look_from_here(&self);
    look_at_files(&self);
    look_at_locked(&self);
    look_at_space(&self, "memory", "/dev/shm",
                  "shared-memory connections use it: make it larger (docker run --shm-size=2g)");
    look_at_disk(&self);
    (void)json_object_set_new(doc, "findings", json_integer((json_int_t)self.n_findings));
    ps_out_list(&cli->out, doc, "checks", COLUMNS);
    cli->exit_code = self.n_findings > 0 ? FINDING_EXIT : 0;
    return PSD_OK;
}
