// SPDX-License-Identifier: Apache-2.0
// A program written for ps-lite, started once as scheduler and for each server and worker.
// ps_lite_program CASE: what it does. Its checks end it with SIGABRT.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "ps/ps.h"
#include "ps_lite_types.h"

namespace
{

const int kTableApp = 0;
const int kHandleApp = 1;
const int kSyncApp = 2;
const int kSimpleApp = 3;
const int kSilentApp = 4;

// Values of any length per key; a command of 7 doubles what is pulled.
struct Store {
    std::unordered_map<ps::Key, std::vector<float>> rows;
    void operator()(const ps::KVMeta &meta, const ps::KVPairs<float> &data,
                    ps::KVServer<float> *server)
    {
        ps::KVPairs<float> answer;
        size_t at = 0;

        for (size_t i = 0; i < data.keys.size(); i++) {
            const ps::Key key = data.keys[static_cast<int>(i)];
            const ps::Range range =
                ps::Postoffice::Get()->GetServerKeyRanges()[static_cast<size_t>(ps::MyRank())];
            std::vector<float> &row = rows[key];

            CHECK_GE(key, range.begin());
            CHECK(key < range.end() || ps::MyRank() + 1 == ps::NumServers());
            if (meta.push) {
                const size_t len = data.lens.empty()
                                       ? data.vals.size() / data.keys.size()
                                       : static_cast<size_t>(data.lens[static_cast<int>(i)]);
                row.resize(len);
                for (size_t j = 0; j < len; j++) {
                    row[j] += data.vals[static_cast<int>(at++)];
                }
            }
            if (meta.pull) {
                answer.keys.push_back(key);
                answer.lens.push_back(static_cast<int>(row.size()));
                for (const float value : row) {
                    answer.vals.push_back(meta.cmd == 7 ? 2 * value : value);
                }
            }
        }
        server->Response(meta, answer);
    }
};

// Keys at both ends and in the middle, with one value each, in a table.
void WorkOnTable()
{
    ps::KVWorker<float> worker(kTableApp, 0);
    const std::vector<ps::Key> keys = {0, 1, ps::kMaxKey / 2 + 1, ps::kMaxKey - 1, ps::kMaxKey};
    const std::vector<float> ones(keys.size(), 1);
    std::vector<float> vals;
    std::vector<int> lens;
    bool was_called = false;

    for (int i = 0; i < 10; i++) {
        worker.Wait(worker.Push(keys, ones));
    }
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
    worker.Wait(worker.Pull(keys, &vals, &lens, 0, [&] { was_called = true; }));
    CHECK(was_called);
    CHECK_EQ(vals.size(), keys.size());
    CHECK_EQ(lens.size(), keys.size());
    for (const float value : vals) {
        CHECK_EQ(value, static_cast<float>(10 * ps::NumWorkers()));
    }
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
}

// The same keys with values of different lengths, for a handle.
void WorkOnHandle()
{
    ps::KVWorker<float> worker(kHandleApp, 0);
    const std::vector<ps::Key> keys = {0, 1, ps::kMaxKey / 2 + 1, ps::kMaxKey - 1, ps::kMaxKey};
    const std::vector<int> lens = {1, 0, 3, 2, 1};
    const std::vector<float> vals = {1, 2, 3, 4, 5, 6, 7};
    std::vector<float> got;
    std::vector<int> got_lens;

    worker.Wait(worker.Push(keys, vals, lens));
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
    worker.Wait(worker.Pull(keys, &got, &got_lens, 7));
    CHECK_EQ(got.size(), vals.size());
    CHECK(got_lens == lens);
    for (size_t i = 0; i < vals.size(); i++) {
        CHECK_EQ(got[i], 2 * vals[i] * static_cast<float>(ps::NumWorkers()));
    }
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
}

// Synchronous: adds up, and answers pushes when all workers have pushed.
struct Together {
    std::vector<ps::KVMeta> waiting;
    std::unordered_map<ps::Key, double> values;
    void operator()(const ps::KVMeta &meta, const ps::KVPairs<double> &data,
                    ps::KVServer<double> *server)
    {
        CHECK_EQ(meta.customer_id, 0);
        CHECK_EQ(meta.sender % 2, 1); // a worker
        CHECK_GE(meta.timestamp, 0);
        if (meta.push) {
            for (size_t i = 0; i < data.keys.size(); i++) {
                values[data.keys.data()[i]] += data.vals.data()[i];
            }
            waiting.push_back(meta);
            if (static_cast<int>(waiting.size()) == ps::NumWorkers()) {
                for (const ps::KVMeta &one : waiting) {
                    server->Response(one);
                }
                waiting.clear();
            }
            return;
        }
        ps::KVPairs<double> answer;
        answer.keys = data.keys;
        for (const ps::Key key : data.keys) {
            answer.vals.push_back(values[key]);
        }
        server->Response(meta, answer);
    }
};

// Never answers.
void Silent(const ps::KVMeta &, const ps::KVPairs<float> &, ps::KVServer<float> *)
{
}

// Each round's pull sees all pushes of that round, and none of the next: no other barrier.
void WorkTogether()
{
    ps::KVWorker<double> worker(kSyncApp, 0);
    ps::SArray<ps::Key> keys{ps::Key(5), ps::kMaxKey - 5};
    ps::SArray<double> deltas(2, 1), vals(2);

    for (int round = 1; round <= 5; round++) {
        worker.Wait(worker.ZPush(keys, deltas));
        worker.Wait(worker.ZPull(keys, &vals));
        CHECK_GE(vals[0], static_cast<double>(round * ps::NumWorkers()));
        CHECK_LT(vals[0], static_cast<double>((round + 1) * ps::NumWorkers()));
        CHECK_GE(vals[1], static_cast<double>(round * ps::NumWorkers()));
    }
}

// The other forms of a request, and what they wait for.
void WorkByOtherForms()
{
    ps::KVWorker<float> worker(kTableApp, 1);
    const ps::Key mine = 1000 + static_cast<ps::Key>(ps::MyRank());
    const std::vector<ps::Key> keys = {mine, mine + 5000};
    std::vector<float> vals = {1, 2}, outs, none;
    ps::SArray<float> in_place(2);
    ps::SArray<int> lens;
    int n_called = 0;

    worker.Wait(worker.PushPull(keys, vals, &outs));
    CHECK_EQ(outs[0] + outs[1], 3.0f);
    worker.Wait(worker.ZPushPull(
        ps::SArray<ps::Key>(keys), ps::SArray<float>(vals), &in_place, &lens, 0,
        [&] { n_called++; }, 5));
    CHECK_EQ(in_place[0] + in_place[1], 6.0f);
    CHECK_EQ(lens.size(), 2U);
    worker.Wait(worker.Push({}, {}, {}, 0, [&] { n_called++; }));
    worker.Wait(worker.Pull({}, &none));
    CHECK(none.empty());
    CHECK_EQ(n_called, 2);
    worker.set_slicer([](const ps::KVPairs<float> &send, const std::vector<ps::Range> &ranges,
                         ps::KVWorker<float>::SlicedKVs *sliced) {
        sliced->resize(ranges.size());
        sliced->back() = std::make_pair(true, send);
    });
    outs.clear();
    worker.Wait(worker.Pull(keys, &outs, nullptr, 0, nullptr, 3));
    CHECK_EQ(outs[1], 4.0f);
    CHECK_EQ(worker.get_customer()->app_id(), kTableApp);
    CHECK_EQ(worker.get_customer()->customer_id(), 1);
    CHECK_EQ(worker.get_customer()->NumResponse(0), ps::NumServers());
}

// Every node asks every node, itself too, and hears each answer once.
void Talk()
{
    ps::SimpleApp app(kSimpleApp, kSimpleApp);
    std::atomic<int> n_asked{0}, n_answered{0};
    const int everybody = ps::kScheduler + ps::kServerGroup + ps::kWorkerGroup;
    const int n = 1 + ps::NumServers() + ps::NumWorkers();

    app.set_request_handle([&](const ps::SimpleData &data, ps::SimpleApp *self) {
        CHECK_EQ(data.head, 17);
        n_asked++;
        self->Response(data, data.body + "!");
    });
    app.set_response_handle([&](const ps::SimpleData &data, ps::SimpleApp *) {
        CHECK_EQ(data.body, "how are you?!");
        n_answered++;
    });
    app.Wait(app.Request(17, "how are you?", everybody));
    CHECK_EQ(n_answered, n);
    ps::Postoffice::Get()->Barrier(0, everybody);
    CHECK_EQ(n_asked, n);
    ps::Postoffice::Get()->Barrier(0, everybody);
}

void CheckPlaces()
{
    ps::Postoffice *office = ps::Postoffice::Get();
    const std::vector<ps::Range> &ranges = office->GetServerKeyRanges();
    const size_t n_servers = static_cast<size_t>(ps::NumServers());

    CHECK_EQ(ps::IsWorker() + ps::IsServer() + ps::IsScheduler(), 1);
    CHECK_EQ(ranges.size(), n_servers);
    for (size_t i = 0; i < n_servers; i++) {
        CHECK_EQ(ranges[i].begin(), ps::kMaxKey / n_servers * i);
    }
    CHECK_EQ(office->GetNodeIDs(ps::kServerGroup).size(), n_servers);
    CHECK_EQ(office->GetNodeIDs(ps::kServerGroup + ps::kScheduler).size(), n_servers + 1);
    CHECK_EQ(office->GetNodeIDs(8)[0], 8);
    CHECK_EQ(office->GetNodeIDs(ps::kScheduler)[0], 1);
    CHECK_EQ(office->my_rank(), ps::MyRank());
    CHECK(!office->is_recovery());
    CHECK_GE(office->verbose(), 0);
    CHECK(office->van()->IsReady());
    CHECK_EQ(office->van()->my_node().id, ps::IsScheduler() ? ps::kScheduler
                                          : ps::IsServer()  ? office->ServerRankToID(ps::MyRank())
                                                            : office->WorkerRankToID(ps::MyRank()));
    CHECK(office->van()->my_node().hostname.size() > 0);
    CHECK_LT(office->van()->GetTimestamp(), office->van()->GetTimestamp());
    CHECK(office->GetDeadNodes(60).empty());
    CHECK(office->GetDeadNodes(0).empty());
}

// Pushes while a server dies: "under way" when it may, and the file says that it has.
void WorkOn(const char *go)
{
    ps::KVWorker<float> worker(kTableApp, 0);
    std::vector<ps::Key> keys(1000);
    const std::vector<float> ones(keys.size(), 1);
    std::vector<float> vals;
    int n = 0;

    for (size_t i = 0; i < keys.size(); i++) {
        keys[i] = ps::kMaxKey / keys.size() * i + static_cast<ps::Key>(ps::MyRank());
    }
    for (int after = 0; after < 20; after += access(go, F_OK) == 0 ? 1 : 0) {
        worker.Wait(worker.Push(keys, ones));
        if (++n == 20) {
            puts("under way");
            fflush(stdout);
        }
    }
    worker.Wait(worker.Pull(keys, &vals));
    for (const float value : vals) {
        CHECK_EQ(value, static_cast<float>(n));
    }
}

// Returns when it is so; another thread makes it so.
template <typename Is> void Until(const Is &is_so)
{
    while (!is_so()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

// Server 1 answers two requests and leaves, server 0 leaves without an answer: both
// without a barrier.
void LeaveEarly()
{
    ps::SimpleApp app(kSimpleApp, kSimpleApp);
    std::atomic<int> n_asked{0};

    app.set_request_handle([&](const ps::SimpleData &data, ps::SimpleApp *self) {
        if (ps::MyRank() == 1) {
            self->Response(data);
        }
        n_asked++;
    });
    Until([&] { return n_asked == (ps::MyRank() == 1 ? 2 : 1); });
}

// Answers count that are here when their sender is gone; the last request has none.
void AskWhoLeaves()
{
    ps::SimpleApp app(kSimpleApp, kSimpleApp);
    const int stays = ps::Postoffice::Get()->ServerRankToID(0);
    const int leaves = ps::Postoffice::Get()->ServerRankToID(1);
    int n_answers = 0;

    app.set_response_handle([&](const ps::SimpleData &, ps::SimpleApp *) {
        Until([&] { return ps::Postoffice::Get()->IsGone(leaves); });
        n_answers++;
    });
    app.Request(1, "", leaves);
    app.Wait(app.Request(2, "", leaves));
    CHECK_EQ(n_answers, 2);
    puts("both are answered");
    fflush(stdout);
    app.Wait(app.Request(3, "", stays));
}

template <typename Val, typename Handle> ps::KVServer<Val> *Serve(int app_id, const Handle &handle)
{
    auto *server = new ps::KVServer<Val>(app_id);

    server->set_request_handle(handle);
    return server;
}

} // namespace

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "all";
    bool has_ended = false;

    CheckTypes();
    if (strcmp(what, "async") == 0) { // handles are there before the other nodes
        ps::StartAsync(0, argv[0]);
    } else {
        ps::Start(0, argv[0]);
    }
    if (ps::IsServer()) {
        auto *table = Serve<float>(kTableApp, ps::KVServerDefaultHandle<float>());
        auto *handle = Serve<float>(kHandleApp, Store());
        auto *together = Serve<double>(kSyncApp, Together());
        auto *silent = Serve<float>(kSilentApp, Silent);

        ps::RegisterExitCallback([=, &has_ended] {
            delete table;
            delete handle;
            delete together;
            delete silent;
            has_ended = true;
        });
    }
    if (strcmp(what, "kill") == 0) {
        if (ps::IsWorker()) {
            WorkOn(argv[2]);
        }
    } else if (strcmp(what, "leave") == 0) {
        if (ps::IsServer()) {
            LeaveEarly();
        }
        if (ps::IsWorker()) {
            AskWhoLeaves();
        }
    } else if (strcmp(what, "async") == 0) {
        if (ps::IsWorker()) {
            WorkOnTable();
        }
    } else if (strcmp(what, "silent") == 0) {
        if (ps::IsWorker()) {
            ps::KVWorker<float> worker(kSilentApp);
            worker.Wait(worker.Push({77}, {1}, {}, 5));
        }
    } else {
        CheckPlaces();
        Talk();
        if (ps::IsWorker()) {
            WorkOnTable();
            WorkOnHandle();
            WorkTogether();
            WorkByOtherForms();
        }
    }
    if (ps::IsWorker()) {
        printf("worker %d of %d is right\n", ps::MyRank(), ps::NumWorkers());
    }
    ps::Finalize(0, strcmp(what, "leave") != 0 || !ps::IsServer());
    CHECK_EQ(has_ended, ps::IsServer());
    return 0;
}
