/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/run/cli.h"
#include "cli/watch/top.h"

static json_t *parse(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);

    cr_assert_not_null(value, "%s", text);
    return value;
}

/* n nodes, tables and jobs; the i-th table was pushed i * 10 rows in 2 s. */
static ps_top_look_t look_of(size_t n, double at_s)
{
    json_t *nodes = json_array();
    json_t *tables = json_array();
    json_t *clocks = json_array();

    for (size_t i = 0; i < n; i++) {
        char name[64];

        (void)snprintf(name, sizeof name, "name-%zu", i);
        (void)json_array_append_new(nodes, json_pack("{s:s,s:s,s:i,s:s}", "name", name, "state",
                                                     i == 1 ? "down" : "up", "shards", 2,
                                                     "endpoint", "tcp://10.0.0.1:7171"));
        (void)json_array_append_new(tables, json_pack("{s:s,s:i,s:{s:i,s:i}}", "name", name,
                                                      "rows_present", 1234, "stats", "pushes", 0,
                                                      "rows_pushed", (int)(at_s * (double)i * 5)));
        (void)json_array_append_new(clocks, json_pack("{s:s,s:s,s:i,s:i,s:i,s:i}", "job", name,
                                                      "state", "running", "max_delay", 0, "workers",
                                                      4, "min", (int)(at_s * 3), "max", 9));
    }
    return (ps_top_look_t){.at_s = at_s,
                           .status = json_pack("{s:{s:s,s:b},s:[s],s:o}", "cluster", "name", "c",
                                               "healthy", 0, "problems", "node name-1 is down",
                                               "nodes", nodes),
                           .tables = json_pack("{s:o}", "tables", tables),
                           .clocks = json_pack("{s:o}", "clocks", clocks)};
}

Test(top, rates_come_from_two_looks)
{
    PSD_AUTO(ps_top_look_done) ps_top_look_t before = look_of(3, 10);
    PSD_AUTO(ps_top_look_done) ps_top_look_t now = look_of(4, 12);
    PSD_AUTO(ps_json_unref) json_t *doc = ps_top_document(&before, &now);
    const json_t *tables = ps_json_at(doc, "tables");

    cr_assert_float_eq(json_number_value(ps_json_at(doc, "interval_s")), 2, 1e-9);
    cr_assert_float_eq(json_number_value(ps_json_at(json_array_get(tables, 2), "rows_pushed_s")),
                       10, 1e-9);
    /* One that was not there before has no rate yet. */
    cr_assert_float_eq(json_number_value(ps_json_at(json_array_get(tables, 3), "rows_pushed_s")), 0,
                       1e-9);
    cr_assert_float_eq(
        json_number_value(ps_json_at(json_array_get(ps_json_at(doc, "jobs"), 0), "clocks_s")), 3,
        1e-9);
}

Test(top, a_counter_that_went_back_has_no_rate)
{
    PSD_AUTO(ps_top_look_done) ps_top_look_t before = look_of(3, 12);
    PSD_AUTO(ps_top_look_done) ps_top_look_t now = look_of(3, 10);
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;

    now.at_s = 14;
    doc = ps_top_document(&before, &now);
    cr_assert_float_eq(json_number_value(ps_json_at(json_array_get(ps_json_at(doc, "tables"), 2),
                                                    "rows_pushed_s")),
                       0, 1e-9);
}

static bool has_line(const ps_top_frame_t *frame, const char *text)
{
    for (size_t i = 0; i < frame->n; i++) {
        if (strstr(frame->lines[i].text, text) != NULL) {
            return true;
        }
    }
    return false;
}

Test(top, fits_every_screen)
{
    PSD_AUTO(ps_top_look_done) ps_top_look_t before = look_of(30, 10);
    PSD_AUTO(ps_top_look_done) ps_top_look_t now = look_of(30, 12);
    PSD_AUTO(ps_json_unref) json_t *doc = ps_top_document(&before, &now);
    ps_top_frame_t *frame = malloc(sizeof *frame);

    for (size_t width = 40; width <= 330; width += 7) {
        for (size_t height = 10; height <= 120; height += 3) {
            ps_top_draw(doc, width, height, PS_TOP_ALL, 0, frame);
            cr_assert_leq(frame->n, height);
            for (size_t i = 0; i < frame->n; i++) {
                cr_assert_leq(strlen(frame->lines[i].text), width);
            }
            cr_assert(has_line(frame, "NODE"));
            cr_assert(has_line(frame, "name-1 "), "the node that is down, %zu x %zu", width,
                      height);
        }
    }
    free(frame);
}

Test(top, shows_three_nodes_at_80_by_24_and_counts_what_it_leaves_out)
{
    PSD_AUTO(ps_top_look_done) ps_top_look_t before = look_of(3, 10);
    PSD_AUTO(ps_top_look_done) ps_top_look_t now = look_of(3, 12);
    PSD_AUTO(ps_top_look_done) ps_top_look_t many = look_of(30, 12);
    PSD_AUTO(ps_json_unref) json_t *doc = ps_top_document(&before, &now);
    PSD_AUTO(ps_json_unref) json_t *all = ps_top_document(NULL, &many);
    ps_top_frame_t *frame = malloc(sizeof *frame);

    ps_top_draw(doc, 80, 24, PS_TOP_ALL, 0, frame);
    cr_assert(has_line(frame, "name-0  up"));
    cr_assert(has_line(frame, "name-1  down"));
    cr_assert(has_line(frame, "name-2  up"));
    cr_assert(has_line(frame, "JOB"));
    cr_assert(has_line(frame, "! node name-1 is down"));
    cr_assert(!has_line(frame, "more"));

    ps_top_draw(all, 80, 24, PS_TOP_ALL, 0, frame);
    cr_assert(has_line(frame, "more nodes"));
    cr_assert(has_line(frame, "more tables"));
    cr_assert(has_line(frame, "more jobs"));
    ps_top_draw(all, 80, 24, PS_TOP_JOBS, 28, frame);
    cr_assert(has_line(frame, "name-9"));
    cr_assert(has_line(frame, "... 28 more jobs"));
    ps_top_draw(all, 80, 24, PS_TOP_JOBS, 1000, frame);
    cr_assert(has_line(frame, "... 29 more jobs"));
    free(frame);
}

Test(top, an_empty_cluster_has_a_head)
{
    PSD_AUTO(ps_json_unref) json_t *doc = parse("{\"cluster\":{\"name\":\"c\",\"healthy\":true}}");
    ps_top_frame_t *frame = malloc(sizeof *frame);

    ps_top_draw(doc, 80, 24, PS_TOP_ALL, 0, frame);
    cr_assert_eq(frame->n, 1);
    ps_top_draw(doc, 80, 24, PS_TOP_TABLES, 5, frame);
    cr_assert(has_line(frame, "TABLE"));
    free(frame);
}
