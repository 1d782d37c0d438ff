/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_ps/hub.h - what the scheduler knows: who is there, and who waits where
 *
 * It sends nothing: its user does, when a call says that all are there or that a
 * barrier is open. One lock of the user's guards it.
 */
#ifndef PSD_COMPAT_HUB_H
#define PSD_COMPAT_HUB_H

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ps/base.h"
#include "ps/internal/message.h"

namespace ps {
namespace inner {

inline int ServerId(int rank)
{
    return 2 * rank + 8;
}
inline int WorkerId(int rank)
{
    return 2 * rank + 9;
}
inline int GroupOf(Node::Role role)
{
    return role == Node::SERVER ? kServerGroup : role == Node::WORKER ? kWorkerGroup : kScheduler;
}

class Hub {
  public:
    void Begin(int n_servers, int n_workers, const Node &scheduler)
    {
        n_servers_ = n_servers;
        n_workers_ = n_workers;
        processes_.clear();
        processes_[kScheduler].nodes.push_back(scheduler);
        processes_[kScheduler].customers.insert(0);
    }
    /* A new process, of a worker with its first customer. Its number; 0: there are as
     * many as there may be. */
    int Add(Node node)
    {
        const bool is_server = node.role == Node::SERVER;

        if (is_complete_ || (is_server ? servers_ == n_servers_ : workers_ == n_workers_)) {
            return 0;
        }
        node.id = is_server ? ServerId(servers_++) : WorkerId(workers_++);
        processes_[node.id].nodes.push_back(node);
        processes_[node.id].customers.insert(node.customer_id);
        return node.id;
    }
    /* One more customer of a worker; false: one too many. */
    bool AddCustomer(int process, int customer_id)
    {
        const auto at = processes_.find(process);

        if (at == processes_.end() || at->second.nodes[0].role != Node::WORKER ||
            !at->second.customers.insert(customer_id).second) {
            return true; /* it is there, or counts for nothing */
        }
        if (is_complete_ || workers_ == n_workers_) {
            return false;
        }
        Node node = at->second.nodes[0];
        node.id = WorkerId(workers_++);
        node.customer_id = customer_id;
        at->second.nodes.push_back(node);
        return true;
    }
    /* True once: all are there now. */
    bool Complete()
    {
        if (is_complete_ || servers_ < n_servers_ || workers_ < n_workers_) {
            return false;
        }
        is_complete_ = true;
        return true;
    }
    bool is_complete() const { return is_complete_; }
    std::string Missing() const
    {
        std::ostringstream text;

        text << n_servers_ - servers_ << " of " << n_servers_ << " servers (DMLC_NUM_SERVER) and "
             << n_workers_ - workers_ << " of " << n_workers_
             << " worker customers (DMLC_NUM_WORKER) are missing";
        return text.str();
    }
    /* A line for each node: number, role, customer, host, port. */
    std::string Roster() const
    {
        std::ostringstream text;

        for (const auto &process : processes_) {
            for (const Node &node : process.second.nodes) {
                text << node.id << ' ' << static_cast<int>(node.role) << ' ' << node.customer_id
                     << ' ' << node.hostname << ' ' << node.port << '\n';
            }
        }
        return text.str();
    }
    /* The processes of a group that live. */
    std::vector<int> Living(int group) const
    {
        std::vector<int> found;

        for (const auto &process : processes_) {
            if (!process.second.is_gone && (GroupOf(process.second.nodes[0].role) & group) != 0) {
                found.push_back(process.first);
            }
        }
        return found;
    }

    void Enter(int process, int customer_id, int group)
    {
        waiting_[group].insert(std::make_pair(process, customer_id));
    }
    /* The process has ended; true: it lived until now. */
    bool Remove(int process)
    {
        const auto at = processes_.find(process);

        if (at == processes_.end() || at->second.is_gone) {
            return false;
        }
        at->second.is_gone = true;
        return true;
    }
    /* Barriers at which all that live wait; they are empty then. */
    std::vector<int> Opened()
    {
        std::vector<int> opened;

        for (auto &barrier : waiting_) {
            size_t needed = 0;
            size_t there = 0;

            for (const int process : Living(barrier.first)) {
                const bool is_worker = processes_[process].nodes[0].role == Node::WORKER;

                needed += is_worker ? processes_[process].customers.size() : 1;
                for (const auto &entry : barrier.second) {
                    there += entry.first == process ? 1 : 0;
                }
            }
            if (is_complete_ && !barrier.second.empty() && there >= needed) {
                opened.push_back(barrier.first);
                barrier.second.clear();
            }
        }
        return opened;
    }

  private:
    struct Process {
        std::vector<Node> nodes; /* one for each customer of a worker */
        std::set<int> customers;
        bool is_gone = false;
    };
    int n_servers_ = 0, n_workers_ = 0;
    int servers_ = 0, workers_ = 0;
    bool is_complete_ = false;
    std::map<int, Process> processes_;                     /* by the first node's number */
    std::map<int, std::set<std::pair<int, int>>> waiting_; /* group: process, customer */
};

}
}
#endif
