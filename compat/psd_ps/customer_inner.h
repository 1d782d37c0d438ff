/* SPDX-License-Identifier: Apache-2.0 */
/* psd_ps/customer_inner.h - what of a Customer needs the postoffice */
#ifndef PSD_COMPAT_CUSTOMER_INNER_H
#define PSD_COMPAT_CUSTOMER_INNER_H

#include "ps/internal/postoffice.h"

namespace ps {

inline Customer::Customer(int app_id, int customer_id, const RecvHandle &handle)
    : app_id_(app_id), customer_id_(customer_id), handle_(handle)
{
    thread_ = std::thread(&Customer::Run, this);
    Postoffice::Get()->AddCustomer(this);
}

inline Customer::~Customer()
{
    Postoffice::Get()->RemoveCustomer(this);
    {
        std::lock_guard<std::mutex> lock(mu_);
        is_ending_ = true;
    }
    cond_.notify_all();
    thread_.join();
}

inline int Customer::NewRequest(int receiver)
{
    const int wanted = static_cast<int>(Postoffice::Get()->GetNodeIDs(receiver).size());
    std::lock_guard<std::mutex> lock(mu_);

    requests_.push_back(Request{wanted, 0});
    n_open_++;
    return static_cast<int>(requests_.size()) - 1;
}

/* Is a node gone that is to answer? Or, when there is no time left, is there any? */
inline bool Customer::IsLost(int timestamp, std::string *ret_who)
{
    const auto at = expected_.find(timestamp);

    if (at != expected_.end()) {
        for (const auto &node : at->second) {
            *ret_who = "node " + std::to_string(node.first) + ": " + node.second;
            if (Postoffice::Get()->IsGone(node.first)) {
                return true;
            }
        }
    }
    return false;
}

inline void Customer::WaitRequest(int timestamp)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(inner::WaitMs());

    Postoffice::Get()->GoOn();
    std::unique_lock<std::mutex> lock(mu_);
    for (;;) {
        std::string who;

        if (At(timestamp).got >= At(timestamp).wanted) {
            return;
        }
        if (IsLost(timestamp, &who)) {
            LOG(FATAL) << "request " << timestamp << " of app " << app_id_
                       << " is not answered, for the receiver is gone: " << who;
        }
        if (std::chrono::steady_clock::now() >= end) {
            LOG(FATAL) << "request " << timestamp << " of app " << app_id_
                       << " is not answered after " << inner::WaitMs() << " ms: " << who;
        }
        cond_.wait_until(lock, end);
    }
}

inline void Customer::Run()
{
    std::unique_lock<std::mutex> lock(mu_);

    for (;;) {
        cond_.wait(lock, [this] { return is_ending_ || !queue_.empty(); });
        if (queue_.empty()) {
            return;
        }
        auto first = queue_.begin();
        Message message = std::move(first->second.front());
        first->second.pop_front();
        if (first->second.empty()) {
            queue_.erase(first);
        }
        is_busy_ = true;
        lock.unlock();
        handle_(message);
        const Meta &meta = message.meta;
        lock.lock();
        if (!meta.request) {
            Count(meta.timestamp, 1);
        }
        is_busy_ = false;
        cond_.notify_all();
    }
}

}
#endif
