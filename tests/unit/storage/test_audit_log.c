/* SPDX-License-Identifier: Apache-2.0 */
/* storage/audit/audit_log.h: the chain goes on over starts, files, crashes and a full disk. */
#include "storage/audit/audit_log.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "storage/audit/audit_files.h"
#include "support/sim_disk.h"

#define DIR_NAME "dir"
#define FILE_BYTES 65536
#define FILE_PATH DIR_NAME "/" PS_AUDIT_FILE

typedef struct fixture {
    sim_disk_t *sim;
    psd_error_t *err;
    ps_audit_log_t *log;
    ps_audit_found_t found;
    uint64_t files;
    uint64_t file_bytes;
} fixture_t;

static void begin(fixture_t *self, uint64_t seed)
{
    *self = (fixture_t){
        .sim = sim_disk_new(seed), .err = psd_error_new(), .files = 3, .file_bytes = FILE_BYTES};
}

static void end(fixture_t *self)
{
    ps_audit_log_close(&self->log, 9);
    sim_disk_destroy(&self->sim);
    psd_error_destroy(&self->err);
}

static psd_status_t open_log(fixture_t *self)
{
    const ps_audit_args_t args = {.disk = sim_disk_face(self->sim),
                                  .dir = DIR_NAME,
                                  .file_bytes = self->file_bytes,
                                  .files = self->files,
                                  .unix_ms = 5,
                                  .node = "n0",
                                  .release = "1"};

    psd_error_clear(self->err);
    return ps_audit_log_open(&args, &self->found, &self->log, self->err);
}

static void start(fixture_t *self)
{
    cr_assert_eq(open_log(self), PSD_OK, "%s", psd_error_text(self->err));
}

static psd_status_t add_of(fixture_t *self, uint32_t who, psd_status_t result, uint64_t now_ms,
                           ps_audit_outcome_t *ret_outcome)
{
    char name[16];
    const ps_audit_record_t record = {
        .who = who == 0 ? NULL : name, .who_id = who, .op = "table_drop", .result = result};

    (void)snprintf(name, sizeof name, "p%d", (int)who);

    psd_error_clear(self->err);
    return ps_audit_log_add(self->log, &record, now_ms, now_ms, ret_outcome, self->err);
}

static psd_status_t add(fixture_t *self, psd_status_t result, uint64_t now_ms,
                        ps_audit_outcome_t *ret_outcome)
{
    return add_of(self, 1, result, now_ms, ret_outcome);
}

static void add_many(fixture_t *self, size_t n)
{
    ps_audit_outcome_t outcome;

    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(add(self, PSD_OK, 1, &outcome), PSD_OK, "%s", psd_error_text(self->err));
    }
}

static psd_status_t check_line(void *context, ps_bytes_t line, uint64_t number, psd_error_t *err)
{
    (void)number;
    return ps_audit_check_line(context, line, err);
}

/* All files, as pscli reads them. */
static ps_audit_check_t check(fixture_t *self, psd_status_t expected)
{
    ps_audit_files_t files = {0};
    ps_audit_check_t checked = {0};
    ps_disk_t *disk = sim_disk_face(self->sim);
    psd_status_t rc = ps_audit_files_find(disk, DIR_NAME, &files, self->err);

    for (size_t i = 0; rc == PSD_OK && i < files.n_older + 1; i++) {
        ps_buffer_t path = {0};
        uint64_t rest = 0;

        cr_assert_eq(ps_audit_path(&path, DIR_NAME, i < files.n_older ? files.older[i] : 0, NULL),
                     PSD_OK);
        rc = ps_audit_read(disk, (const char *)path.data, check_line, &checked, &rest, self->err);
        cr_assert_eq(rest, 0);
        ps_buffer_done(&path);
    }
    cr_assert_eq(rc, expected, "%s", psd_error_text(self->err));
    ps_audit_files_done(&files);
    return checked;
}

/* The same, as a client gets them. */
static ps_audit_check_t check_pieces(fixture_t *self, size_t size)
{
    ps_audit_check_t checked = {0};
    ps_audit_splitter_t splitter = {.take = check_line, .context = &checked};
    ps_audit_place_t place = {0};
    ps_audit_chain_t last = {0};
    bool is_end = false;

    while (!is_end) {
        ps_buffer_t bytes = {0};

        cr_assert_eq(ps_audit_log_read(self->log, &place, size, &bytes, &is_end, &last, self->err),
                     PSD_OK, "%s", psd_error_text(self->err));
        cr_assert_eq(ps_audit_split(&splitter, (ps_bytes_t){.data = bytes.data, .size = bytes.size},
                                    self->err),
                     PSD_OK, "%s", psd_error_text(self->err));
        ps_buffer_done(&bytes);
    }
    cr_assert_eq(splitter.part.size, 0);
    cr_assert_eq(last.seq, checked.chain.seq);
    cr_assert_arr_eq(last.digest, checked.chain.digest, sizeof last.digest);
    ps_audit_splitter_done(&splitter);
    return checked;
}

Test(audit_log, goes_on_over_starts)
{
    fixture_t f;

    begin(&f, 1);
    for (uint64_t i = 0; i < 3; i++) {
        start(&f);
        cr_assert_eq(f.found.seq, 2 + 5 * i);
        cr_assert_eq(f.found.cut, 0);
        cr_assert_str_empty(f.found.damaged);
        add_many(&f, 3);
        ps_audit_log_close(&f.log, 9);
        cr_assert_null(f.log);
    }
    cr_assert_eq(check(&f, PSD_OK).chain.seq, 16);
    end(&f);
}

Test(audit_log, full_files_are_older_ones_and_the_oldest_go)
{
    fixture_t f;
    ps_audit_check_t checked;

    begin(&f, 1);
    start(&f);
    add_many(&f, 2000);
    checked = check(&f, PSD_OK);
    cr_assert_eq(sim_disk_count(f.sim), 3);
    cr_assert_gt(checked.first, 1, "the oldest are gone");
    cr_assert_gt(checked.chain.seq, 2000);
    for (size_t size = 1000; size < 100000; size *= 7) {
        cr_assert_eq(check_pieces(&f, size).n_lines, checked.n_lines);
    }
    ps_audit_log_close(&f.log, 9);
    start(&f);
    add_many(&f, 500);
    cr_assert_gt(check(&f, PSD_OK).chain.seq, 2500);
    end(&f);
}

/* The current file has gone after it became an older one, before the next was made. */
Test(audit_log, goes_on_after_the_newest_older_file)
{
    fixture_t f;
    uint64_t seq = 0;

    begin(&f, 1);
    start(&f);
    add_many(&f, 10);
    ps_audit_log_close(&f.log, 9);
    seq = check(&f, PSD_OK).chain.seq;
    cr_assert_eq(sim_disk_face(f.sim)->rename(sim_disk_face(f.sim), FILE_PATH,
                                              DIR_NAME "/audit.1.jsonl", NULL),
                 PSD_OK);
    start(&f);
    cr_assert_eq(f.found.seq, seq + 2);
    cr_assert_eq(check(&f, PSD_OK).first, 1);
    end(&f);
}

Test(audit_log, every_cut_of_the_end_is_noted)
{
    fixture_t f;
    uint64_t size = 0;

    begin(&f, 1);
    start(&f);
    add_many(&f, 2);
    ps_audit_log_close(&f.log, 9);
    size = sim_disk_content(f.sim, FILE_PATH).size;
    end(&f);
    for (uint64_t at = 0; at < size; at++) {
        ps_bytes_t whole;
        bool is_between = false;

        begin(&f, 1);
        start(&f);
        add_many(&f, 2);
        ps_audit_log_close(&f.log, 9);
        whole = sim_disk_content(f.sim, FILE_PATH);
        is_between = at == 0 || whole.data[at - 1] == '\n';
        sim_disk_cut(f.sim, FILE_PATH, at);
        start(&f);
        cr_assert_str_empty(f.found.damaged);
        cr_assert_eq(f.found.cut == 0, is_between, "cut at %d", (int)at);
        cr_assert_eq(check(&f, PSD_OK).n_cuts, is_between ? 0 : 1);
        end(&f);
    }
}

Test(audit_log, a_file_with_a_wrong_line_is_kept_beside_a_new_one)
{
    fixture_t f;

    for (uint64_t at = 1; at < 900; at += 7) {
        ps_audit_files_t files = {0};

        begin(&f, 1);
        start(&f);
        add_many(&f, 10);
        ps_audit_log_close(&f.log, 9);
        sim_disk_flip(f.sim, FILE_PATH, at, 1);
        start(&f);
        cr_assert_str_not_empty(f.found.damaged);
        add_many(&f, 10);
        (void)check(&f, PSD_DAMAGED);
        cr_assert_eq(ps_audit_files_find(sim_disk_face(f.sim), DIR_NAME, &files, NULL), PSD_OK);
        cr_assert_eq(files.n_older, 1);
        ps_audit_files_done(&files);
        ps_audit_log_close(&f.log, 9);
        start(&f);
        cr_assert_str_empty(f.found.damaged, "it was told once");
        end(&f);
    }
}

/* Lines that find no room are counted; the chain has a line that says so. */
Test(audit_log, a_full_disk_leaves_a_gap_that_is_noted)
{
    fixture_t f;
    ps_audit_outcome_t outcome;
    ps_audit_check_t checked;

    begin(&f, 1);
    start(&f);
    add_many(&f, 3);
    sim_disk_set_capacity(f.sim, sim_disk_bytes(f.sim) + 100);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(add(&f, PSD_OK, 1, &outcome), PSD_LIMIT);
        cr_assert_eq(outcome.begins, i == 0);
    }
    sim_disk_set_capacity(f.sim, UINT64_MAX);
    cr_assert_eq(add(&f, PSD_OK, 1, &outcome), PSD_OK);
    cr_assert_eq(outcome.lost, 5);
    cr_assert_eq(add(&f, PSD_OK, 1, &outcome), PSD_OK);
    cr_assert_eq(outcome.lost, 0);
    checked = check(&f, PSD_OK);
    cr_assert_eq(checked.n_gaps, 1);
    cr_assert_eq(checked.chain.seq, 2 + 3 + 1 + 2);
    end(&f);
}

Test(audit_log, a_full_disk_does_not_keep_psd_from_starting)
{
    fixture_t f;
    ps_audit_outcome_t outcome;

    for (int has_file = 0; has_file < 2; has_file++) {
        begin(&f, 1);
        if (has_file) {
            start(&f);
            ps_audit_log_close(&f.log, 9);
        }
        sim_disk_set_capacity(f.sim, sim_disk_bytes(f.sim) + 10);
        start(&f);
        cr_assert_str_not_empty(f.found.lost);
        cr_assert_eq(add(&f, PSD_OK, 1, &outcome), PSD_LIMIT);
        cr_assert_not(outcome.begins, "the start has said it");
        sim_disk_set_capacity(f.sim, UINT64_MAX);
        cr_assert_eq(add(&f, PSD_OK, 1, &outcome), PSD_OK);
        cr_assert_eq(outcome.lost, 2);
        cr_assert_eq(check(&f, PSD_OK).n_gaps, 1);
        end(&f);
    }
}

/* An operation fails, whichever it is: no line is half there, and the next ones are. */
Test(audit_log, every_failure_leaves_a_good_chain)
{
    for (uint64_t op = 0; op < 60; op++) {
        fixture_t f;
        ps_audit_outcome_t outcome;

        begin(&f, op);
        sim_disk_plan(f.sim, op, 1, SIM_DISK_FAIL);
        if (open_log(&f) != PSD_OK) {
            start(&f);
        }
        for (int i = 0; i < 400; i++) { /* over more than one file */
            (void)add(&f, PSD_OK, 1, &outcome);
        }
        (void)check(&f, PSD_OK);
        end(&f);
    }
}

/* Whatever of the bytes a power loss leaves: the next start goes on. */
Test(audit_log, every_crash_is_survived)
{
    for (uint64_t op = 0; op < 420; op += 3) {
        fixture_t f;
        ps_audit_outcome_t outcome;

        begin(&f, op);
        sim_disk_plan(f.sim, op, 1, SIM_DISK_CRASH);
        if (open_log(&f) == PSD_OK) {
            for (int i = 0; i < 400; i++) {
                (void)add(&f, PSD_OK, 1, &outcome);
            }
        }
        ps_audit_log_close(&f.log, 9);
        sim_disk_restart(f.sim);
        start(&f);
        add_many(&f, 3);
        (void)check(&f, f.found.damaged[0] == '\0' ? PSD_OK : PSD_DAMAGED);
        ps_audit_log_close(&f.log, 9);
        start(&f);
        cr_assert_str_empty(f.found.damaged, "the new file is good");
        end(&f);
    }
}

/* Lines of the current file that have both texts. */
static size_t count(fixture_t *self, const char *text, const char *other)
{
    ps_bytes_t file = sim_disk_content(self->sim, FILE_PATH);
    const char *at = (const char *)file.data;
    const char *end = at + file.size;
    size_t n = 0;

    while (at < end) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)(next - at);

        n += memmem(at, size, text, strlen(text)) != NULL &&
                     memmem(at, size, other, strlen(other)) != NULL
                 ? 1
                 : 0;
        at = next + 1;
    }
    return n;
}

static void fail_often(fixture_t *self, uint32_t who, psd_status_t result, uint64_t now_ms)
{
    ps_audit_outcome_t outcome;

    for (int i = 0; i < PS_AUDIT_BURST + 50; i++) {
        cr_assert_eq(add_of(self, who, result, now_ms, &outcome), PSD_OK);
    }
}

Test(audit_log, what_fails_beyond_a_callers_pace_is_counted)
{
    fixture_t f;
    ps_audit_outcome_t outcome;

    begin(&f, 1);
    f.file_bytes = UINT64_C(1) << 24;
    start(&f);
    fail_often(&f, 1, PSD_NO_TABLE, 1000);
    cr_assert_lt(check(&f, PSD_OK).n_lines, PS_AUDIT_BURST + 20);
    cr_assert_eq(add_of(&f, 2, PSD_DENIED, 1000, &outcome), PSD_OK);
    cr_assert_eq(count(&f, "\"who\":\"p2\"", "DENIED"), 1, "it has a pace of its own");
    cr_assert_eq(count(&f, "\"more\",\"who\":\"p1\"", "\"requests\":50"), 1);
    fail_often(&f, 1, PSD_DENIED, 1000);
    fail_often(&f, 0, PSD_DENIED, 1000);
    add_many(&f, 1);
    cr_assert_eq(count(&f, "\"more\"", ""), 1, "once a minute");
    cr_assert_eq(count(&f, "\"who\":null", "DENIED"), PS_AUDIT_BURST_STRANGERS);
    cr_assert_eq(add_of(&f, 2, PSD_OK, 61000, &outcome), PSD_OK);
    cr_assert_eq(count(&f, "\"more\"", "\"requests\":"), 3);
    fail_often(&f, 1, PSD_DENIED, 62000);
    fail_often(&f, 1 + 64, PSD_DENIED, 62000);
    ps_audit_log_close(&f.log, 63000);
    cr_assert_eq(count(&f, "\"more\",\"requests\"", ""), 2, "strangers, and two who share");
    (void)check(&f, PSD_OK);
    end(&f);
}

Test(audit_log, is_read_where_the_disk_has_no_room_for_a_file)
{
    fixture_t f;

    begin(&f, 1);
    sim_disk_set_capacity(f.sim, 10);
    start(&f);
    cr_assert_eq(check_pieces(&f, 1000).n_lines, 0);
    sim_disk_set_capacity(f.sim, UINT64_MAX);
    add_many(&f, 3);
    ps_audit_log_close(&f.log, 9);
    cr_assert_eq(sim_disk_face(f.sim)->rename(sim_disk_face(f.sim), FILE_PATH,
                                              DIR_NAME "/audit.1.jsonl", NULL),
                 PSD_OK);
    sim_disk_set_capacity(f.sim, sim_disk_bytes(f.sim) + 10);
    start(&f); /* only an older file */
    cr_assert_gt(check_pieces(&f, 1000).n_lines, 3);
    end(&f);
}
