/* SPDX-License-Identifier: Apache-2.0 */
/* pscli data: shows, recognises and converts files of samples. */
#include "cli/tables/cmd_data.h"
#include "cli/tables/tables.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/output/interrupt.h"
#include "cli/run/progress.h"
#include "data/streams/file_out.h"

#define BATCH 1000
#define DETECT_LINES 1000
#define SHOWN 8 /* entries of a sample in tables */
#define ENTRY_SIZE 48

static const ps_column_t CONVERTED[] = {{"FILE", "file", PS_UNIT_NONE, false},
                                        {"FROM", "from", PS_UNIT_NONE, false},
                                        {"TO", "to", PS_UNIT_NONE, false},
                                        {"SAMPLES", "samples", PS_UNIT_NONE, false},
                                        {"ENTRIES", "entries", PS_UNIT_NONE, false},
                                        {"BAD", "bad_lines", PS_UNIT_NONE, false},
                                        {NULL, NULL, PS_UNIT_NONE, false}};
static const ps_column_t SAMPLES[] = {
    {"SAMPLE", "sample", PS_UNIT_NONE, false},  {"LABEL", "label", PS_UNIT_NONE, false},
    {"WEIGHT", "weight", PS_UNIT_NONE, true},   {"TAG", "tag", PS_UNIT_NONE, true},
    {"GROUPS", "groups", PS_UNIT_COUNT, false}, {"ENTRIES", "entries", PS_UNIT_NONE, false},
    {"FIRST", "first", PS_UNIT_NONE, false},    {NULL, NULL, PS_UNIT_NONE, false}};
static const ps_column_t DETECTED[] = {{"FILE", "file", PS_UNIT_NONE, false},
                                       {"FORMAT", "format", PS_UNIT_NONE, false},
                                       {"LABELS", "labels", PS_UNIT_NONE, false},
                                       {"ENTRIES", "entries", PS_UNIT_NONE, false},
                                       {"SAMPLES", "samples", PS_UNIT_NONE, false},
                                       {"BAD", "bad_lines", PS_UNIT_NONE, false},
                                       {NULL, NULL, PS_UNIT_NONE, false}};

/* ---- reading ---- */

/* A number, or one over another. */
static psd_status_t take_scale(const ps_cli_t *cli, psd_reader_options_t *options, psd_error_t *err)
{
    const char *text = ps_args_text(&cli->args, "scale");
    const char *slash = strchr(text, '/');
    char above[64];
    double value = 0;
    double below = 1;
    bool whole_text =
        snprintf(above, sizeof above, "%.*s",
                 slash == NULL ? (int)sizeof above : (int)(slash - text), text) < (int)sizeof above;

    if (!whole_text || !ps_text_f64(above, &value) ||
        (slash != NULL && !ps_text_f64(slash + 1, &below)) || below == 0) {
        return psd_error_set(err, PSD_USAGE,
                             "--scale %s is neither a number nor a fraction such as 1/255", text);
    }
    return psd_reader_options_set_scale(options, (float)(value / below), err);
}

/* A:B, or nothing. */
static psd_status_t take_rows(const ps_cli_t *cli, psd_reader_options_t *options, psd_error_t *err)
{
    const char *text = ps_args_text(&cli->args, "rows");
    const char *colon = text == NULL ? NULL : strchr(text, ':');
    char above[24] = "";
    uint64_t first = 0;
    uint64_t end = 0;

    if (text == NULL) {
        return PSD_OK;
    }
    if (colon != NULL && (size_t)(colon - text) < sizeof above) {
        memcpy(above, text, (size_t)(colon - text));
    }
    if (colon == NULL || !ps_text_u64(above, &first) || !ps_text_u64(colon + 1, &end)) {
        return psd_error_set(err, PSD_USAGE, "--rows %s is not A:B, two whole numbers", text);
    }
    return psd_reader_options_set_rows(options, first, end, err);
}

static psd_status_t take_options(const ps_cli_t *cli, psd_reader_options_t *options,
                                 psd_error_t *err)
{
    const ps_args_t *args = &cli->args;
    const char *entries = ps_args_text(args, "entries");
    psd_status_t rc = psd_reader_options_set_format(options, ps_args_text(args, "from"), err);

    if (rc == PSD_OK) {
        rc = psd_reader_options_set_share(options, (uint32_t)ps_args_u64(args, "part"),
                                          (uint32_t)ps_args_u64(args, "parts"), err);
    }
    if (rc == PSD_OK) {
        rc = psd_reader_options_set_bits(options, (uint32_t)ps_args_u64(args, "bits"), err);
    }
    if (rc == PSD_OK && strcmp(entries, "auto") != 0) {
        rc = psd_reader_options_set_entries(options,
                                            strcmp(entries, "dense") == 0    ? PSD_ENTRIES_DENSE
                                            : strcmp(entries, "binary") == 0 ? PSD_ENTRIES_BINARY
                                                                             : PSD_ENTRIES_SPARSE,
                                            err);
    }
    if (rc == PSD_OK) {
        rc = take_scale(cli, options, err);
    }
    if (rc == PSD_OK) {
        rc = take_rows(cli, options, err);
    }
    if (rc == PSD_OK) {
        rc = psd_reader_options_set_labels(options, ps_args_text(args, "labels"), err);
    }
    if (rc == PSD_OK) {
        rc = psd_reader_options_set_vocabulary(options, ps_args_text(args, "vocabulary"), err);
    }
    if (rc == PSD_OK) {
        rc = psd_reader_options_set_cache(options, ps_args_text(args, "cache"), err);
    }
    psd_reader_options_set_strict(options, ps_args_on(args, "strict"));
    psd_reader_options_set_merge(options, ps_args_on(args, "merge"));
    psd_reader_options_set_constant(options, !ps_args_on(args, "no-constant"));
    psd_reader_options_set_hash_all(options, ps_args_on(args, "hash-all"));
    return rc;
}

psd_status_t ps_data_open(const ps_cli_t *cli, size_t n, psd_reader_t **ret_reader,
                          psd_error_t *err)
{
    PSD_AUTO(psd_reader_options_destroy)
    psd_reader_options_t *options = psd_reader_options_new();
    psd_status_t rc = PSD_OK;

    if (options == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for options");
    }
    rc = take_options(cli, options, err);
    return rc == PSD_OK ? psd_reader_open(cli->args.words, n, options, ret_reader, err) : rc;
}

psd_status_t ps_data_tell_bad(const ps_cli_t *cli, const psd_reader_t *reader, psd_error_t *err)
{
    uint64_t n = psd_reader_bad_count(reader);
    size_t shown = 0;

    if (psd_reader_warning(reader) != NULL) {
        ps_say(&cli->out, "%s", psd_reader_warning(reader));
    }
    for (; psd_reader_bad(reader, shown) != NULL; shown++) {
        ps_say(&cli->out, "%s", psd_reader_bad(reader, shown));
    }
    return n == 0 ? PSD_OK
                  : psd_error_set(err, PSD_PARTIAL, "%" PRIu64 " bad lines were skipped%s", n,
                                  n > shown ? "; the first are named above" : "");
}

static const char *entries_name(psd_entries_t entries)
{
    static const char *const names[] = {[PSD_ENTRIES_SPARSE] = "sparse",
                                        [PSD_ENTRIES_BINARY] = "binary",
                                        [PSD_ENTRIES_DENSE] = "dense"};

    return names[entries];
}

const char *ps_data_labels_name(psd_labels_t labels)
{
    static const char *const names[] = {[PSD_LABELS_NONE] = "none",
                                        [PSD_LABELS_BINARY] = "binary",
                                        [PSD_LABELS_CLASS] = "class",
                                        [PSD_LABELS_REAL] = "real"};

    return names[labels];
}

/* ---- convert ---- */

static psd_status_t copy_samples(psd_reader_t *reader, psd_writer_t *writer,
                                 ps_progress_t *progress, uint64_t *ret_entries, psd_error_t *err)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    uint64_t total = 0;
    uint64_t before = 0;

    if (batch == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for samples");
    }
    for (;;) {
        psd_status_t rc = psd_reader_next(reader, BATCH, batch, err);
        uint64_t at = psd_reader_bytes(reader, &total);

        if (rc != PSD_OK || psd_samples_count(batch) == 0) {
            return rc;
        }
        rc = psd_writer_write(writer, batch, err);
        if (rc != PSD_OK) {
            return rc;
        }
        *ret_entries += psd_samples_entry_count(batch);
        ps_progress_add(progress, at - before);
        before = at;
    }
}

static psd_status_t show_converted(const ps_cli_t *cli, const psd_reader_t *reader,
                                   const char *path, uint64_t n_entries, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *doc = json_pack(
        "{s:s,s:s,s:s,s:I,s:I,s:I}", "file", path, "from", psd_reader_format(reader), "to",
        ps_args_text(&cli->args, "to"), "samples", (json_int_t)psd_reader_sample_count(reader),
        "entries", (json_int_t)n_entries, "bad_lines", (json_int_t)psd_reader_bad_count(reader));

    if (doc == NULL) {
        return psd_error_set(err, PSD_INVALID, "OUT is \"%s\", which is not UTF-8", path);
    }
    ps_out_object(&cli->out, doc, CONVERTED);
    return PSD_OK;
}

/* A shell pattern may have made an input file the last word. */
static psd_status_t check_out(const ps_cli_t *cli, const char *path, psd_error_t *err)
{
    struct stat about;

    if (!ps_args_on(&cli->args, "yes") && !ps_file_out_names_stdout(path) &&
        stat(path, &about) == 0 && S_ISREG(about.st_mode)) {
        return psd_error_set(
            err, PSD_USAGE, "%s, the last argument, is OUT, and exists; --yes overwrites it", path);
    }
    return PSD_OK;
}

psd_status_t ps_cmd_data_convert(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    PSD_AUTO(psd_writer_close) psd_writer_t *writer = NULL;
    size_t n_inputs = cli->args.n_words - 1;
    const char *path = ps_cli_word(cli, n_inputs);
    const char *to = ps_args_text(&cli->args, "to");
    bool is_stdout = ps_file_out_names_stdout(path);
    uint64_t n_entries = 0;
    uint64_t total = 0;
    ps_progress_t progress;
    psd_status_t rc = PSD_OK;

    if (to == NULL) {
        return psd_error_set(err, PSD_USAGE, "--to is missing; --help lists the formats");
    }
    rc = check_out(cli, path, err);
    if (rc == PSD_OK) {
        rc = ps_data_open(cli, n_inputs, &reader, err);
    }
    if (rc == PSD_OK) {
        rc = psd_writer_open(path, to, &writer, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    psd_writer_set_lossy(writer, ps_args_on(&cli->args, "lossy"));
    if (psd_writer_beside(writer)[0] != '\0') {
        ps_interrupt_unlink(psd_writer_beside(writer));
    }
    (void)psd_reader_bytes(reader, &total);
    ps_progress_init(&progress, &cli->out, "convert", total);
    rc = copy_samples(reader, writer, &progress, &n_entries, err);
    ps_progress_done(&progress);
    if (rc == PSD_OK) {
        rc = psd_writer_commit(writer, err);
    }
    ps_interrupt_unlink(NULL);
    if (rc == PSD_OK && !is_stdout) { /* else it is the samples' */
        rc = show_converted(cli, reader, path, n_entries, err);
    }
    return rc == PSD_OK ? ps_data_tell_bad(cli, reader, err) : rc;
}

/* ---- show ---- */

json_t *ps_data_real(float value)
{
    return isnan(value) ? json_null() : json_real((double)value);
}

json_t *ps_data_whole(uint64_t value)
{
    char text[24];

    if (value <= INT64_MAX) {
        return json_integer((json_int_t)value);
    }
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return json_string(text);
}

static json_t *describe_group(const psd_samples_t *batch, size_t g)
{
    const size_t *starts = psd_samples_starts(batch);
    json_t *keys = json_array();
    json_t *values = json_array();

    for (size_t e = starts[g]; e < starts[g + 1]; e++) {
        (void)json_array_append_new(keys, ps_data_whole(psd_samples_keys(batch)[e]));
        (void)json_array_append_new(values, ps_data_real(psd_samples_values(batch)[e]));
    }
    return json_pack("{s:I,s:o,s:o}", "group", (json_int_t)psd_samples_group_ids(batch)[g], "keys",
                     keys, "values", values);
}

/* "3:1 10:1 …" */
static void print_first(const psd_samples_t *batch, size_t first, size_t end,
                        char text[SHOWN * ENTRY_SIZE])
{
    size_t size = 0;

    text[0] = '\0';
    for (size_t e = first; e < end && e - first < SHOWN; e++) {
        int n = snprintf(text + size, ENTRY_SIZE, "%s%" PRIu64 ":%g", e == first ? "" : " ",
                         psd_samples_keys(batch)[e], (double)psd_samples_values(batch)[e]);

        size += n > 0 ? (size_t)n : 0;
    }
    if (end - first > SHOWN) {
        (void)snprintf(text + size, ENTRY_SIZE, " …");
    }
}

static json_t *describe_sample(const psd_samples_t *batch, size_t i, uint64_t number)
{
    const size_t *groups = psd_samples_groups(batch);
    const size_t *starts = psd_samples_starts(batch);
    size_t first = starts[groups[i]];
    size_t end = starts[groups[i + 1]];
    size_t tag_size = 0;
    const char *tag = psd_samples_tag(batch, i, &tag_size);
    char text[(SHOWN + 1) * ENTRY_SIZE];
    json_t *list = json_array();
    json_t *words = json_stringn(tag, tag_size);

    for (size_t g = groups[i]; g < groups[i + 1]; g++) {
        (void)json_array_append_new(list, describe_group(batch, g));
    }
    print_first(batch, first, end, text);
    return json_pack("{s:I,s:o,s:o,s:f,s:o,s:o,s:o,s:I,s:s}", "sample", (json_int_t)number, "label",
                     ps_data_real(psd_samples_labels(batch)[i]), "weight",
                     ps_data_real(psd_samples_weights(batch)[i]), "initial",
                     (double)psd_samples_initials(batch)[i], "query",
                     ps_data_whole(psd_samples_queries(batch)[i]), "tag",
                     words != NULL ? words : json_null(), /* no UTF-8 */
                     "groups", list, "entries", (json_int_t)(end - first), "first", text);
}

psd_status_t ps_cmd_data_show(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    json_t *list = NULL;
    psd_status_t rc = PSD_OK;

    if (ps_args_on(&cli->args, "summary")) {
        return ps_data_show_summary(cli, err);
    }
    list = json_array();
    doc = json_pack("{s:o}", "samples", list);
    if (batch == NULL || doc == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for samples");
    }
    rc = ps_data_open(cli, cli->args.n_words, &reader, err);
    if (rc == PSD_OK) {
        rc = psd_reader_next(reader, ps_args_u64(&cli->args, "number"), batch, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t i = 0; i < psd_samples_count(batch); i++) {
        (void)json_array_append_new(list, describe_sample(batch, i, i + 1));
    }
    (void)json_object_set_new(doc, "format", json_string(psd_reader_format(reader)));
    ps_out_list(&cli->out, doc, "samples", SAMPLES);
    return ps_data_tell_bad(cli, reader, err);
}

/* ---- detect ---- */

/* The format of the first lines; for an unknown format, why. */
static psd_status_t detect(const ps_cli_t *cli, const char *path,
                           const psd_reader_options_t *options, json_t *list, psd_error_t *err)
{
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    json_t *item = NULL;
    psd_status_t rc = PSD_OK;

    if (batch == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for samples");
    }
    rc = psd_reader_open(&path, 1, options, &reader, err);
    if (rc == PSD_OK) {
        rc = psd_reader_next(reader, DETECT_LINES, batch, err);
    }
    if (rc == PSD_INVALID) {
        ps_say(&cli->out, "%s", psd_error_text(err));
        item = json_pack("{s:s,s:s,s:s}", "file", path, "format", "unknown", "reason",
                         psd_error_text(err));
        psd_error_clear(err);
    } else if (rc != PSD_OK) {
        return rc;
    } else {
        item = json_pack("{s:s,s:s,s:s,s:s,s:I,s:I}", "file", path, "format",
                         psd_reader_format(reader), "labels",
                         ps_data_labels_name(psd_reader_labels(reader)), "entries",
                         entries_name(psd_samples_entries(batch)), "samples",
                         (json_int_t)psd_samples_count(batch), "bad_lines",
                         (json_int_t)psd_reader_bad_count(reader));
    }
    if (item == NULL) {
        return psd_error_set(err, PSD_INVALID, "FILE is \"%s\", which is not UTF-8", path);
    }
    (void)json_array_append_new(list, item);
    return PSD_OK;
}

psd_status_t ps_cmd_data_detect(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    PSD_AUTO(psd_reader_options_destroy)
    psd_reader_options_t *options = psd_reader_options_new();
    json_t *list = json_array();
    psd_status_t rc = PSD_OK;

    doc = json_pack("{s:o}", "files", list);
    if (doc == NULL || options == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a list");
    }
    psd_reader_options_set_max_lines(options, DETECT_LINES);
    for (size_t i = 0; i < cli->args.n_words; i++) {
        PSD_AUTO(psd_error_destroy) psd_error_t *own = psd_error_new();
        psd_status_t failed = detect(cli, ps_cli_word(cli, i), options, list, own);

        if (failed != PSD_OK && rc == PSD_OK) { /* the others come, too */
            rc = psd_error_set(err, failed, "%s", psd_error_text(own));
        } else if (failed != PSD_OK) {
            ps_say(&cli->out, "%s", psd_error_text(own));
        }
    }
    if (json_array_size(list) > 0) {
        ps_out_list(&cli->out, doc, "files", DETECTED);
    }
    return rc;
}
