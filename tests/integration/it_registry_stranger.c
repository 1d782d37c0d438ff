/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger speaks to the members of a registry. It knows all but the secrets:
 * cluster, lineage, nodes, members. It is asked who it is, and gets nothing; nothing
 * that it says is taken, and the registry goes on, also over a change of leader. One that
 * knows the secret of a node, but no member there, is not heard either. At the end one
 * knows both: it moves the registry to another term, so the test would see the others do
 * that. */
#include <psd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "protocol/agent/node_message.h"
#include "protocol/quorum/guard.h"
#include "support/check.h"
#include "support/cluster.h"
#include "support/zmtp.h"

#define NODES 3
#define CALL_MS 60000
#define LOG_SIZE (1 << 20)
#define SPEAKS_MAX 100
#define TERM UINT64_C(7000000) /* that no member has by itself */

static const cluster_args_t args = {
    .n_nodes = NODES, .net = CLUSTER_DIRECT, .config = "shards: 1\nregistry:\n  voters: 3\n"};

/* What a member says of itself to anybody. */
typedef struct victim {
    char endpoint[128];
    ps_greeting_t is;
} victim_t;

typedef struct world {
    cluster_t cluster;
    psd_client_t *client;
    psd_error_t *err;
    victim_t victims[NODES];
    ps_id_t key; /* of no node */
} world_t;

/* Who the stranger says that it is, and what it knows of that one. */
typedef struct pose {
    const victim_t *as;
    uint64_t member;
    ps_id_t key;
} pose_t;

/* ---- the cluster ---- */

static bool connect_all(world_t *world)
{
    char endpoints[NODES * CLUSTER_TEXT_SIZE] = "";
    psd_options_t *options = psd_options_new();

    for (unsigned i = 0; i < NODES; i++) {
        size_t used = strlen(endpoints);

        (void)snprintf(endpoints + used, sizeof endpoints - used, "%s%s", i == 0 ? "" : ",",
                       world->cluster.nodes[i].control);
    }
    psd_options_set_timeout_ms(options, CALL_MS);
    CHECK_OK(psd_connect(endpoints, options, &world->client, world->err), world->err);
    psd_options_destroy(&options);
    return true;
}

/* Asks the same until the answer has that; the answer may be kept. */
static bool wait_answer(world_t *world, const char *op, const char *part, char **ret_reply)
{
    char request[64];

    (void)snprintf(request, sizeof request, "{\"op\":\"%s\"}", op);
    for (int i = 0; i < CALL_MS / 10; i++) {
        const struct timespec gap = {.tv_nsec = 10000000};
        char *reply = NULL;
        bool good = psd_request(world->client, request, CALL_MS, &reply, world->err) == PSD_OK &&
                    strstr(reply, part) != NULL;

        psd_error_clear(world->err);
        if (good && ret_reply != NULL) {
            *ret_reply = reply;
            return true;
        }
        psd_free(reply);
        if (good) {
            return true;
        }
        (void)nanosleep(&gap, NULL);
    }
    (void)fprintf(stderr, "%s never had %s\n", op, part);
    return false;
}

/* All three are members. */
static bool wait_members(world_t *world)
{
    for (int i = 0; i < CALL_MS / 10; i++) {
        char *reply = NULL;
        const char *first = NULL;
        bool good = false;

        CHECK(wait_answer(world, "node_list", "\"member\":\"leader\"", &reply));
        first = strstr(reply, "\"member\":\"voter\"");
        good = first != NULL && strstr(first + 1, "\"member\":\"voter\"") != NULL;
        psd_free(reply);
        if (good) {
            return true;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

static bool make_table(world_t *world, const char *name)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    CHECK_OK(psd_spec_set(spec, "rows", "60", world->err), world->err);
    CHECK_OK(psd_table_create(world->client, name, spec, &table, world->err), world->err);
    psd_spec_destroy(&spec);
    psd_table_close(&table);
    return true;
}

/* Where the member of a node listens: its log says so. */
static bool find_endpoint(const world_t *world, unsigned node, char ret[128])
{
    static char log[LOG_SIZE];
    char path[4200];
    FILE *file = NULL;
    const char *at = NULL;
    size_t n = 0;

    (void)snprintf(path, sizeof path, "%.4000s/n%u/log", world->cluster.dir.path, node);
    file = fopen(path, "re");
    CHECK(file != NULL);
    n = fread(log, 1, sizeof log - 1, file);
    log[n] = '\0';
    (void)fclose(file);
    at = strstr(log, "registry_member ");
    at = at == NULL ? NULL : strstr(at, "endpoint=");
    CHECK(at != NULL);
    at += strlen("endpoint=");
    (void)snprintf(ret, 128, "%.*s", (int)strcspn(at, " \n"), at);
    return true;
}

/* ---- the stranger ---- */

static bool say(int fd, const ps_buffer_t *bytes)
{
    return zmtp_send(fd, 0, bytes->data, bytes->size);
}

static bool hear(int fd, ps_greeting_t *ret)
{
    char text[4096];
    size_t size = 0;

    CHECK(zmtp_receive(fd, text, sizeof text, &size));
    CHECK(ps_greeting_decode((ps_bytes_t){(const uint8_t *)text, size}, ret, NULL) == PSD_OK);
    return true;
}

/* Something that looks sealed makes a member ask who it is: so it has taken in what
 * came before, in order. */
static bool is_asked_who(int fd, const ps_id_t *key, ps_greeting_t *ret)
{
    ps_caller_t caller = {.state = PS_CALLER_PROVEN, .session = *key};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};

    CHECK(ps_caller_seal(&caller, (ps_bytes_t){(const uint8_t *)"x", 1}, &bytes));
    CHECK(say(fd, &bytes));
    CHECK(hear(fd, ret));
    return ret->kind == PS_GREETING_WHO;
}

static bool meet(world_t *world, unsigned node)
{
    victim_t *victim = &world->victims[node];
    int fd = -1;
    bool good = find_endpoint(world, node, victim->endpoint);

    fd = good ? zmtp_connect(victim->endpoint) : -1;
    good = fd >= 0 && is_asked_who(fd, &world->key, &victim->is);
    if (fd >= 0) {
        (void)close(fd);
    }
    return good && strcmp(victim->is.node, world->cluster.nodes[node].name) == 0;
}

/* Of another member, that it were a candidate with a high term, and then a leader. It is of a
 * later life than that of the member, so the member itself is not heard after it. */
static bool make_message(const victim_t *from, uint64_t member, const victim_t *to,
                         ps_quorum_message_kind_t kind, ps_buffer_t *bytes)
{
    ps_quorum_message_t message = {.kind = kind,
                                   .cluster = to->is.cluster,
                                   .lineage = to->is.lineage,
                                   .from = member,
                                   .to = to->is.from,
                                   .life = 1000,
                                   .number = 1,
                                   .term = TERM,
                                   .for_term = TERM,
                                   .last_index = kind == PS_QUORUM_VOTE ? TERM : 3,
                                   .last_term = kind == PS_QUORUM_VOTE ? TERM : 2,
                                   .depose = true};

    memcpy(message.node, from->is.node, sizeof message.node);
    return ps_quorum_message_encode(&message, bytes);
}

/* Without any proof: not even an answer. */
static bool speaks_plainly(world_t *world, const victim_t *from, const victim_t *to, int fd)
{
    static const ps_quorum_message_kind_t kinds[] = {PS_QUORUM_VOTE, PS_QUORUM_APPEND};
    ps_greeting_t who;

    for (size_t i = 0; i < 2; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};

        CHECK(make_message(from, from->is.from, to, kinds[i], &bytes));
        CHECK(say(fd, &bytes));
    }
    return is_asked_who(fd, &world->key, &who);
}

/* It greets a member, which answers. */
static bool greets(const pose_t *pose, const victim_t *to, int fd, ps_caller_t *caller,
                   ps_greeting_t *ret_answer)
{
    ps_speaker_t own = {.cluster = to->is.cluster,
                        .lineage = to->is.lineage,
                        .member = pose->member,
                        .build = "0.1.0",
                        .key = pose->key};
    const ps_id_t nonce = {{1, 2, 3}};
    PSD_AUTO(ps_buffer_done) ps_buffer_t greet = {0};

    memcpy(own.node, pose->as->is.node, sizeof own.node);
    CHECK(ps_caller_greet(caller, &own, to->is.from, to->is.node, &nonce, &greet));
    return say(fd, &greet) && hear(fd, ret_answer);
}

static bool add_frame(ps_buffer_t *frames, const ps_buffer_t *message)
{
    CHECK(ps_buffer_u8(frames, ZMTP_LONG));
    for (unsigned shift = 64; shift > 0; shift -= 8) {
        CHECK(ps_buffer_u8(frames, (uint8_t)((uint64_t)message->size >> (shift - 8))));
    }
    return ps_buffer_append(frames, message->data, message->size);
}

/* It poses as a member; a recorded proof is none, since the nonce is another one. What it
 * says comes with the proof in one write. */
static bool poses_as(const pose_t *pose, const victim_t *to, int fd)
{
    ps_caller_t caller = {.state = PS_CALLER_SILENT};
    ps_greeting_t challenge;
    ps_greeting_t prove = {.kind = PS_GREETING_PROVE,
                           .cluster = to->is.cluster,
                           .lineage = to->is.lineage,
                           .from = pose->member,
                           .to = to->is.from};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t vote = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t sealed = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t frames = {0};

    memcpy(prove.node, pose->as->is.node, sizeof prove.node);
    CHECK(greets(pose, to, fd, &caller, &challenge));
    CHECK(challenge.kind == PS_GREETING_CHALLENGE);
    caller.talk.callee_nonce = challenge.nonce;
    ps_proof_of(&caller.talk, PS_PROOF_CALLER, &pose->key, &prove.proof);
    ps_proof_of(&caller.talk, PS_PROOF_SESSION, &pose->key, &caller.session);
    CHECK(ps_greeting_encode(&prove, &bytes));
    caller.state = PS_CALLER_PROVEN;
    CHECK(make_message(pose->as, pose->member, to, PS_QUORUM_VOTE, &vote));
    CHECK(ps_caller_seal(&caller, (ps_bytes_t){vote.data, vote.size}, &sealed));
    CHECK(add_frame(&frames, &bytes) && add_frame(&frames, &sealed));
    return zmtp_write(fd, frames.data, frames.size);
}

/* At a control port it says that a member were somewhere else. */
static bool moves(const world_t *world, unsigned node, const victim_t *from)
{
    ps_node_message_t message = {.kind = PS_NODE_MEMBER,
                                 .serial = 1000,
                                 .cluster = from->is.cluster,
                                 .incarnation = 1,
                                 .member = from->is.from,
                                 .node = {.control = "tcp://127.0.0.1:1"}};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    int fd = zmtp_connect(world->cluster.nodes[node].control);
    bool good = false;

    memcpy(message.node.name, from->is.node, sizeof message.node.name);
    good = fd >= 0 && ps_node_message_encode(&message, &bytes) && say(fd, &bytes);
    if (fd >= 0) {
        (void)close(fd);
    }
    return good;
}

static bool attack(world_t *world, unsigned node)
{
    const victim_t *to = &world->victims[node];

    for (unsigned i = 0; i < NODES; i++) {
        const victim_t *from = &world->victims[i];
        const pose_t pose = {.as = from, .member = from->is.from, .key = world->key};
        int fd = -1;
        bool good = false;

        if (i == node) {
            continue;
        }
        fd = zmtp_connect(to->endpoint);
        CHECK(fd >= 0);
        good = speaks_plainly(world, from, to, fd) && poses_as(&pose, to, fd) &&
               moves(world, node, from);
        (void)close(fd);
        CHECK(good);
    }
    return true;
}

/* ---- one that knows a secret ---- */

/* The key of a node, from its data directory. */
static bool read_key(const world_t *world, unsigned node, ps_id_t *ret_key)
{
    static const char MARK[] = "\"secret\":\"";
    char path[4200];
    char text[4096];
    char *at = NULL;
    ps_id_t secret;
    FILE *file = NULL;
    size_t n = 0;

    (void)snprintf(path, sizeof path, "%.4000s/n%u/data/member.json", world->cluster.dir.path,
                   node);
    file = fopen(path, "re");
    CHECK(file != NULL);
    n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    (void)fclose(file);
    at = strstr(text, MARK);
    CHECK(at != NULL);
    at += strlen(MARK);
    at[strcspn(at, "\"")] = '\0';
    CHECK(ps_id_parse(at, &secret));
    ps_proof_key(&secret, &world->victims[node].is.cluster, world->cluster.nodes[node].name,
                 ret_key);
    return true;
}

/* It proves that it is that node, and says that it were a candidate; then it greets again.
 * ret_heard: that came as the node's word. A node is proven on one connection, its last one:
 * when the node's own member proves itself in between, the stranger is asked who it is. The
 * answers come in order, so the first one tells. */
static bool speaks_once(const pose_t *pose, const victim_t *to, int fd, bool *ret_heard)
{
    ps_caller_t caller = {.state = PS_CALLER_SILENT};
    ps_greeting_t answer;

    CHECK(poses_as(pose, to, fd));
    CHECK(greets(pose, to, fd, &caller, &answer));
    CHECK(answer.kind == PS_GREETING_CHALLENGE || answer.kind == PS_GREETING_WHO);
    *ret_heard = answer.kind == PS_GREETING_CHALLENGE;
    return true;
}

/* Until it was heard: the member has taken that in, or has not, when this returns. */
static bool speaks_for(const pose_t *pose, const victim_t *to)
{
    bool heard = false;

    for (int i = 0; i < SPEAKS_MAX && !heard; i++) {
        int fd = zmtp_connect(to->endpoint);
        bool good = fd >= 0 && speaks_once(pose, to, fd, &heard);

        if (fd >= 0) {
            (void)close(fd);
        }
        CHECK(good);
    }
    return heard;
}

/* Asks the members themselves, also one that does not lead. */
static bool find_term(const world_t *world, unsigned node, unsigned long long *ret_term)
{
    static const char QUESTION[] = "{\"v\":1,\"id\":2,\"session\":1,\"op\":\"registry_list\"}";
    static char reply[65536];
    int fd = zmtp_connect(world->cluster.nodes[node].control);
    const char *at = NULL;
    size_t size = 0;
    bool good = fd >= 0 && zmtp_send(fd, 0, QUESTION, strlen(QUESTION)) &&
                zmtp_receive(fd, reply, sizeof reply - 1, &size);

    if (fd >= 0) {
        (void)close(fd);
    }
    CHECK(good);
    reply[size] = '\0';
    at = strstr(reply, "\"term\":");
    CHECK(at != NULL);
    *ret_term = strtoull(at + strlen("\"term\":"), NULL, 10);
    return true;
}

static bool is_unmoved(const world_t *world)
{
    for (unsigned i = 0; i < NODES; i++) {
        unsigned long long term = 0;

        CHECK(find_term(world, i, &term));
        CHECK(term > 0 && term < TERM);
    }
    return true;
}

/* It knows a node's secret. The node's member moves the others to another term, once what
 * it says is taken; a member that nobody knows does not. */
static bool knows_a_secret(world_t *world, unsigned node)
{
    const victim_t *to = &world->victims[(node + 1) % NODES];
    pose_t pose = {.as = &world->victims[node], .member = 4711};
    unsigned long long term = 0;

    CHECK(read_key(world, node, &pose.key));
    CHECK(speaks_for(&pose, to));
    CHECK(is_unmoved(world));
    pose.member = pose.as->is.from;
    CHECK(speaks_for(&pose, to));
    for (int i = 0; i < CALL_MS / 10 && term < TERM; i++) {
        CHECK(find_term(world, (node + 1) % NODES, &term));
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    CHECK(term >= TERM);
    return make_table(world, "end");
}

static bool leader_of(world_t *world, unsigned *ret_node)
{
    char *reply = NULL;
    const char *at = NULL;

    CHECK(wait_answer(world, "node_list", "\"member\":\"leader\"", &reply));
    for (const char *name = strstr(reply, "\"name\":\"n"); name != NULL;
         name = strstr(name + 1, "\"name\":\"n")) {
        at = name < strstr(reply, "\"member\":\"leader\"") ? name : at;
    }
    *ret_node = at == NULL ? 0 : (unsigned)(at[strlen("\"name\":\"n")] - '0');
    psd_free(reply);
    return at != NULL;
}

static bool run(world_t *world)
{
    unsigned leader = 0;

    CHECK(cluster_start(&world->cluster, &args));
    CHECK(connect_all(world));
    CHECK(wait_members(world));
    for (unsigned i = 0; i < NODES; i++) {
        CHECK(meet(world, i));
    }
    for (unsigned i = 0; i < NODES; i++) {
        CHECK(attack(world, i));
    }
    CHECK(is_unmoved(world));
    CHECK(make_table(world, "before"));
    CHECK(leader_of(world, &leader));
    CHECK(cluster_kill(&world->cluster, leader, SIGKILL));
    CHECK(make_table(world, "after"));
    for (unsigned i = 0; i < NODES; i++) {
        CHECK(cluster_log_has(&world->cluster, i, "warn member_refused node=n"));
        CHECK(!cluster_log_has(&world->cluster, i, "tcp://127.0.0.1:1 "));
    }
    CHECK(wait_answer(world, "cluster_status", "\"nodes_denied\":", NULL));
    CHECK(cluster_restart(&world->cluster, leader));
    CHECK(wait_members(world) && is_unmoved(world));
    return knows_a_secret(world, (leader + 1) % NODES);
}

int main(void)
{
    static world_t world = {.key = {{0x77}}};
    bool good = false;

    world.err = psd_error_new();
    good = run(&world);
    psd_close(&world.client);
    cluster_drop(&world.cluster, !good);
    psd_error_destroy(&world.err);
    return good ? 0 : 1;
}
