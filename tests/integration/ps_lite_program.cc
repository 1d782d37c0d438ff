// SPDX-License-Identifier: Apache-2.0
// A program written for ps-lite, started once as scheduler and for each server and worker.
// ps_lite_program CASE: what it does. Its checks end it with SIGABRT.
#include <stdio.h>

#include "ps/ps.h"

namespace {

const int kTableApp = 0;
const int kHandleApp = 1;

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
            const ps::Range range = ps::Postoffice::Get()->GetServerKeyRanges()[static_cast<size_t>(
                ps::MyRank())];
            std::vector<float> &row = rows[key];

            CHECK_GE(key, range.begin());
            CHECK(key < range.end() || ps::MyRank() + 1 == ps::NumServers());
            if (meta.push) {
                const size_t len =
                    data.lens.empty() ? data.vals.size() / data.keys.size()
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

} // namespace

int main()
{
    ps::Start(0);
    if (ps::IsServer()) {
        auto *table = new ps::KVServer<float>(kTableApp);
        auto *handle = new ps::KVServer<float>(kHandleApp);

        table->set_request_handle(ps::KVServerDefaultHandle<float>());
        handle->set_request_handle(Store());
        ps::RegisterExitCallback([table, handle] {
            delete table;
            delete handle;
        });
    }
    if (ps::IsWorker()) {
        WorkOnTable();
        WorkOnHandle();
        printf("worker %d of %d is right\n", ps::MyRank(), ps::NumWorkers());
    }
    ps::Finalize(0, true);
    return 0;
}
