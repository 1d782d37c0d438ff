// SPDX-License-Identifier: Apache-2.0
// What of ps-lite's interface needs no job: arrays, ranges, settings, messages, macros.
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

#include "ps/ps.h"
#include "ps_lite_types.h"

namespace
{

void CheckArrays()
{
    const std::vector<int> five = {1, 3, 5, 7, 9};
    ps::SArray<int> a(five);
    ps::SArray<int> b = a;
    ps::SArray<char> bytes(a);
    ps::SArray<int> back;
    const ps::SArray<float> zeros(3), twos(2, 2);
    ps::SArray<int> list{1, 2, 3};

    CHECK_EQ(bytes.size(), 5 * sizeof(int));
    back = bytes;
    CHECK_EQ(back.size(), 5U);
    back[1] = 4; // one memory
    CHECK_EQ(a[1], 4);
    CHECK_EQ(b[1], 4);
    a[1] = 3;
    CHECK_EQ(zeros.size() + twos.size(), 5U);
    CHECK_EQ(zeros[2], 0.0f);
    CHECK_EQ(twos.back(), 2.0f);
    list = {4, 5};
    CHECK_EQ(list.size(), 2U);
    CHECK_EQ(list.front(), 4);
    list.append(a.segment(1, 3));
    CHECK_EQ(list.size(), 4U);
    CHECK_EQ(list[3], 5);
    list.append(list);
    CHECK_EQ(list.size(), 8U);
    for (int i = 0; i < 100; i++) {
        list.push_back(i);
    }
    CHECK_EQ(list.back(), 99);
    CHECK_GE(list.capacity(), list.size());
    list.pop_back();
    CHECK_EQ(list.back(), 98);
    list.resize(3);
    list.resize(5, 7);
    CHECK_EQ(list[4], 7);
    list.reserve(1000);
    CHECK_EQ(list.size(), 5U);
    CHECK_GE(list.capacity(), 1000U);
    list.clear();
    CHECK(list.empty());
    CHECK(list.begin() == list.end());

    int *owned = new int[2];
    owned[0] = 1;
    owned[1] = 2;
    const ps::SArray<int> taken(owned, 2, true);
    int borrowed[] = {8, 9};
    ps::SArray<int> lent(borrowed, 2);
    lent[0] = 1;
    CHECK_EQ(borrowed[0], 1);
    const auto shared = std::make_shared<std::vector<int>>(five);
    ps::SArray<int> of_shared(shared);
    of_shared[0] = 11;
    CHECK_EQ((*shared)[0], 11);
    ps::SArray<int> copy;
    copy.CopyFrom(five.data(), 2);
    copy.CopyFrom(a);
    copy.CopyFrom(five.begin(), five.end());
    copy[0] = 100;
    CHECK_EQ(a[0], 1);
    copy.reset(borrowed, 2, [](int *) {});
    CHECK(copy.ptr().get() == borrowed && copy.data() == borrowed);

    const ps::Range range = ps::FindRange(a, 2, 7);
    CHECK_EQ(range.begin(), 1U);
    CHECK_EQ(range.end(), 3U);
    CHECK_EQ(range.size(), 2U);
    CHECK_EQ(ps::FindRange(a, 7, 2).size(), 0U);
    CHECK_EQ(ps::Range().size(), 0U);
    std::ostringstream text, many;
    text << a;
    CHECK_EQ(text.str(), "[5]: 1 3 5 7 9 ");
    many << ps::SArray<int>(20, 1);
    CHECK_EQ(many.str(), "[20]: 1 1 1 1 1 ... 1 1 1 1 1 ");
    CHECK_EQ(ps::DebugStr(five.data(), 1), "[1]: 1 ");
}

void CheckSettings()
{
    std::unordered_map<std::string, std::string> given;

    setenv("PS_LITE_TEST", "5", 1);
    CHECK_EQ(ps::GetEnv("PS_LITE_TEST", 1), 5);
    CHECK_EQ(ps::GetEnv("PS_LITE_NONE", 1), 1);
    CHECK_EQ(ps::GetEnv("PS_LITE_TEST", std::string("x")), "5");
    given["PS_LITE_TEST"] = "6";
    CHECK(ps::Environment::Init(given) == ps::Environment::Get());
    CHECK_EQ(strcmp(ps::Environment::Get()->find("PS_LITE_TEST"), "6"), 0);
    CHECK(ps::Environment::Get()->find("PS_LITE_NONE") == nullptr);
    CHECK(ps::Environment::Get()->find("PATH") != nullptr);
}

void CheckMessages()
{
    ps::Message message;
    ps::Node node;

    CHECK(message.meta.control.empty());
    CHECK_EQ(message.meta.head, +ps::Meta::kEmpty);
    message.AddData(ps::SArray<float>(3, 1));
    message.AddData(ps::SArray<uint64_t>(1, 1));
    CHECK_EQ(message.meta.data_size, 20);
    CHECK_EQ(message.meta.data_type[0], ps::FLOAT);
    CHECK_EQ(message.meta.data_type[1], ps::UINT64);
    CHECK(!message.DebugString().empty());
    CHECK_EQ(ps::GetDataType<char *>(), ps::OTHER);
    node.role = ps::Node::SERVER;
    node.id = 8;
    CHECK_EQ(node.ShortDebugString(), "S[8]");
    CHECK_EQ(node.DebugString().find("role=server, id=8"), 0U);
    CHECK(!node.is_recovery);
}

void CheckNumbers()
{
    CHECK_EQ(ps::kScheduler, 1);
    CHECK_EQ(ps::kServerGroup, 2);
    CHECK_EQ(ps::kWorkerGroup, 4);
    CHECK_EQ(ps::kMaxKey, std::numeric_limits<ps::Key>::max());
    for (int rank = 0; rank < 5; rank++) {
        CHECK_EQ(ps::Postoffice::ServerRankToID(rank), 2 * rank + 8);
        CHECK_EQ(ps::Postoffice::WorkerRankToID(rank), 2 * rank + 9);
        CHECK_EQ(ps::Postoffice::IDtoRank(2 * rank + 8), rank);
        CHECK_EQ(ps::Postoffice::IDtoRank(2 * rank + 9), rank);
    }
    CHECK_EQ(ps::Postoffice::IDtoRank(ps::kScheduler), 0);
}

// A failed check ends a process by SIGABRT, with its text.
void CheckFails()
{
    int out[2];
    int status = 0;
    char text[1000] = "";

    CHECK_EQ(pipe(out), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(out[1], STDERR_FILENO);
        CHECK_LT(2, 1) << "two is more";
        _exit(0);
    }
    close(out[1]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(read(out[0], text, sizeof text - 1) > 0);
    close(out[0]);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(strstr(text, "Check failed: (2) < (1) two is more") != nullptr) << text;
}

void CheckMacros()
{
    const int two = 2;
    int n = 0;

    if (two == 2)
        CHECK(two) << "no else of another if";
    else
        n = 100;
    CHECK_GT(two, 1);
    CHECK_LE(two, 2);
    CHECK_NE(two, 3);
    CHECK(CHECK_NOTNULL(&two) == &two);
    DCHECK(two);
    DCHECK_EQ(two, 2);
    DCHECK_NE(two, 1);
    DCHECK_LT(two, 3);
    DCHECK_LE(two, 3);
    DCHECK_GT(two, 1);
    DCHECK_GE(two, 1);
    LOG(INFO) << "info";
    LOG(WARNING) << "warning";
    LOG(ERROR) << "error";
    LOG_IF(INFO, ++n == 1) << "if";
    LOG_IF(INFO, false) << ++n;
    DLOG_IF(INFO, false) << ++n;
    LL << "LL";
    LG << "LG";
    PS_VLOG(100) << ++n;
    CHECK_EQ(n, 1);
    const dmlc::Error error("text");
    CHECK_EQ(strcmp(error.what(), "text"), 0);
    std::vector<int> none, one(1, 3);
    std::string word = "w";
    CHECK(dmlc::BeginPtr(none) == nullptr);
    CHECK_EQ(*dmlc::BeginPtr(one), 3);
    CHECK_EQ(*dmlc::BeginPtr(word), 'w');
    CheckFails();
}

void CheckAggregates()
{
    const ps::KVMeta meta = {7, true, false, 9, 3, 1};
    const ps::SimpleData data = {17, "body", 9, 3, 1};

    CHECK_EQ(meta.cmd, 7);
    CHECK(meta.push && !meta.pull);
    CHECK_EQ(meta.sender, data.sender);
    CHECK_EQ(meta.timestamp, data.timestamp);
    CHECK_EQ(meta.customer_id, data.customer_id);
    CHECK_EQ(data.body, "body");
}

} // namespace

void CheckTypes()
{
    CheckAggregates();
    CheckArrays();
    CheckSettings();
    CheckMessages();
    CheckNumbers();
    CheckMacros();
}
