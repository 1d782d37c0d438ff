/* SPDX-License-Identifier: Apache-2.0 */
/* ps/internal/message.h - what nodes send each other */
#ifndef PSD_COMPAT_PS_MESSAGE_H
#define PSD_COMPAT_PS_MESSAGE_H

#include <stdint.h>

#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "ps/sarray.h"

namespace ps {

enum DataType {
    CHAR,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    FLOAT,
    DOUBLE,
    OTHER
};

template <typename V, typename W> inline bool SameType()
{
    return std::is_same<typename std::remove_cv<V>::type, W>::value;
}

template <typename V> DataType GetDataType()
{
    return SameType<V, int8_t>()     ? INT8
           : SameType<V, int16_t>()  ? INT16
           : SameType<V, int32_t>()  ? INT32
           : SameType<V, int64_t>()  ? INT64
           : SameType<V, uint8_t>()  ? UINT8
           : SameType<V, uint16_t>() ? UINT16
           : SameType<V, uint32_t>() ? UINT32
           : SameType<V, uint64_t>() ? UINT64
           : SameType<V, float>()    ? FLOAT
           : SameType<V, double>()   ? DOUBLE
                                     : OTHER;
}

namespace inner {
/* A number that stands for none. */
template <typename T> struct Empty {
    static const int kEmpty = std::numeric_limits<int>::max();
};
template <typename T> const int Empty<T>::kEmpty;
}

struct Node : public inner::Empty<Node> {
    enum Role { SERVER, WORKER, SCHEDULER };

    std::string DebugString() const
    {
        std::ostringstream text;

        text << "role=" << (role == SERVER ? "server" : role == WORKER ? "worker" : "scheduler");
        if (id != kEmpty) {
            text << ", id=" << id;
        }
        text << ", ip=" << hostname << ", port=" << port << ", is_recovery=" << is_recovery;
        return text.str();
    }
    std::string ShortDebugString() const
    {
        const std::string letter = role == SERVER ? "S" : role == WORKER ? "W" : "H";

        return id == kEmpty ? letter : letter + "[" + std::to_string(id) + "]";
    }

    Role role = WORKER;
    int id = std::numeric_limits<int>::max();
    int customer_id = 0;
    std::string hostname;
    int port = std::numeric_limits<int>::max();
    bool is_recovery = false;
};

struct Control {
    enum Command { EMPTY, TERMINATE, ADD_NODE, BARRIER, ACK, HEARTBEAT };

    bool empty() const { return cmd == EMPTY; }

    Command cmd = EMPTY;
    std::vector<Node> node;
    int barrier_group = 0;
    uint64_t msg_sig = 0;
};

struct Meta : public inner::Empty<Meta> {
    std::string DebugString() const
    {
        std::ostringstream text;

        text << sender << " => " << recver << ". request=" << request << ", timestamp=" << timestamp
             << ", app_id=" << app_id << ", customer_id=" << customer_id
             << ", simple_app=" << simple_app << ", push=" << push << ", pull=" << pull
             << ", head=" << head << ", body=" << body;
        return text.str();
    }

    int head = std::numeric_limits<int>::max();
    int app_id = std::numeric_limits<int>::max();
    int customer_id = std::numeric_limits<int>::max();
    int timestamp = std::numeric_limits<int>::max();
    int sender = std::numeric_limits<int>::max();
    int recver = std::numeric_limits<int>::max();
    bool request = false;
    bool push = false;
    bool pull = false;
    bool simple_app = false;
    std::string body;
    std::vector<DataType> data_type;
    Control control;
    int data_size = 0;
    int priority = 0;
};

struct Message {
    template <typename V> void AddData(const SArray<V> &values)
    {
        CHECK_EQ(data.size(), meta.data_type.size());
        meta.data_type.push_back(GetDataType<V>());
        data.push_back(SArray<char>(values));
        meta.data_size += static_cast<int>(data.back().size());
    }
    std::string DebugString() const
    {
        std::ostringstream text;

        text << meta.DebugString();
        for (const auto &part : data) {
            text << " data_size=" << part.size();
        }
        return text.str();
    }

    Meta meta;
    std::vector<SArray<char>> data;
};

}
#endif
