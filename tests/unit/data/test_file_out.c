/* SPDX-License-Identifier: Apache-2.0 */
/* data/streams/file_out.h: there when it is whole, and not before. */
#include "data/streams/file_out.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "sample_file.h"

static temp_dir_t dir;

static void make_dir(void)
{
    cr_assert(temp_dir_make(&dir));
}

static void drop_dir(void)
{
    temp_dir_drop(&dir);
}

TestSuite(file_out, .init = make_dir, .fini = drop_dir);

static size_t count_files(void)
{
    DIR *open = opendir(dir.path);
    size_t n = 0;

    cr_assert_not_null(open);
    while (readdir(open) != NULL) {
        n++;
    }
    (void)closedir(open);
    return n - 2; /* . and .. */
}

Test(file_out, what_is_not_committed_is_taken_away)
{
    char path[SAMPLE_PATH];
    char text[8] = "";
    ps_file_out_t *file = NULL;

    sample_file_write(&dir, "a", "old", 3, path);
    cr_assert_eq(ps_file_out_open(path, 0666, &file, NULL), PSD_OK);
    cr_assert_eq(ps_file_out_write(file, "new", 3, NULL), PSD_OK);
    cr_expect_eq(count_files(), 2);
    ps_file_out_close(&file);
    cr_expect_null(file);
    cr_expect_eq(count_files(), 1);
    cr_expect_eq(sample_file_get(path, text, sizeof text), 3);
    cr_expect_eq(memcmp(text, "old", 3), 0);
}

Test(file_out, a_committed_one_is_in_its_place)
{
    char path[SAMPLE_PATH];
    char text[8] = "";
    struct stat about;
    mode_t mask = umask(0027);

    sample_file_write(&dir, "a", "old", 3, path);
    sample_file_write(&dir, "a", "newer", 5, path);
    (void)umask(mask);
    cr_expect_eq(count_files(), 1);
    cr_expect_eq(sample_file_get(path, text, sizeof text), 5);
    cr_expect_eq(memcmp(text, "newer", 5), 0);
    cr_assert_eq(stat(path, &about), 0);
    cr_expect_eq(about.st_mode & 0777, 0640, "as the umask has it");
}

Test(file_out, one_that_is_replaced_lends_its_rights_and_its_place)
{
    char path[SAMPLE_PATH];
    char link[SAMPLE_PATH];
    char text[8] = "";
    struct stat about;

    sample_file_write(&dir, "a", "old", 3, path);
    cr_assert_eq(chmod(path, 0600), 0);
    (void)snprintf(link, sizeof link, "%s/link", dir.path);
    cr_assert_eq(symlink(path, link), 0);
    sample_file_write(&dir, "link", "new", 3, link);
    cr_assert_eq(lstat(link, &about), 0);
    cr_expect(S_ISLNK(about.st_mode));
    cr_assert_eq(stat(path, &about), 0);
    cr_expect_eq(about.st_mode & 0777, 0600);
    cr_expect_eq(sample_file_get(path, text, sizeof text), 3);
    cr_expect_eq(memcmp(text, "new", 3), 0);
}

Test(file_out, one_that_keeps_others_is_refused_where_one_is)
{
    char path[SAMPLE_PATH];
    char text[8] = "";
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    (void)snprintf(path, sizeof path, "%s/a", dir.path);
    for (int i = 0; i < 2; i++) {
        PSD_AUTO(ps_file_out_close) ps_file_out_t *file = NULL;

        cr_assert_eq(ps_file_out_open(path, 0666, &file, err), PSD_OK);
        ps_file_out_keep_others(file);
        cr_assert_eq(ps_file_out_write(file, i == 0 ? "old" : "new", 3, err), PSD_OK);
        cr_expect_eq(ps_file_out_commit(file, err), i == 0 ? PSD_OK : PSD_IO);
    }
    cr_expect_not_null(strstr(psd_error_text(err), "File exists"));
    cr_expect_eq(count_files(), 1);
    cr_expect_eq(sample_file_get(path, text, sizeof text), 3);
    cr_expect_eq(memcmp(text, "old", 3), 0);
}

Test(file_out, what_is_no_file_is_written_to_or_refused)
{
    ps_file_out_t *file = NULL;
    struct stat about;

    cr_assert_eq(ps_file_out_open("/dev/null", 0666, &file, NULL), PSD_OK);
    cr_expect_str_eq(ps_file_out_beside(file), "");
    cr_expect_eq(ps_file_out_write(file, "x", 1, NULL), PSD_OK);
    cr_expect_eq(ps_file_out_commit(file, NULL), PSD_OK);
    ps_file_out_close(&file);
    cr_assert_eq(stat("/dev/null", &about), 0);
    cr_expect(S_ISCHR(about.st_mode));
    cr_expect_eq(ps_file_out_open(dir.path, 0666, &file, NULL), PSD_INVALID);
}

Test(file_out, a_directory_that_is_not_there_is_said)
{
    psd_error_t *err = psd_error_new();
    ps_file_out_t *file = NULL;

    cr_expect_eq(ps_file_out_open("/nowhere/x.gz", 0666, &file, err), PSD_IO);
    cr_expect_str_eq(psd_error_text(err), "cannot write /nowhere/x.gz: No such file or directory");
    cr_expect_null(file);
    psd_error_destroy(&err);
}

Test(file_out, a_packing_that_is_not_written_is_refused)
{
    psd_error_t *err = psd_error_new();
    ps_file_out_t *file = NULL;

    cr_expect_eq(ps_file_out_open("x.csv.bz2", 0666, &file, err), PSD_INVALID);
    cr_expect_str_eq(psd_error_text(err),
                     "x.csv.bz2 ends with .bz2, which is not written; allowed: "
                     ".gz, .zst, or nothing for plain");
    cr_expect_null(file);
    psd_error_destroy(&err);
}

Test(file_out, the_name_that_is_given_says_how_it_is_packed)
{
    char path[SAMPLE_PATH];
    char link[SAMPLE_PATH];
    char text[32] = "";

    sample_file_write(&dir, "plain", "old", 3, path);
    (void)snprintf(link, sizeof link, "%s/link.GZ", dir.path);
    cr_assert_eq(symlink(path, link), 0);
    sample_file_write(&dir, "link.GZ", "new", 3, link);
    cr_expect_gt(sample_file_get(path, text, sizeof text), 3);
    cr_expect_eq(memcmp(text, "\x1f\x8b", 2), 0);
}

Test(file_out, nobody_else_may_read_a_private_one)
{
    char path[SAMPLE_PATH];
    ps_file_out_t *file = NULL;
    struct stat about;

    sample_file_write(&dir, "a", "old", 3, path);
    cr_assert_eq(chmod(path, 0664), 0);
    cr_assert_eq(ps_file_out_open(path, 0600, &file, NULL), PSD_OK);
    cr_assert_eq(stat(ps_file_out_beside(file), &about), 0);
    cr_expect_eq(about.st_mode & 0777, 0600);
    cr_assert_eq(ps_file_out_write(file, "new", 3, NULL), PSD_OK);
    cr_assert_eq(ps_file_out_commit(file, NULL), PSD_OK);
    cr_expect_eq(ps_file_out_bytes(file), 3);
    ps_file_out_close(&file);
    cr_assert_eq(stat(path, &about), 0);
    cr_expect_eq(about.st_mode & 0777, 0600);
}

Test(file_out, a_full_device_is_said)
{
    static char zeros[1 << 16];
    char path[SAMPLE_PATH];
    psd_error_t *err = psd_error_new();
    ps_file_out_t *file = NULL;

    (void)snprintf(path, sizeof path, "%s/full", dir.path);
    cr_assert_eq(ps_file_out_open(path, 0666, &file, NULL), PSD_OK);
    {
        /* A limit of the file's size is what a full disk is. */
        cr_assert_eq(signal(SIGXFSZ, SIG_IGN) == SIG_ERR, 0);
        struct rlimit limit = {4096, 4096};

        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    }
    cr_expect_eq(ps_file_out_write(file, zeros, sizeof zeros, err), PSD_IO);
    cr_expect_not_null(strstr(psd_error_text(err), path));
    ps_file_out_close(&file);
    cr_expect_eq(count_files(), 0);
    psd_error_destroy(&err);
}
