/* SPDX-License-Identifier: Apache-2.0 */
/* pscli auth audit: who did what, shown and checked. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "cli/cluster/cluster.h"
#include "protocol/audit/audit_chain.h"
#include "storage/audit/audit_files.h"
#include "transport/threads/clock.h"

#define WRONG_EXIT 1 /* of --verify */
#define PROBLEM_SIZE 600

static const ps_column_t LINES[] = {
    {"SEQ", "seq", PS_UNIT_NONE, false},       {"TIME", "unix_ms", PS_UNIT_UNIX_MS, false},
    {"EVENT", "event", PS_UNIT_NONE, false},   {"WHO", "who", PS_UNIT_NONE, false},
    {"UID", "uid", PS_UNIT_NONE, false},       {"ADDRESS", "address", PS_UNIT_NONE, false},
    {"OP", "op", PS_UNIT_NONE, false},         {"NAME", "name", PS_UNIT_NONE, false},
    {"RESULT", "result", PS_UNIT_NONE, false}, {"VERB", "verb", PS_UNIT_NONE, true},
    {"OBJECT", "object", PS_UNIT_NONE, true},  {"CODE", "code", PS_UNIT_NONE, true},
    {"KEY", "key", PS_UNIT_NONE, true},        {"SESSION", "session", PS_UNIT_NONE, true},
    {"ID", "id", PS_UNIT_NONE, true},          {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t VERDICT[] = {{"VERIFIED", "verified", PS_UNIT_NONE, false},
                                      {"LINES", "lines", PS_UNIT_NONE, false},
                                      {"FIRST", "first", PS_UNIT_NONE, false},
                                      {"LAST", "last", PS_UNIT_NONE, false},
                                      {"CUT", "cut", PS_UNIT_NONE, false},
                                      {"GAPS", "gaps", PS_UNIT_NONE, false},
                                      {"DIGEST", "digest", PS_UNIT_NONE, false},
                                      {"PROBLEM", "problem", PS_UNIT_NONE, false},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

/* Lines as they come. */
typedef struct audit {
    bool verifies;
    ps_audit_check_t check;
    char problem[PROBLEM_SIZE]; /* the first one; "": none */
    const char *file;           /* that is read; NULL: a psd was asked */
    json_t *kept;               /* owned; an array */
    uint64_t since_ms;          /* since 1970 */
    const char *who;            /* only of this principal; NULL: of all */
    bool only_refused;
    size_t last;
    uint64_t n_unread; /* that are not JSON */
} audit_t;

/* ---- one line ---- */

static psd_status_t verify_line(audit_t *self, ps_bytes_t line, uint64_t number)
{
    psd_error_t *why = NULL;

    if (self->problem[0] != '\0') {
        return PSD_OK;
    }
    why = psd_error_new();
    if (ps_audit_check_line(&self->check, line, why) != PSD_OK) {
        (void)snprintf(self->problem, sizeof self->problem, "%.300s%sline %" PRIu64 ": %.200s",
                       self->file == NULL ? "" : self->file, self->file == NULL ? "" : ": ", number,
                       why == NULL ? "" : psd_error_text(why));
    }
    psd_error_destroy(&why);
    return PSD_OK;
}

static psd_status_t keep_line(audit_t *self, ps_bytes_t line, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *value = json_loadb((const char *)line.data, line.size, 0, NULL);

    if (!json_is_object(value)) {
        self->n_unread++;
        return PSD_OK;
    }
    if (ps_json_u64(value, "unix_ms") < self->since_ms ||
        (self->who != NULL && strcmp(ps_json_text(value, "who"), self->who) != 0) ||
        (self->only_refused && strcmp(ps_json_text(value, "result"), "DENIED") != 0)) {
        return PSD_OK;
    }
    if (json_array_append(self->kept, value) != 0) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the lines");
    }
    while (json_array_size(self->kept) > self->last) {
        (void)json_array_remove(self->kept, 0);
    }
    return PSD_OK;
}

static psd_status_t take_line(void *context, ps_bytes_t line, uint64_t number, psd_error_t *err)
{
    audit_t *self = context;

    return self->verifies ? verify_line(self, line, number) : keep_line(self, line, err);
}

static void note_rest(audit_t *self, uint64_t rest)
{
    if (rest > 0 && self->problem[0] == '\0') {
        (void)snprintf(self->problem, sizeof self->problem,
                       "%.300s: the last line has no end: psd was killed, or it was cut",
                       self->file == NULL ? "the audit" : self->file);
    }
}

/* ---- out of files ---- */

static psd_status_t read_file(audit_t *self, const char *path, psd_error_t *err)
{
    uint64_t rest = 0;
    psd_status_t rc = PSD_OK;

    self->file = path;
    rc = ps_audit_read(ps_disk_real(), path, take_line, self, &rest, err);
    if (rc == PSD_DAMAGED && self->verifies) {
        (void)snprintf(self->problem, sizeof self->problem, "%.300s: %.200s", path,
                       psd_error_text(err));
        psd_error_clear(err);
        rc = PSD_OK;
    }
    if (rc == PSD_OK) {
        note_rest(self, rest);
    }
    return rc;
}

/* All files of a data directory, from the oldest on. */
static psd_status_t read_dir(audit_t *self, const char *dir, psd_error_t *err)
{
    PSD_AUTO(ps_audit_files_done) ps_audit_files_t files = {0};
    psd_status_t rc = ps_audit_files_find(ps_disk_real(), dir, &files, err);

    if (rc == PSD_OK && files.n_older == 0 && !files.has_current) {
        rc = psd_error_set(err, PSD_INVALID, "%s has no " PS_AUDIT_FILE, dir);
    }
    for (size_t i = 0; rc == PSD_OK && i < files.n_older + (files.has_current ? 1 : 0); i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};

        rc = ps_audit_path(&path, dir, i < files.n_older ? files.older[i] : 0, err);
        if (rc == PSD_OK) {
            rc = read_file(self, (const char *)path.data, err);
        }
    }
    return rc;
}

/* ---- from a psd ---- */

/* The end that psd knows is the end that was read. */
static void check_end(audit_t *self, const json_t *reply)
{
    char digest[PS_AUDIT_DIGEST_TEXT_SIZE];

    if (self->verifies && self->problem[0] == '\0' &&
        (ps_json_u64(reply, "seq") != self->check.chain.seq ||
         strcmp(ps_json_text(reply, "digest"),
                ps_audit_digest_text(self->check.chain.digest, digest)) != 0)) {
        (void)snprintf(self->problem, sizeof self->problem,
                       "the last line is number %" PRIu64 ", and psd has written number %" PRIu64
                       ": lines at the end were removed or replaced",
                       self->check.chain.seq, ps_json_u64(reply, "seq"));
    }
}

static psd_status_t take_piece(ps_audit_splitter_t *splitter, const json_t *reply, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    psd_status_t rc = ps_hex_read(&bytes, ps_json_text(reply, "bytes"), err);

    return rc == PSD_OK
               ? ps_audit_split(splitter, (ps_bytes_t){.data = bytes.data, .size = bytes.size}, err)
               : rc;
}

static psd_status_t ask(ps_cli_t *cli, audit_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_audit_splitter_done)
    ps_audit_splitter_t splitter = {.take = take_line, .context = self};
    uint64_t file = 0;
    uint64_t offset = 0;
    bool is_end = false;

    while (!is_end) {
        PSD_AUTO(ps_json_unref) json_t *reply = NULL;
        PSD_AUTO(ps_json_unref)
        json_t *request = json_pack("{s:s,s:I,s:I}", "op", "auth_audit", "file", (json_int_t)file,
                                    "offset", (json_int_t)offset);
        psd_status_t rc = ps_cli_ask(cli, request, &reply, err);

        if (rc == PSD_OK) {
            rc = take_piece(&splitter, reply, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
        is_end = json_is_true(ps_json_at(reply, "end"));
        if (!is_end && ps_json_u64(reply, "file") == file &&
            ps_json_u64(reply, "offset") <= offset) {
            return psd_error_set(err, PSD_PROTO, "the audit has no end");
        }
        file = ps_json_u64(reply, "file");
        offset = ps_json_u64(reply, "offset");
        if (is_end) {
            note_rest(self, splitter.part.size);
            check_end(self, reply);
        }
    }
    return PSD_OK;
}

/* ---- shown ---- */

static psd_status_t show_verdict(ps_cli_t *cli, const audit_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    char digest[PS_AUDIT_DIGEST_TEXT_SIZE];
    const bool is_good = self->problem[0] == '\0' && self->check.n_lines > 0;
    const char *problem = self->problem[0] == '\0' ? "there is no line" : self->problem;

    (void)ps_audit_digest_text(self->check.chain.digest, digest);
    doc = json_pack("{s:b,s:I,s:I,s:I,s:I,s:I,s:s,s:o}", "verified", is_good ? 1 : 0, "lines",
                    (json_int_t)self->check.n_lines, "first", (json_int_t)self->check.first, "last",
                    (json_int_t)self->check.chain.seq, "cut", (json_int_t)self->check.n_cuts,
                    "gaps", (json_int_t)self->check.n_gaps, "digest", digest, "problem",
                    is_good ? json_null() : json_string(problem));
    if (doc == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the answer");
    }
    if (is_good) {
        ps_out_answer(&cli->out, doc, VERDICT,
                      "verified: lines %" PRIu64 " to %" PRIu64 ", %" PRIu64 " cut, %" PRIu64
                      " gaps; the last digest is %s",
                      self->check.first, self->check.chain.seq, self->check.n_cuts,
                      self->check.n_gaps, digest);
    } else {
        ps_out_answer(&cli->out, doc, VERDICT, "NOT verified: %s", problem);
        cli->exit_code = WRONG_EXIT;
    }
    return PSD_OK;
}

static psd_status_t show_lines(ps_cli_t *cli, const audit_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = json_pack("{s:O}", "lines", self->kept);

    if (doc == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the answer");
    }
    ps_out_list(&cli->out, doc, "lines", LINES);
    if (self->n_unread > 0) {
        ps_say(&cli->out, "%" PRIu64 " lines cannot be read; --verify says which is the first",
               self->n_unread);
    }
    return PSD_OK;
}

static psd_status_t read_options(const ps_cli_t *cli, audit_t *self, psd_error_t *err)
{
    self->verifies = ps_args_on(&cli->args, "verify");
    self->last = (size_t)ps_args_u64(&cli->args, "last");
    self->who = ps_args_text(&cli->args, "who");
    self->only_refused = ps_args_on(&cli->args, "refused");
    if (self->verifies &&
        (self->who != NULL || self->only_refused || ps_args_given(&cli->args, "since"))) {
        return psd_error_set(err, PSD_USAGE,
                             "--verify checks all lines; it goes without --since, --who and "
                             "--refused");
    }
    if (!ps_args_given(&cli->args, "since")) {
        return PSD_OK;
    }
    self->since_ms = ps_unix_ms() - ps_args_ms(&cli->args, "since");
    return PSD_OK;
}

psd_status_t ps_cmd_auth_audit(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *kept = json_array();
    audit_t audit = {.kept = kept};
    psd_status_t rc = read_options(cli, &audit, err);

    if (rc == PSD_OK && cli->args.n_words > 0) {
        const char *path = ps_cli_word(cli, 0);
        struct stat is = {0};

        rc = stat(path, &is) == 0 && S_ISDIR(is.st_mode) ? read_dir(&audit, path, err)
                                                         : read_file(&audit, path, err);
    } else if (rc == PSD_OK) {
        rc = ask(cli, &audit, err);
    }
    audit.file = NULL; /* gone */
    if (rc != PSD_OK) {
        return rc;
    }
    return audit.verifies ? show_verdict(cli, &audit, err) : show_lines(cli, &audit, err);
}
