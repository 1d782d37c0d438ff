/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps/internal/van.h - this process among the job's
 *
 * Programs use my_node(), Send(), IsReady() and GetTimestamp(). The rest is for the
 * postoffice.
 */
#ifndef PSD_COMPAT_PS_VAN_H
#define PSD_COMPAT_PS_VAN_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ps/base.h"
#include "ps/internal/message.h"
#include "psd_ps/doors.h"
#include "psd_ps/hub.h"
#include "psd_ps/node.h"

namespace ps {

class Van {
  public:
    using Clock = std::chrono::steady_clock;
    /* kind is one of inner::Kind. It may take the message. */
    using OnPacket = std::function<void(int kind, Message &message)>;
    using OnGone = std::function<void()>;

    Van(const OnPacket &on_packet, const OnGone &on_gone)
        : on_packet_(on_packet), on_gone_(on_gone),
          doors_([this](const Message &hello) { return Greet(hello); },
                 [this](int peer, int kind, Message &message) { Receive(peer, kind, message); },
                 [this](int peer, bool said) { Gone(peer, said); })
    {
    }
    ~Van() { Stop(); }

    /* Waits until all nodes are there. */
    const Node &my_node() const
    {
        WaitReady();
        return my_node_;
    }
    bool IsReady() const { return is_ready_; }
    int GetTimestamp() { return timestamp_++; }
    /* Bytes of the arrays; -1: the receiver is gone. */
    int Send(const Message &message)
    {
        Message out = message;

        WaitReady();
        out.meta.sender = my_id_;
        return SendKind(inner::APP, out) ? out.meta.data_size : -1;
    }

    /* Makes the process a node, with its first customer. */
    void Start(Node::Role role, int n_servers, int n_workers, int customer_id, bool is_verbose)
    {
        const bool is_scheduler = role == Node::SCHEDULER;

        root_ = inner::ReadRoot();
        my_node_.role = role;
        my_node_.customer_id = customer_id;
        my_node_.hostname = inner::MyHost(root_, is_scheduler);
        if (is_scheduler) {
            my_id_ = kScheduler;
            BeScheduler(n_servers, n_workers, is_verbose);
        } else {
            /* Before the node, which waits less long for the scheduler. */
            const inner::Door door = inner::FindDoor(root_);
            word_ = door.Word();
            if (role == Node::SERVER) {
                psd_.Start(root_, false, is_verbose);
            }
            my_node_.port = doors_.Open(my_node_.hostname, word_);
            std::lock_guard<std::mutex> lock(mu_);
            links_[kScheduler] =
                std::make_shared<inner::Link>(root_.host, static_cast<int>(door.port));
        }
        started_ = Clock::now();
        if (!is_scheduler && !Tell(kScheduler, inner::PING, 0, customer_id, "")) {
            LOG(FATAL) << "the scheduler at " << root_.Endpoint() << " does not answer";
        }
        ticking_ = std::thread(&Van::Tick, this);
    }
    /* One more customer of this process. */
    void AddCustomer(int customer_id)
    {
        if (my_node_.role == Node::WORKER) {
            Tell(kScheduler, inner::CUSTOMER, 0, customer_id, "");
        }
    }
    void WaitReady() const
    {
        const int slack_ms = my_node_.role == Node::SCHEDULER ? 0 : 3000;
        std::unique_lock<std::mutex> lock(mu_);

        if (!cond_.wait_for(lock, std::chrono::milliseconds(inner::StartMs() + slack_ms),
                            [this] { return is_ready_ || !refusal_.empty(); })) {
            refusal_ = my_node_.role == Node::SCHEDULER
                           ? hub_.Missing() + " after " + std::to_string(inner::StartMs()) + " ms"
                           : "the scheduler has not said for " + std::to_string(inner::StartMs()) +
                                 " ms that all are there";
        }
        if (!is_ready_) {
            const std::string why = refusal_;
            lock.unlock();
            TellRefusal(why);
            LOG(FATAL) << "start: " << why;
        }
    }
    /* Waits until all that live of a group do. */
    void Barrier(int customer_id, int group)
    {
        WaitReady();
        CHECK(inner::GroupOf(my_node_.role) & group)
            << "a node waits at a barrier of groups that it is in, not " << group;
        std::unique_lock<std::mutex> lock(mu_);
        const int before = opened_[group];
        lock.unlock();
        if (my_node_.role == Node::SCHEDULER) {
            Enter(kScheduler, customer_id, group);
        } else {
            Tell(kScheduler, inner::ENTER, group, customer_id, "");
        }
        lock.lock();
        cond_.wait(lock, [&] { return opened_[group] != before || gone_.count(kScheduler) != 0; });
        if (opened_[group] == before) {
            LOG(FATAL) << "barrier of groups " << group << ": the scheduler is gone";
        }
    }
    /* Ends this process's part; psd's node too. */
    void Stop()
    {
        if (!ticking_.joinable()) {
            return;
        }
        {
            std::lock_guard<std::mutex> lock(mu_);
            is_stopping_ = true;
        }
        cond_.notify_all();
        ticking_.join();
        if (my_node_.role == Node::SCHEDULER) {
            WaitAlone();
        } else {
            psd_.Stop();
        }
        Message bye;
        bye.meta.sender = my_id_;
        for (const auto &link : Links()) {
            link->Leave(bye);
        }
        doors_.Close();
        psd_.Stop();
    }
    /* Has it ended? */
    bool IsGone(int id) const
    {
        std::lock_guard<std::mutex> lock(mu_);
        return gone_.count(id) != 0;
    }
    /* The nodes among `ids` that are dead, or silent for so long. */
    std::vector<int> Silent(const std::vector<int> &ids, int seconds) const
    {
        const auto limit = Clock::now() - std::chrono::seconds(seconds);
        std::vector<int> found;
        std::lock_guard<std::mutex> lock(mu_);

        for (const int id : ids) {
            const auto first = process_of_.find(id);
            const auto at = heard_.find(first == process_of_.end() ? id : first->second);
            const auto last = at == heard_.end() ? started_ : at->second;
            if (id != my_id_ && (dead_.count(id) != 0 || last < limit)) {
                found.push_back(id);
            }
        }
        return found;
    }
    /* Sends to a node, or here. false: it is gone. */
    bool SendKind(int kind, Message &message)
    {
        std::shared_ptr<inner::Link> link;
        const int to = message.meta.recver;
        int process = to;
        {
            std::lock_guard<std::mutex> lock(mu_);
            const auto first = process_of_.find(to);
            process = first == process_of_.end() ? to : first->second;
            const auto at = links_.find(process);
            if (gone_.count(to) != 0) {
                return false;
            }
            if (at != links_.end()) {
                link = at->second;
            }
        }
        if (process == my_id_) {
            on_packet_(kind, message);
            return true;
        }
        CHECK(link != nullptr) << "there is no node " << to;
        if (!link->Send(kind, message, Hello())) {
            if (my_node_.role != Node::SCHEDULER) { /* it hears the end of each node */
                GoneAfterItsWords(process, false);
            }
            return false;
        }
        return true;
    }

  private:
#include "psd_ps/van_inner.h"
};

}
#endif
