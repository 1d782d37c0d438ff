/* SPDX-License-Identifier: Apache-2.0 */
/* The table of carrier_plugin.h. Endpoints are ucx://ADDRESS:PORT, of IPv4, or of IPv6 in brackets;
 * a port that is bound with PORT 0 gets one. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ucx/process.h"

#define PREFIX "ucx://"
#define ALLOWED "allowed: " PREFIX "ADDRESS:PORT, ADDRESS of IPv4, or of IPv6 in brackets"
#define ADDRESS_SIZE 64

/* false: it is none. */
static bool read_address(const char *endpoint, struct sockaddr_storage *ret_at)
{
    const char *from = endpoint + strlen(PREFIX);
    const char *colon = strrchr(from, ':');
    const bool is_long = *from == '[';
    char address[ADDRESS_SIZE];
    unsigned long port = 0;
    char *end = NULL;
    int size = 0;

    if (colon == NULL || strspn(colon + 1, "0123456789") == 0) {
        return false;
    }
    port = strtoul(colon + 1, &end, 10);
    size = (int)(colon - from) - (is_long ? 2 : 0);
    if (*end != '\0' || port > UINT16_MAX || size < 1 || size >= ADDRESS_SIZE ||
        (is_long && colon[-1] != ']')) {
        return false;
    }
    (void)snprintf(address, sizeof address, "%.*s", size, from + (is_long ? 1 : 0));
    memset(ret_at, 0, sizeof *ret_at);
    if (is_long) {
        struct sockaddr_in6 *at = (struct sockaddr_in6 *)ret_at;

        at->sin6_family = AF_INET6;
        at->sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, address, &at->sin6_addr) == 1;
    }
    struct sockaddr_in *at = (struct sockaddr_in *)ret_at;

    at->sin_family = AF_INET;
    at->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, address, &at->sin_addr) == 1;
}

static void print_address(const struct sockaddr_storage *at, char *ret_bound, size_t size)
{
    char address[ADDRESS_SIZE] = "";

    if (at->ss_family == AF_INET6) {
        const struct sockaddr_in6 *it = (const struct sockaddr_in6 *)at;

        (void)inet_ntop(AF_INET6, &it->sin6_addr, address, sizeof address);
        (void)snprintf(ret_bound, size, PREFIX "[%s]:%u", address, ntohs(it->sin6_port));
    } else {
        const struct sockaddr_in *it = (const struct sockaddr_in *)at;

        (void)inet_ntop(AF_INET, &it->sin_addr, address, sizeof address);
        (void)snprintf(ret_bound, size, PREFIX "%s:%u", address, ntohs(it->sin_port));
    }
}

/* The hall, for an endpoint that can be read. 0 or an errno. */
static int enter(const char *endpoint, struct sockaddr_storage *ret_at, ps_hall_t **ret_hall,
                 char ret_reason[PS_CARRIER_REASON])
{
    if (!read_address(endpoint, ret_at)) {
        (void)snprintf(ret_reason, PS_CARRIER_REASON, "%s", ALLOWED);
        return EINVAL;
    }
    return ps_ucx_enter(ret_hall, ret_reason);
}

static int bind_port(const char *endpoint, const ps_carrier_setup_t *setup, void **ret_end,
                     char *ret_bound, size_t bound_size, char ret_reason[PS_CARRIER_REASON])
{
    struct sockaddr_storage at;
    ps_hall_t *hall = NULL;
    ps_end_t *end = NULL;
    uint32_t number = 0;
    int code = enter(endpoint, &at, &hall, ret_reason);

    if (code == 0) {
        code = ps_hall_bind(hall, setup, &end, &number);
    }
    if (code != 0) {
        return code;
    }
    code = ps_ucx_listen(&at, number, &at);
    if (code != 0) {
        ps_end_close(end, 0);
        return code;
    }
    print_address(&at, ret_bound, bound_size);
    *ret_end = end;
    return 0;
}

static int connect_link(const char *endpoint, const ps_carrier_setup_t *setup, void **ret_end,
                        char ret_reason[PS_CARRIER_REASON])
{
    struct sockaddr_storage at;
    ps_hall_t *hall = NULL;
    ps_end_t *end = NULL;
    int peer = -1;
    int code = enter(endpoint, &at, &hall, ret_reason);

    if (code != 0) {
        return code;
    }
    peer = ps_hall_add_peer(hall);
    /* The other side knows by the address which port it is. */
    code = peer < 0 ? ENOMEM : ps_hall_connect(hall, peer, 0, setup, &end);
    if (code != 0) {
        if (peer >= 0) {
            ps_hall_drop_peer(hall, peer);
        }
        return code;
    }
    code = ps_ucx_connect(peer, &at);
    if (code != 0) {
        ps_hall_lose(hall, peer);
        ps_end_close(end, 0);
        ps_hall_drop_peer(hall, peer);
        return code;
    }
    *ret_end = end;
    return 0;
}

static void close_end(void *end, uint32_t linger_ms)
{
    const uint32_t port = ps_end_port(end);

    if (port != 0) {
        ps_ucx_unlisten(port);
    }
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

/* The thread sends as soon as it can. */
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

static const ps_carrier_plugin_t PLUGIN = {
    .abi = PS_CARRIER_ABI,
    .size = sizeof PLUGIN,
    .name = "ucx",
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
    .count = ps_ucx_count,
};

__attribute__((visibility("default"))) const ps_carrier_plugin_t *psd_carrier_plugin(void);

const ps_carrier_plugin_t *psd_carrier_plugin(void)
{
    return &PLUGIN;
}
