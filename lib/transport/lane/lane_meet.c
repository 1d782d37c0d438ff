/* SPDX-License-Identifier: Apache-2.0 */
/* The unix socket of a lane: one record each, with the memory beside it. */
#include "transport/lane/lane_meet.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "transport/threads/clock.h"

#define MAGIC "psdlane" /* with its 0, 8 bytes */
#define VERSION 1
#define TEXT_SIZE 200

/* What the server sends; both ends are of one machine. */
typedef struct greeting {
    char magic[8];
    uint32_t version;
    uint32_t status; /* psd_status_t; PSD_OK: the memory comes with it */
    ps_lane_sizes_t sizes;
    char text[TEXT_SIZE]; /* why not */
} greeting_t;

/* Room for one file descriptor, and for a second one, by its alignment. */
typedef union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
} control_t;

static psd_status_t failed(psd_error_t *err, psd_status_t status, const char *doing,
                           const char *path)
{
    char reason[128] = "";
    int code = errno;

    assert(path != NULL); /* gcc cannot see it when it counts on UBSan */
    return psd_error_set(err, status, "%s \"" PS_LANE_PREFIX "%.300s\": %s", doing, path,
                         strerror_r(code, reason, sizeof reason));
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
    *fd = -1;
}

/* The fd, which is no longer closed here. */
static int give_fd(int *fd)
{
    int given = *fd;

    *fd = -1;
    return given;
}

psd_status_t ps_lane_path(const char *endpoint, const char **ret_path, psd_error_t *err)
{
    const char *path = endpoint + strlen(PS_LANE_PREFIX);
    struct sockaddr_un address;

    if (strncmp(endpoint, PS_LANE_PREFIX, strlen(PS_LANE_PREFIX)) != 0 || path[0] == '\0' ||
        strlen(path) >= sizeof address.sun_path) {
        return psd_error_set(err, PSD_INVALID,
                             "endpoint is \"%.300s\"; allowed: " PS_LANE_PREFIX
                             "PATH of 1..%zu bytes",
                             endpoint, sizeof address.sun_path - 1);
    }
    *ret_path = path;
    return PSD_OK;
}

static void fill_address(struct sockaddr_un *address, const char *path)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, strlen(path));
}

static int new_fd(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool call(int fd, const char *path)
{
    struct sockaddr_un address;
    int rc = 0;

    fill_address(&address, path);
    do {
        rc = connect(fd, (const struct sockaddr *)&address, sizeof address);
    } while (rc != 0 && errno == EINTR);
    return rc == 0;
}

/* ---- the server -------------------------------------------------------- */

psd_status_t ps_lane_listen_at(const char *path, ps_door_peers_t peers, int *ret_fd,
                               psd_error_t *err)
{
    psd_status_t rc = ps_door_listen(path, SOCK_SEQPACKET, peers, ret_fd, err);

    return rc == PSD_OK ? PSD_OK
                        : psd_error_wrap(err, rc, "bind \"" PS_LANE_PREFIX "%.300s\"", path);
}

int ps_lane_accept(int listener)
{
    int fd = 0;

    do {
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static ssize_t send_greeting(int fd, greeting_t *greeting, int memory)
{
    struct iovec bytes = {.iov_base = greeting, .iov_len = sizeof *greeting};
    control_t control;
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};

    if (memory >= 0) {
        struct cmsghdr *head = NULL;

        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = sizeof control.bytes;
        head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof memory);
        memcpy(CMSG_DATA(head), &memory, sizeof memory);
    }
    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

psd_status_t ps_lane_hand_over(int fd, const ps_lane_sizes_t *sizes, int memory, psd_error_t *err)
{
    greeting_t greeting;

    memset(&greeting, 0, sizeof greeting);
    memcpy(greeting.magic, MAGIC, sizeof greeting.magic);
    greeting.version = VERSION;
    greeting.status = PSD_OK;
    greeting.sizes = *sizes;
    if (send_greeting(fd, &greeting, memory) != (ssize_t)sizeof greeting) {
        return failed(err, PSD_IO, "hand memory over at", "");
    }
    return PSD_OK;
}

void ps_lane_turn_away(int fd, psd_status_t status, const char *text)
{
    greeting_t greeting;
    size_t size = strnlen(text, TEXT_SIZE - 1);
    ssize_t n = 0;

    memset(&greeting, 0, sizeof greeting);
    memcpy(greeting.magic, MAGIC, sizeof greeting.magic);
    greeting.version = VERSION;
    greeting.status = (uint32_t)status;
    memcpy(greeting.text, text, size);
    n = send_greeting(fd, &greeting, -1);
    (void)n; /* it sees the end of the connection */
}

/* ---- the client -------------------------------------------------------- */

/* Waits until something can be read. */
static psd_status_t wait_for(int fd, const char *path, uint32_t wait_ms, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + wait_ms;
    struct pollfd item = {.fd = fd, .events = POLLIN};

    for (;;) {
        uint64_t now_ms = ps_now_ms();
        int rc = poll(&item, 1, now_ms < until_ms ? (int)(until_ms - now_ms) : 0);

        if (rc > 0) {
            return PSD_OK;
        }
        if (rc < 0 && errno != EINTR) {
            return failed(err, PSD_IO, "wait for", path);
        }
        if (rc == 0) {
            return psd_error_set(err, PSD_CONNECT,
                                 "connect \"" PS_LANE_PREFIX "%.300s\": nothing came in %" PRIu32
                                 " ms",
                                 path, wait_ms);
        }
    }
}

/* The one file that came beside the greeting, or -1. All others are closed:
 * false, there were more. */
static bool take_memory(struct msghdr *message, int *ret_memory)
{
    size_t n = 0;

    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head != NULL;
         head = CMSG_NXTHDR(message, head)) {
        const unsigned char *at = CMSG_DATA(head);
        size_t size = head->cmsg_len - CMSG_LEN(0);

        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        for (; size >= sizeof(int); size -= sizeof(int), at += sizeof(int)) {
            int fd = -1;

            memcpy(&fd, at, sizeof fd);
            close_fd(ret_memory);
            *ret_memory = fd;
            n++;
        }
    }
    if (n <= 1 && (message->msg_flags & MSG_CTRUNC) == 0) {
        return true;
    }
    close_fd(ret_memory);
    return false;
}

/* Reads the greeting; *ret_memory is -1 when none came with it. */
static psd_status_t read_greeting(int fd, const char *path, greeting_t *greeting, int *ret_memory,
                                  psd_error_t *err)
{
    struct iovec bytes = {.iov_base = greeting, .iov_len = sizeof *greeting};
    control_t control;
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.bytes};
    bool is_one = false;
    ssize_t n = 0;

    memset(greeting, 0, sizeof *greeting);
    memset(&control, 0, sizeof control);
    n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n <= 0) {
        return psd_error_set(err, PSD_CONNECT,
                             "connect \"" PS_LANE_PREFIX "%.300s\": the server hung up", path);
    }
    is_one = take_memory(&message, ret_memory);
    if (!is_one || n != (ssize_t)sizeof *greeting ||
        memcmp(greeting->magic, MAGIC, sizeof greeting->magic) != 0) {
        return psd_error_set(
            err, PSD_PROTO, "connect \"" PS_LANE_PREFIX "%.300s\": no lane is offered there", path);
    }
    return PSD_OK;
}

/* What a server may refuse with. */
static psd_status_t refusal(uint32_t status)
{
    if (status == PSD_DENIED || status == PSD_BUSY || status == PSD_NOMEM) {
        return (psd_status_t)status;
    }
    return PSD_CONNECT;
}

static psd_status_t check_greeting(const greeting_t *greeting, const char *path, int memory,
                                   psd_error_t *err)
{
    if (greeting->version != VERSION) {
        return psd_error_set(err, PSD_VERSION,
                             "lane of version %" PRIu32 " at %.300s; spoken "
                             "here: %d",
                             greeting->version, path, VERSION);
    }
    if (greeting->status != PSD_OK) {
        return psd_error_set(err, refusal(greeting->status),
                             "connect \"" PS_LANE_PREFIX "%.300s\": %.*s", path, TEXT_SIZE - 1,
                             greeting->text);
    }
    if (memory < 0) {
        return psd_error_set(err, PSD_PROTO, "connect \"" PS_LANE_PREFIX "%.300s\": no memory came",
                             path);
    }
    return PSD_OK;
}

psd_status_t ps_lane_meet(const char *path, uint32_t wait_ms, int *ret_fd,
                          ps_lane_share_t **ret_share, psd_error_t *err)
{
    PSD_AUTO(close_fd) int fd = new_fd();
    PSD_AUTO(close_fd) int memory = -1;
    greeting_t greeting;
    char why[PS_DOOR_TEXT];
    psd_status_t rc = PSD_OK;

    if (fd < 0) {
        return failed(err, PSD_IO, "connect", path);
    }
    if (!call(fd, path)) {
        return psd_error_set(err, PSD_CONNECT, "connect \"" PS_LANE_PREFIX "%.300s\": %s", path,
                             ps_door_reason(path, errno, why));
    }
    rc = wait_for(fd, path, wait_ms, err);
    if (rc == PSD_OK) {
        rc = read_greeting(fd, path, &greeting, &memory, err);
    }
    if (rc == PSD_OK) {
        rc = check_greeting(&greeting, path, memory, err);
    }
    if (rc == PSD_OK) {
        rc = ps_lane_share_adopt(memory, &greeting.sizes, ret_share, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_fd = give_fd(&fd);
    return PSD_OK;
}
