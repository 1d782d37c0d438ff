/* SPDX-License-Identifier: Apache-2.0 */
/* psd_ps/postoffice_inner.h - how a Postoffice starts, ends, and hands out messages */
#ifndef PSD_COMPAT_POSTOFFICE_INNER_H
#define PSD_COMPAT_POSTOFFICE_INNER_H

#include "ps/internal/postoffice.h"

namespace ps {

inline int CountSetting(const char *key)
{
    const std::string text = inner::Setting(key);
    const int n = atoi(text.c_str());

    if (text.empty() || n < 0 || n > 4096) {
        LOG(FATAL) << key << " is \"" << text << "\"; allowed: 0 .. 4096";
    }
    return n;
}

/* Reads the settings. */
inline void Postoffice::Begin()
{
    const std::string role = inner::Setting("DMLC_ROLE");

    Environment::Get()->Export();
    num_workers_ = CountSetting("DMLC_NUM_WORKER");
    num_servers_ = CountSetting("DMLC_NUM_SERVER");
    verbose_ = GetEnv("PS_VERBOSE", 0);
    if (role != "worker" && role != "server" && role != "scheduler") {
        LOG(FATAL) << "DMLC_ROLE is \"" << role << "\"; allowed: worker, server, scheduler";
    }
    role_ = role == "worker" ? Node::WORKER : role == "server" ? Node::SERVER : Node::SCHEDULER;
    has_role_ = true;
    node_ids_.clear();
    for (int mask = 1; mask < 8; mask++) {
        std::vector<int> ids;

        for (int i = 0; (mask & kWorkerGroup) != 0 && i < num_workers_; i++) {
            ids.push_back(WorkerRankToID(i));
            node_ids_[ids.back()] = std::vector<int>(1, ids.back());
        }
        for (int i = 0; (mask & kServerGroup) != 0 && i < num_servers_; i++) {
            ids.push_back(ServerRankToID(i));
            node_ids_[ids.back()] = std::vector<int>(1, ids.back());
        }
        if ((mask & kScheduler) != 0) {
            ids.push_back(kScheduler);
        }
        node_ids_[mask] = ids;
    }
    ranges_.clear();
    for (int i = 0; i < num_servers_; i++) {
        const uint64_t width = kMaxKey / static_cast<uint64_t>(num_servers_);
        const uint64_t begin = width * static_cast<uint64_t>(i);

        ranges_.push_back(Range(begin, i + 1 == num_servers_ ? kMaxKey : begin + width));
    }
}

inline void Postoffice::Start(int customer_id, const char *argv0, bool do_barrier)
{
    {
        std::lock_guard<std::mutex> lock(start_mu_);

        if (!is_started_) {
            dmlc::InitLogging(argv0 != nullptr ? argv0 : "ps");
            Begin();
            Van *van = new Van([this](int kind, Message &message) { Receive(kind, message); },
                               [this] { Wake(); });
            {
                std::lock_guard<std::mutex> own(mu_);
                van_ = van;
            }
            van->Start(role_, num_servers_, num_workers_, customer_id, verbose_ > 0);
            is_started_ = true;
        } else {
            van_->AddCustomer(customer_id);
        }
    }
    if (do_barrier) {
        van_->WaitReady();
    }
}

inline void Postoffice::Finalize(int customer_id, bool do_barrier)
{
    CHECK(van_ != nullptr) << "Finalize without Start";
    GoOn();
    WaitCustomers(10000, [customer_id](Customer *customer) {
        return customer->customer_id() != customer_id || customer->IsSettled();
    });
    if (do_barrier) {
        Barrier(customer_id, kScheduler + kServerGroup + kWorkerGroup);
    }
    if (customer_id != 0) {
        return;
    }
    WaitCustomers(10000, [](Customer *customer) { return customer->IsQuiet(); });
    std::unique_lock<std::mutex> lock(start_mu_);
    van_->Stop();
    is_started_ = false;
    {
        std::lock_guard<std::mutex> own(mu_);
        customers_.clear();
        early_.clear();
        modes_.clear();
        asked_.clear();
        answers_.clear();
    }
    const Callback callback = exit_callback_;
    exit_callback_ = nullptr;
    lock.unlock();
    if (callback) {
        callback();
    }
}

/* Until all customers are so; but not for longer. A customer may go meanwhile. */
inline void Postoffice::WaitCustomers(int ms, const std::function<bool(Customer *)> &is_so)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    std::unique_lock<std::mutex> lock(mu_);

    while (std::chrono::steady_clock::now() < end &&
           !std::all_of(customers_.begin(), customers_.end(),
                        [&](const std::pair<const std::pair<int, int>, Customer *> &pair) {
                            return is_so(pair.second);
                        })) {
        cond_.wait_for(lock, std::chrono::milliseconds(1));
    }
}

inline void Postoffice::AddCustomer(Customer *customer)
{
    const auto key = std::make_pair(customer->app_id(), customer->customer_id());
    std::unique_lock<std::mutex> lock(mu_);

    CHECK(customers_.insert(std::make_pair(key, customer)).second)
        << "app " << key.first << " has customer " << key.second << " already";
    const auto waiting = early_.find(key);
    if (waiting != early_.end()) {
        for (const Message &message : waiting->second) {
            customer->Accept(message);
        }
        early_.erase(waiting);
    }
    lock.unlock();
    cond_.notify_all();
}

inline void Postoffice::RemoveCustomer(Customer *customer)
{
    std::lock_guard<std::mutex> lock(mu_);

    for (auto at = customers_.begin(); at != customers_.end(); ++at) {
        if (at->second == customer) {
            customers_.erase(at);
            return;
        }
    }
}

inline void Postoffice::Wake()
{
    {
        std::lock_guard<std::mutex> lock(mu_);
        for (const auto &pair : customers_) {
            pair.second->Wake();
        }
    }
    cond_.notify_all();
}

inline void Postoffice::Receive(int kind, Message &message)
{
    const int app_id = message.meta.app_id;
    const int sender = message.meta.sender;

    if (kind == inner::APP) {
        Deliver(message);
        return;
    }
    std::unique_lock<std::mutex> lock(mu_);
    if (kind == inner::MODE) {
        answers_[app_id] = message.meta.body;
        lock.unlock();
        cond_.notify_all();
    } else if (kind == inner::ASK_MODE) {
        const auto at = modes_.find(app_id);
        if (at == modes_.end()) {
            asked_[app_id].insert(std::make_pair(sender, 0));
            return;
        }
        Message answer;
        answer.meta.app_id = app_id;
        answer.meta.body = at->second;
        answer.meta.recver = sender;
        answer.meta.sender = message.meta.recver;
        lock.unlock();
        van_->WaitReady(); /* who asks may know of all nodes before this one does */
        van_->SendKind(inner::MODE, answer);
    }
}

/* A message for an app that is not there yet waits for it. */
inline void Postoffice::Deliver(Message &message)
{
    const Meta &meta = message.meta;
    const bool to_customer = !meta.request || is_worker() != 0;
    const auto key = std::make_pair(meta.app_id, to_customer ? meta.customer_id : meta.app_id);
    std::lock_guard<std::mutex> lock(mu_);
    const auto at = customers_.find(key);

    if (at != customers_.end()) {
        at->second->Accept(message);
    } else if (meta.request) { /* an answer whose customer is gone is nobody's */
        early_[key].push_back(message);
    }
}

inline void Postoffice::SetMode(int app_id, const std::string &mode)
{
    std::unique_lock<std::mutex> lock(mu_);
    const auto put = modes_.insert(std::make_pair(app_id, mode));

    CHECK(put.first->second == mode)
        << "app " << app_id << " is served by a " << put.first->second << " already, not by a "
        << mode << ": the default handle cannot change place with another";
    const auto asked = asked_[app_id];
    asked_.erase(app_id);
    lock.unlock();
    for (const auto &who : asked) {
        Message answer;

        answer.meta.app_id = app_id;
        answer.meta.body = mode;
        answer.meta.recver = who.first;
        answer.meta.sender = van()->my_node().id;
        van_->SendKind(inner::MODE, answer);
    }
}

inline std::string Postoffice::AskMode(int app_id)
{
    const std::vector<int> servers = GetNodeIDs(kServerGroup);
    const auto is_known = [&] {
        size_t n_gone = 0;
        for (const int server : servers) {
            n_gone += IsGone(server) ? 1 : 0;
        }
        return answers_.count(app_id) != 0 || n_gone == servers.size();
    };

    van()->WaitReady();
    for (const int server : servers) {
        Message question;

        question.meta.app_id = app_id;
        question.meta.recver = server;
        question.meta.sender = van()->my_node().id;
        van_->SendKind(inner::ASK_MODE, question);
    }
    std::unique_lock<std::mutex> lock(mu_);
    cond_.wait_for(lock, std::chrono::milliseconds(inner::StartMs()), is_known);
    if (answers_.count(app_id) == 0) {
        LOG(FATAL) << "no server has made app " << app_id << " after " << inner::StartMs()
                   << " ms: KVServer and set_request_handle are to be called there";
    }
    return answers_[app_id];
}

}
#endif
