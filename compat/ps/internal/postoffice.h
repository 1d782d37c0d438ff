/* SPDX-License-Identifier: Apache-2.0 */
/* ps/internal/postoffice.h - the process's place in the job, and who gets which message */
#ifndef PSD_COMPAT_PS_POSTOFFICE_H
#define PSD_COMPAT_PS_POSTOFFICE_H

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ps/internal/customer.h"
#include "ps/internal/env.h"
#include "ps/internal/van.h"
#include "ps/range.h"

namespace ps {

class Postoffice {
  public:
    using Callback = std::function<void()>;

    /* It is never destroyed: threads of the program may use it until the end. */
    static Postoffice *Get()
    {
        static Postoffice *one = new Postoffice();
        return one;
    }
    Van *van()
    {
        CHECK(van_ != nullptr) << "call Start first";
        return van_;
    }

    void Start(int customer_id, const char *argv0, bool do_barrier);
    void Finalize(int customer_id, bool do_barrier = true);
    /* Runs at the end of Finalize of customer 0. */
    void RegisterExitCallback(const Callback &callback) { exit_callback_ = callback; }

    void AddCustomer(Customer *customer);
    void RemoveCustomer(Customer *customer);
    /* NULL when it is not there within `timeout` seconds. */
    Customer *GetCustomer(int app_id, int customer_id, int timeout = 0)
    {
        std::unique_lock<std::mutex> lock(mu_);
        const auto key = std::make_pair(app_id, customer_id);

        cond_.wait_for(lock, std::chrono::seconds(timeout),
                       [&] { return customers_.count(key) != 0; });
        const auto at = customers_.find(key);
        return at == customers_.end() ? nullptr : at->second;
    }

    /* The nodes of a group, or the node. */
    const std::vector<int> &GetNodeIDs(int node_id) const
    {
        const auto at = node_ids_.find(node_id);

        CHECK(at != node_ids_.end()) << "there is no node " << node_id;
        return at->second;
    }
    /* Server i has the keys of range i; the last one also those at the top. */
    const std::vector<Range> &GetServerKeyRanges() const { return ranges_; }
    static int WorkerRankToID(int rank) { return inner::WorkerId(rank); }
    static int ServerRankToID(int rank) { return inner::ServerId(rank); }
    static int IDtoRank(int id) { return std::max((id - 8) / 2, 0); }
    int num_workers() const { return num_workers_; }
    int num_servers() const { return num_servers_; }
    int my_rank() { return IDtoRank(van()->my_node().id); }
    int is_worker() const { return role_ == Node::WORKER && has_role_; }
    int is_server() const { return role_ == Node::SERVER && has_role_; }
    int is_scheduler() const { return role_ == Node::SCHEDULER && has_role_; }
    int verbose() const { return verbose_; }
    bool is_recovery() { return van()->my_node().is_recovery; }
    void Barrier(int customer_id, int node_group)
    {
        GoOn();
        if (GetNodeIDs(node_group).size() > 1) {
            van()->Barrier(customer_id, node_group);
        }
    }
    void Barrier(int node_group) { Barrier(0, node_group); }
    /* Nodes that are dead, or silent for t seconds; of all nodes for the scheduler, of the
     * scheduler for others. */
    std::vector<int> GetDeadNodes(int t = 60)
    {
        return t <= 0 || !van()->IsReady()
                   ? std::vector<int>()
                   : van()->Silent(
                         GetNodeIDs(is_scheduler() ? kServerGroup + kWorkerGroup : kScheduler), t);
    }
    bool IsGone(int node_id) { return van_ != nullptr && van_->IsGone(node_id); }

    /* What serves an app: "handle", or a table of psd and its type ("table f32"). */
    void SetMode(int app_id, const std::string &mode);
    /* Asks the servers; the process ends with a line when none says it. */
    std::string AskMode(int app_id);
    /* The program has come to a call that waits: its handles are set by now. */
    void GoOn()
    {
        std::lock_guard<std::mutex> lock(on_mu_);
        if (!goes_on_) {
            goes_on_ = true;
            on_cond_.notify_all();
        }
    }
    /* An app of a program that has not got there waits a little for its handle. */
    void Arrive() /* at an app, whose handles may follow */
    {
        std::lock_guard<std::mutex> lock(on_mu_);
        goes_on_ = false;
    }
    template <typename Ready> void WaitHandle(int ms, Ready ready)
    {
        std::unique_lock<std::mutex> lock(on_mu_);
        on_cond_.wait_for(lock, std::chrono::milliseconds(ms), ready);
    }
    template <typename Change> void SetHandle(Change change)
    {
        std::lock_guard<std::mutex> lock(on_mu_);
        change();
        on_cond_.notify_all();
    }
    bool goes_on() const { return goes_on_; } /* within WaitHandle */

  private:
    Postoffice() {}
    void Begin();
    void Receive(int kind, Message &message);
    void Deliver(Message &message);
    void Wake();
    void WaitCustomers(int ms, const std::function<bool(Customer *)> &is_so);

    std::mutex start_mu_;
    std::mutex mu_;
    std::condition_variable cond_;
    Van *van_ = nullptr; /* those of earlier starts stay */
    bool is_started_ = false;
    bool has_role_ = false;
    Node::Role role_ = Node::WORKER;
    int num_workers_ = 0, num_servers_ = 0, verbose_ = 0;
    std::unordered_map<int, std::vector<int>> node_ids_;
    std::vector<Range> ranges_;
    std::map<std::pair<int, int>, Customer *> customers_;      /* by app and customer */
    std::map<std::pair<int, int>, std::deque<Message>> early_; /* for those to come */
    std::map<int, std::string> modes_;                         /* of apps here */
    std::map<int, std::set<std::pair<int, int>>> asked_;       /* app: node, customer */
    std::map<int, std::string> answers_;                       /* of apps elsewhere */
    std::mutex on_mu_;
    std::condition_variable on_cond_;
    bool goes_on_ = false;
    Callback exit_callback_;
    DISALLOW_COPY_AND_ASSIGN(Postoffice);
};

}

#define PS_VLOG(x) LOG_IF(INFO, (x) <= ps::Postoffice::Get()->verbose())

#include "psd_ps/customer_inner.h"
#include "psd_ps/postoffice_inner.h"
#endif
