/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps/kv_app.h - pairs of keys and values: pushed, pulled, and served
 *
 * Keys are sorted, each at most once. Each has vals.size() / keys.size() values, or with
 * lens[i] that many.
 */
#ifndef PSD_COMPAT_PS_KV_APP_H
#define PSD_COMPAT_PS_KV_APP_H

#include <string.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ps/base.h"
#include "ps/simple_app.h"
#include "psd_ps/table.h"

namespace ps {

template <typename Val> struct KVPairs {
    SArray<Key> keys;
    SArray<Val> vals;
    SArray<int> lens;
    int priority = 0;
};

/* Of a request that a server's handle gets. An aggregate, as ps-lite's: a program may
 * write {cmd, push, pull, sender, timestamp, customer_id}. */
struct KVMeta {
    int cmd;
    bool push;
    bool pull;
    int sender; /* the node's number */
    int timestamp;
    int customer_id;
};

/*
 * A worker. Its calls return at once, with a timestamp to wait for; any thread may make
 * them. Call-backs run on a thread of the worker, before the wait returns. The calls that
 * begin with Z use the caller's arrays in place; these must stay as they are until the
 * request has ended.
 */
template <typename Val> class KVWorker : public SimpleApp {
  public:
    using SimpleApp::obj_;
    using Callback = std::function<void()>;
    /* For each server: is there anything for it, and what. */
    using SlicedKVs = std::vector<std::pair<bool, KVPairs<Val>>>;
    using Slicer = std::function<void(const KVPairs<Val> &send, const std::vector<Range> &ranges,
                                      SlicedKVs *sliced)>;

    explicit KVWorker(int app_id = 0, int customer_id = 0) : SimpleApp()
    {
        obj_ =
            new Customer(app_id, customer_id, [this](const Message &message) { Process(message); });
    }
    virtual ~KVWorker()
    {
        table_.reset();
        delete obj_;
        obj_ = nullptr;
    }

    int Push(const std::vector<Key> &keys, const std::vector<Val> &vals,
             const std::vector<int> &lens = {}, int cmd = 0, const Callback &cb = nullptr,
             int priority = 0)
    {
        return ZPush(SArray<Key>(keys), SArray<Val>(vals), SArray<int>(lens), cmd, cb, priority);
    }
    int ZPush(const SArray<Key> &keys, const SArray<Val> &vals, const SArray<int> &lens = {},
              int cmd = 0, const Callback &cb = nullptr, int priority = 0)
    {
        const int timestamp = obj_->NewRequest(kServerGroup);

        Then(timestamp, cb);
        Send(timestamp, true, false, false, cmd, Pairs(keys, vals, lens, priority));
        return timestamp;
    }
    /* vals and lens may be empty; else they have the right size. */
    int Pull(const std::vector<Key> &keys, std::vector<Val> *vals, std::vector<int> *lens = nullptr,
             int cmd = 0, const Callback &cb = nullptr, int priority = 0)
    {
        return StartPull(SArray<Key>(keys), false, SArray<Val>(), SArray<int>(), vals, lens, cmd,
                         cb, priority);
    }
    int ZPull(const SArray<Key> &keys, SArray<Val> *vals, SArray<int> *lens = nullptr, int cmd = 0,
              const Callback &cb = nullptr, int priority = 0)
    {
        return StartPull(keys, false, SArray<Val>(), SArray<int>(), vals, lens, cmd, cb, priority);
    }
    /* Pushes vals, and pulls what is there then. */
    int PushPull(const std::vector<Key> &keys, const std::vector<Val> &vals, std::vector<Val> *outs,
                 std::vector<int> *lens = nullptr, int cmd = 0, const Callback &cb = nullptr,
                 int priority = 0)
    {
        return StartPull(SArray<Key>(keys), true, SArray<Val>(vals),
                         lens != nullptr ? SArray<int>(*lens) : SArray<int>(), outs, lens, cmd, cb,
                         priority);
    }
    int ZPushPull(const SArray<Key> &keys, const SArray<Val> &vals, SArray<Val> *outs,
                  SArray<int> *lens = nullptr, int cmd = 0, const Callback &cb = nullptr,
                  int priority = 0)
    {
        return StartPull(keys, true, vals, lens != nullptr ? *lens : SArray<int>(), outs, lens, cmd,
                         cb, priority);
    }
    void Wait(int timestamp) override { obj_->WaitRequest(timestamp); }
    void set_slicer(const Slicer &slicer)
    {
        CHECK(slicer) << "an empty slicer";
        slicer_ = slicer;
    }

  private:
    static KVPairs<Val> Pairs(const SArray<Key> &keys, const SArray<Val> &vals,
                              const SArray<int> &lens, int priority)
    {
        KVPairs<Val> pairs;

        pairs.keys = keys;
        pairs.vals = vals;
        pairs.lens = lens;
        pairs.priority = priority;
        return pairs;
    }
    /* To be run when all servers have answered. */
    void Then(int timestamp, const Callback &callback)
    {
        if (callback) {
            std::lock_guard<std::mutex> lock(mu_);
            callbacks_[timestamp] = callback;
        }
    }
    /* Vals, Lens: vectors or SArrays. */
    template <typename Vals, typename Lens>
    int StartPull(const SArray<Key> &keys, bool push, const SArray<Val> &pushed,
                  const SArray<int> &pushed_lens, Vals *vals, Lens *lens, int cmd,
                  const Callback &cb, int priority)
    {
        CHECK_NOTNULL(vals);
        const int timestamp = obj_->NewRequest(kServerGroup);
        Then(timestamp, [this, timestamp, keys, vals, lens, cb] {
            Fill(timestamp, keys.size(), vals, lens);
            if (cb) {
                cb();
            }
        });
        Send(timestamp, push, true, lens != nullptr, cmd,
             Pairs(keys, pushed, pushed_lens, priority));
        return timestamp;
    }
    template <typename Vals, typename Lens>
    void Fill(int timestamp, size_t n_keys, Vals *vals, Lens *lens)
    {
        std::vector<KVPairs<Val>> parts;
        size_t n_answered = 0, n_vals = 0;
        {
            std::lock_guard<std::mutex> lock(mu_);
            parts.swap(pulled_[timestamp]);
            pulled_.erase(timestamp);
        }
        for (const KVPairs<Val> &part : parts) {
            if (lens != nullptr) {
                CHECK_EQ(part.lens.size(), part.keys.size()) << "a server answered without lens";
            }
            n_answered += part.keys.size();
            n_vals += part.vals.size();
        }
        CHECK_EQ(n_answered, n_keys) << "the servers answered " << n_answered << " keys";
        std::sort(parts.begin(), parts.end(), [](const KVPairs<Val> &a, const KVPairs<Val> &b) {
            return a.keys.front() < b.keys.front();
        });
        Fit(vals, n_vals);
        if (lens != nullptr) {
            Fit(lens, n_keys);
        }
        size_t at_val = 0, at_len = 0;
        for (const KVPairs<Val> &part : parts) {
            std::copy(part.vals.begin(), part.vals.end(), vals->data() + at_val);
            at_val += part.vals.size();
            if (lens != nullptr) {
                std::copy(part.lens.begin(), part.lens.end(), lens->data() + at_len);
                at_len += part.lens.size();
            }
        }
    }
    template <typename Array> static void Fit(Array *array, size_t size)
    {
        if (array->empty()) {
            array->resize(size);
        }
        CHECK_EQ(array->size(), size) << "the caller's array has " << array->size() << " places";
    }

    /* By ps-lite's ranges; the top of the keys is the last server's. */
    static void Slice(const KVPairs<Val> &send, const std::vector<Range> &ranges, SlicedKVs *sliced)
    {
        const size_t n = send.keys.size();
        const size_t each = n == 0 ? 0 : send.vals.size() / n;
        size_t from = 0, from_val = 0;

        if (send.lens.empty()) {
            CHECK_EQ(each * n, send.vals.size())
                << "the keys do not have the same number of values";
        } else {
            CHECK_EQ(n, send.lens.size()) << "each key has a length, or none has";
        }
        sliced->resize(ranges.size());
        for (size_t i = 0; i < ranges.size(); i++) {
            const Key *end = i + 1 == ranges.size()
                                 ? send.keys.end()
                                 : std::lower_bound(send.keys.begin() + from, send.keys.end(),
                                                    static_cast<Key>(ranges[i].end()));
            const size_t to = static_cast<size_t>(end - send.keys.begin());
            size_t to_val = from_val + each * (to - from);
            KVPairs<Val> &part = (*sliced)[i].second;

            (*sliced)[i].first = to > from;
            part.keys = send.keys.segment(from, to);
            if (!send.lens.empty()) {
                part.lens = send.lens.segment(from, to);
                to_val = from_val;
                for (const int len : part.lens) {
                    CHECK_GE(len, 0);
                    to_val += static_cast<size_t>(len);
                }
                /* A pull that tells lens has no values. */
                to_val = send.vals.empty() ? 0 : to_val;
            }
            part.vals = send.vals.segment(from_val, to_val);
            part.priority = send.priority;
            from = to;
            from_val = to_val;
        }
        CHECK_EQ(from_val, send.vals.size()) << "lens do not add up to the number of values";
    }
    void Send(int timestamp, bool push, bool pull, bool wants_lens, int cmd,
              const KVPairs<Val> &pairs)
    {
        const bool is_table = FindMode();
        SlicedKVs sliced;
        int skipped = 0;

        if (slicer_) {
            slicer_(pairs, Postoffice::Get()->GetServerKeyRanges(), &sliced);
        } else if (is_table) {
            sliced.resize(static_cast<size_t>(Postoffice::Get()->num_servers()));
            sliced[0].first = !pairs.keys.empty();
            sliced[0].second = pairs;
        } else {
            Slice(pairs, Postoffice::Get()->GetServerKeyRanges(), &sliced);
        }
        CHECK_LE(sliced.size(), static_cast<size_t>(Postoffice::Get()->num_servers()))
            << "a slicer gave more slices than there are servers";
        sliced.resize(static_cast<size_t>(Postoffice::Get()->num_servers()));
        for (const auto &part : sliced) {
            skipped += part.first ? 0 : 1;
        }
        if (static_cast<size_t>(skipped) == sliced.size()) {
            RunCallback(timestamp);
        }
        obj_->AddResponse(timestamp, skipped);
        for (size_t i = 0; i < sliced.size(); i++) {
            if (sliced[i].first) {
                Meta meta;

                meta.app_id = obj_->app_id();
                meta.customer_id = obj_->customer_id();
                meta.push = push;
                meta.pull = pull;
                meta.head = cmd;
                meta.timestamp = timestamp;
                meta.recver = Postoffice::ServerRankToID(static_cast<int>(i));
                meta.priority = pairs.priority;
                if (is_table) {
                    SendToTable(meta, sliced[i].second, wants_lens);
                } else {
                    SendToServer(meta, sliced[i].second);
                }
            }
        }
    }
    void SendToServer(const Meta &meta, const KVPairs<Val> &pairs)
    {
        Message message;

        message.meta = meta;
        message.meta.request = true;
        if (!pairs.keys.empty()) {
            message.AddData(pairs.keys);
            message.AddData(pairs.vals);
            if (!pairs.lens.empty()) {
                message.AddData(pairs.lens);
            }
        }
        obj_->Expect(meta.timestamp, meta.recver,
                     std::string("server ") + std::to_string(Postoffice::IDtoRank(meta.recver)) +
                         ", " + (meta.push ? "push" : "pull") + " of key " +
                         (pairs.keys.empty() ? "none" : std::to_string(pairs.keys.front())) +
                         ", command " + std::to_string(meta.head));
        Postoffice::Get()->van()->Send(message);
    }
    void SendToTable(const Meta &meta, const KVPairs<Val> &pairs, bool wants_lens)
    {
        inner::Table::Op op;

        op.answer.meta = meta;
        op.answer.meta.sender = meta.recver;
        op.push = meta.push;
        op.pull = meta.pull;
        op.wants_lens = wants_lens;
        op.keys = pairs.keys;
        op.deltas = SArray<char>(pairs.vals);
        table_->Do(op);
    }
    /* Asks the servers, once, whether the app is a table. */
    bool FindMode()
    {
        std::lock_guard<std::mutex> lock(mode_mu_);

        if (mode_.empty()) {
            mode_ = Postoffice::Get()->AskMode(obj_->app_id());
            if (mode_ != "handle") {
                CHECK_EQ(mode_, std::string("table ") + inner::TypeWord<Val>())
                    << "app " << obj_->app_id() << " has other values there: " << mode_;
                table_.reset(new inner::Table(obj_, inner::TypeWord<Val>()));
            }
        }
        return table_ != nullptr;
    }
    void Process(const Message &message)
    {
        const Meta &meta = message.meta;

        if (meta.simple_app) {
            SimpleApp::Process(message);
            return;
        }
        if (meta.pull && message.data.size() >= 2) {
            KVPairs<Val> part;

            part.keys = message.data[0];
            part.vals = message.data[1];
            if (message.data.size() > 2) {
                part.lens = message.data[2];
            }
            if (!part.keys.empty()) {
                std::lock_guard<std::mutex> lock(mu_);
                pulled_[meta.timestamp].push_back(part);
            }
        }
        if (obj_->NumResponse(meta.timestamp) + 1 == Postoffice::Get()->num_servers()) {
            RunCallback(meta.timestamp);
        }
    }
    void RunCallback(int timestamp)
    {
        Callback callback;
        {
            std::lock_guard<std::mutex> lock(mu_);
            const auto at = callbacks_.find(timestamp);
            if (at == callbacks_.end()) {
                return;
            }
            callback.swap(at->second);
            callbacks_.erase(at);
        }
        callback();
    }

    std::mutex mu_;
    std::unordered_map<int, Callback> callbacks_;
    std::unordered_map<int, std::vector<KVPairs<Val>>> pulled_; /* by timestamp */
    Slicer slicer_;
    std::mutex mode_mu_;
    std::string mode_;
    std::unique_ptr<inner::Table> table_;
};

template <typename Val> struct KVServerDefaultHandle;

/*
 * A server. One thread calls its handle, once for each request with all of its keys; the
 * handle, or whoever it tells, answers by Response. With the default handle the app is a
 * table of psd instead.
 */
template <typename Val> class KVServer : public SimpleApp {
  public:
    using SimpleApp::obj_;
    using ReqHandle =
        std::function<void(const KVMeta &meta, const KVPairs<Val> &data, KVServer *server)>;

    explicit KVServer(int app_id = 0) : SimpleApp()
    {
        obj_ = new Customer(app_id, app_id, [this](const Message &message) { Process(message); });
    }
    virtual ~KVServer()
    {
        delete obj_;
        obj_ = nullptr;
    }

    /* SimpleApp's, for requests of a number and a text. */
    using SimpleApp::Response;
    using SimpleApp::set_request_handle;
    void set_request_handle(const ReqHandle &handle)
    {
        CHECK(handle) << "an empty handle";
        const bool is_table = handle.template target<KVServerDefaultHandle<Val>>() != nullptr &&
                              inner::TypeWord<Val>()[0] != '\0';
        Postoffice::Get()->SetHandle([&] { handle_ = std::make_shared<ReqHandle>(handle); });
        Postoffice::Get()->SetMode(
            obj_->app_id(), is_table ? std::string("table ") + inner::TypeWord<Val>() : "handle");
    }
    void Response(const KVMeta &request, const KVPairs<Val> &pairs = KVPairs<Val>())
    {
        Message message;

        message.meta.app_id = obj_->app_id();
        message.meta.customer_id = request.customer_id;
        message.meta.push = request.push;
        message.meta.pull = request.pull;
        message.meta.head = request.cmd;
        message.meta.timestamp = request.timestamp;
        message.meta.recver = request.sender;
        if (!pairs.keys.empty()) {
            message.AddData(pairs.keys);
            message.AddData(pairs.vals);
            if (!pairs.lens.empty()) {
                message.AddData(pairs.lens);
            }
        }
        Postoffice::Get()->van()->Send(message);
    }

  private:
    void Process(const Message &message)
    {
        KVMeta meta = KVMeta();
        KVPairs<Val> data;
        std::shared_ptr<ReqHandle> handle;

        if (message.meta.simple_app) {
            SimpleApp::Process(message);
            return;
        }
        meta.cmd = message.meta.head;
        meta.push = message.meta.push;
        meta.pull = message.meta.pull;
        meta.sender = message.meta.sender;
        meta.timestamp = message.meta.timestamp;
        meta.customer_id = message.meta.customer_id;
        if (message.data.size() >= 2) {
            data.keys = message.data[0];
            data.vals = message.data[1];
            data.priority = message.meta.priority;
            if (message.data.size() > 2) {
                data.lens = message.data[2];
                CHECK_EQ(data.lens.size(), data.keys.size());
            }
        }
        Postoffice::Get()->WaitHandle(inner::StartMs(), [&] {
            handle = handle_;
            return handle != nullptr;
        });
        CHECK(handle != nullptr) << "server of app " << obj_->app_id() << " has no handle";
        (*handle)(meta, data, this);
    }
    std::shared_ptr<ReqHandle> handle_;
};

/* Adds what is pushed to what is stored. */
template <typename Val> struct KVServerDefaultHandle {
    void operator()(const KVMeta &meta, const KVPairs<Val> &data, KVServer<Val> *server)
    {
        const size_t n = data.keys.size();
        KVPairs<Val> answer;

        if (meta.push) {
            CHECK_EQ(n, data.vals.size()) << "the default handle takes one value for each key";
        }
        if (meta.pull) {
            answer.keys = data.keys;
            answer.vals.resize(n);
        }
        for (size_t i = 0; i < n; i++) {
            Val &value = store[data.keys.data()[i]];

            if (meta.push) {
                value += data.vals.data()[i];
            }
            if (meta.pull) {
                answer.vals.data()[i] = value;
            }
        }
        server->Response(meta, answer);
    }
    std::unordered_map<Key, Val> store;
};

}
#endif
