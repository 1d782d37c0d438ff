/* SPDX-License-Identifier: Apache-2.0 */
/* storage/disk/disk.h: one suite for the system's disk and the virtual one; what
 * only the virtual one does, so that tests may rely on it. */
#include "storage/disk/disk.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/sim_disk.h"
#include "support/temp_dir.h"

typedef struct fixture {
    temp_dir_t temp;
    sim_disk_t *sim; /* NULL: the system's */
    ps_disk_t *disk;
    const char *dir;
    psd_error_t *err;
} fixture_t;

static void begin(fixture_t *self, bool virtual)
{
    memset(self, 0, sizeof *self);
    self->err = psd_error_new();
    if (virtual) {
        self->sim = sim_disk_new(1);
        self->disk = sim_disk_face(self->sim);
        self->dir = "dir";
    } else {
        cr_assert(temp_dir_make(&self->temp));
        self->disk = ps_disk_real();
        self->dir = self->temp.path;
    }
}

static void end(fixture_t *self)
{
    sim_disk_destroy(&self->sim);
    temp_dir_drop(&self->temp);
    psd_error_destroy(&self->err);
}

typedef struct path {
    char text[PATH_MAX + 64];
} path_t;

static path_t path_of(const fixture_t *self, const char *name)
{
    path_t path;

    (void)snprintf(path.text, sizeof path.text, "%s/%s", self->dir, name);
    return path;
}

static ps_bytes_t bytes_of(const char *text)
{
    return (ps_bytes_t){(const uint8_t *)text, strlen(text)};
}

static ps_disk_file_t *open_file(fixture_t *self, const char *name, ps_disk_mode_t mode)
{
    ps_disk_file_t *file = NULL;
    path_t path = path_of(self, name);

    cr_assert_eq(self->disk->open(self->disk, path.text, mode, &file, self->err), PSD_OK, "%s",
                 psd_error_text(self->err));
    return file;
}

static void write_text(fixture_t *self, ps_disk_file_t *file, uint64_t at, const char *text)
{
    ps_bytes_t span = bytes_of(text);

    cr_assert_eq(self->disk->write(self->disk, file, at, &span, 1, self->err), PSD_OK);
}

static void assert_holds(fixture_t *self, const char *name, const char *text)
{
    ps_disk_file_t *file = open_file(self, name, PS_DISK_READ);
    uint8_t bytes[128];
    size_t size = 0;

    cr_assert_eq(self->disk->read(self->disk, file, 0, bytes, sizeof bytes, &size, self->err),
                 PSD_OK);
    cr_assert_eq(size, strlen(text));
    cr_assert(size == 0 || memcmp(bytes, text, size) == 0);
    self->disk->close(self->disk, &file);
    cr_assert_null(file);
}

static psd_status_t count_name(void *context, const char *name, psd_error_t *err)
{
    size_t *n = context;

    (void)err;
    *n += name[0] == 'f' ? 1 : 100;
    return *n >= 1000 ? PSD_LIMIT : PSD_OK;
}

static void check_bytes(fixture_t *self)
{
    ps_disk_file_t *file = open_file(self, "f1", PS_DISK_NEW);
    ps_bytes_t spans[] = {bytes_of("one "), {NULL, 0}, bytes_of("two")};
    uint64_t size = 0;

    cr_assert_eq(self->disk->write(self->disk, file, 0, spans, 3, self->err), PSD_OK);
    write_text(self, file, 4, "TWO three");
    cr_assert_eq(self->disk->size(self->disk, file, &size, self->err), PSD_OK);
    cr_assert_eq(size, 13);
    assert_holds(self, "f1", "one TWO three");
    cr_assert_eq(self->disk->truncate(self->disk, file, 7, self->err), PSD_OK);
    cr_assert_eq(self->disk->flush(self->disk, file, self->err), PSD_OK);
    self->disk->ahead(self->disk, file, 0, 7);
    assert_holds(self, "f1", "one TWO");
    self->disk->close(self->disk, &file);
    file = open_file(self, "f1", PS_DISK_KEEP);
    assert_holds(self, "f1", "one TWO");
    self->disk->close(self->disk, &file);
    file = open_file(self, "f1", PS_DISK_NEW);
    assert_holds(self, "f1", "");
    self->disk->close(self->disk, &file);
    self->disk->close(self->disk, &file); /* takes NULL */
}

static void check_names(fixture_t *self)
{
    path_t from = path_of(self, "f2");
    path_t to = path_of(self, "f3");
    path_t none = path_of(self, "none");
    ps_disk_file_t *file = open_file(self, "f2", PS_DISK_NEW);
    uint64_t room = 0;
    size_t n = 0;

    write_text(self, file, 0, "x");
    self->disk->close(self->disk, &file);
    cr_assert_eq(self->disk->rename(self->disk, from.text, to.text, self->err), PSD_OK);
    assert_holds(self, "f3", "x");
    cr_assert_eq(self->disk->list(self->disk, self->dir, count_name, &n, self->err), PSD_OK);
    cr_assert_eq(n, 2);
    n = 1000;
    cr_assert_eq(self->disk->list(self->disk, self->dir, count_name, &n, self->err), PSD_LIMIT);
    cr_assert_eq(self->disk->remove(self->disk, to.text, self->err), PSD_OK);
    cr_assert_eq(self->disk->remove(self->disk, to.text, self->err), PSD_OK);
    cr_assert_eq(self->disk->flush_dir(self->disk, self->dir, self->err), PSD_OK);
    cr_assert_eq(self->disk->room(self->disk, self->dir, &room, self->err), PSD_OK);
    cr_assert_gt(room, 0);
    cr_assert_eq(self->disk->open(self->disk, none.text, PS_DISK_READ, &file, self->err), PSD_IO);
    cr_assert_not_null(strstr(psd_error_text(self->err), "none: No such file"));
}

static void check_dirs(fixture_t *self)
{
    path_t dir = path_of(self, "f4");

    psd_error_clear(self->err);
    cr_assert_eq(self->disk->make_dir(self->disk, dir.text, self->err), PSD_OK);
    cr_assert_eq(self->disk->make_dir(self->disk, dir.text, self->err), PSD_OK);
}

static void check_all(bool virtual)
{
    fixture_t fixture;

    begin(&fixture, virtual);
    check_bytes(&fixture);
    check_names(&fixture);
    check_dirs(&fixture);
    end(&fixture);
}

Test(disk, the_systems_keeps_the_contract)
{
    check_all(false);
}

Test(disk, the_virtual_one_keeps_it_too)
{
    check_all(true);
}

/* What it leads to need not be psd's. DIR/. says that the caller wants that. */
Test(disk, a_directory_that_is_a_link_is_refused)
{
    fixture_t fixture;
    path_t real;
    path_t link;
    path_t to;
    path_t below;
    size_t n = 0;

    begin(&fixture, false);
    real = path_of(&fixture, "real");
    link = path_of(&fixture, "link");
    to = path_of(&fixture, "link/.");
    below = path_of(&fixture, "link/f5");
    cr_assert_eq(fixture.disk->make_dir(fixture.disk, real.text, fixture.err), PSD_OK);
    cr_assert_eq(symlink("real", link.text), 0);
    cr_expect_eq(fixture.disk->list(fixture.disk, link.text, count_name, &n, fixture.err),
                 PSD_FOREIGN);
    cr_expect_eq(n, 0);
    cr_expect_not_null(strstr(psd_error_text(fixture.err), "link is a symbolic link"));
    psd_error_clear(fixture.err);
    cr_expect_eq(fixture.disk->flush_dir(fixture.disk, link.text, fixture.err), PSD_FOREIGN);
    psd_error_clear(fixture.err);
    cr_expect_eq(fixture.disk->make_dir(fixture.disk, below.text, fixture.err), PSD_OK);
    cr_expect_eq(fixture.disk->list(fixture.disk, to.text, count_name, &n, fixture.err), PSD_OK);
    cr_expect_eq(n, 1);
    cr_expect_eq(fixture.disk->flush_dir(fixture.disk, to.text, fixture.err), PSD_OK);
    end(&fixture);
}

Test(disk, more_spans_than_the_system_takes_at_once)
{
    fixture_t fixture;
    ps_bytes_t spans[3000];
    uint64_t size = 0;
    ps_disk_file_t *file = NULL;

    begin(&fixture, false);
    for (size_t i = 0; i < 3000; i++) {
        spans[i] = bytes_of(i % 3 == 0 ? "" : i % 3 == 1 ? "ab" : "c");
    }
    file = open_file(&fixture, "f", PS_DISK_NEW);
    cr_assert_eq(fixture.disk->write(fixture.disk, file, 0, spans, 3000, fixture.err), PSD_OK);
    cr_assert_eq(fixture.disk->size(fixture.disk, file, &size, fixture.err), PSD_OK);
    cr_assert_eq(size, 3000);
    fixture.disk->close(fixture.disk, &file);
    end(&fixture);
}

/* What is handed to the system in parts lies one behind the other. */
Test(disk, a_large_write_is_whole)
{
    enum { SIZE = 3000001 };
    fixture_t fixture;
    uint8_t *bytes = malloc(SIZE);
    uint8_t *got = malloc(SIZE);
    ps_bytes_t spans[] = {{bytes, 7}, {bytes + 7, 2000000}, {bytes + 2000007, SIZE - 2000007}};
    ps_disk_file_t *file = NULL;
    size_t size = 0;

    cr_assert(bytes != NULL && got != NULL);
    for (size_t i = 0; i < SIZE; i++) {
        bytes[i] = (uint8_t)(i * 31 + i / 4099);
    }
    begin(&fixture, false);
    file = open_file(&fixture, "f", PS_DISK_NEW);
    cr_assert_eq(fixture.disk->write(fixture.disk, file, 0, spans, 3, fixture.err), PSD_OK);
    cr_assert_eq(fixture.disk->read(fixture.disk, file, 0, got, SIZE, &size, fixture.err), PSD_OK);
    cr_assert_eq(size, SIZE);
    cr_assert_eq(memcmp(got, bytes, SIZE), 0);
    fixture.disk->close(fixture.disk, &file);
    free(bytes);
    free(got);
    end(&fixture);
}

/* A stream's file is what was written, wherever its buffer ends, and whether or
 * not it is ever full. */
Test(disk, a_stream_is_whole)
{
    static const size_t sizes[] = {0, 5, 4096, 8 << 20, 20000003};
    fixture_t fixture;
    uint8_t *bytes = malloc(sizes[4]);
    uint8_t *got = malloc(sizes[4]);

    cr_assert(bytes != NULL && got != NULL);
    for (size_t i = 0; i < sizes[4]; i++) {
        bytes[i] = (uint8_t)(i * 31 + i / 4099);
    }
    begin(&fixture, false);
    for (size_t k = 0; k < 5; k++) {
        ps_disk_file_t *file = open_file(&fixture, "f", PS_DISK_STREAM);
        uint64_t in_file = 1;
        size_t size = 0;
        size_t n = 0;

        for (size_t at = 0; at < sizes[k]; at += n) {
            ps_bytes_t spans[] = {{bytes + at, 1}, {bytes + at + 1, 0}};

            n = sizes[k] - at < 700001 ? sizes[k] - at : 700001;
            spans[1].size = n - 1;
            cr_assert_eq(fixture.disk->write(fixture.disk, file, at, spans, 2, fixture.err),
                         PSD_OK);
        }
        cr_assert_eq(fixture.disk->flush(fixture.disk, file, fixture.err), PSD_OK);
        cr_assert_eq(fixture.disk->size(fixture.disk, file, &in_file, fixture.err), PSD_OK);
        cr_assert_eq(in_file, sizes[k]);
        fixture.disk->close(fixture.disk, &file);
        file = open_file(&fixture, "f", PS_DISK_READ);
        cr_assert_eq(fixture.disk->read(fixture.disk, file, 0, got, sizes[4], &size, fixture.err),
                     PSD_OK);
        cr_assert_eq(size, sizes[k]);
        cr_assert_eq(memcmp(got, bytes, size), 0);
        fixture.disk->close(fixture.disk, &file);
    }
    free(bytes);
    free(got);
    end(&fixture);
}

/* No room for a buffer, or for what is left in it: by the call that wrote. */
Test(disk, a_stream_tells_of_no_room)
{
    struct rlimit limit = {(size_t)9 << 20, (size_t)9 << 20};
    uint8_t *bytes = calloc(1, (size_t)17 << 20);
    fixture_t fixture;
    ps_disk_file_t *file = NULL;
    ps_bytes_t span = {bytes, (size_t)17 << 20};

    cr_assert_not_null(bytes);
    begin(&fixture, false);
    (void)signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    file = open_file(&fixture, "f", PS_DISK_STREAM);
    cr_assert_eq(fixture.disk->write(fixture.disk, file, 0, &span, 1, fixture.err), PSD_LIMIT);
    cr_assert_not_null(strstr(psd_error_text(fixture.err), "f: File too large"));
    fixture.disk->close(fixture.disk, &file);
    file = open_file(&fixture, "f", PS_DISK_STREAM);
    span.size = (size_t)15 << 20;
    cr_assert_eq(fixture.disk->write(fixture.disk, file, 0, &span, 1, fixture.err), PSD_OK);
    cr_assert_eq(fixture.disk->flush(fixture.disk, file, fixture.err), PSD_LIMIT);
    fixture.disk->close(fixture.disk, &file);
    free(bytes);
    end(&fixture);
}

/* The limit of a file's size stands for a full disk. */
Test(disk, no_room_is_told_from_other_failures)
{
    struct rlimit limit = {1000, 1000};
    static char text[2001];
    fixture_t fixture;
    ps_disk_file_t *file = NULL;
    ps_bytes_t span = {(const uint8_t *)text, 2000};

    begin(&fixture, false);
    (void)signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    file = open_file(&fixture, "f", PS_DISK_NEW);
    cr_assert_eq(fixture.disk->write(fixture.disk, file, 0, &span, 1, fixture.err), PSD_LIMIT);
    cr_assert_not_null(strstr(psd_error_text(fixture.err), "f: File too large"));
    fixture.disk->close(fixture.disk, &file);
    end(&fixture);
}

/* ---- the virtual disk's faults ------------------------------------------- */

Test(disk, a_crash_keeps_what_was_flushed)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        fixture_t fixture;
        ps_disk_file_t *file = NULL;
        ps_bytes_t kept = {NULL, 0};
        path_t path;

        begin(&fixture, true);
        sim_disk_destroy(&fixture.sim);
        fixture.sim = sim_disk_new(seed);
        fixture.disk = sim_disk_face(fixture.sim);
        path = path_of(&fixture, "f");
        file = open_file(&fixture, "f", PS_DISK_NEW);
        write_text(&fixture, file, 0, "safe");
        cr_assert_eq(fixture.disk->flush(fixture.disk, file, NULL), PSD_OK);
        cr_assert_eq(fixture.disk->flush_dir(fixture.disk, "dir", NULL), PSD_OK);
        write_text(&fixture, file, 4, " or not");
        sim_disk_restart(fixture.sim);
        kept = sim_disk_content(fixture.sim, path.text);
        cr_assert(kept.size >= 4 && kept.size <= 11);
        cr_assert_arr_eq(kept.data, "safe", 4);
        fixture.disk->close(fixture.disk, &file);
        end(&fixture);
    }
}

Test(disk, names_that_were_not_flushed_may_be_lost)
{
    size_t n_lost = 0;

    for (uint64_t seed = 0; seed < 50; seed++) {
        fixture_t fixture;
        ps_disk_file_t *file = NULL;

        begin(&fixture, true);
        sim_disk_destroy(&fixture.sim);
        fixture.sim = sim_disk_new(seed);
        fixture.disk = sim_disk_face(fixture.sim);
        file = open_file(&fixture, "f", PS_DISK_NEW);
        cr_assert_eq(fixture.disk->flush(fixture.disk, file, NULL), PSD_OK);
        sim_disk_restart(fixture.sim);
        n_lost += sim_disk_count(fixture.sim) == 0;
        fixture.disk->close(fixture.disk, &file);
        end(&fixture);
    }
    cr_assert(n_lost > 0 && n_lost < 50);
}

/* After a flush that failed, one that succeeds says nothing of those bytes. */
Test(disk, a_failed_flush_forgets_what_it_left_out)
{
    size_t n_lost = 0;

    for (uint64_t seed = 0; seed < 50; seed++) {
        fixture_t fixture;
        ps_disk_file_t *file = NULL;
        path_t path;

        begin(&fixture, true);
        sim_disk_destroy(&fixture.sim);
        fixture.sim = sim_disk_new(seed);
        fixture.disk = sim_disk_face(fixture.sim);
        path = path_of(&fixture, "f");
        file = open_file(&fixture, "f", PS_DISK_NEW);
        cr_assert_eq(fixture.disk->flush_dir(fixture.disk, "dir", NULL), PSD_OK);
        write_text(&fixture, file, 0, "bytes");
        sim_disk_plan(fixture.sim, sim_disk_ops(fixture.sim), 1, SIM_DISK_FAIL);
        cr_assert_eq(fixture.disk->flush(fixture.disk, file, NULL), PSD_IO);
        assert_holds(&fixture, "f", "bytes");
        cr_assert_eq(fixture.disk->flush(fixture.disk, file, NULL), PSD_OK);
        sim_disk_restart(fixture.sim);
        n_lost += sim_disk_content(fixture.sim, path.text).size < 5 ||
                  sim_disk_content(fixture.sim, path.text).data[0] == 0;
        fixture.disk->close(fixture.disk, &file);
        end(&fixture);
    }
    cr_assert(n_lost > 0 && n_lost < 50);
}

Test(disk, a_full_disk_takes_what_fits)
{
    fixture_t fixture;
    ps_disk_file_t *file = NULL;
    ps_bytes_t span = bytes_of("0123456789");

    begin(&fixture, true);
    sim_disk_set_capacity(fixture.sim, 4);
    file = open_file(&fixture, "f", PS_DISK_NEW);
    cr_assert_eq(fixture.disk->write(fixture.disk, file, 0, &span, 1, NULL), PSD_LIMIT);
    assert_holds(&fixture, "f", "0123");
    sim_disk_set_capacity(fixture.sim, 10);
    cr_assert_eq(fixture.disk->write(fixture.disk, file, 0, &span, 1, NULL), PSD_OK);
    fixture.disk->close(fixture.disk, &file);
    end(&fixture);
}

Test(disk, a_planned_crash_ends_everything_until_restart)
{
    fixture_t fixture;
    ps_disk_file_t *file = NULL;
    ps_bytes_t span = bytes_of("x");

    begin(&fixture, true);
    file = open_file(&fixture, "f", PS_DISK_NEW);
    sim_disk_plan(fixture.sim, sim_disk_ops(fixture.sim) + 1, 1, SIM_DISK_CRASH);
    write_text(&fixture, file, 0, "a");
    cr_assert(!sim_disk_crashed(fixture.sim));
    cr_assert_eq(fixture.disk->flush(fixture.disk, file, NULL), PSD_IO);
    cr_assert(sim_disk_crashed(fixture.sim));
    cr_assert_eq(fixture.disk->write(fixture.disk, file, 0, &span, 1, NULL), PSD_IO);
    fixture.disk->close(fixture.disk, &file);
    sim_disk_restart(fixture.sim);
    file = open_file(&fixture, "f", PS_DISK_NEW);
    write_text(&fixture, file, 0, "b");
    fixture.disk->close(fixture.disk, &file);
    end(&fixture);
}
