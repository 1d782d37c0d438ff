/* SPDX-License-Identifier: Apache-2.0 */
/* Time and randomness of the machine: the only two things that a shell reads
 * besides its sockets and files. */
#include "transport/threads/clock.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define US_PER_S UINT64_C(1000000)
#define US_PER_MS 1000
#define NS_PER_US 1000

static uint64_t read_us(clockid_t clock)
{
    struct timespec now = {0};
    int rc = clock_gettime(clock, &now);

    assert(rc == 0);
    (void)rc;
    return (uint64_t)now.tv_sec * US_PER_S + (uint64_t)now.tv_nsec / NS_PER_US;
}

uint64_t ps_now_ms(void)
{
    return ps_now_us() / US_PER_MS;
}

uint64_t ps_now_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

uint64_t ps_unix_ms(void)
{
    return ps_unix_us() / US_PER_MS;
}

uint64_t ps_unix_us(void)
{
    return read_us(CLOCK_REALTIME);
}

psd_status_t ps_random(void *ret_bytes, size_t size, psd_error_t *err)
{
    uint8_t *at = ret_bytes;

    while (size > 0) {
        ssize_t n = getrandom(at, size, 0);

        if (n < 0 && errno != EINTR) {
            char reason[128] = "";

            return psd_error_set(err, PSD_IO, "getrandom: %s",
                                 strerror_r(errno, reason, sizeof reason));
        }
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        }
    }
    return PSD_OK;
}
