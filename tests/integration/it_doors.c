/* SPDX-License-Identifier: Apache-2.0 */
/* Who of this host comes in, and by which door: the sockets' modes whatever the
 * umask, members of psd's group, others, and clients that name no endpoint. As
 * root the clients are other users; without root they are this one, who locks
 * itself out. */
#include <grp.h>
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support/check.h"
#include "support/control.h"
#include "support/daemon.h"

#define MEMBERS 54321 /* psd's group, when we are root; it has no name */
#define OTHERS 54322
#define USER 54323
#define TEXT_SIZE 512

/* What a client found. */
typedef struct found {
    psd_status_t status;
    bool has_lane; /* memory of a lane is mapped */
    char text[TEXT_SIZE];
} found_t;

static bool is_root(void)
{
    return geteuid() == 0;
}

/* ---- clients, each a process of its own ---- */

typedef struct who {
    gid_t group;
    gid_t other; /* of those beside it */
} who_t;

/* For good. Without root we stay who we are. */
static bool become(const who_t *who)
{
    return !is_root() ||
           (setgroups(1, &who->other) == 0 && setresgid(who->group, who->group, who->group) == 0 &&
            setresuid(USER, USER, USER) == 0);
}

/* A shard's lane is memory without a name that it shares with us. */
static bool maps_lane(void)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen("/proc/self/maps", "re");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        found = found || strstr(line, "/memfd:psd-lane") != NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

/* Pushes one and pulls it. */
static psd_status_t use_table(psd_client_t *client, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    const uint64_t row = 1;
    const float one = 1;
    float value = 0;
    psd_status_t rc = psd_spec_set(spec, "rows", "8", err);

    if (rc == PSD_OK) {
        rc = psd_table_ensure(client, "w", spec, &table, err);
    }
    if (rc == PSD_OK) {
        rc = psd_push(table, &row, 1, &one, 1, err);
    }
    if (rc == PSD_OK) {
        rc = psd_pull(table, &row, 1, &value, 1, err);
    }
    if (rc == PSD_OK && value < 1) {
        rc = psd_error_set(err, PSD_FAILED, "pulled %g", (double)value);
    }
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    return rc;
}

static void try_it(const char *endpoint, const char *transport, found_t *found)
{
    psd_error_t *err = psd_error_new();
    psd_options_t *options = psd_options_new();
    psd_client_t *client = NULL;

    found->status = psd_options_set_transport(options, transport, err);
    if (found->status == PSD_OK) {
        found->status = psd_connect(endpoint, options, &client, err);
    }
    if (found->status == PSD_OK) {
        found->status = use_table(client, err);
    }
    found->has_lane = maps_lane();
    (void)snprintf(found->text, TEXT_SIZE, "%s", psd_error_text(err));
    psd_close(&client);
    psd_options_destroy(&options);
    psd_error_destroy(&err);
}

static bool client(const who_t *who, const char *endpoint, const char *transport,
                   found_t *ret_found)
{
    int ends[2];
    pid_t pid = -1;
    int status = 0;

    CHECK(pipe(ends) == 0);
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        found_t found = {.status = PSD_FAILED};

        if (become(who)) {
            try_it(endpoint, transport, &found);
        }
        _exit(write(ends[1], &found, sizeof found) == sizeof found ? 0 : 1);
    }
    (void)close(ends[1]);
    CHECK(pid > 0);
    CHECK(read(ends[0], ret_found, sizeof *ret_found) == sizeof *ret_found);
    (void)close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return true;
}

#define CHECK_FOUND(found, expected, part)                                                 \
    do {                                                                                   \
        if ((found).status != (expected) || strstr((found).text, part) == NULL) {          \
            (void)fprintf(stderr, "%s:%d: %s: got %s: %s\n", __FILE__, __LINE__, __func__, \
                          psd_status_name((found).status), (found).text);                  \
            return false;                                                                  \
        }                                                                                  \
    } while (0)

/* ---- psd, with a directory for its sockets ---- */

typedef struct place {
    daemon_t daemon;
    temp_dir_t dir; /* dir/run is the daemon's */
    char run[PATH_MAX];
} place_t;

static void place_drop(place_t *self, bool failed)
{
    daemon_drop(&self->daemon, failed);
    temp_dir_drop(&self->dir);
}

/* As root psd has the group MEMBERS. */
static bool place_start(place_t *self, const char *peers, mode_t mask)
{
    char config[PATH_MAX + 128];
    mode_t before = umask(0022);
    bool ok = temp_dir_make(&self->dir) && chmod(self->dir.path, 0755) == 0;

    (void)snprintf(self->run, sizeof self->run, "%.3000s/run", self->dir.path);
    (void)snprintf(config, sizeof config,
                   "runtime_dir: %s\nshards: 1\nlane:\n  peers: %s\n"
                   "workers:\n  lost_after_ms: 60000\n",
                   self->run, peers);
    (void)umask(mask);
    ok = ok && (!is_root() || setegid(MEMBERS) == 0) && daemon_start(&self->daemon, config);
    (void)umask(before);
    return (!is_root() || setegid(0) == 0) && ok;
}

static bool has_mode(const place_t *place, const char *name, mode_t mode)
{
    char path[PATH_MAX];
    struct stat is;

    (void)snprintf(path, sizeof path, "%.3000s/%s", place->run, name);
    CHECK(stat(path, &is) == 0);
    if ((is.st_mode & 07777) != mode) {
        (void)fprintf(stderr, "%s has mode %04o, not %04o\n", path, is.st_mode & 07777U, mode);
    }
    return (is.st_mode & 07777) == mode && (!is_root() || is.st_gid == MEMBERS || mode == 0600);
}

/* ---- the tests ---- */

static bool modes_are(const char *peers, mode_t mask, mode_t dir, mode_t socket, mode_t file)
{
    place_t place = {.daemon = {.pid = 0}};
    bool ok = place_start(&place, peers, mask) && has_mode(&place, ".", dir) &&
              has_mode(&place, "psd.ipc", socket) && has_mode(&place, "shard-0.ipc", socket) &&
              has_mode(&place, "shard-0.ipc.lane", socket) &&
              has_mode(&place, "endpoints.json", file) && daemon_end(&place.daemon, SIGTERM);

    /* The end takes them away. */
    ok = ok && access(place.daemon.ipc + strlen("ipc://"), F_OK) != 0;
    place_drop(&place, !ok);
    return ok;
}

static bool modes_are_no_matter_of_the_umask(void)
{
    static const mode_t MASKS[] = {0000, 0077};

    for (size_t i = 0; i < sizeof MASKS / sizeof *MASKS; i++) {
        CHECK(modes_are("owner", MASKS[i], 0700, 0600, 0600));
        CHECK(modes_are("group", MASKS[i], 0750, 0660, 0640));
        CHECK(modes_are("any", MASKS[i], 0755, 0666, 0644));
    }
    return true;
}

static bool members_get_the_lane(place_t *place)
{
    /* Either of its groups will do. */
    static const who_t MEMBER[] = {{MEMBERS, OTHERS}, {OTHERS, MEMBERS}};
    found_t found;

    for (size_t i = 0; i < 2; i++) {
        CHECK(client(&MEMBER[i], place->daemon.control, "auto", &found));
        CHECK_FOUND(found, PSD_OK, "");
        CHECK(found.has_lane);
        CHECK(client(&MEMBER[i], place->daemon.ipc, "ipc", &found));
        CHECK_FOUND(found, PSD_OK, "");
        CHECK(!found.has_lane);
    }
    return true;
}

/* Others are told which group to join when they ask for what is not theirs, and
 * come by tcp when they do not. */
static bool others_come_by_tcp(place_t *place, const char *reason)
{
    static const who_t OTHER = {OTHERS, OTHERS};
    found_t found;

    CHECK(client(&OTHER, place->daemon.control, "auto", &found));
    CHECK_FOUND(found, PSD_OK, "");
    CHECK(!found.has_lane);
    CHECK(client(&OTHER, place->daemon.control, "lane", &found));
    CHECK_FOUND(found, found.status, reason);
    CHECK(found.status != PSD_OK);
    CHECK(setenv("PSD_TIMEOUT_MS", "1000", 1) == 0); /* it will not change */
    CHECK(client(&OTHER, place->daemon.ipc, "auto", &found));
    CHECK(unsetenv("PSD_TIMEOUT_MS") == 0);
    CHECK_FOUND(found, PSD_CONNECT, reason);
    return true;
}

/* Without root: nobody but this user is there to be kept out, so that the mode
 * keeps it out itself. The group's bits stay, and name the group. */
static bool lock_out(const place_t *place, mode_t mode)
{
    static const char *const NAMES[] = {"psd.ipc", "shard-0.ipc", "shard-0.ipc.lane"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        (void)snprintf(path, sizeof path, "%.3000s/%s", place->run, NAMES[i]);
        CHECK(chmod(path, mode) == 0);
    }
    return true;
}

static bool the_group_is_let_in(void)
{
    place_t place = {.daemon = {.pid = 0}};
    bool ok =
        place_start(&place, "group", 0077) && members_get_the_lane(&place) &&
        (is_root() || lock_out(&place, 0060)) &&
        others_come_by_tcp(&place, is_root() ? "group \"54321\" (usermod" : "is not in group \"");

    place_drop(&place, !ok);
    return ok;
}

static bool the_owner_alone_is_let_in(void)
{
    place_t place = {.daemon = {.pid = 0}};
    bool ok = place_start(&place, "owner", 0000) && (is_root() || lock_out(&place, 0000)) &&
              others_come_by_tcp(&place, "is open to user \"");

    place_drop(&place, !ok);
    return ok;
}

/* ---- no endpoint is named ---- */

/* A client that is told nothing finds psd where its announcement lies; over the
 * unix socket when that lets it in. */
static bool finds_it(const place_t *place)
{
    static const who_t MEMBER = {MEMBERS, OTHERS};
    char path[PATH_MAX];
    found_t found;
    FILE *file = NULL;

    CHECK(unsetenv("PSD_ENDPOINT") == 0);
    CHECK(setenv("PSD_RUNTIME_DIR", place->run, 1) == 0);
    CHECK(client(&MEMBER, NULL, "auto", &found));
    CHECK_FOUND(found, PSD_OK, "");
    CHECK(found.has_lane);
    /* The socket is gone, and the announcement is not: over tcp. */
    (void)snprintf(path, sizeof path, "%.3000s/psd.ipc", place->run);
    CHECK(unlink(path) == 0);
    CHECK(client(&MEMBER, NULL, "auto", &found));
    CHECK_FOUND(found, PSD_OK, "");
    /* What it says is of no use: the default, which an error names. */
    (void)snprintf(path, sizeof path, "%.3000s/endpoints.json", place->run);
    file = fopen(path, "we");
    CHECK(file != NULL);
    CHECK(fputs("{\"ipc\":7}", file) >= 0);
    CHECK(fclose(file) == 0);
    CHECK(setenv("PSD_TIMEOUT_MS", "300", 1) == 0);
    CHECK(client(&MEMBER, NULL, "auto", &found));
    CHECK(unsetenv("PSD_TIMEOUT_MS") == 0);
    CHECK_FOUND(found, found.status, found.status == PSD_OK ? "" : "tcp://127.0.0.1:7171");
    CHECK(unsetenv("PSD_RUNTIME_DIR") == 0);
    return true;
}

static bool the_announcement_is_found(void)
{
    place_t place = {.daemon = {.pid = 0}};
    bool ok = place_start(&place, "group", 0022) && finds_it(&place);

    place_drop(&place, !ok);
    return ok;
}

/* A second psd with the same directory for its sockets does not start. */
static bool the_directory_is_one_psds(void)
{
    place_t place = {.daemon = {.pid = 0}};
    daemon_t second;
    char config[PATH_MAX + 32];
    bool ok = place_start(&place, "owner", 0022);

    (void)snprintf(config, sizeof config, "runtime_dir: %s\n", place.run);
    ok = ok && !daemon_start(&second, config) && log_has(&second, "runtime_dir: ") &&
         log_has(&second, "is held by another psd with pid ");
    daemon_drop(&second, false);
    ok = ok && access(place.daemon.ipc + strlen("ipc://"), F_OK) == 0;
    place_drop(&place, !ok);
    return ok;
}

int main(void)
{
    bool ok = modes_are_no_matter_of_the_umask() && the_group_is_let_in() &&
              the_owner_alone_is_let_in() && the_announcement_is_found() &&
              the_directory_is_one_psds();

    return ok ? 0 : 1;
}
