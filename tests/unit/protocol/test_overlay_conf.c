/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/overlay/overlay_conf.h"

#include <criterion/criterion.h>
#include <string.h>

static psd_status_t read_text(ps_overlay_conf_t *conf, const char *text, uint32_t n_workers,
                              psd_error_t *err)
{
    return ps_overlay_conf_read(conf, text, strlen(text), "l.conf", n_workers, err);
}

/* The file is refused, with this message. */
static void refuses(const char *text, uint32_t n_workers, const char *message)
{
    ps_overlay_conf_t conf;
    psd_error_t *err = psd_error_new();

    ps_overlay_conf_init(&conf);
    cr_assert_eq(read_text(&conf, text, n_workers, err), PSD_INVALID, "%s", text);
    cr_assert_str_eq(psd_error_text(err), message);
    cr_assert_null(conf.edges);
    psd_error_destroy(&err);
}

static bool may_send(const ps_overlay_conf_t *conf, uint32_t from, uint32_t to)
{
    ps_may_t may;

    ps_overlay_conf_may(conf, from, &may);
    return ps_may_has(&may, to);
}

static uint32_t batch(const ps_overlay_conf_t *conf, ps_policy_t policy, uint32_t n_workers)
{
    ps_overlay_rules_t rules = {.policy = policy};

    ps_overlay_conf_fill(conf, &rules);
    return ps_overlay_rules_batch(&rules, n_workers);
}

Test(overlay_conf, defaults)
{
    ps_overlay_conf_t conf;

    ps_overlay_conf_init(&conf);
    cr_assert_eq(read_text(&conf, "", 0, NULL), PSD_OK);
    cr_assert_eq(conf.ratio.value, 0.1);
    cr_assert_eq(conf.expiry.value, 5);
    cr_assert_eq(conf.num.line, 0);
    cr_assert_eq(conf.n_edges, 0);
    cr_assert_eq(batch(&conf, PS_POLICY_PAIRS, 8), 1);
    cr_assert_eq(batch(&conf, PS_POLICY_PAIRS, 100), 10);
    ps_overlay_conf_done(&conf);
}

Test(overlay_conf, every_line)
{
    ps_overlay_conf_t conf;

    ps_overlay_conf_init(&conf);
    cr_assert_eq(read_text(&conf,
                           "# a comment\n"
                           "\n"
                           "ADD_CONNECTION 0 1\n"
                           "  ADD_CONNECTION\t4  5 \r\n"
                           "ADD_CONNECTION 2 3\n"
                           "ADD_CONNECTION 2 4\n"
                           "REMOVE_CONNECTION 2 3\n"
                           "SET_SCHEDULE_RATIO 0.25\n"
                           "SET_SCHEDULE_NUM 3\n"
                           "SET_BANDWIDTH_EXPIRATION 7",
                           8, NULL),
                 PSD_OK);
    cr_assert_eq(conf.n_edges, 5);
    cr_assert_eq(conf.num.value, 3);
    cr_assert_eq(conf.num.line, 9);
    cr_assert_eq(conf.expiry.value, 7);
    cr_assert(may_send(&conf, 0, 1));
    cr_assert(!may_send(&conf, 1, 0), "the other direction");
    cr_assert(may_send(&conf, 4, 5));
    cr_assert(!may_send(&conf, 2, 3), "cut");
    cr_assert(may_send(&conf, 2, 4));
    ps_overlay_conf_done(&conf);
}

Test(overlay_conf, ratio_and_num)
{
    static const struct {
        const char *text;
        uint32_t n_workers;
        uint32_t n;
    } rows[] = {{"SET_SCHEDULE_RATIO 0", 10, 1},
                {"SET_SCHEDULE_RATIO .25", 10, 2},
                {"SET_SCHEDULE_RATIO 1", 10, 10},
                {"SET_SCHEDULE_RATIO 0.29", 100, 29},
                {"SET_SCHEDULE_RATIO 1\nSET_SCHEDULE_NUM 3", 10, 3},
                {"SET_SCHEDULE_NUM 9", 4, 4}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ps_overlay_conf_t conf;

        ps_overlay_conf_init(&conf);
        cr_assert_eq(read_text(&conf, rows[i].text, 0, NULL), PSD_OK);
        cr_assert_eq(batch(&conf, PS_POLICY_PAIRS, rows[i].n_workers), rows[i].n, "%s",
                     rows[i].text);
        cr_assert_eq(batch(&conf, PS_POLICY_QUEUE, rows[i].n_workers), 1);
        ps_overlay_conf_done(&conf);
    }
}

Test(overlay_conf, names_place_value_and_what_is_allowed)
{
    refuses("\nSET_SCHEDULE_RATIO 1.1", 0,
            "l.conf:2: SET_SCHEDULE_RATIO is \"1.1\"; a number from 0 to 1 is allowed");
    refuses("SET_SCHEDULE_RATIO -0.1", 0,
            "l.conf:1: SET_SCHEDULE_RATIO is \"-0.1\"; a number from 0 to 1 is allowed");
    refuses("SET_SCHEDULE_RATIO nan", 0,
            "l.conf:1: SET_SCHEDULE_RATIO is \"nan\"; a number from 0 to 1 is allowed");
    refuses("SET_SCHEDULE_RATIO", 0,
            "l.conf:1: SET_SCHEDULE_RATIO has too few words; it is \"SET_SCHEDULE_RATIO RATIO\"");
    refuses("SET_SCHEDULE_NUM 9", 8,
            "l.conf:1: SET_SCHEDULE_NUM is \"9\"; a whole number from 1 to 8 is allowed");
    refuses("SET_SCHEDULE_NUM 0", 8,
            "l.conf:1: SET_SCHEDULE_NUM is \"0\"; a whole number from 1 to 8 is allowed");
    refuses("SET_SCHEDULE_NUM 1.5", 8,
            "l.conf:1: SET_SCHEDULE_NUM is \"1.5\"; a whole number from 1 to 8 is allowed");
    refuses("SET_SCHEDULE_NUM 1\nSET_SCHEDULE_NUM 2", 8,
            "l.conf:2: SET_SCHEDULE_NUM again; it is set in line 1 already");
    refuses("SET_BANDWIDTH_EXPIRATION 0", 0,
            "l.conf:1: SET_BANDWIDTH_EXPIRATION is \"0\"; a whole number from 1 to 1000000 is "
            "allowed");
    refuses("SET_BANDWIDTH_EXPIRATION 5 6", 0,
            "l.conf:1: SET_BANDWIDTH_EXPIRATION has too many words; it is "
            "\"SET_BANDWIDTH_EXPIRATION NUMBER\"");
    refuses("ADD_CONNECTION 0 8", 8,
            "l.conf:1: ADD_CONNECTION names \"8\"; a worker's rank from 0 to 7 is "
            "allowed");
    refuses("ADD_CONNECTION -1 2", 8,
            "l.conf:1: ADD_CONNECTION names \"-1\"; a worker's rank from 0 to 7 is "
            "allowed");
    refuses("ADD_CONNECTION site:a 2", 8,
            "l.conf:1: ADD_CONNECTION names \"site:a\"; a worker's rank from 0 to 7 is allowed");
    refuses("ADD_CONNECTION 2", 8,
            "l.conf:1: ADD_CONNECTION has too few words; it is \"ADD_CONNECTION FROM TO\"");
    refuses("ADD_CONNECTION 2 2", 8,
            "l.conf:1: ADD_CONNECTION from worker 2 to itself; two workers are allowed");
    refuses("ADD_CONNECTION 1 2\n\nADD_CONNECTION 1 2", 8,
            "l.conf:3: ADD_CONNECTION 1 2 again; it stands in line 1 already");
    refuses("ADD_CONECTION 1 2", 8,
            "l.conf:1: unknown setting \"ADD_CONECTION\"; ADD_CONNECTION, "
            "REMOVE_CONNECTION, SET_SCHEDULE_RATIO, SET_SCHEDULE_NUM and "
            "SET_BANDWIDTH_EXPIRATION are allowed; did you mean ADD_CONNECTION?");
    refuses("SET_MIN_RECEIVING_LIMIT 4\nSET_MAX_RECEIVING_LIMIT 2", 8,
            "l.conf:1: SET_MIN_RECEIVING_LIMIT is 4; at most the SET_MAX_RECEIVING_LIMIT of line "
            "2, 2, is allowed");
}

Test(overlay_conf, refuses_long_lines_and_zeros)
{
    ps_overlay_conf_t conf;
    char text[400];

    ps_overlay_conf_init(&conf);
    memset(text, ' ', sizeof text);
    cr_assert_eq(ps_overlay_conf_read(&conf, text, sizeof text, "l.conf", 0, NULL), PSD_INVALID);
    cr_assert_eq(ps_overlay_conf_read(&conf, "a\0b", 3, "l.conf", 0, NULL), PSD_INVALID);
}
