/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/config/plugins.h: which directories are read. What is loaded from one, and
 * what is not, is in tests/integration/it_updater.c. */
#include "server/config/plugins.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"
#include "support/temp_dir.h"

static temp_dir_t dir;
static psd_error_t *err;

static void start(void)
{
    err = psd_error_new();
    cr_assert(temp_dir_make(&dir));
}

static void stop(void)
{
    temp_dir_drop(&dir);
    psd_error_destroy(&err);
}

TestSuite(plugins, .init = start, .fini = stop);

Test(plugins, no_directory_allows_none)
{
    PSD_AUTO(ps_plugins_done) ps_plugins_t plugins = {.dir = "x"};

    cr_assert_eq(ps_plugins_load("", &plugins, err), PSD_OK);
    cr_assert_str_eq(plugins.dir, "");
    cr_assert_eq(plugins.n_plugins, 0);
}

Test(plugins, only_shared_objects_of_a_good_name_are_looked_at)
{
    static const char *const names[] = {"readme.txt", ".so", ".x.so", "a b.so", "noso"};
    PSD_AUTO(ps_plugins_done) ps_plugins_t plugins = {.dir = ""};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_MAX + 32];
        FILE *file = NULL;

        (void)snprintf(path, sizeof path, "%s/%s", dir.path, names[i]);
        file = fopen(path, "wb");
        cr_assert_not_null(file);
        (void)fclose(file);
    }
    cr_assert_eq(ps_plugins_load(dir.path, &plugins, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(plugins.n_plugins, 0);
    cr_assert_str_eq(plugins.dir, dir.path);
}

Test(plugins, a_directory_that_others_can_write_is_refused)
{
    ps_plugins_t plugins = {.dir = "untouched"};

    cr_assert_eq(chmod(dir.path, 0777), 0);
    cr_assert_eq(ps_plugins_load(dir.path, &plugins, err), PSD_CONFIG);
    cr_assert_not_null(strstr(psd_error_text(err), "can be written by its group or by everybody"));
    cr_assert_str_eq(plugins.dir, "untouched");
}

Test(plugins, a_directory_that_is_not_there_is_refused)
{
    ps_plugins_t plugins = {.dir = "untouched"};

    cr_assert_eq(ps_plugins_load("/nowhere/at/all", &plugins, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "updaters.dir /nowhere/at/all: No "
                                          "such file or directory");
}

/* ---- a path that is led elsewhere ---------------------------------------- */

static const char *led_path; /* NULL: nothing is done to any */
static const char *led_to;
static ino_t loaded; /* the file that the loader was sent to */

/* The program's own dlopen comes before the C library's: somebody leads the
 * path elsewhere between the looks at what is there and the loading. */
void *dlopen(const char *path, int flags)
{
    typedef void *dlopen_t(const char *path, int flags);
    void *symbol = dlsym(RTLD_NEXT, "dlopen");
    dlopen_t *next = NULL;
    struct stat is = {.st_ino = 0};

    if (led_path != NULL && path != NULL) {
        cr_assert_eq(unlink(led_path), 0);
        cr_assert_eq(symlink(led_to, led_path), 0);
        cr_assert_eq(stat(path, &is), 0, "%s", path);
        loaded = is.st_ino;
        led_path = NULL;
    }
    memcpy(&next, &symbol, sizeof next);
    return next(path, flags);
}

static ino_t make_dir_with_junk(const char *path)
{
    char file_path[PATH_MAX + 32];
    struct stat is = {.st_ino = 0};
    FILE *file = NULL;

    cr_assert_eq(mkdir(path, 0755), 0);
    (void)snprintf(file_path, sizeof file_path, "%s/junk.so", path);
    file = fopen(file_path, "wb");
    cr_assert_not_null(file);
    (void)fclose(file);
    cr_assert_eq(chmod(file_path, 0644), 0);
    cr_assert_eq(stat(file_path, &is), 0);
    return is.st_ino;
}

Test(plugins, what_was_looked_at_is_loaded_wherever_its_path_leads)
{
    PSD_AUTO(ps_plugins_done) ps_plugins_t plugins = {.dir = ""};
    char good[PATH_MAX];
    char evil[PATH_MAX];
    char path[PATH_MAX];
    ino_t wanted = 0;

    (void)snprintf(good, sizeof good, "%.200s/good", dir.path);
    (void)snprintf(evil, sizeof evil, "%.200s/evil", dir.path);
    (void)snprintf(path, sizeof path, "%.200s/path", dir.path);
    wanted = make_dir_with_junk(good);
    cr_assert_neq(make_dir_with_junk(evil), wanted);
    cr_assert_eq(symlink(good, path), 0);
    led_path = path;
    led_to = evil;
    cr_assert_eq(ps_plugins_load(path, &plugins, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_null(led_path);
    cr_assert_eq(plugins.n_plugins, 1);
    cr_assert_eq(loaded, wanted);
}

static psd_status_t load(void *fixture)
{
    PSD_AUTO(ps_plugins_done) ps_plugins_t plugins = {.dir = ""};

    (void)fixture;
    return ps_plugins_load(dir.path, &plugins, NULL);
}

Test(plugins, without_memory)
{
    char path[PATH_MAX + 32];
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "%s/junk.so", dir.path);
    file = fopen(path, "wb");
    cr_assert_not_null(file);
    (void)fclose(file);
    cr_assert_null(fail_alloc_sweep(load, NULL));
}
