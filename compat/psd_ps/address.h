/* SPDX-License-Identifier: Apache-2.0 */
/* psd_ps/address.h - where nodes are: settings, sockets, and what may be listened at */
#ifndef PSD_COMPAT_ADDRESS_H
#define PSD_COMPAT_ADDRESS_H

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "ps/internal/utils.h"

namespace ps {
namespace inner {

inline std::string Setting(const char *key)
{
    const char *text = Environment::Get()->find(key);

    return text == nullptr ? "" : text;
}
inline bool IsOn(const std::string &word)
{
    return !word.empty() && word != "0" && strcasecmp(word.c_str(), "false") != 0 &&
           strcasecmp(word.c_str(), "no") != 0 && strcasecmp(word.c_str(), "off") != 0;
}

/* For whatever does not depend on the program: nodes that start, connections. */
inline int StartMs()
{
    const int ms = atoi(Setting("PSD_TIMEOUT_MS").c_str());

    return ms > 0 ? ms : 60000;
}
/* For one request: the program's handle may take its time. */
inline int WaitMs()
{
    const int ms = atoi(Setting("PSD_TIMEOUT_MS").c_str());

    return ms > 0 ? ms : 600000;
}

/* The scheduler's host and port, of PSD_ENDPOINT or DMLC_PS_ROOT_*. */
struct Root {
    std::string host;
    std::string port;
    std::string Endpoint() const { return "tcp://" + host + ":" + port; }
};

inline Root ReadRoot()
{
    Root root;
    const std::string endpoint = Setting("PSD_ENDPOINT");
    const size_t colon = endpoint.rfind(':');

    if (endpoint.compare(0, 6, "tcp://") == 0 && colon > 6) {
        root.host = endpoint.substr(6, colon - 6);
        root.port = endpoint.substr(colon + 1);
    } else {
        root.host = Setting("DMLC_PS_ROOT_URI");
        root.port = Setting("DMLC_PS_ROOT_PORT");
    }
    if (root.host.empty() || root.port.empty()) {
        LOG(FATAL) << "DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT are to name the scheduler's "
                      "host and port";
    }
    return root;
}

/* The first address of IPv4 of an interface; "" when it has none. */
inline std::string AddressOf(const std::string &interface_name)
{
    struct ifaddrs *all = nullptr;
    std::string found;

    if (getifaddrs(&all) != 0) {
        return found;
    }
    for (struct ifaddrs *at = all; at != nullptr && found.empty(); at = at->ifa_next) {
        char text[INET_ADDRSTRLEN];

        if (at->ifa_addr != nullptr && at->ifa_addr->sa_family == AF_INET &&
            interface_name == at->ifa_name) {
            struct sockaddr_in address;

            memcpy(&address, at->ifa_addr, sizeof address);
            if (inet_ntop(AF_INET, &address.sin_addr, text, sizeof text) != nullptr) {
                found = text;
            }
        }
    }
    freeifaddrs(all);
    return found;
}

inline bool Resolve(const std::string &host, int port, struct sockaddr_in *ret)
{
    struct addrinfo hints;
    struct addrinfo *found = nullptr;

    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0 || found == nullptr) {
        return false;
    }
    memcpy(ret, found->ai_addr, sizeof *ret);
    freeaddrinfo(found);
    ret->sin_port = htons(static_cast<uint16_t>(port));
    return true;
}

inline void SetUp(int fd, int send_timeout_s)
{
    const int on = 1, idle_s = 5, between_s = 2, times = 5;
    struct timeval limit;

    limit.tv_sec = send_timeout_s;
    limit.tv_usec = 0;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/* -1: errno says why. */
inline int ConnectTo(const std::string &host, int port)
{
    struct sockaddr_in address;

    if (!Resolve(host, port, &address)) {
        errno = EHOSTUNREACH;
        return -1;
    }
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    SetUp(fd, 60);
    int rc;
    do {
        rc = connect(fd, reinterpret_cast<struct sockaddr *>(&address), sizeof address);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) {
        const int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

/* The address of this host on the way to the scheduler. */
inline std::string AddressTowards(const Root &root)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    char text[INET_ADDRSTRLEN] = "";

    if (Resolve(root.host, atoi(root.port.c_str()), &address)) {
        const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd >= 0 &&
            connect(fd, reinterpret_cast<struct sockaddr *>(&address), sizeof address) == 0 &&
            getsockname(fd, reinterpret_cast<struct sockaddr *>(&address), &size) == 0) {
            inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    return text;
}

/* Where this node is heard: what it was told, else its address towards the scheduler. */
inline std::string MyHost(const Root &root, bool is_scheduler)
{
    std::string host = is_scheduler ? root.host : Setting("DMLC_NODE_HOST");

    if (host.empty() && !Setting("DMLC_INTERFACE").empty()) {
        host = AddressOf(Setting("DMLC_INTERFACE"));
        if (host.empty()) {
            LOG(FATAL) << "DMLC_INTERFACE: " << Setting("DMLC_INTERFACE")
                       << " is no interface with an address of IPv4";
        }
    }
    return host.empty() ? AddressTowards(root) : host;
}

/* Listens at a free port of that address. */
inline int ListenAt(const std::string &host, int *ret_port)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;

    if (!Resolve(host, 0, &address)) {
        LOG(FATAL) << "no address of IPv4 for \"" << host << "\": set DMLC_NODE_HOST";
    }
    const bool is_local = (ntohl(address.sin_addr.s_addr) >> 24) == 127;
    if (!is_local && !IsOn(Setting("PSD_SECURITY_ALLOW_PLAINTEXT"))) {
        LOG(FATAL) << "this would send in plain text beyond the host, at " << host
                   << ": set PSD_SECURITY_ALLOW_PLAINTEXT=true on a network that you trust";
    }
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, reinterpret_cast<struct sockaddr *>(&address), sizeof address) != 0 ||
        listen(fd, 1024) != 0 ||
        getsockname(fd, reinterpret_cast<struct sockaddr *>(&address), &size) != 0) {
        LOG(FATAL) << "cannot listen at " << host << ": " << strerror(errno);
    }
    *ret_port = ntohs(address.sin_port);
    return fd;
}

}
}
#endif
