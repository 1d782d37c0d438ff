/* SPDX-License-Identifier: Apache-2.0 */
/* Time and randomness of the machine: the only two things that a shell reads
 * besides its sockets and files. */
#include "transport/threads/clock.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

uint64_t ps_now_ms(void)
{
    struct timespec now = {0};
    int rc = clock_gettime(CLOCK_BOOTTIME, &now);

    assert(rc == 0);
    (void)rc;
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t ps_now_us(void)
{
    struct timespec now = {0};
    int rc = clock_gettime(CLOCK_BOOTTIME, &now);

    assert(rc == 0);
    (void)rc;
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
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
