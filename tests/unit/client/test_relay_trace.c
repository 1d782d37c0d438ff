/* SPDX-License-Identifier: Apache-2.0 */
/* client/relay/relay_trace.h: the file of what a relay does. */
#include "client/relay/relay_trace.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"
#include "support/temp_dir.h"

static temp_dir_t dir;
static char path[PS_RELAY_TRACE_PATH];
static ps_relay_trace_t trace;

static void make_dir(void)
{
    cr_assert(temp_dir_make(&dir));
    trace = (ps_relay_trace_t){.is_open = false};
}

static void remove_dir(void)
{
    ps_relay_trace_close(&trace);
    temp_dir_drop(&dir);
}

TestSuite(relay_trace, .init = make_dir, .fini = remove_dir);

static const char *in_dir(const char *name)
{
    (void)snprintf(path, sizeof path, "%.900s/%s", dir.path, name);
    return path;
}

static size_t size_of(const char *name)
{
    struct stat is = {.st_size = 0};

    return stat(in_dir(name), &is) == 0 ? (size_t)is.st_size : SIZE_MAX;
}

static void note(uint64_t number)
{
    ps_relay_trace_note(
        &trace, &(ps_relay_trace_event_t){.kind = PS_TRACE_DONE, .worker = 2, .number = number});
}

Test(relay_trace, the_rank_is_where_the_path_wants_it)
{
    char pattern[PS_RELAY_TRACE_PATH];

    cr_assert_eq(ps_relay_trace_open(&trace, in_dir("t"), 31, NULL), PSD_OK);
    cr_assert_eq(size_of("t.31"), 0);
    (void)unlink(path);
    (void)snprintf(pattern, sizeof pattern, "%s", in_dir("a-%r-%d.json"));
    cr_assert_eq(ps_relay_trace_open(&trace, pattern, 4095, NULL), PSD_OK);
    cr_assert_eq(size_of("a-4095-%d.json"), 0);
}

Test(relay_trace, a_file_stays_as_it_is_until_the_trace_begins)
{
    FILE *file = fopen(in_dir("t.0"), "w");

    cr_assert_not_null(file);
    (void)fputs("what was there", file);
    (void)fclose(file);
    cr_assert_eq(ps_relay_trace_open(&trace, in_dir("t"), 0, NULL), PSD_OK);
    note(1);
    ps_relay_trace_close(&trace);
    cr_assert_eq(size_of("t.0"), strlen("what was there"), "it was another worker's");
    cr_assert_eq(ps_relay_trace_open(&trace, in_dir("t"), 0, NULL), PSD_OK);
    ps_relay_trace_begin(&trace);
    cr_assert_eq(size_of("t.0"), 0);
    ps_relay_trace_turn(&trace);
    cr_assert_gt(size_of("t.0"), 200);
}

Test(relay_trace, lines_come_in_large_pieces_and_all_of_them)
{
    char line[512];
    uint64_t n = 0;
    FILE *file = NULL;

    cr_assert_eq(ps_relay_trace_open(&trace, in_dir("t"), 5, NULL), PSD_OK);
    ps_relay_trace_begin(&trace);
    for (uint64_t i = 0; i < 3000; i++) {
        note(i);
    }
    cr_assert_gt(size_of("t.5"), PS_RELAY_TRACE_BUFFER);
    ps_relay_trace_close(&trace);
    file = fopen(in_dir("t.5"), "r");
    cr_assert_not_null(file);
    for (int i = 0; i < 5; i++) {
        cr_assert_not_null(fgets(line, sizeof line, file));
    }
    while (fgets(line, sizeof line, file) != NULL && strcmp(line, "]\n") != 0) {
        char wanted[80];

        (void)snprintf(
            wanted, sizeof wanted,
            "{\"name\":\"to worker 2\",\"cat\":\"bundle\",\"ph\":\"e\",\"id2\":{\"local\":\"%d\"},",
            (int)n);
        cr_assert_eq(strncmp(line, wanted, strlen(wanted)), 0, "%s", line);
        n++;
    }
    (void)fclose(file);
    cr_assert_eq(n, 3000);
}

Test(relay_trace, what_is_no_file_is_refused)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    char pattern[PS_RELAY_TRACE_PATH + 8];

    cr_assert_eq(ps_relay_trace_open(&trace, in_dir("none/t"), 0, err), PSD_IO);
    cr_assert_not_null(strstr(psd_error_text(err), "/none/t.0 cannot be written: No such file"));
    memset(pattern, 'x', sizeof pattern);
    pattern[sizeof pattern - 1] = '\0';
    cr_assert_eq(ps_relay_trace_open(&trace, pattern, 0, err), PSD_INVALID);
    cr_assert_not(trace.is_open);
    cr_assert_eq(symlink("target", in_dir("t.0")), 0);
    cr_assert_eq(ps_relay_trace_open(&trace, in_dir("t"), 0, err), PSD_IO);
    (void)unlink(in_dir("t.0"));
    cr_assert_eq(mkdir(in_dir("t.0"), 0700), 0);
    cr_assert_eq(ps_relay_trace_open(&trace, in_dir("t"), 0, err), PSD_IO);
    (void)rmdir(in_dir("t.0"));
}

Test(relay_trace, a_file_that_cannot_grow_ends_the_trace)
{
    const struct rlimit limit = {.rlim_cur = 10000, .rlim_max = 10000};

    (void)signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(ps_relay_trace_open(&trace, in_dir("t"), 0, NULL), PSD_OK);
    ps_relay_trace_begin(&trace);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (uint64_t i = 0; i < 3000; i++) {
        note(i);
    }
    cr_assert_not(trace.is_open);
    note(1);
    ps_relay_trace_turn(&trace);
    cr_assert_eq(size_of("t.0"), 10000);
}

Test(relay_trace, without_memory_there_is_none)
{
    fail_alloc_at(0);
    cr_assert_eq(ps_relay_trace_open(&trace, in_dir("t"), 0, NULL), PSD_NOMEM);
    fail_alloc_off();
    cr_assert_not(trace.is_open);
    cr_assert_eq(size_of("t.0"), SIZE_MAX);
}
