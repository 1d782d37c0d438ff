/* SPDX-License-Identifier: Apache-2.0 */
/* base/slice.h and base/log.h: holders of one payload on several threads, the
 * last of which frees it; and lines of several threads, each in one piece. */
#include "base/slice.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define N_THREADS 4
#define N_ROUNDS 200

static atomic_int n_released;

static void count_release(void *owner)
{
    (void)owner;
    atomic_fetch_add(&n_released, 1);
}

static void *drop_and_tell(void *arg)
{
    ps_payload_t *payload = arg;

    assert(payload->keys.size == 8);
    ps_payload_destroy(&payload);
    ps_log(PS_LOG_INFO, "dropped", "size=%d", 8);
    return NULL;
}

static void share_one_payload(void)
{
    static const uint8_t key[8] = {7};
    ps_payload_t *payload = ps_payload_new((ps_bytes_t){key, sizeof key}, (ps_bytes_t){0},
                                           (ps_bytes_t){0}, NULL, count_release);
    pthread_t threads[N_THREADS] = {0};
    int rc = 0;

    assert(payload != NULL);
    for (int i = 0; i < N_THREADS; i++) {
        rc = pthread_create(&threads[i], NULL, drop_and_tell, ps_payload_keep(payload));
        assert(rc == 0);
    }
    ps_payload_destroy(&payload);
    for (int i = 0; i < N_THREADS; i++) {
        rc = pthread_join(threads[i], NULL);
        assert(rc == 0);
    }
}

/* Reads what the threads of one round wrote. */
static void check_lines(int fd)
{
    static const char line[] = "info dropped size=8\n";
    char seen[sizeof line];

    for (int i = 0; i < N_THREADS; i++) {
        ssize_t size = read(fd, seen, sizeof line - 1);

        assert(size == (ssize_t)sizeof line - 1);
        assert(memcmp(seen, line, sizeof line - 1) == 0);
    }
}

int main(void)
{
    int fds[2] = {-1, -1};
    int rc = pipe(fds);

    assert(rc == 0);
    ps_log_open(fds[1], PS_LOG_INFO, false);
    for (int i = 0; i < N_ROUNDS; i++) {
        share_one_payload();
        assert(atomic_load(&n_released) == i + 1);
        check_lines(fds[0]);
    }
    close(fds[0]);
    close(fds[1]);
    return 0;
}
