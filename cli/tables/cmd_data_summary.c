/* SPDX-License-Identifier: Apache-2.0 */
/* pscli data show --summary: what all samples of files have. */
#include "cli/tables/cmd_data.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "cli/run/progress.h"

#define BATCH 1000

static const ps_column_t SUMMARY[] = {
    {"FORMAT", "summary.format", PS_UNIT_NONE, false},
    {"SAMPLES", "summary.samples", PS_UNIT_NONE, false},
    {"ENTRIES", "summary.entries", PS_UNIT_NONE, false},
    {"MOST_ENTRIES", "summary.most_entries", PS_UNIT_NONE, false},
    {"FEATURES", "summary.features", PS_UNIT_NONE, false},
    {"MIN_KEY", "summary.min_key", PS_UNIT_NONE, false},
    {"MAX_KEY", "summary.max_key", PS_UNIT_NONE, false},
    {"LABELS", "summary.labels.kind", PS_UNIT_NONE, false},
    {"UNLABELLED", "summary.labels.none", PS_UNIT_NONE, false},
    {"DIFFERENT_LABELS", "summary.labels.different", PS_UNIT_NONE, false},
    {"MIN_LABEL", "summary.labels.min", PS_UNIT_NONE, false},
    {"MAX_LABEL", "summary.labels.max", PS_UNIT_NONE, false},
    {"BYTES", "summary.bytes", PS_UNIT_BYTES, false},
    {"BAD", "summary.bad_lines", PS_UNIT_NONE, false},
    {NULL, NULL, PS_UNIT_NONE, false}};
static const ps_column_t LABELS[] = {{"LABEL", "label", PS_UNIT_NONE, false},
                                     {"SAMPLES", "samples", PS_UNIT_NONE, false},
                                     {NULL, NULL, PS_UNIT_NONE, false}};

static psd_status_t add_all(const ps_cli_t *cli, psd_reader_t *reader, psd_summary_t *summary,
                            psd_error_t *err)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    uint64_t total = 0;
    uint64_t before = 0;
    ps_progress_t progress;
    psd_status_t rc = PSD_OK;

    if (batch == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for samples");
    }
    (void)psd_reader_bytes(reader, &total);
    ps_progress_init(&progress, &cli->out, "read", total);
    while (rc == PSD_OK) {
        uint64_t at = 0;

        rc = psd_reader_next(reader, BATCH, batch, err);
        if (rc != PSD_OK || psd_samples_count(batch) == 0) {
            break;
        }
        rc = psd_summary_add(summary, batch, err);
        at = psd_reader_bytes(reader, &total);
        ps_progress_add(&progress, at - before);
        before = at;
    }
    ps_progress_done(&progress);
    return rc;
}

static json_t *describe_labels(const psd_summary_t *summary, psd_labels_t kind)
{
    json_t *values = json_array();
    float least = 0;
    float most = 0;
    bool any = psd_summary_label_range(summary, &least, &most);
    bool more = false;
    size_t n = psd_summary_label_count(summary, &more);

    for (size_t i = 0; i < n; i++) {
        uint64_t samples = 0;
        float label = psd_summary_label(summary, i, &samples);

        (void)json_array_append_new(values, json_pack("{s:o,s:o}", "label", ps_data_real(label),
                                                      "samples", ps_data_whole(samples)));
    }
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:b,s:o}", "kind", ps_data_labels_name(kind), "none",
                     ps_data_whole(psd_summary_unlabelled_count(summary)), "min",
                     any ? ps_data_real(least) : json_null(), "max",
                     any ? ps_data_real(most) : json_null(), "different", ps_data_whole(n), "more",
                     more, "values", values);
}

static json_t *describe(const psd_reader_t *reader, const psd_summary_t *summary)
{
    uint64_t least = 0;
    uint64_t greatest = 0;
    bool any = psd_summary_key_range(summary, &least, &greatest);
    bool more = false;
    uint64_t n_keys = psd_summary_key_count(summary, &more);
    uint64_t total = 0;
    uint64_t bytes = psd_reader_bytes(reader, &total);

    return json_pack(
        "{s:{s:s,s:o,s:o,s:o,s:o,s:b,s:o,s:o,s:o,s:o,s:o}}", "summary", "format",
        psd_reader_format(reader), "samples", ps_data_whole(psd_summary_sample_count(summary)),
        "entries", ps_data_whole(psd_summary_entry_count(summary)), "most_entries",
        ps_data_whole(psd_summary_most_entries(summary)), "features", ps_data_whole(n_keys),
        "more_features", more, "min_key", any ? ps_data_whole(least) : json_null(), "max_key",
        any ? ps_data_whole(greatest) : json_null(), "labels",
        describe_labels(summary, psd_reader_labels(reader)), "bytes", ps_data_whole(bytes),
        "bad_lines", ps_data_whole(psd_reader_bad_count(reader)));
}

static void show(const ps_out_t *out, const psd_summary_t *summary, const json_t *doc)
{
    bool more = false;

    (void)psd_summary_key_count(summary, &more);
    if (more) {
        ps_say(out, "there are more than %d features; counting stopped there",
               PSD_SUMMARY_KEYS_MAX);
    }
    (void)psd_summary_label_count(summary, &more);
    if (more) {
        ps_say(out, "there are more than %d labels; counting stopped there",
               PSD_SUMMARY_LABELS_MAX);
    }
    ps_out_object(out, doc, SUMMARY);
    if (!more && (out->format == PS_FORMAT_TABLE || out->format == PS_FORMAT_WIDE)) {
        ps_print(out->out, "\n");
        ps_out_table(out, ps_json_at(doc, "summary.labels.values"), LABELS);
    }
}

psd_status_t ps_data_show_summary(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    PSD_AUTO(psd_summary_destroy) psd_summary_t *summary = psd_summary_new();
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    psd_status_t rc = PSD_OK;

    if (ps_args_given(&cli->args, "number")) {
        return psd_error_set(err, PSD_USAGE, "--summary covers all samples; it excludes --number");
    }
    if (summary == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a summary");
    }
    rc = ps_data_open(cli, cli->args.n_words, &reader, err);
    if (rc == PSD_OK) {
        rc = add_all(cli, reader, summary, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    doc = describe(reader, summary);
    if (doc == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a summary");
    }
    show(&cli->out, summary, doc);
    return ps_data_tell_bad(cli, reader, err);
}
