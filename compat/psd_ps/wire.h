/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_ps/wire.h - packets over a connection, whole
 *
 * A packet is a head of fixed size, the sizes of its arrays, a text and the arrays.
 * Numbers are in the order of the machine's bytes; the magic number tells a peer with
 * another order, or of another version.
 */
#ifndef PSD_COMPAT_WIRE_H
#define PSD_COMPAT_WIRE_H

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <new>
#include <string>
#include <vector>

#include "ps/internal/message.h"

namespace ps {
namespace inner {

enum Kind {
    HELLO = 1, /* the first packet of a connection */
    CUSTOMER,  /* a worker's customer has started */
    ROSTER,    /* all nodes are there */
    REFUSED,   /* and why */
    ENTER,     /* somebody waits at a barrier */
    LEAVE,     /* a barrier is open */
    BYE,       /* the sender ends */
    DEAD,      /* a node has ended without that */
    PING,      /* I live */
    ASK_MODE,  /* who serves an app? */
    MODE,      /* a table of psd, or a handle */
    APP        /* a request or a response */
};

struct Packet {
    int kind = 0;
    Message message;
};

/* Of a message that a peer announces. */
static const uint32_t kMaxText = 1U << 30;
static const uint64_t kMaxArray = UINT64_C(1) << 36;
static const uint32_t kMaxArrays = 16;
static const uint32_t kMagic = 0x31735070;

struct Head {
    uint32_t magic;
    uint8_t kind;
    uint8_t flags;
    uint16_t n_arrays;
    int32_t numbers[7];
    uint32_t text_size;
};

inline bool WriteAll(int fd, struct iovec *parts, size_t n_parts)
{
    while (n_parts > 0) {
        struct msghdr out;

        memset(&out, 0, sizeof out);
        out.msg_iov = parts;
        out.msg_iovlen = n_parts;
        const ssize_t sent = sendmsg(fd, &out, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            return false;
        }
        size_t rest = static_cast<size_t>(sent);
        while (n_parts > 0 && rest >= parts->iov_len) {
            rest -= parts->iov_len;
            parts++;
            n_parts--;
        }
        if (n_parts > 0) {
            parts->iov_base = static_cast<char *>(parts->iov_base) + rest;
            parts->iov_len -= rest;
        }
    }
    return true;
}

inline bool ReadAll(int fd, void *to, size_t size)
{
    char *at = static_cast<char *>(to);

    while (size > 0) {
        const ssize_t got = recv(fd, at, size, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        size -= static_cast<size_t>(got);
    }
    return true;
}

inline bool WritePacket(int fd, int kind, const Message &message)
{
    const Meta &meta = message.meta;
    const size_t n = message.data.size();
    Head head;
    uint64_t sizes[2 * kMaxArrays];
    struct iovec parts[3 + kMaxArrays];
    size_t n_parts = 0;

    if (n > kMaxArrays || meta.body.size() > kMaxText) {
        return false;
    }
    memset(&head, 0, sizeof head);
    head.magic = kMagic;
    head.kind = static_cast<uint8_t>(kind);
    head.flags = static_cast<uint8_t>((meta.request ? 1 : 0) | (meta.push ? 2 : 0) |
                                      (meta.pull ? 4 : 0) | (meta.simple_app ? 8 : 0));
    head.n_arrays = static_cast<uint16_t>(n);
    const int numbers[7] = {meta.head,   meta.app_id, meta.customer_id, meta.timestamp,
                            meta.sender, meta.recver, meta.priority};
    for (int i = 0; i < 7; i++) {
        head.numbers[i] = numbers[i];
    }
    head.text_size = static_cast<uint32_t>(meta.body.size());
    for (size_t i = 0; i < n; i++) {
        sizes[2 * i] = message.data[i].size();
        sizes[2 * i + 1] = i < meta.data_type.size() ? meta.data_type[i] : OTHER;
    }
    parts[n_parts++] = {&head, sizeof head};
    if (n > 0) {
        parts[n_parts++] = {sizes, 2 * n * sizeof sizes[0]};
    }
    if (!meta.body.empty()) {
        parts[n_parts++] = {const_cast<char *>(meta.body.data()), meta.body.size()};
    }
    for (size_t i = 0; i < n; i++) {
        if (!message.data[i].empty()) {
            parts[n_parts++] = {message.data[i].data(), message.data[i].size()};
        }
    }
    return WriteAll(fd, parts, n_parts);
}

/* max_text and max_arrays: what this peer may send. false: the connection has ended,
 * or is no good. */
inline bool ReadPacket(int fd, uint32_t max_text, uint32_t max_arrays, Packet *ret)
{
    Head head;
    uint64_t sizes[2 * kMaxArrays];
    Meta &meta = ret->message.meta;

    if (!ReadAll(fd, &head, sizeof head) || head.magic != kMagic || head.text_size > max_text ||
        head.n_arrays > max_arrays || head.n_arrays > kMaxArrays ||
        !ReadAll(fd, sizes, 2 * head.n_arrays * sizeof sizes[0])) {
        return false;
    }
    ret->kind = head.kind;
    meta.request = (head.flags & 1) != 0;
    meta.push = (head.flags & 2) != 0;
    meta.pull = (head.flags & 4) != 0;
    meta.simple_app = (head.flags & 8) != 0;
    int *numbers[7] = {&meta.head,   &meta.app_id, &meta.customer_id, &meta.timestamp,
                       &meta.sender, &meta.recver, &meta.priority};
    for (int i = 0; i < 7; i++) {
        *numbers[i] = head.numbers[i];
    }
    try {
        meta.body.resize(head.text_size);
        if (head.text_size > 0 && !ReadAll(fd, &meta.body[0], head.text_size)) {
            return false;
        }
        for (size_t i = 0; i < head.n_arrays; i++) {
            const uint64_t size = sizes[2 * i];
            SArray<char> bytes;

            if (size > kMaxArray || sizes[2 * i + 1] > OTHER) {
                return false;
            }
            bytes.reset(new char[size + 1], size, [](char *p) { delete[] p; });
            if (!ReadAll(fd, bytes.data(), size)) {
                return false;
            }
            meta.data_type.push_back(static_cast<DataType>(sizes[2 * i + 1]));
            ret->message.data.push_back(bytes);
        }
    } catch (const std::bad_alloc &) {
        LOG(ERROR) << "no memory for a message of node " << meta.sender;
        return false;
    }
    return true;
}

}
}
#endif
