/* SPDX-License-Identifier: Apache-2.0 */
/* Servers in this process: they come and go and leave nothing, neither in the process
 * nor in its temporary directory; they touch no signal; exit() and fork are safe while
 * they run; nodes of one process make a cluster. */
#include <dirent.h>
#include <locale.h>
#include <malloc.h>
#include <poll.h>
#include <psd.h>
#include <psd_server.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/temp_dir.h"

#define ROUNDS 100
#define WARM 20 /* rounds, after which memory may not grow */
#define GROWN_KB 1024
#define CHILDREN 20
#define WAIT_MS 60000

static psd_error_t *err;
static temp_dir_t temp; /* $TMPDIR of this test */
static bool ends_with_server;

/* LeakSanitizer asks this at exit(). What threads that still run have, or had before a
 * fork, looks lost to it. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return ends_with_server ? 1 : 0;
}

/* ---- what a process has ---- */

/* Entries of a directory whose names begin so. */
static int count_in(const char *path, const char *prefix)
{
    DIR *dir = opendir(path);
    const struct dirent *entry = NULL;
    int n = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        n += entry->d_name[0] != '.' && strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return n;
}

/* A number of /proc/self/status or of a thread's, in that base; -1: there is none. */
static long long number_of(const char *path, const char *key, int base)
{
    FILE *file = fopen(path, "re");
    char line[256];
    long long found = -1;

    while (file != NULL && found < 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            found = strtoll(line + strlen(key), NULL, base);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

typedef struct manners {
    struct sigaction actions[65];
    sigset_t mask;
    struct rlimit files;
    char locale[64];
} manners_t;

static void look(manners_t *ret)
{
    memset(ret, 0, sizeof *ret);
    for (int i = 1; i <= 64; i++) {
        (void)sigaction(i, NULL, &ret->actions[i]);
    }
    (void)pthread_sigmask(SIG_BLOCK, NULL, &ret->mask);
    (void)getrlimit(RLIMIT_NOFILE, &ret->files);
    (void)snprintf(ret->locale, sizeof ret->locale, "%s", setlocale(LC_ALL, NULL));
}

static bool are_alike(const sigset_t *a, const sigset_t *b)
{
    for (int i = 1; i <= 64; i++) {
        if (sigismember(a, i) != sigismember(b, i)) {
            return false;
        }
    }
    return true;
}

static bool is_untouched(const manners_t *before)
{
    manners_t now;

    look(&now);
    for (int i = 1; i <= 64; i++) {
        CHECK(before->actions[i].sa_handler == now.actions[i].sa_handler);
        CHECK(before->actions[i].sa_flags == now.actions[i].sa_flags);
        CHECK(are_alike(&before->actions[i].sa_mask, &now.actions[i].sa_mask));
    }
    CHECK(are_alike(&before->mask, &now.mask));
    CHECK(before->files.rlim_cur == now.files.rlim_cur);
    CHECK(strcmp(before->locale, now.locale) == 0);
    return true;
}

/* All threads but this one block what a program may want to handle. */
static bool threads_are_deaf(void)
{
    static const int wanted[] = {SIGTERM, SIGINT,  SIGHUP,  SIGUSR1, SIGUSR2,
                                 SIGPIPE, SIGCHLD, SIGALRM, SIGXFSZ, SIGPROF};
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *entry = NULL;
    bool good = dir != NULL;
    int n = 0;

    while (good && (entry = readdir(dir)) != NULL) {
        char path[300];
        unsigned long long blocked = 0;

        if (entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == getpid()) {
            continue;
        }
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        blocked = (unsigned long long)number_of(path, "SigBlk:", 16);
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            good = good && (blocked >> (wanted[i] - 1) & 1) == 1;
        }
        n++;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    CHECK(good && n > 0);
    return true;
}

/* ---- using a server ---- */

static bool start(const char *join, psd_embed_t **ret_server)
{
    psd_embed_options_t *options = psd_embed_options_new();

    CHECK(options != NULL);
    CHECK_OK(psd_embed_options_set(options, "shards", "1", err), err);
    if (join != NULL) {
        CHECK_OK(psd_embed_options_set(options, "cluster.join", join, err), err);
    }
    CHECK_OK(psd_embed_start(options, ret_server, err), err);
    psd_embed_options_destroy(&options);
    return true;
}

/* Adds 1 to a row, whose value is `sum` then. */
static bool use(const char *endpoint, int64_t sum)
{
    const uint64_t row = 3;
    const int64_t one = 1;
    int64_t value = 0;
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_spec_t *spec = psd_spec_new();

    CHECK_OK(psd_spec_set(spec, "rows", "10", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK_OK(psd_table_ensure(client, "t", spec, &table, err), err);
    CHECK_OK(psd_push(table, &row, 1, &one, 1, err), err);
    CHECK_OK(psd_pull(table, &row, 1, &value, 1, err), err);
    CHECK(value == sum);
    psd_table_close(&table);
    psd_close(&client);
    psd_spec_destroy(&spec);
    return true;
}

/* ---- stories ---- */

static bool goes_round(int round)
{
    psd_embed_t *one = NULL;
    psd_embed_t *two = NULL;

    CHECK(start(NULL, &one) && start(NULL, &two));
    CHECK(strcmp(psd_embed_endpoint(one), psd_embed_endpoint(two)) != 0);
    CHECK(count_in(temp.path, "") == 2);
    if (round % 10 == 0) {
        CHECK(use(psd_embed_endpoint(one), 1) && use(psd_embed_endpoint(two), 1));
        CHECK(threads_are_deaf());
    }
    psd_embed_stop(&two);
    psd_embed_stop(&one);
    CHECK(count_in(temp.path, "") == 0);
    return true;
}

/* A thread that was joined may be seen for a moment still; TSan has one of its own. */
static bool threads_are_gone(int n_threads)
{
#ifdef __SANITIZE_THREAD__
    n_threads++;
#endif
    for (int i = 0; i < WAIT_MS && count_in("/proc/self/task", "") > n_threads; i++) {
        (void)poll(NULL, 0, 1);
    }
    return count_in("/proc/self/task", "") <= n_threads;
}

static bool comes_and_goes(void)
{
    manners_t before;
    int n_threads = count_in("/proc/self/task", "");
    int n_files = count_in("/proc/self/fd", "");
    long long warm_kb = 0;
    long long end_kb = 0;

    look(&before);
    for (int i = 1; i <= ROUNDS; i++) {
        CHECK(goes_round(i));
        CHECK(threads_are_gone(n_threads));
        CHECK(count_in("/proc/self/fd", "") == n_files);
        if (i == WARM) {
            warm_kb = number_of("/proc/self/status", "RssAnon:", 10);
        }
    }
    end_kb = number_of("/proc/self/status", "RssAnon:", 10);
    CHECK(is_untouched(&before));
    (void)printf("memory: %lld kB after %d rounds, %lld kB after %d\n", warm_kb, WARM, end_kb,
                 ROUNDS);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(end_kb < warm_kb + GROWN_KB);
#endif
    return true;
}

typedef struct heard {
    atomic_int n_lines;
    atomic_int n_ends;
} heard_t;

static void on_log(void *user, int level, const char *line)
{
    heard_t *heard = user;

    if (level >= 3 && level <= 7 && line[0] != '\0' && strchr(line, '\n') == NULL) {
        (void)atomic_fetch_add(&heard->n_lines, 1);
    }
}

static void on_end(void *user, psd_status_t status, const char *why)
{
    heard_t *heard = user;

    (void)status;
    (void)why;
    (void)atomic_fetch_add(&heard->n_ends, 1);
}

static bool says_what_is_wrong(void)
{
    heard_t heard = {0};
    char dir[PATH_MAX];
    psd_embed_options_t *options = psd_embed_options_new();
    psd_embed_t *one = NULL;
    psd_embed_t *two = NULL;

    CHECK_ERROR(psd_embed_options_set(options, "shard", "1", err), PSD_CONFIG,
                "did you mean shards?", err);
    CHECK_ERROR(psd_embed_options_set(options, "shards", "many", err), PSD_CONFIG,
                "shards is \"many\"; allowed: 1 .. 256 threads", err);
    (void)snprintf(dir, sizeof dir, "%.3000s/kept", temp.path);
    CHECK_OK(psd_embed_options_set(options, "data_dir", dir, err), err);
    CHECK_OK(psd_embed_options_set(options, "log.level", "info", err), err);
    psd_embed_options_set_on_log(options, on_log, &heard);
    psd_embed_options_set_on_end(options, on_end, &heard);
    CHECK_OK(psd_embed_start(options, &one, err), err);
    CHECK(atomic_load(&heard.n_lines) > 0);
    CHECK_ERROR(psd_embed_start(options, &two, err), PSD_HELD, "is held by another psd", err);
    CHECK(use(psd_embed_endpoint(one), 1));
    psd_embed_stop(&one);
    CHECK(atomic_load(&heard.n_ends) == 0);
    /* What was kept is there again; level disk is not asked for, the table is. */
    CHECK_OK(psd_embed_start(options, &one, err), err);
    psd_embed_stop(&one);
    psd_embed_options_destroy(&options);
    return true;
}

static bool nodes_make_a_cluster(void)
{
    psd_embed_t *one = NULL;
    psd_embed_t *two = NULL;
    psd_client_t *client = NULL;

    CHECK(start(NULL, &one) && start(psd_embed_endpoint(one), &two));
    CHECK(use(psd_embed_endpoint(two), 1));
    CHECK_ERROR(psd_embed_wait(two, "j", 200, err), PSD_DEADLINE, "no worker has joined job j",
                err);
    CHECK_OK(psd_connect(psd_embed_endpoint(one), NULL, &client, err), err);
    CHECK_OK(psd_join(client, "j", 0, 1, 0, err), err);
    CHECK_ERROR(psd_embed_wait(one, "j", 200, err), PSD_DEADLINE, "job j is running", err);
    CHECK_OK(psd_leave(client, WAIT_MS, err), err);
    CHECK_OK(psd_embed_wait(one, "j", WAIT_MS, err), err);
    psd_close(&client);
    CHECK_OK(psd_embed_drain(two, WAIT_MS, err), err);
    psd_embed_stop(&two);
    CHECK(use(psd_embed_endpoint(one), 2)); /* nothing was lost */
    psd_embed_stop(&one);
    CHECK(count_in(temp.path, "psd-embed-") == 0);
    return true;
}

/* Children of a process that serves: one tries to use the server, others only end. Not
 * under a sanitizer: its allocator takes no locks for a fork beside other threads. */
static bool children_end(void)
{
    psd_embed_t *server = NULL;

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    return true;
#endif
    CHECK(start(NULL, &server));
    for (int i = 0; i < CHILDREN; i++) {
        int status = 0;
        pid_t child = fork();

        if (child == 0) {
            ends_with_server = true;
            if (i % 2 == 1) {
                psd_embed_stop(&server);
            }
            if (i == 0 && psd_embed_drain(server, 1, err) != PSD_CLOSED) {
                _exit(9);
            }
            exit(7);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    CHECK(count_in(temp.path, "psd-embed-") == 1);
    CHECK(use(psd_embed_endpoint(server), 1));
    psd_embed_stop(&server);
    return true;
}

/* ---- processes that end with a server; no thread runs here when they are forked ---- */

/* `end` ends the child in which a server runs. */
static bool ends(void (*end)(void), int *ret_status)
{
    pid_t child = fork();

    if (child == 0) {
        psd_embed_t *server = NULL;
        psd_client_t *client = NULL;

        ends_with_server = true;
        if (start(NULL, &server) && use(psd_embed_endpoint(server), 1) &&
            psd_connect("embed:", NULL, &client, err) == PSD_OK &&
            count_in(temp.path, "psd-embed-") == 2) {
            end();
        }
        _exit(9);
    }
    CHECK(child > 0 && waitpid(child, ret_status, 0) == child);
    return true;
}

static void exit_well(void)
{
    exit(0);
}

static void be_killed(void)
{
    (void)raise(SIGKILL);
}

static bool processes_leave_nothing(void)
{
    int status = 0;

    CHECK(ends(exit_well, &status));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(count_in(temp.path, "") == 0);
    CHECK(ends(be_killed, &status));
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(count_in(temp.path, "psd-embed-") == 2);
    CHECK(ends(exit_well, &status)); /* its first server removes what was left */
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(count_in(temp.path, "") == 0);
    return true;
}

/* ---- embed: ---- */

static bool clients_share_one(void)
{
    psd_client_t *one = NULL;
    psd_client_t *two = NULL;
    int n_threads = count_in("/proc/self/task", "");

    CHECK_OK(psd_connect("embed:", NULL, &one, err), err);
    CHECK_OK(psd_connect("embed:", NULL, &two, err), err);
    CHECK(count_in(temp.path, "psd-embed-") == 1);
    psd_close(&one);
    CHECK(use("embed:", 1)); /* the table is there as long as one client is */
    CHECK(use("embed:", 2));
    psd_close(&two);
    CHECK(count_in(temp.path, "psd-embed-") == 0);
    CHECK(threads_are_gone(n_threads));
    CHECK(use("embed:", 1));
    return true;
}

int main(void)
{
    bool done = false;

    /* Each thread may take an arena of its own, whose free memory stays: with one, what
     * grows is not freed. */
    (void)mallopt(M_ARENA_MAX, 1);
    err = psd_error_new();
    done = err != NULL && temp_dir_make(&temp) && setenv("TMPDIR", temp.path, 1) == 0 &&
           processes_leave_nothing() && comes_and_goes() && says_what_is_wrong() &&
           nodes_make_a_cluster() && children_end() && clients_share_one();
    temp_dir_drop(&temp);
    psd_error_destroy(&err);
    return done ? 0 : 1;
}
