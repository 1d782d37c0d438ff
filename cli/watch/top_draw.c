/* SPDX-License-Identifier: Apache-2.0 */
/* A document as lines of text. */
#include "cli/watch/top.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/output/json_text.h"
#include "cli/run/cli.h"

#define COLUMNS_MAX 9
#define CELL_SIZE 96
#define GAP 2          /* spaces between columns */
#define PROBLEMS_MAX 3 /* lines for what is wrong */
#define ROWS_LEAST 3   /* of a list, even where others need room */
#define LINES_BESIDE 3 /* of a list that is cut: a blank one, the title, how many more */
#define N_LISTS 3
#define WIDTH_LEAST 40
#define HEIGHT_LEAST 10

typedef void (*cell_t)(const json_t *item, const char *path, char ret_text[CELL_SIZE]);

typedef struct column {
    const char *title; /* NULL ends a list */
    const char *path;
    cell_t cell;
    bool right; /* numbers stand at the right */
} column_t;

/* ---- lines ---- */

static ps_top_line_t *add(ps_top_frame_t *frame, size_t height, ps_top_style_t style)
{
    ps_top_line_t *line = NULL;

    if (frame->n < height) {
        line = &frame->lines[frame->n++];
        line->style = style;
        line->text[0] = '\0';
    }
    return line;
}

/* Cuts at the width of the screen. */
PSD_PRINTF(5, 6)
static void say(ps_top_frame_t *frame, size_t width, size_t height, ps_top_style_t style,
                const char *format, ...)
{
    ps_top_line_t *line = add(frame, height, style);
    va_list args;

    if (line != NULL) {
        va_start(args, format);
        (void)vsnprintf(line->text, width + 1, format, args);
        va_end(args);
    }
}

/* ---- cells ---- */

static void cell_text(const json_t *item, const char *path, char ret_text[CELL_SIZE])
{
    (void)snprintf(ret_text, CELL_SIZE, "%s", ps_json_text(item, path));
}

static void cell_number(const json_t *item, const char *path, char ret_text[CELL_SIZE])
{
    (void)snprintf(ret_text, CELL_SIZE, "%" PRIu64, ps_json_u64(item, path));
}

static void cell_bytes(const json_t *item, const char *path, char ret_text[CELL_SIZE])
{
    char text[PS_NUMBER_SIZE];

    ps_bytes_format((double)ps_json_u64(item, path), text);
    (void)snprintf(ret_text, CELL_SIZE, "%s", text);
}

static void cell_seconds(const json_t *item, const char *path, char ret_text[CELL_SIZE])
{
    char text[PS_NUMBER_SIZE];

    ps_seconds_format(json_number_value(ps_json_at(item, path)), text);
    (void)snprintf(ret_text, CELL_SIZE, "%s", text);
}

/* 999, 1.2k, 34.5M */
static void cell_rate(const json_t *item, const char *path, char ret_text[CELL_SIZE])
{
    static const char *const UNITS[] = {"", "k", "M", "G", "T"};
    double value = json_number_value(ps_json_at(item, path));
    size_t unit = 0;

    while (value >= 1000 && unit + 1 < sizeof UNITS / sizeof UNITS[0]) {
        value /= 1000;
        unit++;
    }
    (void)snprintf(ret_text, CELL_SIZE, value >= 100 || value == 0 ? "%.0f%s" : "%.1f%s", value,
                   UNITS[unit]);
}

static void cell_delay(const json_t *item, const char *path, char ret_text[CELL_SIZE])
{
    int64_t delay = (int64_t)json_integer_value(ps_json_at(item, path));

    if (delay > 0) {
        (void)snprintf(ret_text, CELL_SIZE, "SSP(%" PRId64 ")", delay);
    } else {
        (void)snprintf(ret_text, CELL_SIZE, "%s", delay == 0 ? "BSP" : "ASP");
    }
}

static const column_t NODES[] = {{"NODE", "name", cell_text, false},
                                 {"STATE", "state", cell_text, false},
                                 {"SHARDS", "shards", cell_number, true},
                                 {"PRIMARY", "partitions.primary", cell_number, true},
                                 {"REPLICA", "partitions.replica", cell_number, true},
                                 {"MEMORY", "bytes", cell_bytes, true},
                                 {"TAIL", "tail_bytes", cell_bytes, true},
                                 {"SEEN", "last_seen_s", cell_seconds, true},
                                 {"ENDPOINT", "endpoint", cell_text, false},
                                 {NULL, NULL, NULL, false}};
static const column_t TABLES[] = {{"TABLE", "name", cell_text, false},
                                  {"PUSH/S", "pushes_s", cell_rate, true},
                                  {"PULL/S", "pulls_s", cell_rate, true},
                                  {"ROWS IN/S", "rows_pushed_s", cell_rate, true},
                                  {"ROWS OUT/S", "rows_pulled_s", cell_rate, true},
                                  {"ROWS", "rows_present", cell_rate, true},
                                  {"MEMORY", "bytes", cell_bytes, true},
                                  {NULL, NULL, NULL, false}};
static const column_t JOBS[] = {{"JOB", "job", cell_text, false},
                                {"STATE", "state", cell_text, false},
                                {"MODE", "max_delay", cell_delay, false},
                                {"WORKERS", "workers", cell_number, true},
                                {"WAITING", "waiting", cell_number, true},
                                {"MIN", "min", cell_number, true},
                                {"MAX", "max", cell_number, true},
                                {"CLOCKS/S", "clocks_s", cell_rate, true},
                                {NULL, NULL, NULL, false}};

/* ---- lists ---- */

typedef struct list {
    const json_t *items; /* borrowed */
    const column_t *columns;
    const char *name;
    size_t n;             /* items */
    size_t room;          /* lines for them, the title not counted */
    size_t first;         /* item that is shown first */
    const json_t **order; /* owned; the items as they are shown */
} list_t;

/* What is busy, or not well, first; then by name. */
static double weight(const json_t *item)
{
    const char *state = ps_json_text(item, "state");
    double is_ill = json_is_true(ps_json_at(item, "rows_lost")) ||
                            (state[0] != '\0' && strcmp(state, "up") != 0 &&
                             strcmp(state, "running") != 0 && ps_json_at(item, "shards") != NULL)
                        ? 1e18
                        : 0;
    double is_running = strcmp(state, "running") == 0 ? 1e15 : 0;

    return is_ill + is_running + json_number_value(ps_json_at(item, "rows_pushed_s")) +
           json_number_value(ps_json_at(item, "rows_pulled_s")) +
           json_number_value(ps_json_at(item, "clocks_s"));
}

static const char *name_of(const json_t *item)
{
    const char *name = ps_json_text(item, "name");

    return name[0] != '\0' ? name : ps_json_text(item, "job");
}

static int compare(const void *a, const void *b)
{
    const json_t *one = *(const json_t *const *)a;
    const json_t *two = *(const json_t *const *)b;
    double x = weight(one);
    double y = weight(two);

    return x > y ? -1 : x < y ? 1 : strcmp(name_of(one), name_of(two));
}

/* Without memory the list is empty, and says so. */
static void open_list(list_t *self, const json_t *items, const column_t *columns, const char *name)
{
    *self = (list_t){.items = items, .columns = columns, .name = name};
    self->order = ps_alloc(json_array_size(items) + 1, sizeof(json_t *));
    if (self->order == NULL) {
        return;
    }
    self->n = json_array_size(items);
    for (size_t i = 0; i < self->n; i++) {
        self->order[i] = json_array_get(items, i);
    }
    qsort(self->order, self->n, sizeof(json_t *), compare);
}

/* For all of it: a blank line, the title, the items. */
static size_t lines_of(const list_t *self)
{
    return self->n == 0 ? 0 : self->n + 2;
}

/* The width of each column, and how many of them the screen has room for. */
static size_t measure(const list_t *self, size_t width, size_t ret_widths[COLUMNS_MAX])
{
    size_t used = 0;
    size_t n = 0;

    for (; self->columns[n].title != NULL; n++) {
        char text[CELL_SIZE];
        size_t most = strlen(self->columns[n].title);

        for (size_t i = 0; i < self->n; i++) {
            self->columns[n].cell(self->order[i], self->columns[n].path, text);
            most = strlen(text) > most ? strlen(text) : most;
        }
        if (n == 0 && most > width / 2) {
            most = width / 2; /* a long name leaves room for the figures */
        }
        used += most + (n == 0 ? 0 : GAP);
        if (used > width) {
            break;
        }
        ret_widths[n] = most;
    }
    return n;
}

static void put(ps_top_line_t *line, size_t *at, const char *text, size_t wide, bool right)
{
    (void)snprintf(line->text + *at, sizeof line->text - *at, right ? "%*.*s" : "%-*.*s", (int)wide,
                   (int)wide, text);
    *at += wide;
}

/* The titles, or the cells of an item. */
static void put_row(const list_t *self, const json_t *item, size_t n_columns,
                    const size_t widths[COLUMNS_MAX], ps_top_line_t *line)
{
    size_t at = 0;

    for (size_t i = 0; i < n_columns; i++) {
        const column_t *column = &self->columns[i];
        char text[CELL_SIZE];

        if (item == NULL) {
            (void)snprintf(text, sizeof text, "%s", column->title);
        } else {
            column->cell(item, column->path, text);
        }
        if (i > 0) {
            put(line, &at, "", GAP, false);
        }
        put(line, &at, text, widths[i], column->right);
    }
}

static ps_top_style_t style_of(const json_t *item)
{
    return weight(item) >= 1e18 ? PS_TOP_BAD : PS_TOP_PLAIN;
}

static void draw_list(const list_t *self, size_t width, size_t height, ps_top_frame_t *frame)
{
    size_t widths[COLUMNS_MAX];
    size_t n_columns = measure(self, width, widths);
    size_t end = self->first + self->room < self->n ? self->first + self->room : self->n;
    ps_top_line_t *line = add(frame, height, PS_TOP_PLAIN); /* a blank one before */

    line = line == NULL ? NULL : add(frame, height, PS_TOP_TITLE);
    if (line != NULL) {
        put_row(self, NULL, n_columns, widths, line);
    }
    for (size_t i = self->first; line != NULL && i < end; i++) {
        line = add(frame, height, style_of(self->order[i]));
        if (line != NULL) {
            put_row(self, self->order[i], n_columns, widths, line);
        }
    }
    if (end - self->first < self->n) {
        say(frame, width, height, PS_TOP_PLAIN, "... %zu more %s", self->n - (end - self->first),
            self->name);
    }
}

/* ---- the screen ---- */

static void draw_head(const json_t *document, size_t width, size_t height, ps_top_frame_t *frame)
{
    const json_t *problems = ps_json_at(document, "problems");
    bool healthy = json_is_true(ps_json_at(document, "cluster.healthy"));
    char up[PS_NUMBER_SIZE];

    ps_seconds_format(json_number_value(ps_json_at(document, "cluster.uptime_s")), up);
    say(frame, width, height, healthy ? PS_TOP_TITLE : PS_TOP_BAD,
        "cluster %s  %s  epoch %" PRIu64 "  up %s", ps_json_text(document, "cluster.name"),
        healthy ? "healthy" : "NOT HEALTHY", ps_json_u64(document, "cluster.epoch"), up);
    for (size_t i = 0; i < json_array_size(problems) && i < PROBLEMS_MAX; i++) {
        const json_t *problem = json_array_get(problems, i);
        const char *text = json_string_value(problem);

        say(frame, width, height, PS_TOP_BAD, "! %s",
            text != NULL ? text : ps_json_text(problem, "text"));
    }
    if (json_array_size(problems) > PROBLEMS_MAX) {
        say(frame, width, height, PS_TOP_BAD, "! and %zu more",
            json_array_size(problems) - PROBLEMS_MAX);
    }
}

/* Each list gets ROWS_LEAST first; what is left goes to them in their order. */
static void share_room(list_t lists[N_LISTS], size_t room)
{
    size_t lines[N_LISTS];

    for (size_t i = 0; i < N_LISTS; i++) {
        size_t whole = lines_of(&lists[i]);
        size_t least = whole < ROWS_LEAST + LINES_BESIDE ? whole : ROWS_LEAST + LINES_BESIDE;

        lines[i] = least < room ? least : room;
        room -= lines[i];
    }
    for (size_t i = 0; i < N_LISTS; i++) {
        size_t more = lines_of(&lists[i]) - lines[i];

        more = more > room ? room : more;
        lines[i] += more;
        room -= more;
        lists[i].room = lines[i] == lines_of(&lists[i]) ? lists[i].n
                        : lines[i] > LINES_BESIDE       ? lines[i] - LINES_BESIDE
                                                        : 0;
    }
}

void ps_top_draw(const json_t *document, size_t width, size_t height, ps_top_part_t part,
                 size_t first, ps_top_frame_t *ret_frame)
{
    list_t lists[N_LISTS];

    width = width < WIDTH_LEAST ? WIDTH_LEAST : width > PS_TOP_WIDTH_MAX ? PS_TOP_WIDTH_MAX : width;
    height = height < HEIGHT_LEAST        ? HEIGHT_LEAST
             : height > PS_TOP_HEIGHT_MAX ? PS_TOP_HEIGHT_MAX
                                          : height;
    ret_frame->n = 0;
    open_list(&lists[0], ps_json_at(document, "nodes"), NODES, "nodes");
    open_list(&lists[1], ps_json_at(document, "tables"), TABLES, "tables");
    open_list(&lists[2], ps_json_at(document, "jobs"), JOBS, "jobs");
    draw_head(document, width, height, ret_frame);
    if (part == PS_TOP_ALL) {
        share_room(lists, height - ret_frame->n);
        for (size_t i = 0; i < N_LISTS; i++) {
            if (lists[i].room > 0) {
                draw_list(&lists[i], width, height, ret_frame);
            }
        }
    } else {
        list_t *list = &lists[part - PS_TOP_NODES];

        list->room = height - ret_frame->n - LINES_BESIDE;
        list->first = first < list->n ? first : list->n > 0 ? list->n - 1 : 0;
        draw_list(list, width, height, ret_frame);
    }
    for (size_t i = 0; i < N_LISTS; i++) {
        ps_free(lists[i].order);
    }
}
