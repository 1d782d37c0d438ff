/* SPDX-License-Identifier: Apache-2.0 */
/* base/log.h: the log sink. */
#include "base/log.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int pipe_fds[2];
static char seen[8192];

static void open_pipe(void)
{
    cr_assert_eq(pipe(pipe_fds), 0);
}

static void close_pipe(void)
{
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

TestSuite(log, .init = open_pipe, .fini = close_pipe);

/* What the sink has received; each test writes something before. */
static const char *read_log(void)
{
    ssize_t size = read(pipe_fds[0], seen, sizeof seen - 1);

    cr_assert_geq(size, 0);
    seen[size] = '\0';
    return seen;
}

Test(log, a_line_is_level_event_and_values)
{
    ps_log_open(pipe_fds[1], PS_LOG_INFO, false);
    ps_log(PS_LOG_WARN, "push_refused", "worker=%d status=%s", 4, "SHAPE");
    cr_assert_str_eq(read_log(), "warn push_refused worker=4 status=SHAPE\n");
    ps_log(PS_LOG_ERROR, "x", "a=1");
    cr_assert_str_eq(read_log(), "error x a=1\n");
    ps_log(PS_LOG_INFO, "ready", "%s", "");
    cr_assert_str_eq(read_log(), "info ready \n");
}

Test(log, a_line_without_values_ends_after_the_event)
{
    const char *nothing = "";

    ps_log_open(pipe_fds[1], PS_LOG_INFO, false);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    ps_log(PS_LOG_INFO, "ready", nothing);
#pragma GCC diagnostic pop
    cr_assert_str_eq(read_log(), "info ready\n");
}

Test(log, journal_has_the_level_as_a_prefix)
{
    ps_log_open(pipe_fds[1], PS_LOG_DEBUG, true);
    ps_log(PS_LOG_ERROR, "disk_full", "path=%s", "/x");
    cr_assert_str_eq(read_log(), "<3>disk_full path=/x\n");
    ps_log(PS_LOG_DEBUG, "tick", "n=1");
    cr_assert_str_eq(read_log(), "<7>tick n=1\n");
}

static void stamp_noon(char ret[PS_LOG_STAMP_SIZE])
{
    (void)snprintf(ret, PS_LOG_STAMP_SIZE, "12:00:00 ");
}

Test(log, a_stamp_stands_in_front)
{
    ps_log_open(pipe_fds[1], PS_LOG_INFO, false);
    ps_log_set_stamp(stamp_noon);
    ps_log(PS_LOG_INFO, "ready", "n=%d", 1);
    cr_assert_str_eq(read_log(), "12:00:00 info ready n=1\n");
    ps_log_set_stamp(NULL);
    ps_log(PS_LOG_INFO, "ready", "n=%d", 2);
    cr_assert_str_eq(read_log(), "info ready n=2\n");
}

Test(log, what_is_below_the_level_is_dropped)
{
    ps_log_open(pipe_fds[1], PS_LOG_WARN, false);
    ps_log(PS_LOG_INFO, "hidden", "a=1");
    ps_log(PS_LOG_DEBUG, "hidden", "a=2");
    ps_log(PS_LOG_WARN, "shown", "a=3");
    cr_assert_str_eq(read_log(), "warn shown a=3\n");
    ps_log_set_level(PS_LOG_DEBUG);
    ps_log(PS_LOG_DEBUG, "shown", "a=4");
    cr_assert_str_eq(read_log(), "debug shown a=4\n");
}

Test(log, an_event_is_one_line)
{
    ps_log_open(pipe_fds[1], PS_LOG_INFO, false);
    ps_log(PS_LOG_INFO, "x", "text=%s", "a\nerror forged\r");
    cr_assert_str_eq(read_log(), "info x text=a error forged \n");
}

Test(log, a_long_line_is_cut_but_ends)
{
    char text[8000];

    memset(text, 'y', sizeof text);
    text[sizeof text - 1] = '\0';
    ps_log_open(pipe_fds[1], PS_LOG_INFO, false);
    ps_log(PS_LOG_INFO, "x", "%s", text);
    (void)read_log();
    cr_assert_eq(strlen(seen), 4096);
    cr_assert_eq(strncmp(seen, "info x yyy", 10), 0);
    cr_assert_eq(seen[4095], '\n');
    /* An event that fills the line leaves no room for values. */
    ps_log(PS_LOG_INFO, text, "a=%d", 1);
    (void)read_log();
    cr_assert_eq(strlen(seen), 4096);
    cr_assert_eq(seen[4095], '\n');
}

Test(log, a_sink_that_fails_is_survived)
{
    ps_log_open(-1, PS_LOG_INFO, false);
    ps_log(PS_LOG_ERROR, "x", "a=1");
}

Test(log, quote_escapes)
{
    char out[64];

    cr_assert_str_eq(ps_log_quote("plain", out, sizeof out), "\"plain\"");
    cr_assert_str_eq(ps_log_quote("", out, sizeof out), "\"\"");
    cr_assert_str_eq(ps_log_quote("a \"b\" \\ \n", out, sizeof out), "\"a \\\"b\\\" \\\\ \\n\"");
    cr_assert_eq(ps_log_quote("x", out, sizeof out), out);
}

Test(log, quote_is_cut_to_fit_and_never_in_an_escape)
{
    char out[8];

    cr_assert_str_eq(ps_log_quote("abcdefgh", out, 8), "\"abcde\"");
    cr_assert_str_eq(ps_log_quote("abcd\"", out, 8), "\"abcd\"");
    cr_assert_str_eq(ps_log_quote("abc\"", out, 8), "\"abc\\\"\"");
    cr_assert_str_eq(ps_log_quote("abc", out, 3), "\"\"");
    for (size_t size = 6; size <= 9; size++) { /* no part of a character, of 2, 3 and 4 bytes */
        cr_assert_str_eq(ps_log_quote("abc\xF0\x9F\x98\x80", out, size), "\"abc\"");
    }
    cr_assert_str_eq(ps_log_quote("ab\xC3\xA4", out, 6), "\"ab\"");
    cr_assert_str_eq(ps_log_quote("ab\xC3\xA4", out, 7), "\"ab\xC3\xA4\"");
    cr_assert_str_eq(ps_log_quote("a\xE2\x82\xAC", out, 6), "\"a\"");
    cr_assert_str_eq(ps_log_quote("\x80\x80\x80\x80", out, 6), "\"\x80\x80\x80\"");
    cr_assert_str_eq(ps_log_quote("abc", out, 2), "");
    cr_assert_str_eq(ps_log_quote("abc", out, 1), "");
    out[0] = 'z';
    cr_assert_eq(ps_log_quote("abc", out, 0), out);
    cr_assert_eq(out[0], 'z');
}
