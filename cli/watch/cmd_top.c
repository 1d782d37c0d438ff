/* SPDX-License-Identifier: Apache-2.0 */
/* pscli top: the cluster at work, on a terminal or once. */
#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/output/interrupt.h"
#include "cli/watch/top.h"
#include "cli/watch/watch.h"

#define WIDTH_ELSEWHERE 80 /* where there is no terminal, and COLUMNS says nothing */
#define KEY_MS 100         /* between two looks at an interrupt */
#define INTERRUPTED_EXIT 130
#define PAGE 10 /* items that Page Down goes on by */
#define COLOR_BAD 1

typedef struct screen {
    ps_top_frame_t *frame; /* owned */
    ps_top_part_t part;
    size_t first;   /* item of that part at the top */
    char text[300]; /* why nothing new is known; "" */
} screen_t;

/* ---- looking ---- */

static psd_status_t look(ps_cli_t *cli, ps_top_look_t *ret_look, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ps_top_look_done(ret_look);
    rc = ps_cli_request(cli, "cluster_status", NULL, NULL, &ret_look->status, err);
    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "table_list", NULL, NULL, &ret_look->tables, err);
        ret_look->at_s = ps_cli_now_s();
    }
    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "clock_list", NULL, NULL, &ret_look->clocks, err);
    }
    return rc;
}

static psd_status_t document(const ps_top_look_t *before, const ps_top_look_t *now,
                             json_t **ret_document, psd_error_t *err)
{
    json_decref(*ret_document);
    *ret_document = ps_top_document(before, now);
    return *ret_document != NULL ? PSD_OK
                                 : psd_error_set(err, PSD_NOMEM, "no memory for the screen");
}

/* ---- once ---- */

static void rest(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&left, &left) != 0) {
    }
}

static size_t width_elsewhere(void)
{
    const char *columns = getenv("COLUMNS");
    uint64_t width = 0;

    return columns != NULL && ps_text_u64(columns, &width) && width > 0 && width < PS_TOP_WIDTH_MAX
               ? (size_t)width
               : WIDTH_ELSEWHERE;
}

static psd_status_t show_once(ps_cli_t *cli, screen_t *screen, psd_error_t *err)
{
    PSD_AUTO(ps_top_look_done) ps_top_look_t before = {0};
    PSD_AUTO(ps_top_look_done) ps_top_look_t now = {0};
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    psd_status_t rc = look(cli, &before, err);

    if (rc == PSD_OK) {
        rest(ps_args_ms(&cli->args, "every"));
        rc = look(cli, &now, err);
    }
    if (rc == PSD_OK) {
        rc = document(&before, &now, &doc, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (ps_format_is_json(cli->out.format)) {
        ps_out_object(&cli->out, doc, NULL);
        return PSD_OK;
    }
    ps_top_draw(doc, width_elsewhere(), PS_TOP_HEIGHT_MAX, PS_TOP_ALL, 0, screen->frame);
    for (size_t i = 0; i < screen->frame->n; i++) {
        ps_print(cli->out.out, "%s\n", screen->frame->lines[i].text);
    }
    return PSD_OK;
}

/* ---- the terminal ---- */

static void open_terminal(const ps_cli_t *cli)
{
    (void)initscr();
    (void)cbreak();
    (void)noecho();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    timeout(KEY_MS);
    if (cli->out.color && has_colors()) {
        (void)start_color();
        (void)use_default_colors();
        (void)init_pair(COLOR_BAD, COLOR_RED, -1);
    }
}

static void paint(const screen_t *screen)
{
    static const char help[] =
        "q quit  a all  n nodes  t tables  j jobs  up, down, page: scroll one of them";
    int rows = 0;
    int columns = 0;

    getmaxyx(stdscr, rows, columns);
    (void)erase();
    for (size_t i = 0; i < screen->frame->n && (int)i < rows - 1; i++) {
        const ps_top_line_t *line = &screen->frame->lines[i];
        const int style = line->style == PS_TOP_TITLE ? (int)A_BOLD
                          : line->style == PS_TOP_BAD ? (int)(A_BOLD | COLOR_PAIR(COLOR_BAD))
                                                      : (int)A_NORMAL;

        (void)attrset(style);
        (void)mvaddnstr((int)i, 0, line->text, columns);
    }
    (void)attrset((int)A_DIM);
    (void)mvaddnstr(rows - 1, 0, screen->text[0] != '\0' ? screen->text : help, columns - 1);
    (void)attrset((int)A_NORMAL);
    (void)refresh();
}

static void draw(const json_t *doc, screen_t *screen)
{
    int rows = 0;
    int columns = 0;

    getmaxyx(stdscr, rows, columns);
    if (doc != NULL) {
        ps_top_draw(doc, (size_t)columns, rows > 1 ? (size_t)rows - 1 : 1, screen->part,
                    screen->first, screen->frame);
    }
    paint(screen);
}

/* true: the screen is to be drawn again. */
static bool take_key(int key, screen_t *screen, bool *ret_is_over)
{
    static const char parts[] = "antj";
    const char *part = key > 0 && key < 128 ? strchr(parts, key) : NULL;

    if (key == 'q' || key == 'Q') {
        *ret_is_over = true;
    } else if (part != NULL) {
        screen->part = (ps_top_part_t)(part - parts);
        screen->first = 0;
    } else if (key == KEY_DOWN || key == KEY_NPAGE) {
        screen->first += key == KEY_DOWN ? 1 : PAGE;
    } else if (key == KEY_UP || key == KEY_PPAGE) {
        size_t step = key == KEY_UP ? 1 : PAGE;

        screen->first -= screen->first < step ? screen->first : step;
    } else {
        return key == KEY_RESIZE;
    }
    return true;
}

/* Looks again and again; a cluster that does not answer is said to be so, and asked on. */
static psd_status_t show_terminal(ps_cli_t *cli, screen_t *screen, psd_error_t *err)
{
    PSD_AUTO(ps_top_look_done) ps_top_look_t before = {0};
    PSD_AUTO(ps_top_look_done) ps_top_look_t now = {0};
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    const double every_s = (double)ps_args_ms(&cli->args, "every") / 1000.0;
    double due_s = 0;
    bool is_over = false;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && !is_over && !ps_interrupt_came()) {
        bool is_new = false;

        if (ps_cli_now_s() >= due_s) {
            ps_top_look_t last = {0};

            screen->text[0] = '\0';
            if (look(cli, &last, err) == PSD_OK) {
                ps_top_look_done(&before);
                before = now;
                now = last;
                rc = document(before.status == NULL ? NULL : &before, &now, &doc, err);
            } else {
                ps_top_look_done(&last);
                (void)snprintf(screen->text, sizeof screen->text, "%s", psd_error_text(err));
                psd_error_clear(err);
            }
            due_s = ps_cli_now_s() + every_s;
            is_new = true;
        }
        if (take_key(getch(), screen, &is_over) || is_new) {
            draw(doc, screen);
        }
    }
    cli->exit_code = ps_interrupt_came() ? INTERRUPTED_EXIT : 0;
    return rc;
}

psd_status_t ps_cmd_top(ps_cli_t *cli, psd_error_t *err)
{
    const bool is_text = cli->out.format == PS_FORMAT_TABLE || cli->out.format == PS_FORMAT_WIDE;
    screen_t screen = {.frame = NULL};
    psd_status_t rc = PSD_OK;

    if (!is_text && !ps_format_is_json(cli->out.format)) {
        return psd_error_set(err, PSD_USAGE, "--output of top; allowed: table, wide, json, jsonl");
    }
    screen.frame = ps_alloc(1, sizeof *screen.frame);
    if (screen.frame == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the screen");
    }
    if (!is_text || ps_args_on(&cli->args, "once") || !isatty(STDOUT_FILENO) ||
        !isatty(STDIN_FILENO)) {
        rc = show_once(cli, &screen, err);
    } else {
        rc = ps_cli_connect(cli, err); /* what is wrong from the start is an error */
        if (rc == PSD_OK) {
            ps_interrupt_hold();
            open_terminal(cli);
            rc = show_terminal(cli, &screen, err);
            (void)endwin();
        }
    }
    ps_free(screen.frame);
    return rc;
}
