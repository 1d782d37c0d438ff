/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every thread of a psd is stopped, one after the other, by ptrace: `pscli
 * cluster status` names it, at once, and systemd's watchdog is not fed until it
 * goes on.
 */
#include <dirent.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/daemon.h"
#include "support/stop_thread.h"

#define THREADS_MAX 64
/* control, watch, filler, http, 2 shards with journals, 2 of ZeroMQ's I/O, a reaper */
#define THREADS_LEAST 11
#define NAME_SIZE 64
#define TEXT_SIZE 4096
#define TRIES 5       /* that a busy machine may spoil all but one of */
#define WITHIN_S 30.0 /* pscli answers: after 1 s, where it has a processor */
#define WAIT_S 100.0  /* enough everywhere */
#define WATCHDOG                                                              \
    "3000000"             /* microseconds: fed each 0.5 s, while all have … \
                           */
#define UNFED_AFTER_S 1.1 /* … turned within 1 s */
#define FEEDS_APART_S 0.6
#define CONFIG "shards: 2\n"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif

typedef struct fixture {
    daemon_t daemon;
    temp_dir_t dir; /* of the notify socket */
    int notify;
    pid_t stopped; /* 0: none */
} fixture_t;

typedef struct thread {
    pid_t tid;
    char name[NAME_SIZE];
} thread_t;

static double now_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- what systemd would hear ---- */

static bool open_notify(fixture_t *f)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    CHECK(temp_dir_make(&f->dir));
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%.80s/notify", f->dir.path);
    f->notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(f->notify >= 0);
    CHECK(bind(f->notify, (const struct sockaddr *)&at, sizeof at) == 0);
    CHECK(setenv("NOTIFY_SOCKET", at.sun_path, 1) == 0);
    return setenv("WATCHDOG_USEC", WATCHDOG, 1) == 0;
}

/* Whether the watchdog is fed within so many seconds. */
static bool is_fed(const fixture_t *f, double within_s)
{
    double until_s = now_s() + within_s;
    char text[TEXT_SIZE];
    double left_s = within_s;

    while (left_s > 0) {
        struct timeval wait = {.tv_sec = (time_t)left_s,
                               .tv_usec =
                                   (suseconds_t)((left_s - (double)(time_t)left_s) * 1e6) + 1};
        ssize_t n = 0;

        (void)setsockopt(f->notify, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
        n = recv(f->notify, text, sizeof text - 1, 0);
        text[n < 0 ? 0 : n] = '\0';
        if (strstr(text, "WATCHDOG=1") != NULL) {
            return true;
        }
        left_s = until_s - now_s();
    }
    return false;
}

static void drain(const fixture_t *f)
{
    char text[TEXT_SIZE];

    while (recv(f->notify, text, sizeof text, MSG_DONTWAIT) >= 0) {
    }
}

static void sleep_until(double when_s)
{
    double left_s = when_s - now_s();

    if (left_s > 0) {
        struct timespec left = {.tv_sec = (time_t)left_s,
                                .tv_nsec = (long)((left_s - (double)(time_t)left_s) * 1e9)};

        (void)nanosleep(&left, NULL);
    }
}

/* ---- pscli ---- */

/* Runs `pscli cluster status`: its exit code, what it said, how long it took.
 */
static int status(const char *endpoint, char ret_text[TEXT_SIZE], double *ret_s)
{
    char line[TEXT_SIZE];
    double began_s = now_s();
    FILE *said = NULL;
    size_t n = 0;
    int code = 0;

    (void)snprintf(line, sizeof line, "exec '%.1000s' --endpoint '%.1000s' cluster status 2>&1",
                   getenv("PSCLI_PROGRAM"), endpoint);
    said = popen(line, "re");
    if (said == NULL) {
        return -1;
    }
    n = fread(ret_text, 1, TEXT_SIZE - 1, said);
    ret_text[n] = '\0';
    code = pclose(said);
    *ret_s = now_s() - began_s;
    return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

static bool wait_healthy(const char *endpoint)
{
    double until_s = now_s() + WAIT_S;
    char text[TEXT_SIZE] = "";
    double took_s = 0;

    while (status(endpoint, text, &took_s) != 0) {
        if (now_s() >= until_s) {
            (void)fprintf(stderr, "not healthy: %s\n", text);
            return false;
        }
    }
    return true;
}

/* It is named, each time, and once within the time. */
static bool check_named(const char *endpoint, const char *name)
{
    char wanted[NAME_SIZE + 32];
    char text[TEXT_SIZE] = "";
    double took_s = WAIT_S;

    (void)snprintf(wanted, sizeof wanted, "thread %s has not turned", name);
    for (int i = 0; i < TRIES && took_s > WITHIN_S; i++) {
        int code = status(endpoint, text, &took_s);

        if (code != 1 || strstr(text, wanted) == NULL) {
            (void)fprintf(stderr, "%s: exit code %d after %.2f s: %s\n", name, code, took_s, text);
            return false;
        }
    }
    (void)printf("  %s: %.2f s\n", name, took_s);
    return took_s <= WITHIN_S;
}

/* ---- the threads ---- */

static bool read_name(pid_t pid, pid_t tid, char ret_name[NAME_SIZE])
{
    char path[128];
    FILE *file = NULL;
    bool done = false;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, tid);
    file = fopen(path, "re");
    done = file != NULL && fgets(ret_name, NAME_SIZE, file) != NULL;
    ret_name[strcspn(ret_name, "\n")] = '\0';
    if (file != NULL) {
        (void)fclose(file);
    }
    return done;
}

static size_t list_threads(pid_t pid, thread_t ret_threads[THREADS_MAX])
{
    char path[128];
    DIR *all = NULL;
    const struct dirent *entry = NULL;
    size_t n = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/task", pid);
    all = opendir(path);
    while (all != NULL && n < THREADS_MAX && (entry = readdir(all)) != NULL) {
        thread_t *thread = &ret_threads[n];

        if (entry->d_name[0] == '.') {
            continue;
        }
        thread->tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (!read_name(pid, thread->tid, thread->name)) {
            continue;
        }
        if (thread->tid == pid) { /* it has the program's name */
            (void)snprintf(thread->name, NAME_SIZE, "control");
        }
#ifdef UNDER_TSAN
        if (strcmp(thread->name, "psd") == 0) {
            continue; /* the sanitizer's own */
        }
#endif
        n++;
    }
    if (all != NULL) {
        (void)closedir(all);
    }
    return n;
}

static bool stop_one(fixture_t *f, const thread_t *thread)
{
    const char *endpoint = f->daemon.control;
    double stopped_s = 0;

    CHECK(stop_thread(thread->tid));
    f->stopped = thread->tid;
    stopped_s = now_s();
    CHECK(check_named(endpoint, thread->name));
    sleep_until(stopped_s + UNFED_AFTER_S);
    drain(f);
    CHECK(!is_fed(f, FEEDS_APART_S));
    CHECK(let_thread_go(thread->tid));
    f->stopped = 0;
    CHECK(wait_healthy(endpoint));
    CHECK(is_fed(f, WAIT_S));
    return true;
}

static bool every_thread_is_named_and_missed(fixture_t *f)
{
    thread_t threads[THREADS_MAX];
    size_t n = 0;
    size_t n_named = 0;

    CHECK(wait_healthy(f->daemon.control));
    CHECK(is_fed(f, WAIT_S));
    n = list_threads(f->daemon.pid, threads);
    CHECK(n >= THREADS_LEAST && n < THREADS_MAX);
    for (size_t i = 0; i < n && stop_one(f, &threads[i]); i++) {
        n_named++;
    }
    (void)printf("%zu of %zu threads\n", n_named, n);
    return n_named == n;
}

/* The same by the unix socket, beside which the page is. */
static bool is_named_by_its_socket(fixture_t *f)
{
    CHECK(stop_thread(f->daemon.pid));
    f->stopped = f->daemon.pid;
    CHECK(check_named(f->daemon.ipc, "control"));
    CHECK(let_thread_go(f->daemon.pid));
    f->stopped = 0;
    return wait_healthy(f->daemon.ipc);
}

static bool one_that_was_killed_is_gone(fixture_t *f)
{
    char text[TEXT_SIZE] = "";
    double took_s = 0;

    CHECK(daemon_end(&f->daemon, SIGKILL));
    CHECK(status(f->daemon.ipc, text, &took_s) != 0);
    if (strstr(text, "is gone") == NULL) {
        (void)fprintf(stderr, "a killed psd: %s\n", text);
        return false;
    }
    return true;
}

static bool run(fixture_t *f)
{
    CHECK(open_notify(f));
    CHECK(daemon_start(&f->daemon, CONFIG));
    return every_thread_is_named_and_missed(f) && is_named_by_its_socket(f) &&
           one_that_was_killed_is_gone(f);
}

int main(void)
{
    fixture_t f = {.notify = -1};
    bool done = run(&f);

    if (f.stopped != 0) {
        (void)let_thread_go(f.stopped);
    }
    daemon_drop(&f.daemon, !done);
    if (f.notify >= 0) {
        (void)close(f.notify);
    }
    temp_dir_drop(&f.dir);
    return done ? 0 : 1;
}
