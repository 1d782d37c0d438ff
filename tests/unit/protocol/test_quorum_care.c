/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/quorum/quorum_care.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 16

/* A world as text. Members: "NAME:FLAGS@DOMAIN", with V votes, L leads, u up, c
 * caught up, x lost, g its node is gone, d drains. Other nodes: "NAME@DOMAIN!FAILED".
 * Domains and failures may lack. */
typedef struct world {
    char text[400];
    ps_care_member_t members[MOST];
    ps_care_node_t nodes[MOST];
    ps_care_t care;
} world_t;

static const char *cut(char *word, char mark)
{
    char *at = strchr(word, mark);

    if (at == NULL) {
        return "";
    }
    *at = '\0';
    return at + 1;
}

static void read_member(world_t *world, char *word)
{
    ps_care_member_t *member = &world->members[world->care.n_members++];
    const char *domain = cut(word, '@');
    const char *flags = cut(word, ':');

    *member =
        (ps_care_member_t){.id = world->care.n_members,
                           .node = word,
                           .domain = domain,
                           .role = strchr(flags, 'V') != NULL ? PS_QUORUM_VOTER : PS_QUORUM_STANDBY,
                           .leads = strchr(flags, 'L') != NULL,
                           .is_up = strchr(flags, 'u') != NULL,
                           .caught_up = strchr(flags, 'c') != NULL,
                           .is_lost = strchr(flags, 'x') != NULL,
                           .is_node = strchr(flags, 'g') == NULL,
                           .is_node_up = strchr(flags, 'n') != NULL,
                           .drains = strchr(flags, 'd') != NULL};
}

static void read_node(world_t *world, char *word)
{
    const char *failed = cut(word, '!');
    const char *domain = cut(word, '@');

    world->nodes[world->care.n_nodes++] =
        (ps_care_node_t){.node = word, .domain = domain, .failed = strtoull(failed, NULL, 10)};
}

static void read_world(world_t *world, uint32_t voters, const char *members, const char *nodes)
{
    char *word = NULL;
    char *rest = NULL;

    *world = (world_t){.care = {.voters = voters}};
    (void)snprintf(world->text, sizeof world->text, "%s | %s", members, nodes);
    world->care.members = world->members;
    world->care.nodes = world->nodes;
    word = strtok_r(world->text, " ", &rest);
    for (; word != NULL && strcmp(word, "|") != 0; word = strtok_r(NULL, " ", &rest)) {
        read_member(world, word);
    }
    while ((word = strtok_r(NULL, " ", &rest)) != NULL) {
        read_node(world, word);
    }
}

static const struct {
    uint32_t voters;
    const char *members;
    const char *nodes;
    const char *step;
} STEPS[] = {
    /* it grows: two stand-bys, then two voters, then two more stand-bys */
    {3, "a:VLuc", "b c d", "invite b"},
    {3, "a:VLuc b:uc", "c d", "invite c"},
    {3, "a:VLuc b:uc c:u", "d", "invite d"},
    {3, "a:VLuc b:uc c:uc", "d", "promote b"},
    {3, "a:VLuc b:Vuc c:uc", "", "promote c"},
    {3, "a:VLuc b:Vuc c:Vuc", "d e f", "invite d"},
    {3, "a:VLuc b:Vuc c:Vuc d:uc", "e f", "invite e"},
    {3, "a:VLuc b:Vuc c:Vuc d:uc e:uc", "f", "none"},
    /* two voters are worse than one, four no better than three */
    {3, "a:VLuc b:uc", "", "none"},
    {5, "a:VLuc b:Vuc c:Vuc d:uc", "", "none"},
    {5, "a:VLuc b:Vuc c:Vuc d:uc e:uc", "", "promote d"},
    {5, "a:VLuc b:Vuc c:Vuc d:Vuc e:uc", "", "promote e"},
    /* a registry of one voter has no stand-bys */
    {1, "a:VLuc", "b c", "none"},
    /* nobody who has not caught up, or is silent */
    {3, "a:VLuc b:Vuc c:u", "", "none"},
    {3, "a:VLuc b:Vuc c:c", "", "none"},
    /* a lost voter is replaced, then removed */
    {3, "a:VLuc b:Vuc c:Vx d:uc e:uc", "", "promote d"},
    {3, "a:VLuc b:Vuc c:Vx d:Vuc e:uc", "", "remove c"},
    {3, "a:VLuc b:Vuc c:Vx", "", "none"},
    {3, "a:VLuc b:Vuc c:Vx", "d", "invite d"},
    {3, "a:VLuc b:Vuc c:V d:uc e:uc", "", "none"},
    {5, "a:VLuc b:Vuc c:Vuc d:Vx e:Vx f:uc", "", "promote f"},
    {5, "a:VLuc b:Vuc c:Vuc d:Vx e:Vx f:Vuc", "", "remove d"},
    /* never below a majority */
    {3, "a:VLuc b:Vx c:Vx d:uc e:uc", "", "none"},
    {3, "a:VLuc b:V c:Vx d:uc", "", "none"},
    {3, "a:VLuc b:V c:Vx d:Vuc", "", "remove c"},
    {3, "a:VLuc b:Vx c:Vx d:Vuc", "", "remove b"},
    {3, "a:VLuc b:Vx c:Vx d:Vx", "", "none"},
    /* the node of a member was removed from the cluster */
    {3, "a:VLuc b:Vuc c:Vxg", "", "remove c"},
    {3, "a:VLuc b:Vuc c:Vxg d:uc", "", "promote d"},
    {3, "a:VLuc b:V c:Vxg", "", "none"},
    {3, "a:VLuc b:Vuc c:Vuc d:g", "", "remove d"},
    /* a node lost its part of the registry: it is invited again after it left */
    {3, "a:VLuc b:Vuc c:Vxn", "", "remove c"},
    {3, "a:VLuc b:V c:Vxn", "", "none"},
    {3, "a:VLuc b:Vuc c:Vxn d:uc", "", "promote d"},
    {3, "a:VLuc b:Vuc c:Vn", "", "none"},
    {3, "a:VLuc b:Vuc c:Vuc d:xn", "", "remove d"},
    /* a node drains, also the leader's */
    {3, "a:VLuc b:Vuc c:Vucd d:uc", "", "promote d"},
    {3, "a:VLuc b:Vuc c:Vucd d:Vuc", "", "remove c"},
    {3, "a:VLucd b:Vuc c:Vuc d:Vuc", "", "transfer b"},
    {3, "a:VLucd b:V c:Vu d:Vuc", "", "transfer d"},
    {3, "a:VLucd b:Vuc c:Vuc", "", "none"},
    /* a lost stand-by makes room when another node comes */
    {3, "a:VLuc b:Vuc c:Vuc d:x e:uc", "", "none"},
    {3, "a:VLuc b:Vuc c:Vuc d:x e:uc", "f", "remove d"},
    /* fewer are wanted: who is lost goes, nobody else */
    {3, "a:VLuc b:Vuc c:Vuc d:Vuc e:Vuc", "", "none"},
    {3, "a:VLuc b:Vuc c:Vuc d:Vuc e:Vx", "", "remove e"},
    /* a node that failed waits for the others */
    {3, "a:VLuc", "b!2 c!1 d", "invite d"},
    {3, "a:VLuc", "b!2 c!1", "invite c"},
    /* different domains */
    {3, "a:VLuc@x b:uc@y", "c@x d@y e@z", "invite e"},
    {3, "a:VLuc@x b:uc@x c:uc@y d:uc@z", "", "promote c"},
    {3, "a:VLuc@x c:Vuc@y b:uc@x d:uc@z", "", "promote d"},
    {3, "a:VLuc@x b:Vx@y c:Vuc@z d:uc@x e:uc@y", "", "promote e"},
};

static void print_step(const ps_care_step_t *step, char *ret, size_t size)
{
    static const char *const WORDS[] = {"none", "invite ", "promote ", "remove ", "transfer "};

    (void)snprintf(ret, size, "%s%s", WORDS[step->kind], step->node == NULL ? "" : step->node);
}

Test(quorum_care, each_world_has_its_next_step)
{
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++) {
        world_t world;
        ps_care_step_t next;
        char text[80];

        read_world(&world, STEPS[i].voters, STEPS[i].members, STEPS[i].nodes);
        next = ps_care_next(&world.care);
        print_step(&next, text, sizeof text);
        cr_expect_str_eq(text, STEPS[i].step, "%u voters: %s | %s: %s, not %s", STEPS[i].voters,
                         STEPS[i].members, STEPS[i].nodes, text, STEPS[i].step);
        if (next.member != 0) {
            cr_expect_eq(next.member, ps_care_member(&world.care, next.node)->id);
        }
    }
}

Test(quorum_care, who_may_leave)
{
    static const struct {
        const char *members;
        const char *node;
        const char *why; /* NULL: it may */
    } CASES[] = {
        {"a:VLuc b:Vuc c:Vuc", "c", NULL},
        {"a:VLuc b:Vuc c:Vuc", "a", NULL},
        {"a:VLuc b:Vuc c:V", "c", NULL},
        {"a:VLuc b:Vuc c:V", "b",
         "without node \"b\", no majority of the registry's voters is up: 1 of 2; silent: \"c\""},
        {"a:VLuc b:Vuc c:Vuc d:V e:V", "b",
         "without node \"b\", no majority of the registry's voters is up: 2 of 4; silent: \"d\", "
         "\"e\""},
        {"a:VLuc", "a", "node \"a\" has the only vote of the registry"},
        {"a:VLuc b:uc", "b", NULL},
        {"a:VLuc", "z", NULL},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        world_t world;
        psd_error_t *err = psd_error_new();
        psd_status_t rc = PSD_OK;

        read_world(&world, 3, CASES[i].members, "");
        rc = ps_care_check_leaves(&world.care, CASES[i].node, err);
        cr_expect_eq(rc, CASES[i].why == NULL ? PSD_OK : PSD_NODE_HELD, "%s without %s",
                     CASES[i].members, CASES[i].node);
        if (CASES[i].why != NULL) {
            cr_expect_str_eq(psd_error_text(err), CASES[i].why);
        }
        psd_error_destroy(&err);
    }
}

Test(quorum_care, the_heir_is_up_and_stays)
{
    world_t world;

    read_world(&world, 3, "a:VLuc b:Vucd c:Vu d:uc e:Vuc", "");
    cr_assert_str_eq(ps_care_heir(&world.care)->node, "e");
    read_world(&world, 3, "a:VLuc b:V", "");
    cr_assert_null(ps_care_heir(&world.care));
}
