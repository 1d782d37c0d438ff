/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of shards as flat lists, jobs as their bytes. */
#include "daemon/nodes/fleet_doc.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "protocol/facts/job_bytes.h"

#define N_INFO 4
#define N_PARTITION 15
#define N_LAG 8
#define N_WAITING 8
#define N_CLOCK 4
#define NUMBERS_MAX (1 << 20) /* as a document may hold */
#define HEX_MAX (1 << 20)

/* ---- writing ---- */

static bool append_all(ps_doc_t *array, const uint64_t *numbers, size_t n)
{
    bool done = array != NULL;

    for (size_t i = 0; done && i < n; i++) {
        done = ps_doc_append_u64(array, numbers[i]);
    }
    return done;
}

static bool add_info(const ps_shard_info_t *info, ps_doc_t *doc)
{
    const uint64_t numbers[N_INFO] = {info->sessions, info->held_requests, info->held_bytes,
                                      info->refused};

    return append_all(ps_doc_add_array(doc, "info"), numbers, N_INFO) &&
           ps_doc_set_text(doc, "disk_trouble", info->disk_trouble) &&
           ps_doc_set_u64(doc, "tail_bytes", info->tail_bytes);
}

static bool add_partitions(const ps_shard_call_t *call, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "partitions");
    bool done = array != NULL;

    for (size_t i = 0; done && i < call->n_partitions; i++) {
        const ps_partition_info_t *info = &call->partitions[i];
        const uint64_t numbers[N_PARTITION] = {
            info->table,        info->partition,   info->epoch,       info->lsn,
            info->bytes.values, info->bytes.state, info->bytes.index, info->bytes.rows_present,
            info->held_bytes,   info->queue_bytes, info->pushes,      info->pulls,
            info->rows_pushed,  info->rows_pulled, info->come_bytes};

        done = append_all(array, numbers, N_PARTITION);
    }
    return done;
}

static bool add_lags(const ps_shard_call_t *call, uint64_t now_ms, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "lags");
    bool done = array != NULL;

    for (size_t i = 0; done && i < call->n_lags; i++) {
        const ps_lag_info_t *info = &call->lags[i];
        const uint64_t numbers[N_LAG] = {
            info->table,          info->partition,
            info->incarnation,    info->shard,
            info->behind ? 1 : 0, info->records,
            info->bytes,          info->level_ms < now_ms ? now_ms - info->level_ms : 0};

        done = append_all(array, numbers, N_LAG);
    }
    return done;
}

static bool add_waiting(const ps_shard_call_t *call, uint64_t now_ms, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "waiting");
    ps_doc_t *reasons = ps_doc_add_array(doc, "reasons");
    bool done = array != NULL && reasons != NULL;

    for (size_t i = 0; done && i < call->n_waiting; i++) {
        const ps_waiting_info_t *info = &call->waiting[i];
        const uint64_t numbers[N_WAITING] = {
            info->job,       info->worker, info->clock,     now_ms - info->since_ms,
            info->for_clock, info->table,  info->partition, info->is_pull ? 1 : 0};

        done = append_all(array, numbers, N_WAITING) && ps_doc_append_text(reasons, info->reason);
    }
    return done;
}

static bool add_clocks(const ps_shard_call_t *call, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "clocks");
    bool done = array != NULL;

    for (size_t i = 0; done && i < call->n_clocks; i++) {
        const ps_clock_info_t *info = &call->clocks[i];
        const uint64_t numbers[N_CLOCK] = {info->job, info->worker, info->min, info->max};

        done = append_all(array, numbers, N_CLOCK);
    }
    return done;
}

/* A text in JSON, which is without '\0'. */
static bool add_words(const ps_shard_call_t *call, ps_doc_t *doc)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    return call->words.size == 0 ||
           (ps_buffer_append(&text, call->words.data, call->words.size) && ps_buffer_u8(&text, 0) &&
            ps_doc_set_text(doc, "words", (const char *)text.data));
}

bool ps_answers_to_doc(const ps_answers_t *answers, uint64_t now_ms, ps_doc_t *array)
{
    bool done = array != NULL;

    for (uint32_t i = 0; done && i < answers->n_calls; i++) {
        const ps_shard_call_t *call = answers->calls[i];
        ps_doc_t *doc = ps_doc_append_object(array);

        done = doc != NULL && ps_doc_set_u64(doc, "shard", i) &&
               ps_doc_set_u64(doc, "memory_bytes", call->memory_bytes) &&
               add_info(&call->info, doc) && add_partitions(call, doc) &&
               add_lags(call, now_ms, doc) && add_waiting(call, now_ms, doc) &&
               add_clocks(call, doc) && add_words(call, doc);
    }
    return done;
}

/* ---- reading ---- */

/* The list under key: whole items of `width` numbers, each of `size` bytes once
 * read. */
static psd_status_t open_list(const ps_doc_t *doc, const char *key, size_t width, size_t size,
                              const ps_doc_t **ret_array, void *ret_items, size_t *ret_n,
                              psd_error_t *err)
{
    void *items = NULL;
    size_t n = 0;
    psd_status_t rc = ps_doc_get_array(doc, key, NUMBERS_MAX, ret_array, err);

    if (rc != PSD_OK) {
        return rc;
    }
    n = ps_doc_count(*ret_array);
    if (n % width != 0) {
        return psd_error_set(err, PSD_PROTO, "%s has %zu numbers; allowed: a multiple of %zu", key,
                             n, width);
    }
    items = ps_alloc(n / width, size);
    if (items == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for an answer");
    }
    memcpy(ret_items, &items, sizeof items);
    *ret_n = n / width;
    return PSD_OK;
}

static psd_status_t read_numbers(const ps_doc_t *array, size_t item, size_t width,
                                 uint64_t *ret_numbers, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < width; i++) {
        rc = ps_doc_at_u64(array, item * width + i, &ret_numbers[i], err);
    }
    return rc;
}

static psd_status_t read_info(const ps_doc_t *doc, ps_shard_info_t *ret, psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    const char *trouble = "";
    uint64_t numbers[N_INFO];
    psd_status_t rc = ps_doc_get_array(doc, "info", N_INFO, &array, err);

    if (rc == PSD_OK && ps_doc_count(array) != N_INFO) {
        rc = psd_error_set(err, PSD_PROTO, "info has %zu numbers; allowed: %d", ps_doc_count(array),
                           N_INFO);
    }
    if (rc == PSD_OK) {
        rc = read_numbers(array, 0, N_INFO, numbers, err);
    }
    if (rc == PSD_OK) {
        *ret = (ps_shard_info_t){.sessions = numbers[0],
                                 .held_requests = numbers[1],
                                 .held_bytes = numbers[2],
                                 .refused = numbers[3]};
        rc = ps_doc_get_text_or(doc, "disk_trouble", sizeof ret->disk_trouble - 1, "", &trouble,
                                err);
    }
    if (rc == PSD_OK) {
        memcpy(ret->disk_trouble, trouble, strlen(trouble) + 1);
        rc = ps_doc_get_u64_or(doc, "tail_bytes", 0, INT64_MAX, 0, &ret->tail_bytes, err);
    }
    return rc;
}

static psd_status_t read_partitions(const ps_doc_t *doc, ps_shard_call_t *call, psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    psd_status_t rc = open_list(doc, "partitions", N_PARTITION, sizeof *call->partitions, &array,
                                &call->partitions, &call->n_partitions, err);

    for (size_t i = 0; rc == PSD_OK && i < call->n_partitions; i++) {
        uint64_t at[N_PARTITION];

        rc = read_numbers(array, i, N_PARTITION, at, err);
        if (rc == PSD_OK) {
            call->partitions[i] = (ps_partition_info_t){
                .table = (uint32_t)at[0],
                .partition = (uint32_t)at[1],
                .epoch = at[2],
                .lsn = at[3],
                .bytes = {.values = at[4], .state = at[5], .index = at[6], .rows_present = at[7]},
                .held_bytes = at[8],
                .queue_bytes = at[9],
                .pushes = at[10],
                .pulls = at[11],
                .rows_pushed = at[12],
                .rows_pulled = at[13],
                .come_bytes = at[14]};
        }
    }
    return rc;
}

static psd_status_t read_lags(const ps_doc_t *doc, uint64_t now_ms, ps_shard_call_t *call,
                              psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    psd_status_t rc =
        open_list(doc, "lags", N_LAG, sizeof *call->lags, &array, &call->lags, &call->n_lags, err);

    for (size_t i = 0; rc == PSD_OK && i < call->n_lags; i++) {
        uint64_t at[N_LAG];

        rc = read_numbers(array, i, N_LAG, at, err);
        if (rc == PSD_OK) {
            call->lags[i] = (ps_lag_info_t){.table = (uint32_t)at[0],
                                            .partition = (uint32_t)at[1],
                                            .incarnation = at[2],
                                            .shard = (uint32_t)at[3],
                                            .behind = at[4] != 0,
                                            .records = at[5],
                                            .bytes = at[6],
                                            .level_ms = at[7] < now_ms ? now_ms - at[7] : 0};
        }
    }
    return rc;
}

/* One object for each held request. */
static psd_status_t read_reasons(const ps_doc_t *doc, ps_shard_call_t *call, psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    psd_status_t rc = ps_doc_get_array(doc, "reasons", call->n_waiting, &array, err);

    if (rc == PSD_OK && ps_doc_count(array) != call->n_waiting) {
        rc = psd_error_set(err, PSD_PROTO,
                           "reasons has %zu texts; allowed: %zu, one for each "
                           "that waits",
                           ps_doc_count(array), call->n_waiting);
    }
    for (size_t i = 0; rc == PSD_OK && i < call->n_waiting; i++) {
        const char *text = NULL;

        rc = ps_doc_at_text(array, i, PS_WAIT_REASON_SIZE - 1, &text, err);
        if (rc == PSD_OK) {
            memcpy(call->waiting[i].reason, text, strlen(text) + 1);
        }
    }
    return rc;
}

static psd_status_t read_waiting(const ps_doc_t *doc, uint64_t now_ms, ps_shard_call_t *call,
                                 psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    psd_status_t rc = open_list(doc, "waiting", N_WAITING, sizeof *call->waiting, &array,
                                &call->waiting, &call->n_waiting, err);

    for (size_t i = 0; rc == PSD_OK && i < call->n_waiting; i++) {
        uint64_t at[N_WAITING];

        rc = read_numbers(array, i, N_WAITING, at, err);
        if (rc == PSD_OK) {
            call->waiting[i] = (ps_waiting_info_t){.job = (uint32_t)at[0],
                                                   .worker = (uint32_t)at[1],
                                                   .clock = at[2],
                                                   .since_ms = at[3] < now_ms ? now_ms - at[3] : 0,
                                                   .for_clock = at[4],
                                                   .table = (uint32_t)at[5],
                                                   .partition = (uint32_t)at[6],
                                                   .is_pull = at[7] != 0};
        }
    }
    return rc == PSD_OK ? read_reasons(doc, call, err) : rc;
}

static psd_status_t read_clocks(const ps_doc_t *doc, ps_shard_call_t *call, psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    psd_status_t rc = open_list(doc, "clocks", N_CLOCK, sizeof *call->clocks, &array, &call->clocks,
                                &call->n_clocks, err);

    for (size_t i = 0; rc == PSD_OK && i < call->n_clocks; i++) {
        uint64_t at[N_CLOCK];

        rc = read_numbers(array, i, N_CLOCK, at, err);
        if (rc == PSD_OK) {
            call->clocks[i] = (ps_clock_info_t){
                .job = (uint32_t)at[0], .worker = (uint32_t)at[1], .min = at[2], .max = at[3]};
        }
    }
    return rc;
}

static psd_status_t read_words(const ps_doc_t *doc, ps_shard_call_t *call, psd_error_t *err)
{
    const char *text = NULL;
    psd_status_t rc = ps_doc_get_text_or(doc, "words", PS_DOC_BYTES_MAX, "", &text, err);

    return rc != PSD_OK || ps_buffer_append(&call->words, text, strlen(text))
               ? rc
               : psd_error_set(err, PSD_NOMEM, "no memory for an answer");
}

static psd_status_t read_call(const ps_doc_t *doc, uint64_t now_ms, ps_shard_call_t *call,
                              psd_error_t *err)
{
    uint64_t shard = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "shard", 0, PS_NODE_SHARDS_MAX - 1, &shard, err);

    call->shard = (uint32_t)shard;
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "memory_bytes", 0, INT64_MAX, 0, &call->memory_bytes, err);
    }
    if (rc == PSD_OK) {
        rc = read_info(doc, &call->info, err);
    }
    if (rc == PSD_OK) {
        rc = read_partitions(doc, call, err);
    }
    if (rc == PSD_OK) {
        rc = read_lags(doc, now_ms, call, err);
    }
    if (rc == PSD_OK) {
        rc = read_waiting(doc, now_ms, call, err);
    }
    if (rc == PSD_OK) {
        rc = read_clocks(doc, call, err);
    }
    return rc == PSD_OK ? read_words(doc, call, err) : rc;
}

psd_status_t ps_answers_from_doc(const ps_doc_t *array, uint64_t incarnation, uint64_t now_ms,
                                 ps_answers_t *answers, psd_error_t *err)
{
    size_t n = ps_doc_count(array);
    size_t capacity = answers->n_calls;
    psd_status_t rc = PSD_OK;

    if (n == 0) {
        return PSD_OK;
    }
    if (!ps_grow(&answers->calls, &capacity, answers->n_calls + n, sizeof(ps_shard_call_t *))) {
        return psd_error_set(err, PSD_NOMEM, "no memory for answers");
    }
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        ps_shard_call_t *call = NULL;
        const ps_doc_t *doc = NULL;

        rc = ps_doc_at_object(array, i, &doc, err);
        if (rc == PSD_OK) {
            rc = ps_shard_call_new(PS_CALL_INSPECT, 0, &call, err);
        }
        if (rc == PSD_OK) {
            answers->calls[answers->n_calls++] = call;
            call->incarnation = incarnation;
            rc = read_call(doc, now_ms, call, err);
        }
    }
    return rc;
}

/* ---- jobs ---- */

bool ps_job_to_doc(const ps_job_t *job, ps_doc_t *doc)
{
    static const char DIGITS[] = "0123456789abcdef";
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = ps_job_encode(job);
    PSD_AUTO(ps_free_at) char *text = NULL;
    size_t size = payload == NULL ? 0 : ps_payload_size(payload);
    ps_bytes_t bytes;

    if (payload == NULL || payload->n_spans != 1) {
        return false;
    }
    bytes = payload->spans[0];
    text = ps_alloc(2 * size + 1, 1);
    if (text == NULL) {
        return false;
    }
    for (size_t i = 0; i < bytes.size; i++) {
        text[2 * i] = DIGITS[bytes.data[i] >> 4];
        text[2 * i + 1] = DIGITS[bytes.data[i] & 15];
    }
    return ps_doc_set_text(doc, "bytes", text) &&
           (job->lost_table[0] == '\0' ||
            (ps_doc_set_text(doc, "lost_table", job->lost_table) &&
             ps_doc_set_u64(doc, "lost_sessions", job->lost_sessions)));
}

/* 0 .. 15, or 16 for what is no digit. */
static unsigned digit_of(char letter)
{
    if (letter >= '0' && letter <= '9') {
        return (unsigned)(letter - '0');
    }
    return letter >= 'a' && letter <= 'f' ? (unsigned)(letter - 'a') + 10 : 16;
}

/* The table whose lost rows ended its workers. */
static psd_status_t read_loss(const ps_doc_t *doc, ps_job_t *job, psd_error_t *err)
{
    const char *table = "";
    psd_status_t rc = ps_doc_get_text_or(doc, "lost_table", PS_NAME_MAX, "", &table, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "lost_sessions", 0, INT64_MAX, 0, &job->lost_sessions, err);
    }
    if (rc == PSD_OK) {
        memcpy(job->lost_table, table, strlen(table) + 1);
    }
    return rc;
}

psd_status_t ps_job_from_doc(const ps_doc_t *doc, ps_job_t *ret_job, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) uint8_t *bytes = NULL;
    const char *text = NULL;
    size_t n = 0;
    psd_status_t rc = ps_doc_get_text(doc, "bytes", HEX_MAX, &text, err);

    if (rc != PSD_OK) {
        return rc;
    }
    n = strlen(text) / 2;
    bytes = ps_alloc(n + 1, 1);
    if (bytes == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a job");
    }
    for (size_t i = 0; i < n; i++) {
        unsigned high = digit_of(text[2 * i]);
        unsigned low = digit_of(text[2 * i + 1]);

        if (high > 15 || low > 15) {
            return psd_error_set(err, PSD_PROTO,
                                 "bytes of a job are no hexadecimal digits at "
                                 "%zu",
                                 2 * i);
        }
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    rc = ps_job_decode((ps_bytes_t){.data = bytes, .size = n}, ret_job, err);
    if (rc == PSD_OK) {
        rc = read_loss(doc, ret_job, err);
        if (rc != PSD_OK) {
            ps_job_done(ret_job);
        }
    }
    return rc;
}
