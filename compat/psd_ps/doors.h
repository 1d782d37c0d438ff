/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_ps/doors.h - the connections of a process
 *
 * It sends over connections that it made itself, one to each process, and receives
 * over those that others made, each with a thread. A peer's first packet shows the
 * job's word. A connection that ends without a BYE is the peer's death.
 */
#ifndef PSD_COMPAT_DOORS_H
#define PSD_COMPAT_DOORS_H

#include <sys/time.h>

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "psd_ps/address.h"
#include "psd_ps/wire.h"

namespace ps {
namespace inner {

/* To one process. */
class Link {
  public:
    Link(const std::string &host, int port) : host_(host), port_(port) {}
    ~Link() { Close(); }
    const std::string &host() const { return host_; }
    int port() const { return port_; }

    /* hello: sent first when there is no connection yet. false: the peer is gone. */
    bool Send(int kind, const Message &message, const Message &hello)
    {
        std::lock_guard<std::mutex> lock(mu_);

        if (is_gone_) {
            return false;
        }
        if (fd_ < 0) {
            fd_ = ConnectTo(host_, port_);
            if (fd_ < 0 || !WritePacket(fd_, HELLO, hello)) {
                Break();
                return false;
            }
        }
        if (!WritePacket(fd_, kind, message)) {
            Break();
            return false;
        }
        return true;
    }
    /* Says goodbye, if anything was ever said. */
    void Leave(const Message &bye)
    {
        std::lock_guard<std::mutex> lock(mu_);

        if (fd_ >= 0) {
            WritePacket(fd_, BYE, bye);
        }
        Break();
    }
    void Close()
    {
        std::lock_guard<std::mutex> lock(mu_);
        Break();
    }

  private:
    void Break()
    {
        is_gone_ = true;
        if (fd_ >= 0) {
            close(fd_);
        }
        fd_ = -1;
    }
    const std::string host_;
    const int port_;
    std::mutex mu_;
    int fd_ = -1;
    bool is_gone_ = false;
};

/* From all processes. */
class Doors {
  public:
    /* A peer's first packet; returns its number, 0 to end the connection. */
    using OnHello = std::function<int(const Message &hello)>;
    /* Each further one; `kind` is none of the peer's choice beyond Kind. */
    using OnPacket = std::function<void(int peer, int kind, Message &message)>;
    /* The connection has ended; said: by BYE. */
    using OnEnd = std::function<void(int peer, bool said)>;

    Doors(const OnHello &on_hello, const OnPacket &on_packet, const OnEnd &on_end)
        : on_hello_(on_hello), on_packet_(on_packet), on_end_(on_end)
    {
    }
    ~Doors() { Close(); }
    /* Returns the port. */
    int Open(const std::string &host, const std::string &word)
    {
        int port = 0;

        word_ = word;
        listener_ = ListenAt(host, &port);
        accepting_ = std::thread(&Doors::Accept, this);
        return port;
    }
    /* Set before anybody can know the port. */
    void set_word(const std::string &word)
    {
        std::lock_guard<std::mutex> lock(mu_);
        word_ = word;
    }
    /* Is there a connection from that peer whose end was not told? */
    bool IsOpen(int peer)
    {
        std::lock_guard<std::mutex> lock(mu_);

        for (const Guest &guest : guests_) {
            if (guest.peer == peer && !guest.has_ended) {
                return true;
            }
        }
        return false;
    }
    /* Ends all threads. Not from one of them. */
    void Close()
    {
        if (listener_ < 0) {
            return;
        }
        {
            std::lock_guard<std::mutex> lock(mu_);
            is_closing_ = true;
            for (Guest &guest : guests_) {
                shutdown(guest.fd, SHUT_RDWR);
            }
        }
        shutdown(listener_, SHUT_RDWR);
        accepting_.join();
        for (Guest &guest : guests_) { /* nobody adds any more */
            guest.thread.join();
            close(guest.fd);
        }
        guests_.clear();
        close(listener_);
        listener_ = -1;
    }

  private:
    struct Guest {
        int fd = -1;
        int peer = 0; /* 0: not known yet */
        std::thread thread;
        bool has_ended = false;
    };

    /* Those whose threads are at their end. */
    void Reap()
    {
        for (auto guest = guests_.begin(); guest != guests_.end();) {
            if (guest->has_ended) {
                guest->thread.join();
                close(guest->fd);
                guest = guests_.erase(guest);
            } else {
                ++guest;
            }
        }
    }

    void Accept()
    {
        for (;;) {
            const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);

            if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) {
                continue;
            }
            std::unique_lock<std::mutex> lock(mu_);
            if (is_closing_) {
                if (fd >= 0) {
                    close(fd);
                }
                return;
            }
            Reap();
            if (fd < 0) { /* no descriptors: some may come back */
                lock.unlock();
                LOG(ERROR) << "accept: " << strerror(errno);
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                continue;
            }
            guests_.emplace_back();
            guests_.back().fd = fd;
            guests_.back().thread = std::thread(&Doors::Serve, this, &guests_.back(), fd);
        }
    }
    /* A stranger has 10 s for a small hello. */
    int Greet(int fd)
    {
        struct timeval limit;
        Packet packet;
        std::string word;

        limit.tv_sec = 10;
        limit.tv_usec = 0;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        {
            std::lock_guard<std::mutex> lock(mu_);
            word = word_ + " ";
        }
        if (!ReadPacket(fd, 1024, 0, &packet) || packet.kind != HELLO ||
            packet.message.meta.body.compare(0, word.size(), word) != 0) {
            return 0;
        }
        packet.message.meta.body.erase(0, word.size());
        limit.tv_sec = 0;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        return on_hello_(packet.message);
    }
    void Serve(Guest *guest, int fd)
    {
        SetUp(fd, 60);
        const int peer = Greet(fd);
        bool said = false;

        {
            std::lock_guard<std::mutex> lock(mu_);
            guest->peer = peer;
        }
        while (peer != 0 && !said) {
            Packet packet;

            if (!ReadPacket(fd, kMaxText, kMaxArrays, &packet)) {
                break;
            }
            said = packet.kind == BYE;
            if (!said) {
                packet.message.meta.sender = peer;
                on_packet_(peer, packet.kind, packet.message);
            }
        }
        shutdown(fd, SHUT_RDWR);
        bool is_closing;
        {
            std::lock_guard<std::mutex> lock(mu_);
            is_closing = is_closing_;
        }
        if (peer != 0 && !is_closing) {
            on_end_(peer, said);
        }
        std::lock_guard<std::mutex> lock(mu_);
        guest->has_ended = true;
    }

    OnHello on_hello_;
    OnPacket on_packet_;
    OnEnd on_end_;
    std::mutex mu_;
    std::string word_;
    int listener_ = -1;
    bool is_closing_ = false;
    std::thread accepting_;
    std::list<Guest> guests_;
};

}
}
#endif
