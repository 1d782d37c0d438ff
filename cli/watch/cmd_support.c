/* SPDX-License-Identifier: Apache-2.0 */
/* pscli support-bundle: what somebody who helps wants to see, in one tar file. It has
 * what pscli and the HTTP port show; no token, key, or secret of a node is in that. */
#include "cli/watch/watch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "cli/output/json_text.h"
#include "cli/output/new_file.h"
#include "cli/run/ask_any.h"
#include "cli/watch/local_psd.h"

#define BLOCK 512 /* of a tar file */
#define HOST_FILE_MAX 65536
#define EVENTS 2000
/* For each answer, unless --timeout is given: of a psd that hangs, most do not come. */
#define ASK_MS 2000

static const ps_column_t MADE[] = {{"FILE", "file", PS_UNIT_NONE, false},
                                   {"BYTES", "bytes", PS_UNIT_BYTES, false},
                                   {"LEFT OUT", "left_out", PS_UNIT_COUNT, false},
                                   {NULL, NULL, PS_UNIT_NONE, false}};

typedef struct bundle {
    ps_cli_t *cli;
    FILE *file;
    json_t *left_out; /* owned; of what could not be had: "tables: E3002 …" */
    time_t now;
} bundle_t;

/* ---- tar ---- */

typedef struct tar_head {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
    char magic[8]; /* "ustar", its '\0', and "00" */
    char rest[247];
} tar_head_t;
_Static_assert(sizeof(tar_head_t) == BLOCK, "a block");

static void set_octal(char *to, size_t size, uint64_t value)
{
    char digits[24];

    (void)snprintf(digits, sizeof digits, "%0*" PRIo64, (int)size - 1, value);
    memcpy(to, digits, size - 1);
    to[size - 1] = '\0';
}

static void add_file(bundle_t *self, const char *name, const void *data, size_t size)
{
    static const char zeros[BLOCK] = "";
    tar_head_t head = {.type = '0'};
    uint64_t sum = 0;

    (void)snprintf(head.name, sizeof head.name, "psd-support/%.80s", name);
    set_octal(head.mode, sizeof head.mode, 0600);
    set_octal(head.uid, sizeof head.uid, 0);
    set_octal(head.gid, sizeof head.gid, 0);
    set_octal(head.size, sizeof head.size, size);
    set_octal(head.mtime, sizeof head.mtime, (uint64_t)self->now);
    memcpy(head.magic, "ustar\00000", sizeof head.magic);
    memset(head.sum, ' ', sizeof head.sum);
    for (size_t i = 0; i < sizeof head; i++) {
        sum += ((const unsigned char *)&head)[i];
    }
    set_octal(head.sum, sizeof head.sum - 1, sum);
    (void)fwrite(&head, 1, sizeof head, self->file);
    (void)fwrite(data, 1, size, self->file);
    (void)fwrite(zeros, 1, (BLOCK - size % BLOCK) % BLOCK, self->file);
}

static void end_tar(const bundle_t *self)
{
    static const char zeros[2 * BLOCK] = "";

    (void)fwrite(zeros, 1, sizeof zeros, self->file);
}

/* ---- what is in it ---- */

static void leave_out(bundle_t *self, const char *name, psd_status_t rc, const psd_error_t *why)
{
    (void)json_array_append_new(
        self->left_out, json_sprintf("%s: %s %s", name, psd_status_code(rc), psd_error_text(why)));
}

static void add_json(bundle_t *self, const char *name, const json_t *doc)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    if (memory != NULL) {
        ps_json_write_doc(memory, doc, self->cli->out.big_as_text);
        (void)putc('\n', memory);
        (void)fclose(memory);
        add_file(self, name, text, size);
    }
    free(text);
}

/* A question to the registry. Gives its answer; the caller drops it. NULL: none. */
static json_t *add_question(bundle_t *self, const char *name, const char *op, const char *key,
                            const char *value)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(self->cli, op, key, value, &reply, why);

    if (rc != PSD_OK) {
        leave_out(self, name, rc, why);
        return NULL;
    }
    add_json(self, name, reply);
    return reply;
}

/* The same about each item of a list. */
static void add_each(bundle_t *self, const json_t *list, const char *folder, const char *op,
                     const char *key)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = ps_json_text(json_array_get(list, i), "name");
        char path[100];

        (void)snprintf(path, sizeof path, "%.10s/%.63s.json", folder, name);
        json_decref(add_question(self, path, op, key, name));
    }
}

static void add_cluster(bundle_t *self)
{
    PSD_AUTO(ps_json_unref) json_t *nodes = NULL;
    PSD_AUTO(ps_json_unref) json_t *jobs = NULL;
    PSD_AUTO(ps_json_unref) json_t *events = NULL;
    PSD_AUTO(ps_json_unref)
    json_t *ask = json_pack("{s:s,s:i}", "op", "cluster_events", "limit", EVENTS);
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    psd_status_t rc = ps_cli_connect_soon(self->cli, why);

    if (rc != PSD_OK) { /* it would be the same for each of them */
        leave_out(self, "cluster", rc, why);
        return;
    }
    json_decref(add_question(self, "cluster.json", "cluster_status", NULL, NULL));
    json_decref(add_question(self, "registry.json", "registry_list", NULL, NULL));
    json_decref(add_question(self, "settings.json", "settings", NULL, NULL));
    json_decref(add_question(self, "tables.json", "table_list", NULL, NULL));
    json_decref(add_question(self, "clocks.json", "clock_list", NULL, NULL));
    json_decref(add_question(self, "checkpoints.json", "checkpoint_list", NULL, NULL));
    nodes = add_question(self, "nodes.json", "node_list", NULL, NULL);
    add_each(self, ps_json_at(nodes, "nodes"), "nodes", "node_inspect", "name");
    jobs = add_question(self, "jobs.json", "job_list", NULL, NULL);
    add_each(self, ps_json_at(jobs, "jobs"), "jobs", "job_inspect", "job");
    add_each(self, ps_json_at(jobs, "jobs"), "why", "why", "job");
    rc = ps_cli_ask(self->cli, ask, &events, why);
    if (rc == PSD_OK) {
        add_json(self, "events.json", events);
    } else {
        leave_out(self, "events.json", rc, why);
    }
}

/* false: it cannot be read. */
static bool add_copy(bundle_t *self, const char *path, const char *name)
{
    static char text[HOST_FILE_MAX];
    FILE *file = fopen(path, "re");
    size_t size = 0;

    if (file == NULL) {
        return false;
    }
    size = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    add_file(self, name, text, size);
    return true;
}

/* Not every kernel has it. */
static void add_host_file(bundle_t *self, const char *path)
{
    char name[100];

    (void)snprintf(name, sizeof name, "host/%s", path + 1);
    for (char *at = name + 5; *at != '\0'; at++) {
        *at = (char)(*at == '/' ? '_' : *at);
    }
    (void)add_copy(self, path, name);
}

/* Of psd's own process, whose limits and mounts systemd may have set. */
static void add_process(bundle_t *self, uint64_t pid)
{
    static const char *const FILES[] = {"limits", "mounts", "status"};
    char path[64];
    char name[64];

    for (size_t i = 0; pid > 0 && i < sizeof FILES / sizeof FILES[0]; i++) {
        (void)snprintf(path, sizeof path, "/proc/%" PRIu64 "/%s", pid, FILES[i]);
        (void)snprintf(name, sizeof name, "host/psd_%s", FILES[i]);
        if (!add_copy(self, path, name)) {
            (void)json_array_append_new(self->left_out,
                                        json_sprintf("%s: %s cannot be read", name, path));
        }
    }
}

/* What the psd of this host says, also while it hangs. */
static void add_local(bundle_t *self)
{
    static const char *const PATHS[][2] = {
        {"metrics.txt", "/metrics"}, {"healthz.txt", "/healthz"}, {"readyz.txt", "/readyz"}};
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    ps_local_psd_t found = {.pid = 0};
    psd_status_t rc = ps_local_psd_find(self->cli, &found, why);

    add_process(self, found.pid);
    if (rc != PSD_OK) {
        leave_out(self, "the psd of this host", rc, why);
        return;
    }
    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

        rc = ps_local_psd_text(&found, PATHS[i][1], self->cli->timeout_ms, &text, why);
        if (rc == PSD_OK) {
            add_file(self, PATHS[i][0], text.data, strlen((const char *)text.data));
        } else {
            leave_out(self, PATHS[i][0], rc, why);
            psd_error_clear(why);
        }
    }
}

static void add_host(bundle_t *self)
{
    static const char *const FILES[] = {"/etc/os-release",
                                        "/proc/meminfo",
                                        "/proc/loadavg",
                                        "/proc/pressure/memory",
                                        "/proc/pressure/io",
                                        "/proc/sys/vm/overcommit_memory",
                                        "/sys/kernel/mm/transparent_hugepage/enabled"};
    struct utsname is;
    char text[1024];

    if (uname(&is) == 0) {
        (void)snprintf(text, sizeof text, "%s %s %s %s\npscli %s\nprocessors %ld\n", is.sysname,
                       is.release, is.version, is.machine, psd_version(),
                       sysconf(_SC_NPROCESSORS_ONLN));
        add_file(self, "host/versions.txt", text, strlen(text));
    }
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        add_host_file(self, FILES[i]);
    }
}

psd_status_t ps_cmd_support_bundle(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_new_file_done) ps_new_file_t file = {0};
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    PSD_AUTO(ps_json_unref) json_t *left_out = json_array();
    const char *path = ps_args_text(&cli->args, "to");
    bundle_t self = {.cli = cli, .left_out = left_out, .now = time(NULL)};
    const uint32_t timeout_ms = cli->timeout_ms;
    uint64_t n_bytes = 0;
    psd_status_t rc = PSD_OK;

    if (path == NULL || path[0] == '\0') {
        return psd_error_set(err, PSD_USAGE, "--to FILE is required");
    }
    rc = ps_new_file_open(&file, path, 0600, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self.file = file.file;
    add_host(&self);
    if (!ps_args_given(&cli->args, "timeout") && timeout_ms > ASK_MS) {
        cli->timeout_ms = ASK_MS;
    }
    add_local(&self);
    add_cluster(&self);
    cli->timeout_ms = timeout_ms;
    doc = json_pack("{s:O}", "left_out", left_out);
    if (doc == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the bundle");
    }
    add_json(&self, "left_out.json", doc);
    end_tar(&self);
    rc = ps_new_file_commit(&file, &n_bytes, err);
    if (rc != PSD_OK) {
        return rc;
    }
    (void)json_object_set_new(doc, "file", json_string(path));
    (void)json_object_set_new(doc, "bytes", json_integer((json_int_t)n_bytes));
    for (size_t i = 0; i < json_array_size(left_out); i++) {
        ps_say(&cli->out, "left out: %s", json_string_value(json_array_get(left_out, i)));
    }
    if (strcmp(path, "-") != 0) {
        ps_out_answer(&cli->out, doc, MADE, "wrote %s, %" PRIu64 " bytes", path, n_bytes);
    }
    return PSD_OK;
}
