/* SPDX-License-Identifier: Apache-2.0 */
/* The table of carrier_plugin.h. Endpoints are mpi://RANK:NUMBER; a port is
 * bound as "mpi://" and gets its rank and number. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/world.h"

#define PREFIX "mpi://"

static int bind_port(const char *endpoint, const ps_carrier_setup_t *setup, void **ret_end,
                     char *ret_bound, size_t bound_size, char ret_reason[PS_CARRIER_REASON])
{
    ps_hall_t *hall = NULL;
    ps_end_t *end = NULL;
    uint32_t number = 0;
    int rank = 0;
    int size = 0;
    int code = 0;

    if (strcmp(endpoint, PREFIX) != 0) {
        (void)snprintf(ret_reason, PS_CARRIER_REASON,
                       "allowed: " PREFIX ", whose rank and number MPI and psd choose");
        return EINVAL;
    }
    code = ps_world_enter(&hall, &rank, &size, ret_reason);
    if (code == 0) {
        code = ps_hall_bind(hall, setup, &end, &number);
    }
    if (code != 0) {
        return code;
    }
    (void)snprintf(ret_bound, bound_size, PREFIX "%d:%" PRIu32, rank, number);
    *ret_end = end;
    return 0;
}

/* RANK:NUMBER, digits only. */
static bool read_address(const char *endpoint, unsigned long *ret_rank, unsigned long *ret_number)
{
    const char *at = endpoint + strlen(PREFIX);
    char *end = NULL;

    if (strspn(at, "0123456789") == 0) {
        return false;
    }
    errno = 0;
    *ret_rank = strtoul(at, &end, 10);
    if (*end != ':' || strspn(end + 1, "0123456789") == 0) {
        return false;
    }
    *ret_number = strtoul(end + 1, &end, 10);
    return *end == '\0' && errno == 0 && *ret_number > 0 && *ret_number <= UINT32_MAX;
}

static int connect_link(const char *endpoint, const ps_carrier_setup_t *setup, void **ret_end,
                        char ret_reason[PS_CARRIER_REASON])
{
    ps_hall_t *hall = NULL;
    ps_end_t *end = NULL;
    unsigned long to = 0;
    unsigned long number = 0;
    int rank = 0;
    int size = 0;
    int code = 0;

    if (!read_address(endpoint, &to, &number)) {
        (void)snprintf(ret_reason, PS_CARRIER_REASON, "allowed: " PREFIX "RANK:NUMBER");
        return EINVAL;
    }
    code = ps_world_enter(&hall, &rank, &size, ret_reason);
    if (code != 0) {
        return code;
    }
    if (to >= (unsigned long)size) {
        (void)snprintf(ret_reason, PS_CARRIER_REASON, "the world has %d ranks", size);
        return EINVAL;
    }
    code = ps_hall_connect(hall, (int)to, (uint32_t)number, setup, &end);
    if (code == 0) {
        *ret_end = end;
    }
    return code;
}

static void close_end(void *end, uint32_t linger_ms)
{
    ps_end_close(end, linger_ms);
}

static int send_frames(void *end, uint64_t conn, const ps_carrier_frame_t *frames, size_t n)
{
    return ps_end_send(end, conn, frames, n);
}

static int receive_frames(void *end, uint64_t *ret_conn,
                          ps_carrier_frame_t frames[PS_CARRIER_FRAMES], size_t *ret_n)
{
    return ps_end_receive(end, ret_conn, frames, ret_n);
}

/* The MPI thread sends as soon as it can. */
static void flush(void *end)
{
    (void)end;
}

static int is_ready(void *end)
{
    return ps_end_is_ready(end) ? 1 : 0;
}

static int fd_of(void *end)
{
    return ps_end_fd(end);
}

static int lie_down(void *end)
{
    return ps_end_lie_down(end) ? 1 : 0;
}

static void get_up(void *end)
{
    ps_end_get_up(end);
}

static int next_gone(void *end, uint64_t *ret_conn)
{
    return ps_end_next_gone(end, ret_conn) ? 1 : 0;
}

/* ---- the world ----------------------------------------------------------- */

static int enter(int *ret_rank, int *ret_size, char ret_reason[PS_CARRIER_REASON])
{
    ps_hall_t *hall = NULL;
    int code = ps_world_enter(&hall, ret_rank, ret_size, ret_reason);

    if (code == 0) {
        ps_hall_watch_all(hall);
    }
    return code;
}

static int say(const char *key, const char *value)
{
    ps_hall_t *hall = ps_world_hall();

    return hall == NULL ? EIO : ps_hall_say(hall, key, value);
}

static int find(const char *key, char ret_value[PS_CARRIER_TEXT])
{
    ps_hall_t *hall = ps_world_hall();

    return hall != NULL && ps_hall_find(hall, key, ret_value) ? 0 : ENOENT;
}

static int is_lost(int rank)
{
    ps_hall_t *hall = ps_world_hall();

    return hall == NULL || ps_hall_is_lost(hall, rank) ? 1 : 0;
}

static const ps_carrier_plugin_t PLUGIN = {
    .abi = PS_CARRIER_ABI,
    .size = sizeof PLUGIN,
    .name = "mpi",
    .bind = bind_port,
    .connect = connect_link,
    .close = close_end,
    .send = send_frames,
    .receive = receive_frames,
    .flush = flush,
    .is_ready = is_ready,
    .fd = fd_of,
    .lie_down = lie_down,
    .get_up = get_up,
    .next_gone = next_gone,
    .enter = enter,
    .say = say,
    .find = find,
    .is_lost = is_lost,
    .count = ps_world_count,
};

__attribute__((visibility("default"))) const ps_carrier_plugin_t *psd_carrier_plugin(void);

const ps_carrier_plugin_t *psd_carrier_plugin(void)
{
    return &PLUGIN;
}
