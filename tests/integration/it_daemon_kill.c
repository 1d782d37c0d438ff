/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 while tables are made, 200 times: the registry opens every time,
 * every table whose making was answered is there, and every table that is there
 * is whole. PSD_ROUNDS changes the number. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"
#include "support/zmtp.h"

#define ROUNDS 100
#define REPLY_SIZE (1 << 20)
#define PARTITIONS 4
#define LIFE_US 25000 /* longest time between readiness and the kill */

static char reply[REPLY_SIZE];

static unsigned long long open_session(int fd, unsigned client)
{
    char request[200];
    const char *at = NULL;

    (void)snprintf(request, sizeof request,
                   "{\"v\":1,\"id\":1,\"op\":\"hello\",\"versions\":[1,1],"
                   "\"client\":\"00000000-0000-4000-9000-%012u\"}",
                   client);
    if (fd < 0 || !zmtp_ask(fd, request, reply, sizeof reply)) {
        return 0;
    }
    at = strstr(reply, "\"session\":");
    return at == NULL ? 0 : strtoull(at + 10, NULL, 10);
}

/* Kills the daemon after a while, from another process. */
static pid_t start_killer(pid_t victim, unsigned after_us)
{
    pid_t pid = 0;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        const struct timespec span = {.tv_nsec = (long)after_us * 1000};

        (void)nanosleep(&span, NULL);
        (void)kill(victim, SIGKILL);
        _exit(0);
    }
    return pid;
}

/* Makes tables until the daemon is gone; the number of answers. */
static unsigned make_tables(int fd, unsigned long long session)
{
    unsigned n = 0;

    for (;; n++) {
        char request[300];

        (void)snprintf(request, sizeof request,
                       "{\"v\":1,\"id\":%u,\"session\":%llu,\"op\":"
                       "\"table_create\",\"spec\":{\"name\":\"t%u\",\"rows\":"
                       "100,\"n_partitions\":%d}}",
                       n + 2, session, n, PARTITIONS);
        if (!zmtp_ask(fd, request, reply, sizeof reply) ||
            strstr(reply, "\"status\":\"OK\"") == NULL) {
            return n;
        }
    }
}

/* Table t<n> is there, with all its partitions. */
static bool is_whole(int fd, unsigned long long session, unsigned n, bool *ret_is_there)
{
    char request[200];
    char partition[64];

    (void)snprintf(request, sizeof request,
                   "{\"v\":1,\"id\":%u,\"session\":%llu,\"op\":\"table_open\","
                   "\"name\":\"t%u\"}",
                   1000 + n, session, n);
    CHECK(zmtp_ask(fd, request, reply, sizeof reply));
    *ret_is_there = strstr(reply, "\"status\":\"OK\"") != NULL;
    if (!*ret_is_there) {
        CHECK(strstr(reply, "\"status\":\"NO_TABLE\"") != NULL);
        return true;
    }
    CHECK(strstr(reply, "\"rows\":100,") != NULL);
    for (int i = 0; i < PARTITIONS; i++) {
        (void)snprintf(partition, sizeof partition, "{\"partition\":%d,", i);
        CHECK(strstr(reply, partition) != NULL);
        (void)snprintf(partition, sizeof partition, "{\"id\":%d,\"first_row\":", i);
        CHECK(strstr(reply, partition) != NULL);
    }
    (void)snprintf(partition, sizeof partition, "{\"partition\":%d,", PARTITIONS);
    CHECK(strstr(reply, partition) == NULL);
    return true;
}

static bool drop(int fd, unsigned long long session, unsigned n)
{
    char request[200];

    (void)snprintf(request, sizeof request,
                   "{\"v\":1,\"id\":%u,\"session\":%llu,\"op\":\"table_drop\","
                   "\"name\":\"t%u\"}",
                   5000 + n, session, n);
    CHECK(zmtp_ask(fd, request, reply, sizeof reply));
    CHECK(strstr(reply, "\"status\":\"OK\"") != NULL);
    return true;
}

/* Looks at what is there after the restart, and removes it. */
static bool check_tables(const daemon_t *d, unsigned round, unsigned n_answered)
{
    int fd = zmtp_connect(d->control);
    unsigned long long session = open_session(fd, 2 * round + 1);
    bool is_there = false;

    CHECK(session > 0);
    for (unsigned i = 0; i < n_answered; i++) {
        CHECK(is_whole(fd, session, i, &is_there));
        CHECK(is_there);
        CHECK(drop(fd, session, i));
    }
    /* The one that was not answered may be there or not. */
    CHECK(is_whole(fd, session, n_answered, &is_there));
    CHECK(!is_there || drop(fd, session, n_answered));
    CHECK(is_whole(fd, session, n_answered + 1, &is_there));
    CHECK(!is_there);
    (void)close(fd);
    return true;
}

static bool play_round(daemon_t *d, unsigned round, unsigned *n_tables)
{
    /* Spread over the life, another order in each run of the same rounds. */
    unsigned after_us = round * 7919 % LIFE_US;
    int fd = zmtp_connect(d->control);
    unsigned long long session = open_session(fd, 2 * round);
    pid_t killer = start_killer(d->pid, after_us);
    unsigned n = 0;
    int status = 0;

    CHECK(killer > 0);
    n = make_tables(fd, session);
    (void)close(fd);
    CHECK(waitpid(killer, &status, 0) == killer);
    CHECK(waitpid(d->pid, &status, 0) == d->pid);
    d->pid = 0;
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(daemon_restart(d));
    *n_tables += n;
    return check_tables(d, round, n);
}

int main(void)
{
    const char *wanted = getenv("PSD_ROUNDS");
    unsigned rounds = wanted == NULL ? ROUNDS : (unsigned)strtoul(wanted, NULL, 10);
    daemon_t d = {.pid = 0};
    unsigned n_tables = 0;
    bool good = daemon_start(&d, "shards: 2\n");

    for (unsigned round = 0; good && round < rounds; round++) {
        good = play_round(&d, round, &n_tables);
        if (!good) {
            (void)fprintf(stderr, "in round %u\n", round);
        }
    }
    (void)fprintf(stderr, "%u rounds, %u tables made\n", rounds, n_tables);
    good = good && n_tables > rounds / 4;
    daemon_drop(&d, !good);
    return good ? 0 : 1;
}
