/* SPDX-License-Identifier: Apache-2.0 */
/* The second number of the thread's schedstat. */
#include "server/threads/delay.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define NS_OF_MS UINT64_C(1000000)
#define TEXT_SIZE 96

/* false: it is not known. */
static bool read_ns(int fd, uint64_t *ret_ns)
{
    char text[TEXT_SIZE];
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);

    if (n <= 0) {
        return false;
    }
    text[n] = '\0';
    return sscanf(text, "%*u %" SCNu64, ret_ns) == 1;
}

void ps_delay_open(ps_delay_t *ret_delay)
{
    *ret_delay = (ps_delay_t){.fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)};
    (void)read_ns(ret_delay->fd, &ret_delay->ns);
}

uint64_t ps_delay_take_ms(ps_delay_t *self)
{
    uint64_t ns = self->ns;
    uint64_t late_ms = 0;

    if (read_ns(self->fd, &ns) && ns > self->ns) {
        late_ms = (ns - self->ns) / NS_OF_MS;
        self->ns += late_ms * NS_OF_MS; /* the rest counts the next time */
    }
    return late_ms;
}

void ps_delay_close(ps_delay_t *self)
{
    if (self->fd > 0) {
        (void)close(self->fd);
    }
    self->fd = -1;
}
