/* SPDX-License-Identifier: Apache-2.0 */
/* cli/bench/bench_picture.h, svg.h, bench_plan.h, bench_figure.h: what a suite
 * shows. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "cli/bench/bench_figure.h"
#include "cli/bench/bench_picture.h"
#include "cli/bench/bench_plan.h"
#include "cli/output/svg.h"

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    while ((text = strstr(text, part)) != NULL) {
        text++;
        n++;
    }
    return n;
}

/* The picture of a document; the caller frees it. */
static char *draw(const char *doc_text)
{
    json_t *doc = json_loads(doc_text, 0, NULL);
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    cr_assert_not_null(doc);
    cr_assert_not_null(file);
    ps_bench_picture_draw(file, doc);
    cr_assert_eq(fclose(file), 0);
    json_decref(doc);
    return text;
}

Test(svg, texts_are_escaped)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    cr_assert_not_null(file);
    ps_svg_begin(file, 10, 20, "a<b");
    ps_svg_text(file, 1, 2, PS_SVG_LABEL, PS_SVG_END, "x&\"y\">\n");
    ps_svg_end(file);
    cr_assert_eq(fclose(file), 0);
    cr_assert_not_null(strstr(text, "<title>a&lt;b</title>"));
    cr_assert_not_null(strstr(text, ">x&amp;&quot;y&quot;&gt; </text>"));
    cr_assert_not_null(strstr(text, "viewBox=\"0 0 10 20\""));
    cr_assert_not_null(strstr(text, "prefers-color-scheme:dark"));
    free(text);
}

Test(bench_picture, a_bar_for_each_figure_and_its_limit)
{
    char *text = draw("{\"figures\":["
                      "{\"section\":\"dense\",\"what\":\"push\",\"transport\":\"tcp\","
                      "\"in_flight\":1,\"bytes\":4194304,\"goodput_bytes_s\":2e9,"
                      "\"limit\":\"l_bytes_s\",\"limit_value\":3e9,\"ratio\":0.66},"
                      "{\"section\":\"dense\",\"what\":\"push\",\"transport\":\"lane\","
                      "\"in_flight\":1,\"bytes\":4194304,\"goodput_bytes_s\":4e9,"
                      "\"limit\":\"l_bytes_s\",\"limit_value\":8e9,\"ratio\":0.5},"
                      "{\"section\":\"strange\",\"what\":\"push\"}]}");

    /* The legend has one of each, too. */
    cr_assert_eq(count(text, "<rect class=\"bar0\""), 2);
    cr_assert_eq(count(text, "<rect class=\"bar2\""), 2);
    /* 8 GB/s is too far out for a line. */
    cr_assert_eq(count(text, "<line class=\"limit\""), 2);
    cr_assert_not_null(strstr(text, "2 GB/s, 66 % of limit"));
    cr_assert_not_null(strstr(text, "4 GB/s, 50 % of limit"));
    cr_assert_eq(count(text, ">push, 1 in flight<"), 1);
    cr_assert_null(strstr(text, "strange"));
    cr_assert_not_null(strstr(text, "</svg>"));
    free(text);
}

Test(bench_picture, times_are_compared_by_how_often_the_limit_fits)
{
    char *text = draw("{\"figures\":["
                      "{\"section\":\"small\",\"what\":\"pull\",\"transport\":\"tcp\","
                      "\"in_flight\":1,\"p50_s\":9e-5,\"limit\":\"t\","
                      "\"limit_value\":6e-5,\"ratio\":1.5}]}");

    cr_assert_not_null(strstr(text, "90 us, 1.50 x limit"));
    free(text);
}

Test(bench_picture, nothing_to_draw_is_a_picture_too)
{
    char *none = draw("{}");
    char *empty = draw("{\"figures\":[]}");

    cr_assert_not_null(strstr(none, "</svg>"));
    cr_assert_not_null(strstr(empty, "</svg>"));
    free(none);
    free(empty);
}

Test(bench_plan, every_line_can_be_divided)
{
    const ps_bench_line_t *line = NULL;

    for (size_t i = 0; (line = ps_bench_plan_at(i)) != NULL; i++) {
        for (uint64_t divide = 1; divide < 10000000; divide *= 7) {
            ps_bench_shape_t shape = ps_bench_plan_shape(line, 0, PS_BENCH_PUSH, divide);

            cr_assert_gt(shape.n_cols, 0);
            cr_assert_gt(shape.n_keys, 0);
            cr_assert_geq(shape.n_rows, shape.n_keys);
            cr_assert_gt(shape.in_flight, 0);
        }
        cr_assert(ps_bench_plan_names(NULL, line->section));
        cr_assert(ps_bench_plan_names(line->section, line->section));
        cr_assert_eq(ps_bench_plan_check(line->section, NULL), PSD_OK);
    }
}

Test(bench_plan, sections_by_name)
{
    cr_assert(ps_bench_plan_names("small,dense", "dense"));
    cr_assert_not(ps_bench_plan_names("small,dense", "den"));
    cr_assert_not(ps_bench_plan_names("", "dense"));
    cr_assert_eq(ps_bench_plan_check("small,dense", NULL), PSD_OK);
    cr_assert_eq(ps_bench_plan_check("small,", NULL), PSD_USAGE);
    cr_assert_eq(ps_bench_plan_check("large", NULL), PSD_USAGE);
}

Test(bench_figure, numbers_have_as_many_digits_as_they_deserve)
{
    json_t *small = ps_bench_rounded(12.3456);
    json_t *large = ps_bench_rounded(123456.7);

    cr_assert_float_eq(json_real_value(small), 12.35, 1e-9);
    cr_assert_eq(json_integer_value(large), 123456);
    json_decref(small);
    json_decref(large);
}

/* A case of three repeats, as ps_bench_run_cases leaves it. */
Test(bench_figure, a_figure_is_the_median_of_its_repeats)
{
    double rates[] = {30, 10, 20};
    double limits[] = {4000, 5000, 4500};
    double ratios[] = {0.25, 0.75, 0.5};
    ps_bench_team_t team = {.transport = "tcp", .n = 2};
    ps_bench_case_t one = {.section = "s",
                           .shape = {.kind = PS_BENCH_PULL,
                                     .hash = true,
                                     .n_rows = 1000,
                                     .n_cols = 5,
                                     .n_keys = 100,
                                     .in_flight = 4},
                           .team = &team,
                           .limits = {PS_LIMIT_TCP},
                           .n_limits = 1,
                           .requests_s = {.values = rates, .n = 3},
                           .limit = {.values = limits, .n = 3},
                           .ratio = {.values = ratios, .n = 3}};
    json_t *figures = json_array();
    const json_t *figure = NULL;

    cr_assert_eq(ps_bench_figure_add(figures, &one, NULL), PSD_OK);
    figure = json_array_get(figures, 0);
    cr_assert_str_eq(ps_json_text(figure, "what"), "pull");
    cr_assert_str_eq(ps_json_text(figure, "key_kind"), "hash");
    cr_assert_str_eq(ps_json_text(figure, "limit"), "tcp_loopback_bytes_s");
    cr_assert_eq(ps_json_u64(figure, "bytes"), 2000);
    cr_assert_eq(ps_json_u64(figure, "workers"), 2);
    cr_assert_eq(ps_json_u64(figure, "goodput_bytes_s"), 40000);
    cr_assert_eq(ps_json_u64(figure, "keys_s"), 2000);
    cr_assert_eq(json_number_value(ps_json_at(figure, "requests_s")), 20);
    cr_assert_eq(json_number_value(ps_json_at(figure, "min_requests_s")), 10);
    cr_assert_eq(json_number_value(ps_json_at(figure, "limit_value")), 4500);
    cr_assert_eq(json_number_value(ps_json_at(figure, "ratio")), 0.5);
    cr_assert_null(ps_json_at(figure, "p50_s"));
    json_decref(figures);
}

Test(bench_figure, only_limits_that_were_measured_are_shown)
{
    double values[] = {3, 1, 2};
    ps_bench_series_t limits[PS_LIMIT_COUNT] = {[PS_LIMIT_ADD] = {.values = values, .n = 3}};
    json_t *doc = json_object();
    const json_t *limit = NULL;

    cr_assert_eq(ps_bench_figure_limits(limits, doc, NULL), PSD_OK);
    cr_assert_eq(json_array_size(ps_json_at(doc, "limits")), 1);
    limit = json_array_get(ps_json_at(doc, "limits"), 0);
    cr_assert_str_eq(ps_json_text(limit, "name"), "add_bytes_s");
    cr_assert_eq(json_number_value(ps_json_at(limit, "median")), 2);
    cr_assert_eq(json_number_value(ps_json_at(limit, "max")), 3);
    cr_assert_eq(json_number_value(ps_json_at(doc, "machine.add_bytes_s")), 2);
    cr_assert_eq(json_object_size(ps_json_at(doc, "machine")), 1);
    json_decref(doc);
}
