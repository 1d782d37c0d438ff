/* SPDX-License-Identifier: Apache-2.0 */
/* The servers of an MPI world meet, and part. */
#include "client/connection/rank_server.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "client/connection/heartbeat.h"
#include "client/connection/private_server.h"
#include "client/connection/rank_place.h"
#include "transport/sockets/ranks.h"
#include "transport/threads/clock.h"
#include "transport/threads/fork.h"

#define CARRIER "mpi"
#define TOLD_MS 5000   /* of waiting for the others' end, before a word about it */
#define LOST_MS 30000  /* of silence, until a rank is not waited for */
#define PART_MS 5000   /* for the registry to end before the others' servers */
#define EXIT_BITS 0377 /* of exit's number, that others see */

/* One for the process: it has one place in one world. */
static struct {
    pthread_mutex_t mutex;
    bool is_held;
    bool has_ended;   /* the process exits */
    unsigned n_forks; /* before it began */
    ps_rank_place_t place;
    int far; /* a rank on another host; -1: none */
    struct psd_embed *server;
    char registry[PS_CARRIER_TEXT];
    psd_status_t failed; /* the ranks did not meet: nobody tries it again … */
    char why[512];       /* … and the reason */
} mine = {.mutex = PTHREAD_MUTEX_INITIALIZER, .far = -1};

/* The lock may be held while a server starts, when another thread forks. */
static void in_child(void)
{
    mine.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* The others need not wait for this one. What another one has said they know. */
static void tell_failed(const psd_error_t *err)
{
    char why[PS_CARRIER_TEXT];

    if (ps_ranks_find("failed", why)) {
        return;
    }
    (void)snprintf(why, sizeof why, "rank %d: %.400s", mine.place.rank, psd_error_text(err));
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
        if (!ps_rank_find(what, i, value)) {
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
        ps_rank_nap();
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
    if (!is_here || (status & EXIT_BITS) != 0 ||
        ps_rank_say(&mine.place, "left", "", NULL) != PSD_OK) {
        return;
    }
    /* A worker that did not leave its job does nothing any more: the others, for which this
     * process waits, must not wait for it. */
    ps_beat_stop_all();
    wait_for_end(0, mine.place.size, "left", UINT64_MAX);
    /* The registry ends first: it would say of the others that they are down. */
    if (mine.place.rank > 0) {
        wait_for_end(0, 1, "ended", ps_now_ms() + PART_MS);
    }
    ps_private_server_stop(&mine.server);
    if (mine.place.rank == 0) {
        (void)!ps_rank_say(&mine.place, "ended", "", NULL);
    }
}

/* ---- the beginning ---- */

static void watch(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

static psd_status_t serve(const char *listen, const char **ret_endpoint, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (mine.place.rank > 0) {
        rc = ps_rank_wait_for(&mine.place, "serves", 0, mine.registry, err);
    }
    if (rc == PSD_OK) {
        rc = ps_private_server_start(mine.place.rank == 0 ? NULL : mine.registry,
                                     listen[0] == '\0' ? NULL : listen, &mine.server, ret_endpoint,
                                     err);
    }
    if (rc == PSD_OK && mine.place.rank == 0) {
        (void)snprintf(mine.registry, sizeof mine.registry, "%s", *ret_endpoint);
    }
    return rc;
}

/* Nobody goes on before all know of all. */
static psd_status_t meet(psd_error_t *err)
{
    const char *endpoint = NULL;
    char listen[PS_RANK_LISTEN_SIZE] = "";
    psd_status_t rc = ps_rank_compare(&mine.place, &mine.far, err);

    if (rc == PSD_OK && ps_ranks_use() != PS_RANKS_UNUSED) {
        rc = ps_ranks_carry(err);
    }
    if (rc == PSD_OK) {
        rc = ps_rank_listen(&mine.place, mine.far, listen, err);
    }
    if (rc == PSD_OK) {
        rc = serve(listen, &endpoint, err);
    }
    if (rc == PSD_OK) {
        rc = ps_rank_say(&mine.place, "serves", endpoint, err);
    }
    if (rc == PSD_OK) {
        rc = ps_rank_wait_for_each(&mine.place, "serves", err);
    }
    if (rc == PSD_OK) {
        rc = ps_rank_say(&mine.place, "knows", "", err);
    }
    return rc == PSD_OK ? ps_rank_wait_for_each(&mine.place, "knows", err) : rc;
}

static psd_status_t begin(psd_error_t *err)
{
    psd_status_t rc = ps_ranks_enter(CARRIER, &mine.place.rank, &mine.place.size, err);

    if (rc != PSD_OK) {
        return rc;
    }
    mine.n_forks = ps_fork_count();
    mine.place.until_ms = ps_now_ms() + PS_RANK_MEET_MS;
    rc = meet(err);
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
        *ret_rank = mine.place.rank;
        *ret_size = mine.place.size;
    }
    (void)pthread_mutex_unlock(&mine.mutex);
    return is_held;
}

bool ps_rank_server_name(char ret_host[PS_ADDRESS_SIZE], bool *ret_here)
{
    bool is_named = false;

    (void)pthread_mutex_lock(&mine.mutex);
    is_named = mine.is_held && !ps_fork_is_since(mine.n_forks) && ps_ranks_use() == PS_RANKS_ALONE;
    if (is_named) {
        ps_rank_name(&mine.place, ret_host);
        *ret_here = mine.far < 0;
    }
    (void)pthread_mutex_unlock(&mine.mutex);
    return is_named;
}
