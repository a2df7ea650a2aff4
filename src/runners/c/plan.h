/* The plan, docs/runner-contract.md, as it lies in its file. The C++ runner compiles this too. */

#ifndef TRANSECT_PLAN_H
#define TRANSECT_PLAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOST_AXES = 7, ANY_GROUP = -1, STRING = 8 /* a dtype */ };

enum level { LEVEL_LATENCY = 1, LEVEL_LOAD, LEVEL_CASES, LEVEL_TRAIN };

enum role {
    ROLE_LIBRARY = 1, ROLE_PROVIDER, ROLE_OUT, ROLE_OPTION, ROLE_PROVIDER_OPTION, ROLE_MODEL,
    ROLE_OUTPUTS, ROLE_INPUT, ROLE_OUTPUT, ROLE_PROFILE, ROLE_ARRIVALS, ROLE_GRAPH, ROLE_STATE,
    ROLE_DATA, ROLE_HYPER, ROLE_SEED, ROLE_METRIC, ROLE_ORDER, ROLE_TAKES, ROLE_GIVES,
    ROLE_STEP_FOLDER,
};

/* The header; the entries lie behind it. */
struct plan {
    char magic[8];
    uint32_t mark, version;
    uint64_t size;
    uint32_t level, count;
    uint64_t batch, rows, warmup, min_runs, max_ns, sessions, last_begin_ns;
    uint64_t first_step, steps, checkpoint_every, accumulate;
    int64_t seed;
    uint64_t state_bytes, unused[7];
};

/* Places of texts within the file have become pointers. */
struct entry {
    uint32_t role, group, dtype, axes, link, unused;
    union { uint64_t name_at; const char *name; };
    uint64_t name_size;
    union { uint64_t text_at; const char *text; };
    uint64_t text_size, data_at, size;
    int64_t shape[MOST_AXES];
};

/* The plan stays mapped until the program ends. NULL, and why, when it is refused. */
const struct plan *plan_open(const char *path, char *why, size_t room);

const struct entry *plan_entry(const struct plan *plan, size_t number);

/* The entry of a role, and of a group or ANY_GROUP, after another one; NULL: the first, no more. */
const struct entry *plan_next(const struct plan *plan, const struct entry *after, enum role role,
                              int group);
#define for_entries(one, plan, role, group) \
    for (const struct entry *one = NULL; (one = plan_next(plan, one, role, group)) != NULL;)
size_t plan_count(const struct plan *plan, enum role role, int group);

/* The text of the first of them; NULL when there is none. */
const char *plan_text(const struct plan *plan, enum role role, int group);

/* The data of an entry, all in memory until the program ends. NULL, and why, without them. */
const unsigned char *entry_data(const struct entry *entry, char *why, size_t room);
/* Gives them back before that. */
void entry_drop(const struct entry *entry, const unsigned char *data);

size_t entry_elements(const struct entry *entry);

/* The bytes of one element; 0: a string, or ONNX Runtime's own. */
size_t dtype_size(uint32_t dtype);

/* Whether a tensor's bytes hold no NaN and no infinity. */
int entry_is_finite(const struct entry *entry, const void *bytes);

#ifdef __cplusplus
}
#endif

#endif
