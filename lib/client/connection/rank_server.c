/* SPDX-License-Identifier: Apache-2.0 */
/* The servers of an MPI world meet, and part. */
#include "client/connection/rank_server.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "client/connection/heartbeat.h"
#include "client/connection/private_server.h"
#include "transport/sockets/ranks.h"
#include "transport/threads/clock.h"
#include "transport/threads/fork.h"

#define CARRIER "mpi"
#define LISTEN "tcp://127.0.0.1:0"
#define MEET_MS 60000 /* for all ranks to serve */
#define TOLD_MS 5000  /* of waiting for the others' end, before a word about it */
#define LOST_MS 30000 /* of silence, until a rank is not waited for */
#define PART_MS 5000  /* for the registry to end before the others' servers */
#define LOOK_NS 5000000L
#define EXIT_BITS 0377 /* of exit's number, that others see */
#define ADDRESSES 250  /* of the last number of an address */
#define BY_MPI "by mpi"

/* One for the process: it has one place in one world. */
static struct {
    pthread_mutex_t mutex;
    bool is_held;
    bool has_ended;   /* the process exits */
    unsigned n_forks; /* before it began */
    int rank;
    int size;
    struct psd_embed *server;
    char registry[PS_CARRIER_TEXT];
    psd_status_t failed; /* the ranks did not meet: nobody tries it again … */
    char why[512];       /* … and the reason */
} mine = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The lock may be held while a server starts, when another thread forks. */
static void in_child(void)
{
    mine.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void nap(void)
{
    const struct timespec span = {.tv_nsec = LOOK_NS};

    (void)nanosleep(&span, NULL);
}

/* ---- what ranks say ---- */

static psd_status_t say(const char *what, int rank, const char *value, psd_error_t *err)
{
    char key[64];

    (void)snprintf(key, sizeof key, "%s %d", what, rank);
    return ps_ranks_say(key, value, err);
}

static bool find(const char *what, int rank, char ret_value[PS_CARRIER_TEXT])
{
    char key[64];

    (void)snprintf(key, sizeof key, "%s %d", what, rank);
    return ps_ranks_find(key, ret_value);
}

/* Waits for what a rank says. Another one that cannot serve says so. */
static psd_status_t wait_for(const char *what, int rank, uint64_t until_ms,
                             char ret_value[PS_CARRIER_TEXT], psd_error_t *err)
{
    char why[PS_CARRIER_TEXT];

    while (!find(what, rank, ret_value)) {
        if (ps_ranks_find("failed", why)) {
            return psd_error_set(err, PSD_CONNECT, "%s", why);
        }
        if (ps_now_ms() >= until_ms) {
            return psd_error_set(err, PSD_DEADLINE, "rank %d has not come within %d s", rank,
                                 MEET_MS / 1000);
        }
        nap();
    }
    return PSD_OK;
}

static psd_status_t wait_for_each(const char *what, uint64_t until_ms, psd_error_t *err)
{
    char value[PS_CARRIER_TEXT];
    psd_status_t rc = PSD_OK;

    for (int i = 0; rc == PSD_OK && i < mine.size; i++) {
        rc = wait_for(what, i, until_ms, value, err);
    }
    return rc;
}

/* The others need not wait for this one. What another one has said they know. */
static void tell_failed(const psd_error_t *err)
{
    char why[PS_CARRIER_TEXT];

    if (ps_ranks_find("failed", why)) {
        return;
    }
    (void)snprintf(why, sizeof why, "rank %d: %.400s", mine.rank, psd_error_text(err));
    (void)!ps_ranks_say("failed", why, NULL);
}

/* ---- the end ---- */

/* Whether a rank of these has not said it. ret_answers: one of them is alive. */
static bool lacks(int from, int to, const char *what, int *ret_rank, bool *ret_answers)
{
    char value[PS_CARRIER_TEXT];
    bool lacks = false;

    *ret_answers = false;
    for (int i = from; i < to; i++) {
        if (!find(what, i, value)) {
            lacks = true;
            *ret_rank = i;
            *ret_answers = *ret_answers || !ps_ranks_are_without(i);
        }
    }
    return lacks;
}

/* Ranks that do not answer for long, or have ended without a word, are not waited for. */
static void wait_for_end(int from, int to, const char *what, uint64_t until_ms)
{
    uint64_t tell_ms = ps_now_ms() + TOLD_MS;
    uint64_t heard_ms = ps_now_ms();
    bool answers = false;
    int rank = from;

    while (lacks(from, to, what, &rank, &answers) && ps_now_ms() < heard_ms + LOST_MS &&
           ps_now_ms() < until_ms) {
        heard_ms = answers ? ps_now_ms() : heard_ms;
        if (ps_now_ms() >= tell_ms) {
            tell_ms = UINT64_MAX;
            ps_log(PS_LOG_WARN, "node_waits", "rank=%d hint=\"it uses this one's rows\"", rank);
        }
        nap();
    }
}

/* The process exits. One that fails does not wait: mpirun ends the others, or they learn that
 * it has ended. */
static void leave(int status, void *unused)
{
    bool is_here = false;

    (void)unused;
    (void)pthread_mutex_lock(&mine.mutex);
    mine.has_ended = true;
    is_here = mine.is_held && !ps_fork_is_since(mine.n_forks);
    (void)pthread_mutex_unlock(&mine.mutex);
    if (!is_here || (status & EXIT_BITS) != 0 || say("left", mine.rank, "", NULL) != PSD_OK) {
        return;
    }
    /* A worker that did not leave its job does nothing any more: the others, for which this
     * process waits, must not wait for it. */
    ps_beat_stop_all();
    wait_for_end(0, mine.size, "left", UINT64_MAX);
    /* The registry ends first: it would say of the others that they are down. */
    if (mine.rank > 0) {
        wait_for_end(0, 1, "ended", ps_now_ms() + PART_MS);
    }
    ps_private_server_stop(&mine.server);
    if (mine.rank == 0) {
        (void)!say("ended", mine.rank, "", NULL);
    }
}

/* ---- the beginning ---- */

static void watch(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

/* What only processes have in common that reach each other at 127.0.0.1. */
static void find_host(char ret_host[PS_CARRIER_TEXT])
{
    char boot[64] = "";
    char net[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, boot, sizeof boot - 1);

    boot[strcspn(boot, "\n")] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
    if (n < 0 || readlink("/proc/self/ns/net", net, sizeof net - 1) < 0) {
        net[0] = '\0';
    }
    (void)snprintf(ret_host, PS_CARRIER_TEXT, "%s %s", boot, net);
}

static psd_status_t compare(int rank, const char *ours, const char *its, psd_error_t *err)
{
    if (strcmp(ours, its) == 0) {
        return PSD_OK;
    }
    if (strcmp(ours, BY_MPI) == 0 || strcmp(its, BY_MPI) == 0) {
        return psd_error_set(err, PSD_INVALID,
                             "PSD_TRANSPORT is \"mpi\" in one of the ranks %d and %d, and not in "
                             "the other",
                             mine.rank, rank);
    }
    return psd_error_set(err, PSD_UNSUPPORTED,
                         "rank %d is on another host than rank %d: use pscli run --launcher mpi "
                         "--servers embed, or PSD_TRANSPORT=mpi",
                         rank, mine.rank);
}

/* Servers listen at 127.0.0.1, unless MPI carries all. */
static psd_status_t check_places(uint64_t until_ms, psd_error_t *err)
{
    char place[PS_CARRIER_TEXT] = BY_MPI;
    char other[PS_CARRIER_TEXT];
    psd_status_t rc = PSD_OK;

    if (!ps_ranks_shall_carry()) {
        find_host(place);
    }
    rc = say("place", mine.rank, place, err);
    for (int i = 0; rc == PSD_OK && i < mine.size; i++) {
        rc = wait_for("place", i, until_ms, other, err);
        if (rc == PSD_OK) {
            rc = compare(i, place, other, err);
        }
    }
    return rc == PSD_OK && ps_ranks_shall_carry() ? ps_ranks_carry(err) : rc;
}

static psd_status_t serve(uint64_t until_ms, const char **ret_endpoint, psd_error_t *err)
{
    char listen[64];
    psd_status_t rc = PSD_OK;

    /* Nobody connects there; it names the port, in all ranks of all hosts. */
    (void)snprintf(listen, sizeof listen, "tcp://127.64.%d.%d:0", mine.rank / ADDRESSES,
                   mine.rank % ADDRESSES + 1);
    if (mine.rank > 0) {
        rc = wait_for("serves", 0, until_ms, mine.registry, err);
    }
    if (rc == PSD_OK) {
        rc = ps_private_server_start(mine.rank == 0 ? NULL : mine.registry,
                                     ps_ranks_do_carry() ? listen : LISTEN, &mine.server,
                                     ret_endpoint, err);
    }
    if (rc == PSD_OK && mine.rank == 0) {
        (void)snprintf(mine.registry, sizeof mine.registry, "%s", *ret_endpoint);
    }
    return rc;
}

/* Nobody goes on before all know of all. */
static psd_status_t meet(uint64_t until_ms, psd_error_t *err)
{
    const char *endpoint = NULL;
    psd_status_t rc = check_places(until_ms, err);

    if (rc == PSD_OK) {
        rc = serve(until_ms, &endpoint, err);
    }
    if (rc == PSD_OK) {
        rc = say("serves", mine.rank, endpoint, err);
    }
    if (rc == PSD_OK) {
        rc = wait_for_each("serves", until_ms, err);
    }
    if (rc == PSD_OK) {
        rc = say("knows", mine.rank, "", err);
    }
    return rc == PSD_OK ? wait_for_each("knows", until_ms, err) : rc;
}

static psd_status_t begin(psd_error_t *err)
{
    psd_status_t rc = ps_ranks_enter(CARRIER, &mine.rank, &mine.size, err);

    if (rc != PSD_OK) {
        return rc;
    }
    mine.n_forks = ps_fork_count();
    rc = meet(ps_now_ms() + MEET_MS, err);
    if (rc == PSD_OK && on_exit(leave, NULL) != 0) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for the end of the process");
    }
    if (rc != PSD_OK) {
        tell_failed(err);
        ps_private_server_stop(&mine.server);
        mine.failed = rc;
        (void)snprintf(mine.why, sizeof mine.why, "%s", psd_error_text(err));
    }
    return rc;
}

psd_status_t ps_rank_server_hold(const char **ret_endpoint, psd_error_t *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    psd_status_t rc = PSD_OK;

    (void)pthread_once(&once, watch);
    (void)pthread_mutex_lock(&mine.mutex);
    if (mine.has_ended) {
        rc = psd_error_set(err, PSD_CLOSED, "the process exits, and so does its server");
    } else if (mine.failed != PSD_OK) {
        rc = psd_error_set(err, mine.failed, "%s", mine.why);
    } else if (!mine.is_held) {
        rc = begin(err);
        mine.is_held = rc == PSD_OK;
    } else if (ps_fork_is_since(mine.n_forks)) {
        rc = psd_error_set(err, PSD_UNSUPPORTED, "a forked child has no place among the ranks");
    }
    *ret_endpoint = mine.registry;
    (void)pthread_mutex_unlock(&mine.mutex);
    return rc;
}

bool ps_rank_server_place(int64_t *ret_rank, int64_t *ret_size)
{
    bool is_held = false;

    (void)pthread_mutex_lock(&mine.mutex);
    is_held = mine.is_held && !ps_fork_is_since(mine.n_forks);
    if (is_held) {
        *ret_rank = mine.rank;
        *ret_size = mine.size;
    }
    (void)pthread_mutex_unlock(&mine.mutex);
    return is_held;
}
