/* SPDX-License-Identifier: Apache-2.0 */
/* A wait that fails: stopped, without memory, or deaf. */
#include "server/shards/shard_wait.h"

#include <inttypes.h>
#include <time.h>
#include <zmq.h>

#include "base/log.h"

#define QUOTED_SIZE 256
#define AGAIN_MS 50 /* before it tries to get memory again */

static bool is_stopped(void *pipe)
{
    int events = 0;
    size_t size = sizeof events;

    return zmq_getsockopt(pipe, ZMQ_EVENTS, &events, &size) != 0 && zmq_errno() == ETERM;
}

ps_waited_t ps_shard_wait_check(uint32_t shard, void *pipe, psd_status_t rc, psd_error_t *err)
{
    const struct timespec again = {.tv_nsec = AGAIN_MS * 1000000L};
    char quoted[QUOTED_SIZE];

    if (rc == PSD_OK) {
        return PS_WAITED_OK;
    }
    if (rc != PSD_NOMEM && is_stopped(pipe)) {
        return PS_WAITED_STOPPED;
    }
    ps_log(PS_LOG_ERROR, "wait_failed", "shard=%" PRIu32 " reason=%s hint=%s", shard,
           ps_log_quote(psd_error_text(err), quoted, sizeof quoted),
           rc == PSD_NOMEM
               ? "\"retrying\""
               : "\"the shard receives no more messages; the node ends, start it again\"");
    psd_error_clear(err);
    if (rc != PSD_NOMEM) {
        return PS_WAITED_DEAF;
    }
    (void)nanosleep(&again, NULL);
    return PS_WAITED_OK;
}
