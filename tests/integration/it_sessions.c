/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions remember few clients (limits.sessions 16), and many come and go. A
 * client that lives all the while pushes to every partition at the end; one
 * that gave way to clients which died without a word goes on under another
 * session, is told so once, and everything is counted once.
 *
 *     it_sessions [N]   N clients that come and go; 200
 */
#include <psd.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"

#define PARTITIONS 8
#define ROWS 800
#define DEAD 24          /* more than a partition remembers */
#define RETIRE_AFTER_S 2 /* as lib/server/server.c */
#define TABLE "t"

extern char **environ;

static const char config[] = "limits:\n"
                             "  sessions: 16\n";

static void count_words(void *user, const char *what)
{
    int *n = user;

    if (strstr(what, "evicted this client's session") != NULL) {
        (*n)++;
    }
}

typedef struct user {
    psd_client_t *client;
    psd_table_t *table;
} user_t;

static void leave(user_t *self)
{
    psd_table_close(&self->table);
    psd_close(&self->client);
}

static bool come(const char *endpoint, int *n_told, user_t *ret, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();

    if (n_told != NULL) {
        psd_options_set_on_wait(options, count_words, n_told);
    }
    CHECK_OK(psd_connect(endpoint, options, &ret->client, err), err);
    psd_options_destroy(&options);
    CHECK_OK(psd_table_open(ret->client, TABLE, &ret->table, err), err);
    return true;
}

static bool add_one(const user_t *self, uint64_t row, psd_error_t *err)
{
    const int64_t one = 1;

    CHECK_OK(psd_push(self->table, &row, 1, &one, 1, err), err);
    return true;
}

static bool make_table(const char *endpoint, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    CHECK_OK(psd_spec_set(spec, "rows", "800", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "8", err), err);
    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK_OK(psd_table_create(client, TABLE, spec, &table, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

static bool sum_is(const user_t *self, int64_t wanted, psd_error_t *err)
{
    static uint64_t rows[ROWS];
    static int64_t values[ROWS];
    int64_t sum = 0;

    for (uint64_t i = 0; i < ROWS; i++) {
        rows[i] = i;
    }
    CHECK_OK(psd_pull(self->table, rows, ROWS, values, ROWS, err), err);
    for (int i = 0; i < ROWS; i++) {
        sum += values[i];
    }
    CHECK(sum == wanted);
    return true;
}

/* One that lives meets every partition behind n that came and went. */
static bool outlive(const char *endpoint, int n, psd_error_t *err)
{
    user_t lives = {NULL, NULL};
    int told = 0;

    CHECK(come(endpoint, &told, &lives, err));
    CHECK(add_one(&lives, 0, err));
    for (int i = 0; i < n; i++) {
        user_t guest = {NULL, NULL};

        CHECK(come(endpoint, NULL, &guest, err));
        CHECK(add_one(&guest, (uint64_t)(i * 37 % ROWS), err));
        leave(&guest);
    }
    for (uint64_t i = 0; i < PARTITIONS; i++) {
        CHECK(add_one(&lives, i * ROWS / PARTITIONS, err));
    }
    CHECK(told == 0);
    CHECK(sum_is(&lives, 1 + n + PARTITIONS, err));
    leave(&lives);
    (void)printf("%d clients came and went, 0 errors\n", n);
    return true;
}

/* What a process of its own does: it pushes and dies. */
static int die(const char *endpoint)
{
    user_t user = {NULL, NULL};
    psd_error_t *err = psd_error_new();

    /* A shard does not see that a connection over tcp is gone. */
    (void)setenv("PSD_TRANSPORT", "tcp", 1);
    _exit(come(endpoint, NULL, &user, err) && add_one(&user, 1, err) ? 0 : 1);
}

static bool let_die(const char *self, const char *endpoint)
{
    const char *const args[] = {self, "die", endpoint, NULL};
    pid_t pid = -1;
    int status = 0;

    CHECK(posix_spawn(&pid, self, NULL, NULL, (char *const *)args, environ) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return true;
}

static bool give_way(const char *self, const char *endpoint, int n, psd_error_t *err)
{
    const struct timespec idle = {.tv_sec = RETIRE_AFTER_S, .tv_nsec = 200000000};
    user_t lives = {NULL, NULL};
    int told = 0;

    CHECK(come(endpoint, &told, &lives, err));
    CHECK(add_one(&lives, 0, err));
    CHECK(add_one(&lives, ROWS - 1, err));
    (void)nanosleep(&idle, NULL); /* so long a client must have been idle */
    for (int i = 0; i < DEAD; i++) {
        CHECK(let_die(self, endpoint));
    }
    for (uint64_t i = 0; i < PARTITIONS; i++) {
        CHECK(add_one(&lives, i * ROWS / PARTITIONS, err));
    }
    CHECK(add_one(&lives, 0, err));
    CHECK(told == 1);
    CHECK(sum_is(&lives, 1 + n + PARTITIONS + 2 + DEAD + PARTITIONS + 1, err));
    leave(&lives);
    return true;
}

int main(int argc, char **argv)
{
    daemon_t daemon;
    int n = argc == 2 ? (int)strtol(argv[1], NULL, 10) : 200;
    psd_error_t *err = psd_error_new();
    bool ok = false;

    if (argc == 3 && strcmp(argv[1], "die") == 0) {
        return die(argv[2]);
    }
    ok = daemon_start(&daemon, config) && make_table(daemon.control, err) &&
         outlive(daemon.control, n, err) && give_way(argv[0], daemon.control, n, err);
    daemon_drop(&daemon, !ok);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
