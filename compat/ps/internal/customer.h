/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps/internal/customer.h - counts the answers to requests, on a thread of its own
 *
 * Its thread runs the handle for each message that it accepts; a request is answered
 * for those who wait when the handle of its last answer has returned.
 */
#ifndef PSD_COMPAT_PS_CUSTOMER_H
#define PSD_COMPAT_PS_CUSTOMER_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ps/internal/message.h"

namespace ps {

class Customer {
  public:
    using RecvHandle = std::function<void(const Message &message)>;

    /* Of an app; the two numbers name it in this process. */
    Customer(int app_id, int customer_id, const RecvHandle &handle);
    ~Customer();

    int app_id() const { return app_id_; }
    int customer_id() const { return customer_id_; }

    /* A new timestamp, whose answers come from all nodes of `receiver`. */
    int NewRequest(int receiver);
    /* Waits until all answers are there. The process ends with a line when it takes
     * longer than $PSD_TIMEOUT_MS, else 10 minutes, or when a node that is to answer
     * is gone. */
    void WaitRequest(int timestamp);
    /* Is every request answered, and has the thread nothing to do? */
    bool IsSettled()
    {
        std::lock_guard<std::mutex> lock(mu_);
        return n_open_ == 0 && IsIdle();
    }
    bool IsQuiet()
    {
        std::lock_guard<std::mutex> lock(mu_);
        return IsIdle();
    }
    int NumResponse(int timestamp)
    {
        std::lock_guard<std::mutex> lock(mu_);
        return At(timestamp).got;
    }
    void AddResponse(int timestamp, int n = 1)
    {
        {
            std::lock_guard<std::mutex> lock(mu_);
            Count(timestamp, n);
        }
        cond_.notify_all();
    }
    /* That node is to answer; what: for the line when it does not. */
    void Expect(int timestamp, int node, const std::string &what)
    {
        std::lock_guard<std::mutex> lock(mu_);
        expected_[timestamp][node] = what;
    }
    /* For the thread; of those that wait, the highest priority goes first. */
    void Accept(const Message &message)
    {
        {
            std::lock_guard<std::mutex> lock(mu_);
            const auto at = expected_.find(message.meta.timestamp);
            if (!message.meta.request && at != expected_.end()) {
                at->second.erase(message.meta.sender); /* it may end now */
            }
            queue_[-static_cast<long>(message.meta.priority)].push_back(message);
        }
        cond_.notify_all();
    }
    /* Those who wait look again. */
    void Wake()
    {
        std::lock_guard<std::mutex> lock(mu_);
        cond_.notify_all();
    }

  private:
    bool IsIdle() const
    {
        return (queue_.empty() && !is_busy_) || std::this_thread::get_id() == thread_.get_id();
    }
    struct Request {
        int wanted;
        int got;
    };
    Request &At(int timestamp)
    {
        CHECK(timestamp >= 0 && static_cast<size_t>(timestamp) < requests_.size())
            << "there is no request " << timestamp;
        return requests_[static_cast<size_t>(timestamp)];
    }
    void Count(int timestamp, int n)
    {
        Request &request = At(timestamp);
        const bool was_open = request.got < request.wanted;

        request.got += n;
        if (was_open && request.got >= request.wanted) {
            n_open_--;
            expected_.erase(timestamp);
        }
    }
    void Run();
    bool IsLost(int timestamp, std::string *ret_who);

    const int app_id_;
    const int customer_id_;
    RecvHandle handle_;
    std::mutex mu_;
    std::condition_variable cond_;
    std::map<long, std::deque<Message>> queue_; /* by priority, the highest first */
    bool is_busy_ = false;
    bool is_ending_ = false;
    std::vector<Request> requests_; /* by timestamp */
    size_t n_open_ = 0;
    std::map<int, std::map<int, std::string>> expected_; /* timestamp: node: what */
    std::thread thread_;
    DISALLOW_COPY_AND_ASSIGN(Customer);
};

}

#include "ps/internal/postoffice.h"
#endif
