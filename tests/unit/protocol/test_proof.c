/* SPDX-License-Identifier: Apache-2.0 */
/* lib/protocol/quorum/proof.h and guard.h: who is taken for whom. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/alloc.h"
#include "protocol/quorum/guard.h"

#define NORTH 11
#define SOUTH 12
#define CONN 7

/* North connects to south, which guards its port. */
typedef struct world {
    ps_speaker_t north;
    ps_speaker_t south;
    ps_guard_t *guard;
    ps_caller_t caller;
    ps_buffer_t said[3]; /* by north: GREET, PROVE, a sealed message */
    ps_guard_word_t word;
    ps_buffer_t answer; /* the last one of south */
    psd_error_t *err;
} world_t;

static ps_speaker_t speaker(uint64_t member, const char *node, uint8_t secret)
{
    ps_speaker_t self = {.cluster = {{1}}, .lineage = {{2}}, .member = member, .build = "0.1.0"};
    const ps_id_t bytes = {{secret, 5, 6}};

    (void)snprintf(self.node, sizeof self.node, "%s", node);
    ps_proof_key(&bytes, &self.cluster, node, &self.key);
    return self;
}

static void trust(world_t *world, const ps_speaker_t *who)
{
    ps_trust_t node = {.key = who->key};

    memcpy(node.node, who->node, sizeof node.node);
    cr_assert(ps_guard_trust(world->guard, &node, 1));
}

static void begin(world_t *world)
{
    const ps_id_t seed = {{9}};

    *world = (world_t){.north = speaker(NORTH, "north", 3), .south = speaker(SOUTH, "south", 4)};
    world->err = psd_error_new();
    cr_assert_eq(ps_guard_new(&world->south, &seed, &world->guard, world->err), PSD_OK);
    trust(world, &world->north);
}

static void end(world_t *world)
{
    ps_guard_destroy(&world->guard);
    for (size_t i = 0; i < 3; i++) {
        ps_buffer_done(&world->said[i]);
    }
    ps_buffer_done(&world->answer);
    psd_error_destroy(&world->err);
}

static ps_bytes_t bytes_of(const ps_buffer_t *buffer)
{
    return (ps_bytes_t){.data = buffer->data, .size = buffer->size};
}

static ps_guard_verdict_t give_at(world_t *world, uint64_t now_ms, uint64_t conn,
                                  const ps_buffer_t *bytes)
{
    ps_buffer_done(&world->answer);
    psd_error_clear(world->err);
    cr_assert_eq(ps_guard_take(world->guard, now_ms, conn, bytes_of(bytes), &world->word,
                               &world->answer, world->err),
                 PSD_OK);
    return world->word.verdict;
}

static ps_guard_verdict_t give(world_t *world, uint64_t conn, const ps_buffer_t *bytes)
{
    return give_at(world, 1000, conn, bytes);
}

static ps_guard_verdict_t greet(world_t *world, uint64_t conn, uint8_t nonce_byte)
{
    const ps_id_t nonce = {{nonce_byte, 1}};

    ps_buffer_done(&world->said[0]);
    cr_assert(
        ps_caller_greet(&world->caller, &world->north, SOUTH, "south", &nonce, &world->said[0]));
    return give(world, conn, &world->said[0]);
}

static psd_status_t answer_to_caller(world_t *world)
{
    ps_buffer_done(&world->said[1]);
    return ps_caller_take(&world->caller, &world->north, &world->south.key,
                          bytes_of(&world->answer), &world->said[1], world->err);
}

static void meet(world_t *world, uint64_t conn, uint8_t nonce_byte)
{
    cr_assert_eq(greet(world, conn, nonce_byte), PS_GUARD_ANSWER);
    cr_assert_eq(answer_to_caller(world), PSD_OK);
    cr_assert_eq(world->caller.state, PS_CALLER_PROVEN);
    cr_assert_eq(give(world, conn, &world->said[1]), PS_GUARD_PROVEN);
}

static void seal(world_t *world, const char *text)
{
    const ps_bytes_t message = {.data = (const uint8_t *)text, .size = strlen(text)};

    ps_buffer_done(&world->said[2]);
    cr_assert(ps_caller_seal(&world->caller, message, &world->said[2]));
}

Test(proof, both_prove_themselves_and_messages_pass_in_order)
{
    world_t world;

    begin(&world);
    meet(&world, CONN, 1);
    cr_assert_eq(world.word.member, NORTH);
    cr_assert_str_eq(world.word.node, "north");
    for (int i = 0; i < 3; i++) {
        seal(&world, "append");
        cr_assert_eq(give(&world, CONN, &world.said[2]), PS_GUARD_MESSAGE);
        cr_assert_eq(world.word.member, NORTH);
        cr_assert_eq(world.word.message.size, 6);
        cr_assert_eq(memcmp(world.word.message.data, "append", 6), 0);
    }
    seal(&world, ""); /* numbers may be missing: a queue was full */
    seal(&world, "later");
    cr_assert_eq(give(&world, CONN, &world.said[2]), PS_GUARD_MESSAGE);
    cr_assert_eq(ps_guard_n_refused(world.guard), 0);
    end(&world);
}

Test(proof, a_stranger_gets_nothing)
{
    world_t world;
    PSD_AUTO(ps_buffer_done) ps_buffer_t plain = {0};

    begin(&world);
    cr_assert(ps_buffer_append(&plain, "psQm....", 8));
    cr_assert_eq(give(&world, CONN, &plain), PS_GUARD_NOTHING);
    meet(&world, CONN, 1);
    cr_assert_eq(give(&world, CONN, &plain), PS_GUARD_NOTHING, "not without a seal");
    seal(&world, "append");
    cr_assert_eq(give(&world, CONN + 1, &world.said[2]), PS_GUARD_ANSWER, "who is it?");
    cr_assert_eq(give(&world, CONN + 1, &world.said[2]), PS_GUARD_NOTHING, "it was asked");
    end(&world);
}

Test(proof, a_wrong_secret_is_refused_by_name_and_counted)
{
    world_t world;

    begin(&world);
    world.north = speaker(NORTH, "north", 33);
    for (uint64_t n = 1; n <= 3; n++) {
        cr_assert_eq(greet(&world, n, (uint8_t)n), PS_GUARD_ANSWER);
        cr_assert_eq(answer_to_caller(&world), PSD_OK);
        cr_assert_eq(give(&world, n, &world.said[1]), PS_GUARD_REFUSED);
        cr_assert_eq(world.word.status, PSD_DENIED);
        cr_assert_str_eq(world.word.node, "north");
        cr_assert_eq(world.word.n_refused, n);
        cr_assert_not_null(strstr(psd_error_text(world.err), "secret of node \"north\""));
        seal(&world, "append");
        cr_assert_neq(give(&world, n, &world.said[2]), PS_GUARD_MESSAGE);
    }
    cr_assert_eq(ps_guard_n_refused(world.guard), 3);
    end(&world);
}

Test(proof, who_answers_proves_itself_too)
{
    world_t world;

    begin(&world);
    cr_assert_eq(greet(&world, CONN, 1), PS_GUARD_ANSWER);
    world.south = speaker(SOUTH, "south", 44); /* north knows another secret */
    cr_assert_eq(answer_to_caller(&world), PSD_DENIED);
    cr_assert_eq(world.said[1].size, 0, "it proves nothing to it");
    cr_assert_neq(world.caller.state, PS_CALLER_PROVEN);
    cr_assert_eq(ps_caller_take(&world.caller, &world.north, NULL, bytes_of(&world.answer),
                                &world.said[1], world.err),
                 PSD_DENIED);
    end(&world);
}

Test(proof, a_recorded_connection_is_of_no_use)
{
    world_t world;
    ps_buffer_t recorded[3] = {{0}};

    begin(&world);
    meet(&world, CONN, 1);
    seal(&world, "append");
    cr_assert_eq(give(&world, CONN, &world.said[2]), PS_GUARD_MESSAGE);
    cr_assert_eq(give(&world, CONN, &world.said[2]), PS_GUARD_REFUSED, "its number is old");
    for (size_t i = 0; i < 3; i++) {
        cr_assert(ps_buffer_append(&recorded[i], world.said[i].data, world.said[i].size));
    }
    cr_assert_eq(give(&world, CONN + 1, &recorded[0]), PS_GUARD_ANSWER);
    cr_assert_eq(give(&world, CONN + 1, &recorded[1]), PS_GUARD_REFUSED);
    cr_assert_neq(give(&world, CONN + 1, &recorded[2]), PS_GUARD_MESSAGE);
    for (size_t i = 0; i < 3; i++) {
        ps_buffer_done(&recorded[i]);
    }
    end(&world);
}

/* What a member says itself proves nothing to it. */
Test(proof, what_is_sent_back_is_of_no_use)
{
    world_t world;
    const ps_id_t seed = {{10}};
    ps_guard_t *north = NULL;
    ps_buffer_t answer = {0};

    begin(&world);
    cr_assert_eq(ps_guard_new(&world.north, &seed, &north, world.err), PSD_OK);
    cr_assert_eq(greet(&world, CONN, 1), PS_GUARD_ANSWER);
    for (size_t i = 0; i < 2; i++) {
        const ps_trust_t nodes[] = {{.node = "south", .key = world.south.key},
                                    {.node = "north", .key = world.north.key}};

        cr_assert(ps_guard_trust(north, nodes, 2));
        cr_assert_eq(ps_guard_take(north, 1000, CONN, bytes_of(&world.said[0]), &world.word,
                                   &answer, world.err),
                     PSD_OK);
        cr_assert_eq(world.word.verdict, PS_GUARD_NOTHING, "it is to another member");
    }
    /* The challenge as an answer to it. */
    cr_assert_eq(give(&world, CONN, &world.answer), PS_GUARD_NOTHING);
    ps_buffer_done(&answer);
    ps_guard_destroy(&north);
    end(&world);
}

Test(proof, another_cluster_or_lineage_is_refused_by_name)
{
    world_t world;

    begin(&world);
    world.north.lineage.bytes[0]++;
    cr_assert_eq(greet(&world, CONN, 1), PS_GUARD_REFUSED);
    cr_assert_eq(world.word.status, PSD_CLUSTER);
    cr_assert_not_null(strstr(psd_error_text(world.err), "another lineage"));
    world.north.lineage = world.south.lineage;
    world.north.cluster.bytes[0]++;
    cr_assert_eq(greet(&world, CONN, 2), PS_GUARD_REFUSED);
    cr_assert_not_null(strstr(psd_error_text(world.err), "another cluster"));
    end(&world);
}

Test(proof, only_nodes_that_are_trusted_connect)
{
    world_t world;

    begin(&world);
    meet(&world, CONN, 1);
    trust(&world, &world.south); /* and north no longer */
    seal(&world, "append");
    cr_assert_eq(give(&world, CONN, &world.said[2]), PS_GUARD_ANSWER, "who is it?");
    cr_assert_eq(answer_to_caller(&world), PSD_OK);
    cr_assert_eq(world.caller.state, PS_CALLER_SILENT);
    cr_assert_eq(greet(&world, CONN, 2), PS_GUARD_REFUSED);
    cr_assert_str_eq(world.word.node, "");
    end(&world);
}

Test(proof, a_connection_that_came_back_proves_itself_again)
{
    world_t world;

    begin(&world);
    meet(&world, CONN, 1);
    trust(&world, &world.north); /* the same key */
    seal(&world, "one");
    cr_assert_eq(give(&world, CONN, &world.said[2]), PS_GUARD_MESSAGE);
    seal(&world, "two");
    cr_assert_eq(give(&world, CONN + 1, &world.said[2]), PS_GUARD_ANSWER);
    cr_assert_eq(answer_to_caller(&world), PSD_OK);
    cr_assert_eq(world.caller.state, PS_CALLER_SILENT);
    meet(&world, CONN + 1, 2);
    seal(&world, "two");
    cr_assert_eq(give(&world, CONN + 1, &world.said[2]), PS_GUARD_MESSAGE);
    cr_assert_neq(give(&world, CONN, &world.said[2]), PS_GUARD_MESSAGE, "its last one");
    end(&world);
}

Test(proof, every_flipped_byte_is_noticed)
{
    world_t world;

    begin(&world);
    cr_assert_eq(greet(&world, 1, 1), PS_GUARD_ANSWER);
    cr_assert_eq(answer_to_caller(&world), PSD_OK);
    for (size_t i = 0; i < world.said[1].size; i++) {
        cr_assert_eq(greet(&world, 100 + i, (uint8_t)i), PS_GUARD_ANSWER);
        cr_assert_eq(answer_to_caller(&world), PSD_OK);
        world.said[1].data[i] ^= 1;
        if (i < 8 || i >= world.said[1].size - sizeof(ps_id_t)) { /* head and proof */
            cr_assert_neq(give(&world, 100 + i, &world.said[1]), PS_GUARD_PROVEN, "byte %zu", i);
        }
    }
    for (size_t i = 0; i < PS_SEAL_BYTES + 6; i++) {
        meet(&world, 1000 + i, (uint8_t)i);
        seal(&world, "append");
        world.said[2].data[i] ^= 1;
        cr_assert_neq(give(&world, 1000 + i, &world.said[2]), PS_GUARD_MESSAGE, "byte %zu", i);
    }
    end(&world);
}

Test(proof, a_connection_without_proof_says_few_things_and_others_are_still_heard)
{
    world_t world;
    uint64_t n_answers = 0;

    begin(&world);
    meet(&world, CONN, 1);
    for (int i = 0; i < 1000; i++) {
        n_answers += greet(&world, CONN + 1, (uint8_t)i) == PS_GUARD_ANSWER ? 1 : 0;
    }
    cr_assert_eq(n_answers, PS_GUARD_GREETINGS_MAX);
    for (uint64_t conn = 100; conn < 400; conn++) {
        cr_assert_eq(greet(&world, conn, 5), PS_GUARD_ANSWER);
    }
    meet(&world, CONN + 2, 6);
    cr_assert_eq(give_at(&world, 1000 + PS_GUARD_UNPROVEN_MS, CONN + 1, &world.said[0]),
                 PS_GUARD_ANSWER, "after a while");
    end(&world);
}

Test(proof, another_format_names_node_and_build)
{
    world_t world;

    begin(&world);
    (void)snprintf(world.north.build, sizeof world.north.build, "9.8.7");
    (void)greet(&world, CONN, 1);
    world.said[0].data[4]++;
    cr_assert_eq(give(&world, CONN + 1, &world.said[0]), PS_GUARD_REFUSED);
    cr_assert_eq(world.word.status, PSD_VERSION);
    cr_assert_not_null(
        strstr(psd_error_text(world.err), "node \"north\" with psd 9.8.7 has format"), "%s",
        psd_error_text(world.err));
    world.said[0].size = 9;
    cr_assert_eq(give(&world, CONN + 2, &world.said[0]), PS_GUARD_REFUSED);
    end(&world);
}

Test(proof, a_place_is_of_one_node_member_and_life)
{
    const ps_speaker_t north = speaker(NORTH, "north", 3);
    ps_id_t right;
    ps_id_t other;

    ps_proof_place(&north.key, &north.cluster, NORTH, 2, "north", "tcp://h:1", &right);
    ps_proof_place(&north.key, &north.cluster, NORTH, 3, "north", "tcp://h:1", &other);
    cr_assert_not(ps_proof_equal(&right, &other));
    ps_proof_place(&north.key, &north.cluster, NORTH, 2, "north", "tcp://h:2", &other);
    cr_assert_not(ps_proof_equal(&right, &other));
    ps_proof_place(&north.key, &north.cluster, SOUTH, 2, "north", "tcp://h:1", &other);
    cr_assert_not(ps_proof_equal(&right, &other));
    ps_proof_place(&north.key, &north.cluster, NORTH, 2, "north", "tcp://h:1", &other);
    cr_assert(ps_proof_equal(&right, &other));
}
