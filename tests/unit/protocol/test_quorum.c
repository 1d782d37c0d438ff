/* SPDX-License-Identifier: Apache-2.0 */
/* lib/protocol/quorum/quorum.h: members that elect, commit, change, fall back. */
#include "protocol/quorum/quorum.h"

#include <criterion/criterion.h>

#include "base/alloc.h"

#define N 4 /* members; the fourth joins later */
#define QUEUE_MAX 4096

typedef struct letter {
    uint64_t from;
    uint64_t to;
    ps_buffer_t bytes;
} letter_t;

typedef struct peer {
    ps_quorum_t *quorum;
    uint64_t term;
    uint64_t vote;
    uint64_t op; /* of the log, not flushed yet */
    uint64_t committed;
    uint64_t begin;    /* BEGIN's index */
    uint64_t snapshot; /* member that wants one; 0: none */
    ps_quorum_snapshot_t installed;
    bool is_cut; /* from the others */
} peer_t;

static peer_t peers[N];
static letter_t queue[QUEUE_MAX];
static size_t n_queue;
static uint64_t now;

static const ps_quorum_snapshot_t first = {
    .index = 2,
    .term = 1,
    .members_index = 1,
    .members = {.n = 3, .at = {{1, PS_QUORUM_VOTER, "a"}, {2, PS_QUORUM_VOTER, "b"}, {3, 1, "c"}}}};
static const char *const nodes[N] = {"a", "b", "c", "d"};

static void take_effects(size_t i)
{
    peer_t *peer = &peers[i];
    ps_quorum_effect_t effect;

    while (ps_quorum_next(peer->quorum, &effect)) {
        switch ((int)effect.kind) {
        case PS_QUORUM_TERM:
            cr_assert(effect.term > peer->term || (effect.term == peer->term && peer->vote == 0));
            peer->term = effect.term;
            peer->vote = effect.vote;
            break;
        case PS_QUORUM_BEGIN:
            peer->begin = effect.index;
            peer->op = effect.op;
            break;
        case PS_QUORUM_EXTEND:
        case PS_QUORUM_CUT:
            cr_assert_eq(effect.op, peer->op + 1);
            peer->op = effect.op;
            break;
        case PS_QUORUM_SEND:
            if (!peer->is_cut && effect.to <= N && !peers[effect.to - 1].is_cut) {
                letter_t *letter = &queue[n_queue++];

                cr_assert_lt(n_queue, QUEUE_MAX);
                *letter = (letter_t){.from = i + 1, .to = effect.to};
                cr_assert(ps_buffer_append(&letter->bytes, effect.bytes.data, effect.bytes.size));
            }
            break;
        case PS_QUORUM_COMMITTED:
            cr_assert_gt(effect.index, peer->committed);
            peer->committed = effect.index;
            break;
        case PS_QUORUM_SEND_SNAPSHOT:
            peer->snapshot = effect.to;
            break;
        case PS_QUORUM_INSTALL:
            peer->installed = *effect.snapshot;
            break;
        default:
            break;
        }
    }
}

static void flush(size_t i)
{
    cr_assert_eq(ps_quorum_flushed(peers[i].quorum, now, peers[i].op, NULL), PSD_OK);
    take_effects(i);
}

/* Delivers all messages and flushes all logs, also of what follows. */
static void settle(void)
{
    for (size_t at = 0; at < n_queue; at++) {
        letter_t letter = queue[at];
        size_t to = letter.to - 1;
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

        if (peers[to].quorum != NULL) {
            cr_assert_eq(ps_quorum_receive(peers[to].quorum, now,
                                           (ps_bytes_t){letter.bytes.data, letter.bytes.size}, err),
                         PSD_OK, "%s", psd_error_text(err));
            take_effects(to);
            flush(to);
        }
        ps_buffer_done(&queue[at].bytes);
    }
    n_queue = 0;
}

/* Lets time pass until `end`. */
static void pass_until(uint64_t end)
{
    for (; now < end; now++) {
        for (size_t i = 0; i < N; i++) {
            if (peers[i].quorum != NULL && now >= ps_quorum_deadline(peers[i].quorum)) {
                cr_assert_eq(ps_quorum_tick(peers[i].quorum, now, NULL), PSD_OK);
                take_effects(i);
                flush(i);
            }
        }
        settle();
    }
}

static void open_peer(size_t i, const ps_quorum_snapshot_t *snapshot)
{
    static uint64_t life;
    const ps_quorum_args_t args = {.member = i + 1,
                                   .node = nodes[i],
                                   .life = ++life,
                                   .seed = i,
                                   .now_ms = now,
                                   .election_ms = 200,
                                   .heartbeat_ms = 40,
                                   .message_bytes = 1 << 20,
                                   .term = snapshot == NULL ? 0 : 1,
                                   .snapshot = snapshot,
                                   .first = snapshot == NULL ? 1 : snapshot->index + 1};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    peers[i] = (peer_t){.term = args.term};
    cr_assert_eq(ps_quorum_new(&args, &peers[i].quorum, err), PSD_OK, "%s", psd_error_text(err));
    take_effects(i);
}

static void open_three(void)
{
    now = 1000;
    for (size_t i = 0; i < 3; i++) {
        open_peer(i, &first);
    }
}

static void close_all(void)
{
    for (size_t i = 0; i < N; i++) {
        ps_quorum_destroy(&peers[i].quorum);
    }
    for (size_t i = 0; i < n_queue; i++) {
        ps_buffer_done(&queue[i].bytes);
    }
    n_queue = 0;
}

/* The index of the one that leads; N: none or several. */
static size_t leader(void)
{
    size_t found = N;

    for (size_t i = 0; i < N; i++) {
        if (peers[i].quorum != NULL && !peers[i].is_cut &&
            ps_quorum_state(peers[i].quorum) == PS_QUORUM_LEADER) {
            cr_assert_eq(found, N, "two lead");
            found = i;
        }
    }
    return found;
}

static uint64_t propose(size_t i, const char *word)
{
    uint64_t index = 0;

    cr_assert_eq(ps_quorum_propose(peers[i].quorum, now,
                                   (ps_bytes_t){(const uint8_t *)word, strlen(word)}, &index, NULL),
                 PSD_OK);
    take_effects(i);
    flush(i);
    return index;
}

static bool has_word(size_t i, uint64_t index, const char *word)
{
    const ps_quorum_entry_t *entry = ps_quorum_entry(peers[i].quorum, index);

    return entry != NULL && entry->kind == PS_QUORUM_COMMAND && entry->bytes.size == strlen(word) &&
           memcmp(entry->bytes.data, word, strlen(word)) == 0;
}

TestSuite(quorum, .init = open_three, .fini = close_all);

Test(quorum, three_elect_one_and_commit)
{
    size_t lead = N;
    uint64_t index = 0;

    pass_until(2000);
    lead = leader();
    cr_assert_lt(lead, N);
    cr_assert_eq(ps_quorum_term(peers[lead].quorum), 2);
    index = propose(lead, "one");
    cr_assert_eq(index, 3);
    settle();
    cr_assert_eq(peers[lead].committed, 3);
    pass_until(2100);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(peers[i].committed, 3);
        cr_assert(has_word(i, 3, "one"));
        cr_assert_eq(ps_quorum_leader(peers[i].quorum), lead + 1);
    }
}
