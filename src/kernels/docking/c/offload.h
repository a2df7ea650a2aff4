/* What OpenMP target and OpenACC share: arrays as a device sees them, and a run for each number of poses.
 * Who includes it defines OFFLOADED, for a function that is called there, and ON_THE_DEVICE, for a loop. */
#include "docking.h"

#include <math.h>
#include <stddef.h>

#define PAIR_FUNCTION OFFLOADED static inline
#include "pair.h"

struct arrays {
    const float *ligand, *protein, *table, *pose;
    const int *ligand_kinds, *protein_kinds;
    int atoms, others, kinds;
    long poses;
};

#define PER_ITEM 1
#include "offload_item.h"
#define PER_ITEM 2
#include "offload_item.h"
#define PER_ITEM 4
#include "offload_item.h"
#define PER_ITEM 8
#include "offload_item.h"
#define PER_ITEM 16
#include "offload_item.h"

typedef void (*run_function)(const struct arrays, long, int, float *);

static struct arrays arrays_of(const struct deck *deck) {
    const struct arrays in = {
        deck->ligand, deck->protein, deck->table, deck->poses, deck->ligand_kinds, deck->protein_kinds,
        deck->ligand_atoms, deck->protein_atoms, deck->kinds, deck->pose_count,
    };
    return in;
}

static run_function run_of(int per_item) {
    switch (per_item) {
    case 1: return run_1;
    case 2: return run_2;
    case 4: return run_4;
    case 8: return run_8;
    case 16: return run_16;
    default: refuse("--ppwi: expected 1, 2, 4, 8 or 16, found %d", per_item);
    }
    return NULL;
}
