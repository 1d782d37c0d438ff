/* SPDX-License-Identifier: Apache-2.0 */
/* A link that is closed while its server stands still: it waits for as long as
 * it was told, and not for ever, however time passes between its looks. */
#include <limits.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lane_kit.h"
#include "transport/sockets/socket_inner.h"

#define LINGER_MS 100
#define STEP_MS 60 /* that pass between two looks at the clock */

static bool is_slow; /* this thread is taken away before each look */
static int64_t passed_ms;
static int least_ms = INT_MAX; /* that poll was asked to wait */

/* The program's own come before the C library's. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ret);

    if (rc == 0 && is_slow) {
        passed_ms += STEP_MS;
        ret->tv_nsec += passed_ms % 1000 * 1000000;
        ret->tv_sec += passed_ms / 1000 + ret->tv_nsec / 1000000000;
        ret->tv_nsec %= 1000000000;
    }
    return rc;
}

int poll(struct pollfd *items, nfds_t n, int timeout_ms)
{
    struct timespec time = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};

    if (is_slow) {
        least_ms = timeout_ms < least_ms ? timeout_ms : least_ms;
        return 0;
    }
    return (int)syscall(SYS_ppoll, items, n, timeout_ms < 0 ? NULL : &time, NULL, 0);
}

/* Pushes until one of them is put off. */
static bool fill(lane_kit_t *kit)
{
    static uint8_t bytes[40000];

    for (uint64_t i = 1; kit->link->lane->n_items == 0; i++) {
        ps_message_t push = lane_kit_push(i, sizeof bytes / 4);
        ps_payload_t *payload = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                                               (ps_bytes_t){bytes, sizeof bytes}, NULL, NULL);

        push.push.rows = PS_ROWS_RANGE;
        CHECK_OK(ps_socket_send(kit->link, 0, &push, payload, kit->err), kit->err);
        ps_payload_destroy(&payload);
    }
    return true;
}

int main(void)
{
    ps_socket_args_t args = lane_kit_args(0);
    lane_kit_t kit = {.port = NULL};
    bool ok =
        lane_kit_open(&kit, &args) && lane_kit_connect(&kit, &kit.link) == PSD_OK && fill(&kit);

    if (ok) {
        is_slow = true;
        ps_carrier_lane.linger(kit.link, LINGER_MS);
        ps_carrier_lane.close(kit.link);
        is_slow = false;
        ok = least_ms >= 0 && least_ms <= LINGER_MS;
    }
    lane_kit_done(&kit);
    return ok ? 0 : 1;
}
