/* SPDX-License-Identifier: Apache-2.0 */
/* A picture of a suite. */
#include "cli/bench/bench_picture.h"

#include <string.h>

#include "base/alloc.h"
#include "cli/output/new_file.h"
#include "cli/output/svg.h"
#include "cli/run/cli.h"

#define WIDTH 900.0
#define MARGIN 20.0
#define BARS_X 190.0 /* where bars begin */
#define BARS_WIDTH 500.0
#define BAR_STEP 15.0
#define BAR_HEIGHT 11.0
#define GROUP_GAP 6.0
#define HEAD_HEIGHT 40.0 /* of a panel */
#define TOP_HEIGHT 74.0
#define BOTTOM_HEIGHT 34.0
#define TEXT_WIDTH 150.0 /* of a bar's figures */
#define FAR                                                          \
    1.6 /* limits further out than this many longest bars are arrows \
         */

/* One panel: the figures of a section, and what they are drawn by. */
typedef struct panel {
    const char *section;
    const char *head;
    const char *value; /* member that gives a bar its length */
    const char *unit;
    double scale;      /* of the value, to the unit */
    const char *vary;  /* member that tells its groups apart, beside "what" */
    const char *words; /* text after that member's number */
    json_int_t floats; /* only figures with this number; 0: all */
    int waiting;       /* 1: only figures that wait for each request; -1:
                        * only the others; 0: all */
    bool less;         /* shorter bars are better */
} panel_t;

static const panel_t PANELS[] = {
    {"dense", "One dense row of 4 MB", "goodput_bytes_s", "GB/s", 1e-9, "in_flight", "in flight", 0,
     0, false},
    {"sparse", "100,000 of 1 M random keys, 1 float each", "keys_s", "M keys/s", 1e-6, "in_flight",
     "in flight", 1, 0, false},
    {"sparse", "100,000 of 1 M random keys, 64 floats each", "goodput_bytes_s", "GB/s", 1e-9,
     "in_flight", "in flight", 64, 0, false},
    {"small", "Small requests: 1 key, 16 floats", "requests_s", "M requests/s", 1e-6, "in_flight",
     "in flight", 0, -1, false},
    {"small", "One small request at a time: p50 (less is better)", "p50_s", "us", 1e6, "in_flight",
     "in flight", 0, 1, true},
    {"width", "10,000 of 100,000 keys, by floats of a row", "goodput_bytes_s", "GB/s", 1e-9,
     "floats", "floats", 0, 0, false},
    {"rows", "1,000 keys of 1 float, by rows of the table", "keys_s", "M keys/s", 1e-6, "rows",
     "rows", 0, 0, false},
    {"workers", "10,000 keys of 16 floats, by workers", "keys_s", "M keys/s", 1e-6, "workers",
     "workers", 0, 0, false},
    {"shards", "10,000 keys of 16 floats, by shards", "keys_s", "M keys/s", 1e-6, "shards",
     "shards", 0, 0, false},
};
#define N_PANELS (sizeof PANELS / sizeof PANELS[0])

/* The scale of a panel's figures. */
typedef struct extent {
    size_t n_bars;
    size_t n_groups;
    double longest; /* of a bar */
    double full;    /* value at the right end */
} extent_t;

static json_int_t integer(const json_t *figure, const char *key)
{
    return json_integer_value(json_object_get(figure, key));
}

static double number(const json_t *figure, const char *key)
{
    return json_number_value(json_object_get(figure, key));
}

static bool belongs(const panel_t *panel, const json_t *figure)
{
    bool waits = integer(figure, "in_flight") == 1;

    return strcmp(ps_json_text(figure, "section"), panel->section) == 0 &&
           (panel->floats == 0 || panel->floats == integer(figure, "floats")) &&
           (panel->waiting == 0 || waits == (panel->waiting > 0));
}

/* The limit in the panel's unit. */
static double limit_of(const panel_t *panel, const json_t *figure)
{
    double limit = number(figure, "limit_value") * panel->scale;
    bool in_bytes = strstr(ps_json_text(figure, "limit"), "bytes") != NULL;
    double bytes = number(figure, "bytes");

    /* A limit in bytes is also a limit in keys. */
    if (strcmp(panel->value, "keys_s") == 0 && in_bytes && bytes > 0) {
        return limit / bytes * number(figure, "keys");
    }
    return limit;
}

static bool same_group(const panel_t *panel, const json_t *a, const json_t *b)
{
    return a != NULL && strcmp(ps_json_text(a, "what"), ps_json_text(b, "what")) == 0 &&
           integer(a, panel->vary) == integer(b, panel->vary);
}

static extent_t measure(const panel_t *panel, const json_t *figures)
{
    extent_t extent = {0};
    const json_t *before = NULL;
    const json_t *figure = NULL;
    size_t i = 0;

    json_array_foreach(figures, i, figure)
    {
        double value = number(figure, panel->value) * panel->scale;

        if (!belongs(panel, figure)) {
            continue;
        }
        extent.n_bars++;
        extent.n_groups += same_group(panel, before, figure) ? 0 : 1;
        extent.longest = value > extent.longest ? value : extent.longest;
        before = figure;
    }
    extent.full = extent.longest;
    json_array_foreach(figures, i, figure)
    {
        double limit = belongs(panel, figure) ? limit_of(panel, figure) : 0;

        if (limit > extent.full && limit < extent.longest * FAR) {
            extent.full = limit;
        }
    }
    return extent;
}

static double height_of(const extent_t *extent)
{
    return extent->n_bars == 0 ? 0
                               : HEAD_HEIGHT + (double)extent->n_bars * BAR_STEP +
                                     (double)extent->n_groups * GROUP_GAP;
}

static ps_svg_class_t class_of(const char *transport)
{
    static const char *const ORDER[] = {"tcp", "ipc", "lane"};

    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(transport, ORDER[i]) == 0) {
            return (ps_svg_class_t)(PS_SVG_BAR_0 + i);
        }
    }
    return PS_SVG_BAR_3;
}

/* "1", "100 K", "10 M" */
static void format_count(json_int_t n, char ret_text[32])
{
    bool millions = n >= 1000000 && n % 1000000 == 0;
    bool thousands = n >= 1000 && n % 1000 == 0;
    json_int_t shown = millions ? n / 1000000 : thousands ? n / 1000 : n;

    (void)snprintf(ret_text, 32, "%lld%s", (long long)shown,
                   millions    ? " M"
                   : thousands ? " K"
                               : "");
}

static void draw_bar(FILE *file, const panel_t *panel, const extent_t *extent, const json_t *figure,
                     double y)
{
    double value = number(figure, panel->value) * panel->scale;
    double limit = limit_of(panel, figure);
    double step = extent->full > 0 ? BARS_WIDTH / extent->full : 0;
    double end = BARS_X + value * step;
    char text[96];
    char ratio[32];
    double share = number(figure, "ratio");

    ps_svg_bar(file, BARS_X, y, value * step, BAR_HEIGHT,
               class_of(ps_json_text(figure, "transport")));
    if (limit > 0 && limit <= extent->full) {
        double x = BARS_X + limit * step;

        ps_svg_line(file, x, y - 1, x, y + BAR_HEIGHT + 1, PS_SVG_LIMIT);
        /* The text follows the bar, and never crosses the limit. */
        end = x > end && x < end + TEXT_WIDTH ? x : end;
    }
    if (panel->less) {
        (void)snprintf(ratio, sizeof ratio, ", %.2f x limit", share);
    } else {
        (void)snprintf(ratio, sizeof ratio, ", %.*f %% of limit", share < 0.1 ? 1 : 0, share * 100);
    }
    (void)snprintf(text, sizeof text, "%.3g %s%s", value, panel->unit, limit > 0 ? ratio : "");
    ps_svg_text(file, end + 6, y + BAR_HEIGHT - 2, PS_SVG_VALUE, PS_SVG_START, text);
}

static void draw_panel(FILE *file, const panel_t *panel, const extent_t *extent,
                       const json_t *figures, double top)
{
    const json_t *before = NULL;
    const json_t *figure = NULL;
    double y = top + HEAD_HEIGHT;
    size_t i = 0;

    ps_svg_line(file, MARGIN, top + 8, WIDTH - MARGIN, top + 8, PS_SVG_RULE);
    ps_svg_text(file, MARGIN, top + 28, PS_SVG_HEAD, PS_SVG_START, panel->head);
    json_array_foreach(figures, i, figure)
    {
        char count[32];
        char label[96];

        if (!belongs(panel, figure)) {
            continue;
        }
        if (!same_group(panel, before, figure)) {
            y += before == NULL ? 0 : GROUP_GAP;
            format_count(integer(figure, panel->vary), count);
            (void)snprintf(label, sizeof label, "%s, %s %s", ps_json_text(figure, "what"), count,
                           panel->words);
            ps_svg_text(file, BARS_X - 10, y + BAR_HEIGHT - 1, PS_SVG_LABEL, PS_SVG_END, label);
        }
        draw_bar(file, panel, extent, figure, y);
        y += BAR_STEP;
        before = figure;
    }
}

static void draw_top(FILE *file, const json_t *doc)
{
    static const char *const NAMES[] = {"tcp", "ipc", "lane (shared memory)"};
    double x = MARGIN;
    char text[160];

    ps_svg_text(file, MARGIN, 28, PS_SVG_TITLE, PS_SVG_START,
                "psd beside the limits of its machine");
    (void)snprintf(text, sizeof text,
                   "medians of %llu repeats of %.0f ms, %llu processors, client "
                   "and psd on one machine",
                   (unsigned long long)ps_json_u64(doc, "suite.repeats"),
                   json_number_value(ps_json_at(doc, "suite.duration_s")) * 1000,
                   (unsigned long long)ps_json_u64(doc, "suite.processors"));
    ps_svg_text(file, MARGIN, 46, PS_SVG_FAINT, PS_SVG_START, text);
    for (unsigned i = 0; i < 3; i++) {
        ps_svg_bar(file, x, 56, 14, 10, (ps_svg_class_t)(PS_SVG_BAR_0 + i));
        ps_svg_text(file, x + 19, 65, PS_SVG_LABEL, PS_SVG_START, NAMES[i]);
        x += 70;
    }
    x += 90;
    ps_svg_line(file, x, 55, x, 67, PS_SVG_LIMIT);
    ps_svg_text(file, x + 8, 65, PS_SVG_LABEL, PS_SVG_START,
                "the machine's limit for that bar, measured in alternation with it");
}

void ps_bench_picture_draw(FILE *file, const json_t *doc)
{
    const json_t *figures = json_object_get(doc, "figures");
    extent_t extents[N_PANELS];
    double height = TOP_HEIGHT + BOTTOM_HEIGHT;
    double y = TOP_HEIGHT;

    for (size_t i = 0; i < N_PANELS; i++) {
        extents[i] = measure(&PANELS[i], figures);
        height += height_of(&extents[i]);
    }
    ps_svg_begin(file, WIDTH, height, "Figures of pscli bench suite");
    draw_top(file, doc);
    for (size_t i = 0; i < N_PANELS; i++) {
        if (extents[i].n_bars > 0) {
            draw_panel(file, &PANELS[i], &extents[i], figures, y);
            y += height_of(&extents[i]);
        }
    }
    ps_svg_text(
        file, MARGIN, height - 12, PS_SVG_FAINT, PS_SVG_START,
        "A limit far to the right is shown only as a share. Drawn by pscli bench suite --svg.");
    ps_svg_end(file);
}

psd_status_t ps_bench_picture_write(const char *path, const json_t *doc, psd_error_t *err)
{
    PSD_AUTO(ps_new_file_done) ps_new_file_t file = {.file = NULL};
    uint64_t bytes = 0;
    psd_status_t rc = ps_new_file_open(&file, path, 0666, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_bench_picture_draw(file.file, doc);
    return ps_new_file_commit(&file, &bytes, err);
}
