/* SPDX-License-Identifier: Apache-2.0 */
/* cli/output/output.h: every format of lists, objects and errors. */
#include "cli/output/output.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/output_cell.h"

static const ps_column_t COLUMNS[] = {
    {"NAME", "name", PS_UNIT_NONE, false},    {"SIZE", "bytes.values|bytes", PS_UNIT_BYTES, false},
    {"RULE", "updater", PS_UNIT_NONE, false}, {"WORKERS", "workers", PS_UNIT_COUNT, true},
    {"NOTE", "note", PS_UNIT_NONE, true},     {NULL, NULL, PS_UNIT_NONE, false}};

#define DOC                                                  \
    "{\"items\":["                                           \
    "{\"name\":\"a\",\"bytes\":{\"values\":2048},"           \
    "\"updater\":{\"name\":\"sgd\",\"alpha\":0.1,\"l1\":0}," \
    "\"workers\":[1,2,3],\"note\":\"x,\\\"y\\\"\\tz\"},"     \
    "{\"name\":\"\xC3\xA4\",\"bytes\":5,\"updater\":\"add\",\"workers\":7}]}"

typedef struct capture {
    char *out, *err;
    size_t out_size, err_size;
    ps_out_t is;
} capture_t;

static void start(capture_t *self, ps_format_t format)
{
    *self = (capture_t){.is.format = format};
    self->is.out = open_memstream(&self->out, &self->out_size);
    self->is.err = open_memstream(&self->err, &self->err_size);
}

static void stop(capture_t *self, const char *out, const char *err)
{
    cr_assert_eq(ps_out_finish(&self->is, NULL), PSD_OK);
    (void)fclose(self->is.out);
    (void)fclose(self->is.err);
    cr_assert_str_eq(self->out, out);
    cr_assert_str_eq(self->err, err);
    free(self->out);
    free(self->err);
}

static void check_list(ps_format_t format, const char *want)
{
    json_t *doc = json_loads(DOC, 0, NULL);
    capture_t capture;

    cr_assert_not_null(doc);
    start(&capture, format);
    ps_out_list(&capture.is, doc, "items", COLUMNS);
    stop(&capture, want, "");
    json_decref(doc);
}

Test(output, lists_in_every_format)
{
    check_list(PS_FORMAT_TABLE, "NAME  SIZE   RULE\n"
                                "a     2 KiB  sgd:alpha=0.1,l1=0\n"
                                "\xC3\xA4     5 B    add\n");
    check_list(PS_FORMAT_WIDE, "NAME  SIZE   RULE                WORKERS  NOTE\n"
                               "a     2 KiB  sgd:alpha=0.1,l1=0  3        x,\"y\" z\n"
                               "\xC3\xA4     5 B    add                 7        -\n");
    check_list(PS_FORMAT_CSV, "name,bytes.values,updater,workers,note\n"
                              "a,2048,\"sgd:alpha=0.1,l1=0\",3,\"x,\"\"y\"\"\tz\"\n"
                              "\xC3\xA4,5,add,7,\n");
    check_list(PS_FORMAT_TSV, "name\tbytes.values\tupdater\tworkers\tnote\n"
                              "a\t2048\tsgd:alpha=0.1,l1=0\t3\tx,\"y\"\\tz\n"
                              "\xC3\xA4\t5\tadd\t7\t\n");
    check_list(PS_FORMAT_NAME, "a\n\xC3\xA4\n");
    check_list(PS_FORMAT_JSON, "{\"schema_version\":1,\"items\":["
                               "{\"name\":\"a\",\"bytes\":{\"values\":2048},"
                               "\"updater\":{\"name\":\"sgd\",\"alpha\":0.1,"
                               "\"l1\":0},\"workers\":[1,2,3],"
                               "\"note\":\"x,\\\"y\\\"\\tz\"},"
                               "{\"name\":\"\xC3\xA4\",\"bytes\":5,"
                               "\"updater\":\"add\",\"workers\":7}]}\n");
}

Test(output, jsonl_is_one_document_a_line)
{
    json_t *doc = json_loads("{\"items\":[{\"a\":1},{\"a\":2}]}", 0, NULL);
    capture_t capture;

    start(&capture, PS_FORMAT_JSONL);
    ps_out_list(&capture.is, doc, "items", COLUMNS);
    stop(&capture,
         "{\"schema_version\":1,\"a\":1}\n"
         "{\"schema_version\":1,\"a\":2}\n",
         "");
    json_decref(doc);
}

Test(output, an_object_is_lines_or_one_row)
{
    json_t *doc = json_loads("{\"name\":\"w\",\"bytes\":1024}", 0, NULL);
    capture_t capture;

    start(&capture, PS_FORMAT_TABLE);
    ps_out_object(&capture.is, doc, COLUMNS);
    stop(&capture, "NAME  w\nSIZE  1 KiB\n", "");
    start(&capture, PS_FORMAT_CSV);
    ps_out_object(&capture.is, doc, COLUMNS);
    stop(&capture, "name,bytes.values,updater,workers,note\nw,1024,,,\n", "");
    start(&capture, PS_FORMAT_NAME);
    ps_out_object(&capture.is, doc, COLUMNS);
    stop(&capture, "w\n", "");
    json_decref(doc);
}

Test(output, an_empty_list_still_has_its_titles)
{
    json_t *doc = json_loads("{}", 0, NULL);
    capture_t capture;

    start(&capture, PS_FORMAT_TABLE);
    ps_out_list(&capture.is, doc, "items", COLUMNS);
    stop(&capture, "NAME  SIZE  RULE\n", "");
    json_decref(doc);
}

Test(output, errors_are_a_line_or_an_object)
{
    json_t *details = json_loads("{\"table\":\"w\"}", 0, NULL);
    capture_t capture;

    start(&capture, PS_FORMAT_CSV);
    ps_out_error(&capture.is, PSD_NO_TABLE, "table \"w\" does not exist", details);
    stop(&capture, "",
         "pscli: E2003 table \"w\" does not exist; \"pscli table list\" shows "
         "those that do\n");
    start(&capture, PS_FORMAT_JSON);
    ps_out_error(&capture.is, PSD_NO_TABLE, "table \"w\" does not exist", details);
    stop(&capture,
         "{\"schema_version\":1,\"error\":{\"code\":\"E2003\",\"exit\":5,"
         "\"message\":\"table \\\"w\\\" does not exist\","
         "\"hint\":\"\\\"pscli table list\\\" shows those that do\","
         "\"details\":{\"table\":\"w\"}}}\n",
         "");
    /* A hint that only points at the message is not worth its place. */
    start(&capture, PS_FORMAT_TABLE);
    ps_out_error(&capture.is, PSD_INVALID, "rows is 0", NULL);
    stop(&capture, "", "pscli: E1001 rows is 0\n");
    start(&capture, PS_FORMAT_TABLE);
    ps_out_error(&capture.is, PSD_IO, "x cannot be read", NULL);
    stop(&capture, "", "pscli: E1003 x cannot be read; check disk and permissions\n");
    start(&capture, PS_FORMAT_TABLE);
    ps_out_error(&capture.is, PSD_FAILED, "not dropped", NULL);
    stop(&capture, "", "pscli: E1000 not dropped\n");
    start(&capture, PS_FORMAT_TABLE);
    ps_out_error(&capture.is, PSD_USAGE, "did you mean \"x\"?", NULL);
    stop(&capture, "", "pscli: E5001 did you mean \"x\"? --help shows examples\n");
    json_decref(details);
}

Test(output, quiet_keeps_words_back)
{
    capture_t capture;

    start(&capture, PS_FORMAT_TABLE);
    ps_say(&capture.is, "%d words", 2);
    stop(&capture, "", "2 words\n");
    start(&capture, PS_FORMAT_TABLE);
    capture.is.quiet = true;
    ps_say(&capture.is, "%d words", 2);
    stop(&capture, "", "");
}

Test(output, a_full_disk_is_an_error)
{
    psd_error_t *err = psd_error_new();
    ps_out_t out = {.out = fopen("/dev/full", "w"), .err = stderr};

    cr_assert_not_null(out.out);
    ps_print(out.out, "x");
    cr_assert_eq(ps_out_finish(&out, err), PSD_IO);
    (void)fclose(out.out);
    psd_error_destroy(&err);
}

Test(output, formats_have_names)
{
    ps_format_t format = PS_FORMAT_TABLE;

    cr_assert(ps_format_parse("jsonl", &format));
    cr_assert_eq(format, PS_FORMAT_JSONL);
    cr_assert(ps_format_is_json(format));
    cr_assert_not(ps_format_is_csv(format));
    cr_assert_not(ps_format_parse("xml", &format));
    cr_assert_eq(format, PS_FORMAT_JSONL);
}

Test(output, paths_lead_into_objects)
{
    json_t *doc = json_loads("{\"a\":{\"b\":{\"c\":1}},\"d\":2}", 0, NULL);

    cr_assert_eq(json_integer_value(ps_cell_find(doc, "a.b.c")), 1);
    cr_assert_eq(json_integer_value(ps_cell_find(doc, "x.y|d")), 2);
    cr_assert_null(ps_cell_find(doc, "a.x"));
    cr_assert_null(ps_cell_find(doc, "d.e"));
    json_decref(doc);
}

Test(output, control_bytes_do_not_reach_a_table)
{
    json_t *doc = json_loads("{\"note\":\"a\\u001b[2Jb\\nc\"}", 0, NULL);
    char *text = ps_cell_text(doc, &COLUMNS[4]);

    cr_assert_str_eq(text, "a [2Jb c");
    free(text);
    json_decref(doc);
}

static void check_shape(ps_format_t format, const char *columns, const char *sort, bool no_headers,
                        const char *want)
{
    json_t *doc = json_loads(DOC, 0, NULL);
    capture_t capture;

    cr_assert_not_null(doc);
    start(&capture, format);
    capture.is.columns = columns;
    capture.is.sort = sort;
    capture.is.no_headers = no_headers;
    ps_out_list(&capture.is, doc, "items", COLUMNS);
    stop(&capture, want, "");
    json_decref(doc);
}

Test(output, columns_are_chosen_and_items_sorted)
{
    check_shape(PS_FORMAT_TABLE, "workers,NAME", NULL, false,
                "WORKERS  NAME\n"
                "3        a\n"
                "7        \xC3\xA4\n");
    check_shape(PS_FORMAT_TABLE, "NAME", "bytes.values", true, "\xC3\xA4\na\n");
    check_shape(PS_FORMAT_TABLE, "name,note", "-workers", true,
                "\xC3\xA4  -\n"
                "a  x,\"y\" z\n");
    check_shape(PS_FORMAT_CSV, "name,workers", "-NAME", false, "name,workers\n\xC3\xA4,7\na,3\n");
    check_shape(PS_FORMAT_NAME, NULL, "note", false, "a\n\xC3\xA4\n"); /* without a value: last */
    check_shape(PS_FORMAT_JSON, "name", "-workers", false,
                "{\"schema_version\":1,\"items\":["
                "{\"name\":\"\xC3\xA4\",\"bytes\":5,\"updater\":\"add\",\"workers\":7},"
                "{\"name\":\"a\",\"bytes\":{\"values\":2048},"
                "\"updater\":{\"name\":\"sgd\",\"alpha\":0.1,\"l1\":0},"
                "\"workers\":[1,2,3],\"note\":\"x,\\\"y\\\"\\tz\"}]}\n");
}

Test(output, a_column_that_is_not_there_is_an_error)
{
    json_t *doc = json_loads(DOC, 0, NULL);
    char wrong[PS_OUT_WRONG_SIZE] = "";
    psd_error_t *err = psd_error_new();
    capture_t capture;

    start(&capture, PS_FORMAT_TABLE);
    capture.is.columns = "name,nope";
    capture.is.wrong = wrong;
    ps_out_list(&capture.is, doc, "items", COLUMNS);
    cr_assert_eq(ps_out_finish(&capture.is, err), PSD_USAGE);
    cr_assert_str_eq(psd_error_text(err),
                     "--columns: no column \"nope\"; allowed: NAME, SIZE, RULE, WORKERS, NOTE");
    wrong[0] = '\0';
    capture.is.columns = NULL;
    capture.is.sort = "-nope";
    psd_error_clear(err);
    ps_out_list(&capture.is, doc, "items", COLUMNS);
    cr_assert_eq(ps_out_finish(&capture.is, err), PSD_USAGE);
    cr_assert_str_eq(psd_error_text(err),
                     "--sort: no column \"nope\"; allowed: NAME, SIZE, RULE, WORKERS, NOTE");
    capture.is.wrong = NULL;
    capture.is.sort = NULL;
    (void)fclose(capture.is.out);
    (void)fclose(capture.is.err);
    cr_assert_eq(capture.out_size, 0);
    free(capture.out);
    free(capture.err);
    psd_error_destroy(&err);
    json_decref(doc);
}
