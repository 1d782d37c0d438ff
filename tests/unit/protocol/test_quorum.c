/* SPDX-License-Identifier: Apache-2.0 */
/* lib/protocol/quorum/quorum.h: members that elect, commit, change, fall back. */
#include "protocol/quorum/quorum.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "base/alloc.h"
#include "protocol/quorum/patience.h"

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
    size_t n_extends;
    size_t n_sent;
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
            peer->n_extends += effect.kind == PS_QUORUM_EXTEND ? 1 : 0;
            break;
        case PS_QUORUM_SEND:
            peer->n_sent++;
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

static uint32_t patience_ms; /* of those that are opened */

static void open_peer(size_t i, const ps_quorum_snapshot_t *snapshot)
{
    static uint64_t life;
    const ps_quorum_args_t args = {.member = i + 1,
                                   .node = nodes[i],
                                   .life = ++life,
                                   .seed = i,
                                   .now_ms = now,
                                   .election_ms = 200,
                                   .patience_ms = patience_ms,
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

    const ps_bytes_t bytes = {(const uint8_t *)word, strlen(word)};

    cr_assert_eq(ps_quorum_propose(peers[i].quorum, now, &bytes, 1, &index, NULL), PSD_OK);
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

static size_t elect(void)
{
    size_t lead = N;

    pass_until(now + 1000);
    lead = leader();
    cr_assert_lt(lead, N);
    (void)propose(lead, "first");
    pass_until(now + 100);
    return lead;
}

static psd_status_t change(size_t lead, ps_quorum_change_t kind, uint64_t id, const char *node)
{
    uint64_t index = 0;
    psd_status_t rc =
        ps_quorum_propose_members(peers[lead].quorum, now, kind, id, node, &index, NULL);

    take_effects(lead);
    flush(lead);
    return rc;
}

/* Nothing comes from that one, or to it, for a while. */
static void cut_for(size_t i, uint64_t ms)
{
    peers[i].is_cut = true;
    pass_until(now + ms);
    peers[i].is_cut = false;
}

static uint32_t patience_of(size_t i)
{
    return ps_quorum_patience_ms(peers[i].quorum);
}

Test(quorum, members_that_hear_each_other_late_are_patient_for_a_while)
{
    size_t lead = N;
    size_t next = N;
    uint64_t term = 0;

    close_all();
    patience_ms = 800;
    open_three();
    lead = elect();
    term = ps_quorum_term(peers[lead].quorum);
    pass_until(now + 3000);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(patience_of(i), 200, "a heartbeat comes every 40 ms");
    }
    cut_for(lead, 120);
    pass_until(now + 100);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_geq(patience_of(i), 500, "%u", patience_of(i));
        cr_assert_leq(patience_of(i), 800, "%u", patience_of(i));
    }
    /* For longer than they would have waited: that one still leads. */
    cut_for(lead, 420);
    pass_until(now + 100);
    cr_assert_eq(leader(), lead);
    cr_assert_eq(ps_quorum_term(peers[lead].quorum), term);
    cr_assert_eq(patience_of((lead + 1) % 3), 800);
    pass_until(now + 11000);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(patience_of(i), 200, "%u", patience_of(i));
    }
    /* One that ends is not late. */
    ps_quorum_destroy(&peers[lead].quorum);
    pass_until(now + 1500);
    next = leader();
    cr_assert_lt(next, N);
    cr_assert_eq(patience_of(next), 200);
    cr_assert_eq(patience_of(3 - lead - next), 200);
}

Test(quorum, patience_has_its_limits)
{
    ps_patience_t patience = {.least_ms = 200, .most_ms = 800, .since_ms = 1000};

    cr_expect_eq(ps_patience_ms(&patience, 1000), 200);
    ps_patience_note(&patience, 50, 1000);
    cr_expect_eq(ps_patience_ms(&patience, 1001), 200);
    ps_patience_note(&patience, 51, 1001);
    cr_expect_eq(ps_patience_ms(&patience, 1002), 300, "in steps");
    ps_patience_note(&patience, 3201, 1003);
    cr_expect_eq(ps_patience_ms(&patience, 1004), 300, "it was away");
    ps_patience_note(&patience, 3200, 1005);
    cr_expect_eq(ps_patience_ms(&patience, 1006), 800);
    cr_expect_eq(ps_patience_ms(&patience, 10999), 800, "not all of two windows");
    ps_patience_note(&patience, 60, 11000);
    cr_expect_eq(ps_patience_ms(&patience, 15999), 300);
    cr_expect_eq(ps_patience_ms(&patience, 99000), 200);
}

Test(quorum, several_commands_are_one_write_and_one_round)
{
    size_t lead = elect();
    char words[PS_QUORUM_COMMANDS_MAX + 1][8];
    ps_bytes_t commands[PS_QUORUM_COMMANDS_MAX + 1];
    ps_quorum_t *quorum = peers[lead].quorum;
    const size_t n = PS_QUORUM_COMMANDS_MAX;
    const uint64_t last = ps_quorum_last_index(quorum);
    uint64_t index = 0;

    for (size_t i = 0; i <= n; i++) {
        (void)snprintf(words[i], sizeof words[i], "w%zu", i);
        commands[i] = (ps_bytes_t){(const uint8_t *)words[i], strlen(words[i])};
    }
    cr_assert_eq(ps_quorum_propose(quorum, now, commands, n + 1, &index, NULL), PSD_INVALID);
    cr_assert_eq(ps_quorum_propose(quorum, now, commands, 0, &index, NULL), PSD_INVALID);
    commands[n - 1].size = 0;
    cr_assert_eq(ps_quorum_propose(quorum, now, commands, n, &index, NULL), PSD_INVALID);
    commands[n - 1].size = strlen(words[n - 1]);
    cr_assert_eq(ps_quorum_last_index(quorum), last, "none is appended");
    peers[lead].n_extends = 0;
    peers[lead].n_sent = 0;
    cr_assert_eq(ps_quorum_propose(quorum, now, commands, n, &index, NULL), PSD_OK);
    cr_assert_eq(index, last + 1);
    take_effects(lead);
    cr_assert_eq(peers[lead].n_extends, 1);
    cr_assert_eq(peers[lead].n_sent, 2, "one message to each of the others");
    flush(lead);
    settle();
    cr_assert_eq(peers[lead].committed, last + n);
    pass_until(now + 100);
    for (size_t i = 0; i < 3 * n; i++) {
        cr_assert(has_word(i / n, index + i % n, words[i % n]));
    }
}

Test(quorum, a_fourth_joins_by_a_database_and_votes_then)
{
    size_t lead = elect();
    ps_quorum_snapshot_t snapshot;
    ps_quorum_members_t members;

    open_peer(3, NULL);
    cr_assert_eq(change(lead, PS_QUORUM_ADD, 4, "d"), PSD_OK);
    cr_assert_eq(change(lead, PS_QUORUM_PROMOTE, 4, NULL), PSD_BUSY); /* not committed */
    pass_until(now + 300);
    cr_assert_eq(peers[lead].snapshot, 4);
    cr_assert_eq(change(lead, PS_QUORUM_PROMOTE, 4, NULL), PSD_BUSY); /* not caught up */
    snapshot = (ps_quorum_snapshot_t){.index = peers[lead].committed,
                                      .term = ps_quorum_term(peers[lead].quorum)};
    snapshot.members_index = ps_quorum_members(peers[lead].quorum, &snapshot.members);
    cr_assert_eq(ps_quorum_snapshot_sent(peers[lead].quorum, now, 4, &snapshot, NULL), PSD_OK);
    take_effects(lead);
    settle();
    cr_assert_eq(peers[3].installed.index, snapshot.index);
    cr_assert_eq(peers[3].begin, snapshot.index);
    cr_assert_eq(ps_quorum_installed(peers[3].quorum, now, NULL), PSD_OK);
    take_effects(3);
    (void)propose(lead, "second");
    pass_until(now + 300);
    cr_assert(has_word(3, peers[3].committed, "second"));
    cr_assert_eq(change(lead, PS_QUORUM_PROMOTE, 4, NULL), PSD_OK);
    (void)ps_quorum_members(peers[lead].quorum, &members);
    cr_assert_eq(ps_quorum_members_voters(&members), 4);
    ps_quorum_members_sure(peers[lead].quorum, &members); /* it may die before others know */
    cr_assert_eq(ps_quorum_members_voters(&members), 3);
    pass_until(now + 300);
    ps_quorum_members_sure(peers[lead].quorum, &members);
    cr_assert_eq(ps_quorum_members_voters(&members), 4);
    cr_assert_eq(ps_quorum_members_committed(peers[3].quorum, &members), peers[3].committed);
    cr_assert_eq(ps_quorum_members_voters(&members), 4);
}

Test(quorum, a_leader_neither_demotes_nor_removes_itself)
{
    size_t lead = elect();

    cr_assert_eq(change(lead, PS_QUORUM_DEMOTE, lead + 1, NULL), PSD_INVALID);
    cr_assert_eq(change(lead, PS_QUORUM_REMOVE, lead + 1, NULL), PSD_INVALID);
    cr_assert_eq(ps_quorum_transfer(peers[lead].quorum, now, (lead + 1) % 3 + 1, NULL), PSD_OK);
    take_effects(lead);
    settle();
    cr_assert_eq(leader(), (lead + 1) % 3);
    cr_assert_eq(change(lead, PS_QUORUM_ADD, 4, "d"), PSD_DENIED);
}

Test(quorum, what_a_majority_has_heard_is_what_it_answered)
{
    size_t lead = elect();
    uint64_t before = now;

    cr_assert_geq(ps_quorum_heard_majority_ms(peers[lead].quorum, now), now - 80);
    for (size_t i = 0; i < 3; i++) {
        peers[i].is_cut = i != lead;
    }
    pass_until(now + 150);
    cr_assert_lt(ps_quorum_heard_majority_ms(peers[lead].quorum, now), before);
    pass_until(now + 600);
    cr_assert_eq(ps_quorum_heard_majority_ms(peers[lead].quorum, now), 0);
    cr_assert_neq(ps_quorum_state(peers[lead].quorum), PS_QUORUM_LEADER);
}

static psd_status_t receive(size_t i, const ps_quorum_message_t *message)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    psd_status_t rc = PSD_OK;

    cr_assert(ps_quorum_message_encode(message, &bytes));
    rc = ps_quorum_receive(peers[i].quorum, now, (ps_bytes_t){bytes.data, bytes.size}, NULL);
    take_effects(i);
    return rc;
}

static const ps_quorum_message_t vote = {.kind = PS_QUORUM_VOTE,
                                         .from = 2,
                                         .node = "b",
                                         .to = 1,
                                         .life = 9,
                                         .number = 1,
                                         .term = 2,
                                         .for_term = 2,
                                         .last_index = 2,
                                         .last_term = 1};

/* A leader may serve reads on the word that it gave before it stopped. */
Test(quorum, a_member_does_not_vote_right_after_its_start)
{
    ps_quorum_message_t again = vote;

    cr_assert_eq(receive(0, &vote), PSD_OK);
    cr_assert_eq(n_queue, 0);
    cr_assert_eq(peers[0].vote, 0);
    now += 199;
    again.number = 2;
    cr_assert_eq(receive(0, &again), PSD_OK);
    cr_assert_eq(n_queue, 0);
    now++;
    again.number = 3;
    cr_assert_eq(receive(0, &again), PSD_OK);
    cr_assert_eq(n_queue, 1);
    cr_assert_eq(peers[0].vote, 2);
    cr_assert_eq(receive(0, &again), PSD_OK); /* a repeat */
    cr_assert_eq(n_queue, 1);
    again.life = 8;
    again.number = 4;
    cr_assert_eq(receive(0, &again), PSD_OK); /* of an earlier life */
    cr_assert_eq(n_queue, 1);
}

Test(quorum, who_is_not_meant_or_not_of_the_cluster_is_refused)
{
    ps_quorum_message_t wrong = vote;

    wrong.cluster.bytes[0] = 1;
    cr_assert_eq(receive(0, &wrong), PSD_CLUSTER);
    wrong = vote;
    wrong.lineage.bytes[0] = 1;
    cr_assert_eq(receive(0, &wrong), PSD_CLUSTER);
    wrong = vote;
    wrong.to = 3;
    cr_assert_eq(receive(0, &wrong), PSD_INCARNATION);
    wrong = vote;
    (void)snprintf(wrong.node, sizeof wrong.node, "c");
    cr_assert_eq(receive(0, &wrong), PSD_INCARNATION);
}

Test(quorum, a_log_that_does_not_fit_is_refused_or_dropped)
{
    ps_quorum_entry_t entry = {.term = 1, .kind = PS_QUORUM_BARRIER};
    PSD_AUTO(ps_quorum_destroy) ps_quorum_t *quorum = NULL;
    ps_quorum_effect_t effect = {0};
    ps_quorum_args_t args = {.member = 1,
                             .node = "a",
                             .life = 1,
                             .election_ms = 200,
                             .heartbeat_ms = 40,
                             .term = 1,
                             .snapshot = &first,
                             .first = 4,
                             .entries = &entry,
                             .n_entries = 1};

    cr_assert_eq(ps_quorum_new(&args, &quorum, NULL), PSD_DAMAGED); /* a gap */
    args.first = 3;
    entry.term = 2;
    cr_assert_eq(ps_quorum_new(&args, &quorum, NULL), PSD_DAMAGED); /* of a later term */
    entry.term = 1;
    args.first = 1; /* it ends before the database does */
    cr_assert_eq(ps_quorum_new(&args, &quorum, NULL), PSD_OK);
    cr_assert(ps_quorum_next(quorum, &effect));
    cr_assert_eq(effect.kind, PS_QUORUM_BEGIN);
    cr_assert_eq(effect.index, 2);
    cr_assert_eq(ps_quorum_last_index(quorum), 2);
}
