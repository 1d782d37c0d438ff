/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps/ps.h - the interface of ps-lite, over psd
 *
 *     ps::Start(0);
 *     if (ps::IsServer()) { … KVServer … }
 *     if (ps::IsWorker()) { … KVWorker … }
 *     ps::Finalize(0, true);
 *
 * docs/ps-lite.md says what differs.
 */
#ifndef PSD_COMPAT_PS_PS_H
#define PSD_COMPAT_PS_PS_H

#include <functional>

#include "ps/base.h"
#include "ps/kv_app.h"
#include "ps/simple_app.h"

namespace ps {

/* Customers of workers, not processes. */
inline int NumWorkers()
{
    return Postoffice::Get()->num_workers();
}
inline int NumServers()
{
    return Postoffice::Get()->num_servers();
}
inline bool IsWorker()
{
    return Postoffice::Get()->is_worker() != 0;
}
inline bool IsServer()
{
    return Postoffice::Get()->is_server() != 0;
}
inline bool IsScheduler()
{
    return Postoffice::Get()->is_scheduler() != 0;
}
/* The process's, among those of its role. */
inline int MyRank()
{
    return Postoffice::Get()->my_rank();
}

/* Returns when all nodes are there. */
inline void Start(int customer_id, const char *argv0 = nullptr)
{
    Postoffice::Get()->Start(customer_id, argv0, true);
}
inline void Start(const char *argv0 = nullptr)
{
    Start(0, argv0);
}
/* Returns when the scheduler knows this node; what needs the others waits for them. */
inline void StartAsync(int customer_id, const char *argv0 = nullptr)
{
    Postoffice::Get()->Start(customer_id, argv0, false);
}
inline void StartAsync(const char *argv0 = nullptr)
{
    StartAsync(0, argv0);
}
/* Returns when all nodes have come here or are dead; without a barrier at once. */
inline void Finalize(int customer_id, bool do_barrier = true)
{
    Postoffice::Get()->Finalize(customer_id, do_barrier);
}
inline void Finalize(bool do_barrier = true)
{
    Finalize(0, do_barrier);
}
inline void RegisterExitCallback(const std::function<void()> &callback)
{
    Postoffice::Get()->RegisterExitCallback(callback);
}

}
#endif
