/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_ps/node.h - the psd below: this process's node, and where the scheduler is heard
 *
 * The scheduler's process hosts psd's registry at the job's address; each server's hosts
 * a node that joins it. A small table there says at which port the scheduler hears the
 * other processes, and a word that they show it.
 */
#ifndef PSD_COMPAT_NODE_H
#define PSD_COMPAT_NODE_H

#include <psd.h>
#include <psd_server.h>
#include <stdint.h>
#include <stdio.h>

#include <chrono>
#include <random>
#include <string>
#include <thread>

#include "psd_ps/address.h"

namespace ps {
namespace inner {

static const char *const kDoorTable = "ps-lite.door";

/* An error of libpsd, freed with its scope. */
class Failure {
  public:
    Failure() : error_(psd_error_new()) { CHECK(error_) << "no memory"; }
    ~Failure() { psd_error_destroy(&error_); }
    operator psd_error_t *() { return error_; }
    std::string Text(psd_status_t status) const
    {
        return std::string(psd_status_code(status)) + " " + psd_error_text(error_) + " (" +
               psd_status_hint(status) + ")";
    }

  private:
    psd_error_t *error_;
    DISALLOW_COPY_AND_ASSIGN(Failure);
};

inline psd_client_t *Connect(const Root &root, uint32_t timeout_ms)
{
    Failure err;
    psd_client_t *client = nullptr;
    psd_options_t *options = psd_options_new();

    CHECK(options) << "no memory";
    psd_options_set_wait(options, true);
    psd_options_set_timeout_ms(options, timeout_ms);
    const psd_status_t rc = psd_connect(root.Endpoint().c_str(), options, &client, err);
    psd_options_destroy(&options);
    if (rc != PSD_OK) {
        LOG(FATAL) << "the scheduler: " << err.Text(rc);
    }
    return client;
}

/* How to reach the scheduler. */
struct Door {
    int64_t port = 0;
    int64_t words[2] = {0, 0};
    std::string Word() const { return std::to_string(words[0]) + "." + std::to_string(words[1]); }
};

/* Words that nobody guesses. */
inline Door MakeDoor(int port)
{
    std::random_device random;
    Door door;

    door.port = port;
    for (int64_t &word : door.words) {
        word = static_cast<int64_t>(random() & 0x7fffffff) << 32 | random();
    }
    return door;
}

inline psd_status_t SetAll(psd_spec_t *spec, const char *const (*pairs)[2], psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (; rc == PSD_OK && (*pairs)[0] != nullptr; pairs++) {
        rc = psd_spec_set(spec, (*pairs)[0], (*pairs)[1], err);
    }
    return rc;
}

inline void TellDoor(const Root &root, const Door &door)
{
    static const char *const kPairs[][2] = {{"rows", "3"},       {"type", "i64"},
                                            {"partitions", "1"}, {"replicas", "1"},
                                            {"combine", "each"}, {nullptr, nullptr}};
    static const uint64_t kRows[] = {0, 1, 2};
    const int64_t values[] = {door.port, door.words[0], door.words[1]};
    Failure err;
    psd_client_t *client = Connect(root, static_cast<uint32_t>(StartMs()));
    psd_table_t *table = nullptr;
    psd_spec_t *spec = psd_spec_new();

    CHECK(spec) << "no memory";
    psd_status_t rc = SetAll(spec, kPairs, err);
    if (rc == PSD_OK) {
        rc = psd_table_create(client, kDoorTable, spec, &table, err);
    }
    if (rc == PSD_OK) {
        rc = psd_push(table, kRows, 3, values, 3, err);
    }
    if (rc != PSD_OK) {
        LOG(FATAL) << "table " << kDoorTable << ": " << err.Text(rc);
    }
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
}

/* Waits until the scheduler has told it. */
inline Door FindDoor(const Root &root)
{
    static const uint64_t kRows[] = {0, 1, 2};
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(StartMs());
    Failure err;
    Door door;
    psd_client_t *client = Connect(root, static_cast<uint32_t>(StartMs()));
    psd_table_t *table = nullptr;

    while (door.port == 0) {
        int64_t values[3] = {0, 0, 0};
        psd_status_t rc = PSD_OK;

        if (table == nullptr) {
            rc = psd_table_open(client, kDoorTable, &table, err);
        }
        if (rc == PSD_OK) {
            rc = psd_pull(table, kRows, 3, values, 3, err);
        }
        if (rc == PSD_OK && values[0] > 0 && values[0] < 65536) {
            door.port = values[0];
            door.words[0] = values[1];
            door.words[1] = values[2];
        } else if ((rc != PSD_OK && rc != PSD_NO_TABLE) || std::chrono::steady_clock::now() > end) {
            LOG(FATAL) << root.Endpoint() << " has no scheduler of psd's ps-lite: "
                       << (rc == PSD_OK ? "its table is empty" : err.Text(rc));
        } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }
    psd_table_close(&table);
    psd_close(&client);
    return door;
}

/* What psd says of itself: errors, with PS_VERBOSE warnings too. */
inline void OnLog(void *verbose, int level, const char *line)
{
    if (level <= 3 || (verbose != nullptr && level <= 4)) {
        fprintf(stderr, "psd: %s\n", line);
    }
}

/* This process's node: the registry, or one that joins it. */
class PsdNode {
  public:
    PsdNode() {}
    ~PsdNode() { Stop(); }
    void Start(const Root &root, bool is_scheduler, bool is_verbose)
    {
        const std::string endpoint = root.Endpoint();
        const char *const scheduler[][2] = {{"data_dir", ""},
                                            {"node.name", "scheduler"},
                                            {"listen.endpoints", endpoint.c_str()},
                                            {nullptr, nullptr}};
        const char *const server[][2] = {
            {"data_dir", ""}, {"cluster.join", endpoint.c_str()}, {nullptr, nullptr}};
        Failure err;
        psd_embed_options_t *options = psd_embed_options_new();
        psd_status_t rc = PSD_OK;

        CHECK(options) << "no memory";
        for (const char *const(*pair)[2] = is_scheduler ? scheduler : server;
             rc == PSD_OK && (*pair)[0] != nullptr; pair++) {
            rc = psd_embed_options_set(options, (*pair)[0], (*pair)[1], err);
        }
        psd_embed_options_set_on_log(options, OnLog, is_verbose ? this : nullptr);
        if (rc == PSD_OK) {
            rc = psd_embed_start(options, &node_, err);
        }
        psd_embed_options_destroy(&options);
        if (rc != PSD_OK) {
            LOG(FATAL) << "start as " << (is_scheduler ? "scheduler" : "server") << ": "
                       << err.Text(rc);
        }
    }
    void Stop() { psd_embed_stop(&node_); }

  private:
    psd_embed_t *node_ = nullptr;
    DISALLOW_COPY_AND_ASSIGN(PsdNode);
};

}
}
#endif
