/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_ps/table.h - an app that is a table of psd: the default handle's
 *
 * A thread has the client, starts what is asked for in order, and gives each result to
 * the customer as a server's answer.
 */
#ifndef PSD_COMPAT_TABLE_H
#define PSD_COMPAT_TABLE_H

#include <psd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "ps/internal/customer.h"
#include "psd_ps/node.h"

namespace ps {
namespace inner {

/* psd's word for a type of values; "" when a table cannot have it. */
template <typename Val> const char *TypeWord()
{
    return std::is_same<Val, float>::value                                                  ? "f32"
           : std::is_same<Val, double>::value                                               ? "f64"
           : std::is_integral<Val>::value && std::is_signed<Val>::value && sizeof(Val) == 4 ? "i32"
           : std::is_integral<Val>::value && std::is_signed<Val>::value && sizeof(Val) == 8 ? "i64"
                                                                                            : "";
}

class Table {
  public:
    struct Op {
        Message answer; /* what the customer is to get, without values */
        bool push = false, pull = false, wants_lens = false;
        SArray<Key> keys;
        SArray<char> deltas;
    };

    Table(Customer *customer, const std::string &type)
        : customer_(customer), type_(type), width_(type == "f64" || type == "i64" ? 8 : 4),
          thread_(&Table::Run, this)
    {
    }
    /* What has not ended by now is given up. */
    ~Table()
    {
        {
            std::lock_guard<std::mutex> lock(mu_);
            is_ending_ = true;
        }
        cond_.notify_all();
        thread_.join();
    }
    void Do(const Op &op)
    {
        if (op.push) {
            CHECK_EQ(op.deltas.size(), op.keys.size() * width_)
                << "the default handle takes one value for each key";
        }
        {
            std::lock_guard<std::mutex> lock(mu_);
            todo_.push_back(op);
        }
        cond_.notify_all();
    }

  private:
    struct Open {
        Op op;
        std::vector<uint64_t> rows; /* with 32-bit keys */
        SArray<char> values;
        psd_ticket_t ticket = 0;
    };

    void Run()
    {
        Failure err;
        std::deque<Open> open;

        Connect();
        for (;;) {
            std::deque<Op> started;
            {
                std::unique_lock<std::mutex> lock(mu_);
                if (open.empty()) {
                    cond_.wait(lock, [this] { return is_ending_ || !todo_.empty(); });
                }
                if (is_ending_ && open.empty() && todo_.empty()) {
                    break;
                }
                started.swap(todo_);
            }
            for (const Op &op : started) {
                open.emplace_back();
                Begin(op, &open.back(), err);
            }
            if (!open.empty() && Ended(open.front(), err)) {
                Answer(open.front());
                open.pop_front();
            }
        }
        psd_table_close(&table_);
        psd_close(&client_);
    }
    void Connect()
    {
        const std::string copies = Setting("PSD_PS_REPLICAS");
        const bool is_float = type_[0] == 'f';
        const bool is_one = copies.empty() || copies == "1";
        const char *const pairs[][2] = {{"keys", "hash"},
                                        {"type", type_.c_str()},
                                        {"updater", "add"},
                                        {"combine", "each"},
                                        {"replicas", is_one ? "1" : copies.c_str()},
                                        {"ack", is_one ? "memory" : "replica"},
                                        {is_float ? "allow-nonfinite" : nullptr, "true"},
                                        {nullptr, nullptr}};
        const std::string name = "ps-lite.app" + std::to_string(customer_->app_id());
        Failure err;
        psd_spec_t *spec = psd_spec_new();

        CHECK(spec) << "no memory";
        client_ = inner::Connect(ReadRoot(), static_cast<uint32_t>(StartMs()));
        psd_status_t rc = SetAll(spec, pairs, err);
        if (rc == PSD_OK) {
            rc = psd_table_ensure(client_, name.c_str(), spec, &table_, err);
        }
        psd_spec_destroy(&spec);
        if (rc != PSD_OK) {
            LOG(FATAL) << "table " << name << ": " << err.Text(rc);
        }
    }
    void Begin(const Op &op, Open *ret, psd_error_t *err)
    {
        psd_call_t *call = psd_call_new();
        psd_select_t *select = psd_select_new();
        const size_t n = op.keys.size();
        psd_status_t rc;

        CHECK(call && select) << "no memory";
        ret->op = op;
        if (sizeof(Key) != sizeof(uint64_t)) {
            ret->rows.assign(op.keys.begin(), op.keys.end());
        }
        if (op.pull) {
            ret->values.resize(n * width_);
        }
        psd_call_set_borrow(call, true);
        psd_call_set_timeout_ms(call, static_cast<uint32_t>(StartMs()));
        psd_call_set_priority(call, op.answer.meta.priority);
        psd_select_rows(select,
                        ret->rows.empty() ? reinterpret_cast<const uint64_t *>(ret->op.keys.data())
                                          : ret->rows.data(),
                        n);
        const void *deltas = ret->op.deltas.data();
        void *values = ret->values.data();
        if (op.push && op.pull) {
            rc = psd_pushpull_start(table_, select, deltas, values, n, call, &ret->ticket, err);
        } else if (op.push) {
            rc = psd_push_start(table_, select, deltas, n, call, &ret->ticket, err);
        } else {
            rc = psd_pull_start(table_, select, values, n, call, &ret->ticket, err);
        }
        psd_select_destroy(&select);
        psd_call_destroy(&call);
        Check(ret->op, rc, err);
    }
    /* Waits, but a new request does not wait for long. */
    bool Ended(const Open &open, psd_error_t *err)
    {
        bool is_done = true;
        psd_status_t rc = psd_wait(client_, open.ticket, 5, err);

        if (rc == PSD_DEADLINE) { /* this wait's, or the request's own */
            Failure polled;

            if (psd_poll(client_, open.ticket, &is_done, polled) == PSD_OK) {
                rc = is_done ? psd_wait(client_, open.ticket, 0, err) : PSD_OK;
            }
        }
        Check(open.op, rc, err);
        return is_done;
    }
    void Check(const Op &op, psd_status_t rc, const psd_error_t *err) const
    {
        if (rc != PSD_OK) {
            LOG(FATAL) << (op.push ? "push" : "pull") << " of app " << customer_->app_id()
                       << ", key " << (op.keys.empty() ? 0 : op.keys.front())
                       << " and following: " << psd_status_code(rc) << ' ' << psd_error_text(err);
        }
    }
    void Answer(Open &open)
    {
        Message answer = open.op.answer;

        if (open.op.pull) {
            answer.AddData(open.op.keys);
            answer.AddData(open.values);
            if (open.op.wants_lens) {
                answer.AddData(SArray<int>(open.op.keys.size(), 1));
            }
        }
        customer_->Accept(answer);
    }

    Customer *customer_;
    const std::string type_;
    const size_t width_;
    std::mutex mu_;
    std::condition_variable cond_;
    std::deque<Op> todo_;
    bool is_ending_ = false;
    psd_client_t *client_ = nullptr; /* the thread's alone */
    psd_table_t *table_ = nullptr;
    std::thread thread_; /* the last: it uses the rest */
    DISALLOW_COPY_AND_ASSIGN(Table);
};

}
}
#endif
