/* SPDX-License-Identifier: Apache-2.0 */
/* Who a port has greeted. */
#include "transport/port_conns.h"

#include "base/alloc.h"

typedef struct ps_port_conn {
    uint64_t conn;
    int fd;
    bool is_welcome;
} ps_port_conn_t;

static uint64_t
key_of(int fd)
{
    return (uint64_t)(unsigned)fd + 1;
}

void
ps_port_conns_done(ps_port_conns_t *self)
{
    size_t at = 0;
    uint64_t conn = 0;
    void *value = NULL;

    while (ps_map_next(&self->by_conn, &at, &conn, &value)) {
        ps_free(value);
    }
    ps_map_done(&self->by_conn);
    ps_map_done(&self->by_fd);
}

uint64_t
ps_port_conns_closed(ps_port_conns_t *self, int fd)
{
    ps_port_conn_t *gone = ps_map_remove(&self->by_fd, key_of(fd));
    uint64_t conn = gone == NULL ? 0 : gone->conn;

    if (gone != NULL) {
        (void)ps_map_remove(&self->by_conn, conn);
        ps_free(gone);
    }
    return conn;
}

bool
ps_port_conns_lost(ps_port_conns_t *self, uint64_t conn)
{
    const ps_port_conn_t *known = ps_map_get(&self->by_conn, conn);

    return known != NULL && ps_port_conns_closed(self, known->fd) == conn;
}

bool
ps_port_conns_greet(ps_port_conns_t *self,
                    uint64_t conn,
                    int fd,
                    uint64_t *ret_gone)
{
    ps_port_conn_t *made = NULL;

    *ret_gone = 0;
    if (ps_map_get(&self->by_conn, conn) != NULL) {
        return true; /* a connection is one descriptor for as long as it is */
    }
    *ret_gone = ps_port_conns_closed(self, fd);
    made = ps_alloc(1, sizeof *made);
    if (made == NULL || !ps_map_put(&self->by_conn, conn, made)) {
        ps_free(made);
        return false;
    }
    if (!ps_map_put(&self->by_fd, key_of(fd), made)) {
        (void)ps_map_remove(&self->by_conn, conn);
        ps_free(made);
        return false;
    }
    made->conn = conn;
    made->fd = fd;
    return true;
}

void
ps_port_conns_welcome(ps_port_conns_t *self, uint64_t conn)
{
    ps_port_conn_t *known = ps_map_get(&self->by_conn, conn);

    if (known != NULL) {
        known->is_welcome = true;
    }
}

bool
ps_port_conns_is_welcome(const ps_port_conns_t *self, uint64_t conn)
{
    const ps_port_conn_t *known = ps_map_get(&self->by_conn, conn);

    return known != NULL && known->is_welcome;
}
