/* SPDX-License-Identifier: Apache-2.0 */
/* transport/keys/key_watch.h: a key file that is replaced, and the swap that replaces it. */
#include "transport/keys/key_watch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/temp_dir.h"
#include "transport/threads/clock.h"

static temp_dir_t temp;
static char path[PATH_MAX + 16];
static char next_path[PATH_MAX + 20];
static char old_path[PATH_MAX + 20];
static ps_key_watch_t watch;
static psd_error_t *err;

static ps_key_pair_t write_pair(const char *to)
{
    ps_key_pair_t pair;

    cr_assert_eq(ps_key_pair_make("alice", &pair, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(ps_key_file_write(to, &pair, err), PSD_OK, "%s", psd_error_text(err));
    return pair;
}

static void set_up(void)
{
    temp_dir_make(&temp);
    (void)snprintf(path, sizeof path, "%s/a.key", temp.path);
    (void)snprintf(next_path, sizeof next_path, "%s.new", path);
    (void)snprintf(old_path, sizeof old_path, "%s.old", path);
    err = psd_error_new();
    cr_assert_not_null(err);
}

static void take_down(void)
{
    psd_error_destroy(&err);
    temp_dir_drop(&temp);
}

TestSuite(key_watch, .init = set_up, .fini = take_down);

static ps_key_pair_t swap(void)
{
    ps_key_pair_t next = write_pair(next_path);

    cr_assert_eq(ps_key_file_keep(path, old_path, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(ps_key_file_swap(path, next_path, err), PSD_OK, "%s", psd_error_text(err));
    return next;
}

Test(key_watch, a_swap_keeps_the_old_file)
{
    ps_key_pair_t first = write_pair(path);
    ps_key_pair_t second = swap();
    ps_key_pair_t read;

    cr_assert_eq(ps_key_file_read(path, &read, err), PSD_OK);
    cr_assert_str_eq(read.public_key, second.public_key);
    cr_assert_eq(ps_key_file_read(old_path, &read, err), PSD_OK);
    cr_assert_str_eq(read.public_key, first.public_key);
    cr_assert_neq(access(next_path, F_OK), 0);
    (void)swap(); /* the older one goes */
    cr_assert_eq(ps_key_file_read(old_path, &read, err), PSD_OK);
    cr_assert_str_eq(read.public_key, second.public_key);
}

Test(key_watch, a_swap_without_a_file_changes_nothing)
{
    ps_key_pair_t first = write_pair(path);
    ps_key_pair_t read;

    cr_assert_eq(ps_key_file_swap(path, next_path, err), PSD_IO);
    cr_assert_not_null(strstr(psd_error_text(err), "cannot replace "));
    cr_assert_eq(ps_key_file_read(path, &read, NULL), PSD_OK);
    cr_assert_str_eq(read.public_key, first.public_key);
}

/* What can fail comes first, and the file stays. */
Test(key_watch, the_old_file_is_kept_in_advance)
{
    ps_key_pair_t first = write_pair(path);
    ps_key_pair_t second = write_pair(next_path);
    ps_key_pair_t read;

    cr_assert_eq(mkdir(old_path, 0700), 0);
    cr_assert_eq(ps_key_file_keep(path, old_path, err), PSD_IO);
    cr_assert_not_null(strstr(psd_error_text(err), old_path));
    cr_assert_eq(rmdir(old_path), 0);
    for (int i = 0; i < 2; i++) { /* a second time, too */
        cr_assert_eq(ps_key_file_keep(path, old_path, err), PSD_OK);
        cr_assert_eq(ps_key_file_read(path, &read, err), PSD_OK);
        cr_assert_str_eq(read.public_key, first.public_key);
    }
    cr_assert_eq(ps_key_file_swap(path, next_path, err), PSD_OK);
    cr_assert_eq(ps_key_file_read(path, &read, err), PSD_OK);
    cr_assert_str_eq(read.public_key, second.public_key);
    cr_assert_eq(ps_key_file_read(old_path, &read, err), PSD_OK);
    cr_assert_str_eq(read.public_key, first.public_key);
}

Test(key_watch, another_file_is_taken_after_a_while)
{
    ps_key_pair_t pair = write_pair(path);
    ps_key_pair_t next;
    uint64_t now_ms = 10000;

    ps_key_watch_begin(&watch, path);
    cr_assert_not(ps_key_watch_look(&watch, now_ms, 0, &pair));
    next = swap();
    cr_assert_not(ps_key_watch_look(&watch, now_ms + 499, 0, &pair), "twice a second at most");
    now_ms += 500;
    cr_assert_not(ps_key_watch_look(&watch, now_ms, 0, &pair), "nodes hear of it first");
    cr_assert_not(ps_key_watch_look(&watch, now_ms + PS_KEY_SETTLE_MS - 1, 0, &pair));
    cr_assert(ps_key_watch_look(&watch, now_ms + PS_KEY_SETTLE_MS + 500, 0, &pair));
    cr_assert_str_eq(pair.public_key, next.public_key);
    cr_assert_str_eq(pair.secret_key, next.secret_key);
    cr_assert_not(ps_key_watch_look(&watch, now_ms + 3 * PS_KEY_SETTLE_MS, 0, &pair));
}

Test(key_watch, one_that_has_been_there_for_a_while_is_taken_at_once)
{
    ps_key_pair_t pair = write_pair(path);
    ps_key_pair_t next;
    uint64_t made_ms = ps_unix_ms();

    ps_key_watch_begin(&watch, path);
    next = swap();
    cr_assert_not(ps_key_watch_look(&watch, 10000, made_ms, &pair));
    cr_assert(ps_key_watch_look(&watch, 10500, ps_unix_ms() + PS_KEY_SETTLE_MS, &pair));
    cr_assert_str_eq(pair.public_key, next.public_key);
}

Test(key_watch, a_file_that_is_gone_or_bad_changes_nothing)
{
    ps_key_pair_t first = write_pair(path);
    ps_key_pair_t pair = first;
    uint64_t now_ms = 10000;
    FILE *file = NULL;

    ps_key_watch_begin(&watch, path);
    cr_assert_eq(unlink(path), 0);
    cr_assert_not(ps_key_watch_look(&watch, now_ms, 0, &pair));
    file = fopen(path, "w");
    cr_assert_not_null(file);
    (void)fputs("name alice\n", file);
    (void)fclose(file);
    for (int i = 1; i < 10; i++) {
        cr_assert_not(ps_key_watch_look(&watch, now_ms + (uint64_t)i * PS_KEY_SETTLE_MS, 0, &pair));
    }
    cr_assert_str_eq(pair.public_key, first.public_key);
}

/* A path is that of the directory in which it was given. */
Test(key_watch, a_relative_path_is_followed_into_another_directory)
{
    ps_key_pair_t pair = write_pair(path);
    ps_key_pair_t next;
    char here[PATH_MAX];

    cr_assert_not_null(getcwd(here, sizeof here));
    cr_assert_eq(chdir(temp.path), 0);
    ps_key_watch_begin(&watch, "a.key");
    cr_assert_eq(chdir(here), 0);
    next = swap();
    cr_assert(ps_key_watch_look(&watch, 10000, ps_unix_ms() + PS_KEY_SETTLE_MS, &pair));
    cr_assert_str_eq(pair.public_key, next.public_key);
}

Test(key_watch, without_a_file_there_is_nothing_to_see)
{
    ps_key_pair_t pair = {.name = ""};

    ps_key_watch_begin(&watch, path);
    (void)write_pair(path);
    cr_assert_not(ps_key_watch_look(&watch, 10000, 0, &pair));
}
