/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/plugins.h: which directories are read. What is loaded from one, and
 * what is not, is in tests/integration/it_updater.c. */
#include "daemon/plugins.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"
#include "support/temp_dir.h"

static temp_dir_t dir;
static psd_error_t *err;

static void
start(void)
{
    err = psd_error_new();
    cr_assert(temp_dir_make(&dir));
}

static void
stop(void)
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
    static const char *const names[] = {"readme.txt", ".so", ".x.so", "a b.so",
                                        "noso"};
    PSD_AUTO(ps_plugins_done) ps_plugins_t plugins = {.dir = ""};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_MAX + 32];
        FILE *file = NULL;

        (void)snprintf(path, sizeof path, "%s/%s", dir.path, names[i]);
        file = fopen(path, "wb");
        cr_assert_not_null(file);
        (void)fclose(file);
    }
    cr_assert_eq(ps_plugins_load(dir.path, &plugins, err), PSD_OK, "%s",
                 psd_error_text(err));
    cr_assert_eq(plugins.n_plugins, 0);
    cr_assert_str_eq(plugins.dir, dir.path);
}

Test(plugins, a_directory_that_others_can_write_is_refused)
{
    ps_plugins_t plugins = {.dir = "untouched"};

    cr_assert_eq(chmod(dir.path, 0777), 0);
    cr_assert_eq(ps_plugins_load(dir.path, &plugins, err), PSD_CONFIG);
    cr_assert_not_null(strstr(psd_error_text(err),
                              "can be written by its group or by everybody"));
    cr_assert_str_eq(plugins.dir, "untouched");
}

Test(plugins, a_directory_that_is_not_there_is_refused)
{
    ps_plugins_t plugins = {.dir = "untouched"};

    cr_assert_eq(ps_plugins_load("/nowhere/at/all", &plugins, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "updaters.dir /nowhere/at/all: No "
                                          "such file or directory");
}

static psd_status_t
load(void *fixture)
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
