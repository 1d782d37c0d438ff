/* SPDX-License-Identifier: Apache-2.0 */
/* A page in memory and one for a directory on a disk; who is late, and who is
 * not; pages that are none. */
#include "transport/threads/turns_look.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"
#include "support/temp_dir.h"

#define PLACES 4
#define TOOK_MS 100
#define MEMORY "/dev/shm"
#define TEXT_SIZE 256

static temp_dir_t dir;
static char path[PATH_MAX + 16];
static ps_turns_t *turns;
static psd_error_t *err;

static void open_in(const char *base)
{
    cr_assert_eq(setenv("TMPDIR", base, 1), 0);
    cr_assert(temp_dir_make(&dir));
    (void)snprintf(path, sizeof path, "%s/%s", dir.path, PS_TURNS_FILE);
    err = psd_error_new();
    cr_assert_eq(ps_turns_open(dir.path, 0640, PLACES, &turns, err), PSD_OK, "%s",
                 psd_error_text(err));
}

static void setup(void)
{
    open_in(MEMORY);
}

static void teardown(void)
{
    ps_turns_close(&turns);
    psd_error_destroy(&err);
    temp_dir_drop(&dir);
}

TestSuite(turns, .init = setup, .fini = teardown, .timeout = 60);

static void check_name(const ps_turn_t *turn, const char *expected)
{
    char name[PS_TURN_NAME_SIZE];

    ps_turn_name(turn, name);
    cr_assert_str_eq(name, expected);
}

/* ---- the page ---- */

static void check_seen(void)
{
    ps_turns_view_t view = {0};
    ps_turn_t *turn = ps_turns_enter(turns, "me");
    const ps_turn_t *seen = NULL;

    ps_turns_listen(turns, "tcp://127.0.0.1:7171");
    ps_turns_listen(turns, "ipc:///x/psd.ipc");
    ps_turn_works(turn);
    cr_assert_eq(ps_turns_view_open(path, &view, err), PSD_OK, "%s", psd_error_text(err));
    seen = (const ps_turn_t *)(view.page + 1);
    cr_assert_eq(view.page->pid, getpid());
    cr_assert_eq(view.page->n_places, PLACES);
    cr_assert_str_eq(view.page->listens, "tcp://127.0.0.1:7171 ipc:///x/psd.ipc");
    check_name(seen, "me");
    cr_assert_eq(atomic_load(&seen->tid), (int)syscall(SYS_gettid));
    ps_turn_leave(&turn);
    cr_assert_null(turn);
    cr_assert(ps_turns_view_read(&view));
    cr_assert_eq(atomic_load(&seen->tid), 0);
    ps_turns_view_done(&view);
}

Test(turns, a_page_in_memory_is_its_file)
{
    struct stat is;

    check_seen();
    cr_assert_eq(stat(path, &is), 0);
    cr_assert_eq(is.st_mode & 07777, 0640);
    cr_assert_eq((size_t)is.st_size, sizeof(ps_turns_head_t) + PLACES * sizeof(ps_turn_t));
}

/* A store must not wait for a disk: the file only says where the page is. */
Test(turns, beside_a_disk_the_page_is_memory_all_the_same)
{
    struct statfs on;
    struct stat is;

    cr_assert_eq(statfs(".", &on), 0);
    cr_assert_neq(on.f_type, 0x01021994, "the build lies in memory");
    teardown();
    open_in(".");
    check_seen();
    cr_assert_eq(stat(path, &is), 0);
    cr_assert_eq((size_t)is.st_size, sizeof(ps_turns_head_t));
}

Test(turns, a_place_is_had_once_and_again_when_it_is_left)
{
    ps_turn_t *all[PLACES];

    for (int i = 0; i < PLACES; i++) {
        all[i] = ps_turns_enter(turns, "thread-with-a-long-name");
        cr_assert_not_null(all[i]);
        check_name(all[i], "thread-with-a-l");
    }
    cr_assert_null(ps_turns_enter(turns, "one more"));
    ps_turn_leave(&all[1]);
    all[1] = ps_turns_enter(turns, "again");
    cr_assert_not_null(all[1]);
    for (int i = 0; i < PLACES; i++) {
        ps_turn_leave(&all[i]);
    }
    ps_turn_leave(&all[0]); /* NULL */
    ps_turn_works(NULL);
    ps_turn_waits(NULL);
    cr_assert_null(ps_turns_enter(NULL, "nowhere"));
}

Test(turns, endpoints_that_do_not_fit_are_left_out)
{
    char endpoint[401];

    memset(endpoint, 'x', sizeof endpoint - 1);
    endpoint[sizeof endpoint - 1] = '\0';
    for (int i = 0; i < 4; i++) {
        ps_turns_listen(turns, endpoint);
    }
    ps_turns_listen(turns, "");
    cr_assert_eq(strlen(ps_turns_page(turns)->listens), 2 * 400 + 1);
}

/* ---- who is late ---- */

/* A thread that sleeps until the pipe is closed. */
typedef struct sleeper {
    pthread_t thread;
    int pipe[2];
    ps_turn_t *turn;
    atomic_bool is_there;
} sleeper_t;

static void *sleep_on(void *argument)
{
    sleeper_t *self = argument;
    char byte = 0;

    self->turn = ps_turns_enter(turns, "sleeper");
    atomic_store(&self->is_there, true);
    return (void *)(uintptr_t)(read(self->pipe[0], &byte, 1) != 0);
}

static char state_of(pid_t tid)
{
    char file[64];
    char text[512] = "";
    int fd = -1;

    (void)snprintf(file, sizeof file, "/proc/self/task/%d/stat", tid);
    fd = open(file, O_RDONLY);
    cr_assert_gt(read(fd, text, sizeof text - 1), 0);
    (void)close(fd);
    return strrchr(text, ')')[2];
}

static void start_sleeper(sleeper_t *self)
{
    cr_assert_eq(pipe(self->pipe), 0);
    atomic_init(&self->is_there, false);
    cr_assert_eq(pthread_create(&self->thread, NULL, sleep_on, self), 0);
    while (!atomic_load(&self->is_there) || state_of(atomic_load(&self->turn->tid)) != 'S') {
    }
}

static void end_sleeper(sleeper_t *self)
{
    (void)close(self->pipe[1]);
    cr_assert_eq(pthread_join(self->thread, NULL), 0);
    (void)close(self->pipe[0]);
    ps_turn_leave(&self->turn);
}

static void set_turned(ps_turn_t *turn, uint64_t ms_ago, bool waits)
{
    atomic_store(&turn->turned, (ps_turn_now_ms() - ms_ago) * 2 + (waits ? 1 : 0));
}

static size_t n_late(ps_late_t *ret_first)
{
    ps_late_t late[PLACES];
    size_t n = ps_turns_late(ps_turns_page(turns), late, PLACES);

    *ret_first = n > 0 ? late[0] : (ps_late_t){.tid = 0};
    return n;
}

/* So many, that long after its turn: not when a busy machine took time between the two. */
static size_t n_late_after(ps_turn_t *turn, uint64_t ms_ago, bool waits, ps_late_t *ret_first)
{
    uint64_t since_ms = 0;
    size_t n = 0;

    do {
        since_ms = ps_turn_now_ms();
        set_turned(turn, ms_ago, waits);
        n = n_late(ret_first);
    } while (ps_turn_now_ms() - since_ms > TOOK_MS);
    return n;
}

Test(turns, who_waits_is_late_sooner_than_who_works)
{
    sleeper_t sleeper = {.turn = NULL};
    ps_late_t late;
    char text[TEXT_SIZE];

    start_sleeper(&sleeper);
    cr_assert_eq(n_late_after(sleeper.turn, PS_TURN_WAIT_MS, true, &late), 0);
    cr_assert_eq(n_late_after(sleeper.turn, PS_LATE_WAIT_MS + 1500, true, &late), 1);
    cr_assert_str_eq(late.name, "sleeper");
    cr_assert_eq(late.state, 'S');
    cr_assert_not(late.is_stopped);
    ps_late_print(&late, text, sizeof text);
    cr_assert_eq(strncmp(text, "thread sleeper has not turned for 2.", 36), 0, "%s", text);
    cr_assert_eq(n_late_after(sleeper.turn, PS_LATE_WAIT_MS + 1500, false, &late), 0);
    cr_assert_geq(ps_turns_oldest_ms(ps_turns_page(turns)), 2300);
    cr_assert_eq(n_late_after(sleeper.turn, PS_LATE_WORK_MS + 1, false, &late), 1);
    end_sleeper(&sleeper);
    cr_assert_eq(n_late(&late), 0);
}

/* The kernel counts a thread whose new process has not begun yet among those
 * that wait for a disk. */
static void *wait_as_for_a_disk(void *argument)
{
    sleeper_t *self = argument;
    char byte = 0;

    self->turn = ps_turns_enter(turns, "writer");
    atomic_store(&self->is_there, true);
    if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0) {
        (void)close(self->pipe[1]);
        (void)!write(self->pipe[0], &byte, 1);
        (void)!read(self->pipe[0], &byte, 1);
        _exit(0);
    }
    return NULL;
}

Test(turns, who_waits_for_a_disk_is_late_and_not_old)
{
    sleeper_t writer = {.turn = NULL};
    ps_late_t late;
    char byte = 0;

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, writer.pipe), 0);
    atomic_init(&writer.is_there, false);
    cr_assert_eq(pthread_create(&writer.thread, NULL, wait_as_for_a_disk, &writer), 0);
    /* Until the process is there, the thread may wait for a page, too. */
    cr_assert_eq(read(writer.pipe[1], &byte, 1), 1);
    while (!atomic_load(&writer.is_there) || state_of(atomic_load(&writer.turn->tid)) != 'D') {
    }
    cr_assert_eq(n_late_after(writer.turn, PS_LATE_WORK_MS + 1, false, &late), 1);
    cr_assert_eq(late.state, 'D');
    cr_assert_eq(ps_turns_oldest_ms(ps_turns_page(turns)), 0);
    (void)close(writer.pipe[1]);
    cr_assert_eq(pthread_join(writer.thread, NULL), 0);
    cr_assert_geq(ps_turns_oldest_ms(ps_turns_page(turns)), PS_LATE_WORK_MS);
    (void)close(writer.pipe[0]);
    ps_turn_leave(&writer.turn);
}

/* It looks at itself: it runs. */
Test(turns, who_runs_is_given_time)
{
    ps_turn_t *me = ps_turns_enter(turns, "me");
    ps_late_t late;

    set_turned(me, PS_LATE_WAIT_MS + 500, true);
    cr_assert_eq(n_late(&late), 0);
    set_turned(me, PS_LATE_WORK_MS + 1, true);
    cr_assert_eq(n_late(&late), 1);
    cr_assert_eq(late.state, 'R');
    ps_turn_leave(&me);
}

Test(turns, what_the_watch_says_counts_only_while_it_turns)
{
    sleeper_t sleeper = {.turn = NULL};
    sleeper_t watch = {.turn = NULL};
    ps_turn_t *probed = NULL;
    ps_late_t late;

    start_sleeper(&sleeper);
    start_sleeper(&watch);
    memcpy(watch.turn->name, PS_TURNS_WATCH, sizeof PS_TURNS_WATCH);
    probed = ps_turns_add_probed(turns, "probed", atomic_load(&sleeper.turn->tid));
    set_turned(probed, 2000, true);
    cr_assert_eq(n_late(&late), 1);
    cr_assert_str_eq(late.name, "probed");
    cr_assert_eq(n_late_after(watch.turn, 3000, true, &late), 1);
    cr_assert_str_eq(late.name, PS_TURNS_WATCH);
    ps_turn_leave(&probed);
    end_sleeper(&watch);
    end_sleeper(&sleeper);
}

Test(turns, the_longest_silent_come_first_and_the_rest_is_left_out)
{
    sleeper_t all[3] = {{.turn = NULL}, {.turn = NULL}, {.turn = NULL}};
    ps_late_t late[2];

    for (size_t i = 0; i < 3; i++) {
        start_sleeper(&all[i]);
    }
    set_turned(all[0].turn, 2000, true);
    set_turned(all[1].turn, 4000, true);
    set_turned(all[2].turn, 3000, true);
    cr_assert_eq(ps_turns_late(ps_turns_page(turns), late, 2), 2);
    cr_assert_eq(late[0].tid, atomic_load(&all[1].turn->tid));
    cr_assert_eq(late[1].tid, atomic_load(&all[2].turn->tid));
    for (size_t i = 0; i < 3; i++) {
        end_sleeper(&all[i]);
    }
}

/* ---- whose page it is ---- */

static psd_status_t find(const char *endpoint)
{
    const char *const dirs[] = {"/nowhere", dir.path, NULL};
    ps_turns_view_t view = {0};
    psd_status_t rc = ps_turns_view_find(endpoint, dirs, &view, err);

    ps_turns_view_done(&view);
    return rc;
}

Test(turns, it_is_found_by_its_endpoint)
{
    char ipc[PATH_MAX + 32];

    ps_turns_listen(turns, "tcp://127.0.0.1:61234");
    cr_assert_eq(find("tcp://127.0.0.1:61234"), PSD_OK);
    cr_assert_eq(find("tcp://localhost:61234"), PSD_OK);
    cr_assert_eq(find("tcp://127.0.0.1:61235"), PSD_NO_NODE);
    cr_assert_eq(find("tcp://192.0.2.1:61234"), PSD_NO_NODE);
    cr_assert_eq(find("tcp://:61234"), PSD_NO_NODE);
    cr_assert_eq(find("lane://x"), PSD_NO_NODE);
    (void)snprintf(ipc, sizeof ipc, "ipc://%s/psd.ipc", dir.path);
    cr_assert_eq(find(ipc), PSD_OK);
}

/* ---- pages that are none ---- */

/* Writes `size` bytes of the head over the file. */
static psd_status_t open_with(const ps_turns_head_t *head, size_t size)
{
    ps_turns_view_t view = {0};
    FILE *file = fopen(path, "we");
    psd_status_t rc = PSD_OK;

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(head, 1, size, file), size);
    cr_assert_eq(fclose(file), 0);
    psd_error_clear(err);
    rc = ps_turns_view_open(path, &view, err);
    cr_assert_neq(rc, PSD_OK);
    cr_assert_null(view.page);
    cr_assert_not_null(strstr(psd_error_text(err), path));
    return rc;
}

Test(turns, what_is_no_page_is_refused_by_name)
{
    ps_turns_head_t good = *ps_turns_page(turns);
    ps_turns_head_t bad = good;
    ps_turns_view_t view = {0};

    cr_assert_eq(unlink(path), 0); /* the page itself stays as it is */
    cr_assert_eq(open_with(&good, 100), PSD_DAMAGED);
    cr_assert_eq(open_with(&good, sizeof good), PSD_DAMAGED); /* no places */
    bad.magic++;
    cr_assert_eq(open_with(&bad, sizeof bad), PSD_DAMAGED);
    bad = good;
    bad.version++;
    cr_assert_eq(open_with(&bad, sizeof bad), PSD_VERSION);
    bad = good;
    bad.n_places = PS_TURNS_PLACES_MAX + 1;
    cr_assert_eq(open_with(&bad, sizeof bad), PSD_DAMAGED);
    bad = good;
    bad.started++;
    cr_assert_eq(open_with(&bad, sizeof bad), PSD_CLOSED);
    bad = good;
    bad.pid = INT64_MAX;
    cr_assert_eq(open_with(&bad, sizeof bad), PSD_CLOSED);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(ps_turns_view_open(path, &view, err), PSD_IO);
    cr_assert_eq(symlink("/dev/null", path), 0);
    cr_assert_eq(ps_turns_view_open(path, &view, err), PSD_IO);
}

Test(turns, a_file_that_cannot_be_made_is_named)
{
    ps_turns_t *none = NULL;

    cr_assert_eq(ps_turns_open("/nowhere", 0600, 1, &none, err), PSD_IO);
    cr_assert_not_null(strstr(psd_error_text(err), "/nowhere/threads"));
    cr_assert_null(none);
    fail_alloc_at(0);
    cr_assert_eq(ps_turns_open(dir.path, 0600, 1, &none, NULL), PSD_NOMEM);
    fail_alloc_off();
    cr_assert_null(none);
}
