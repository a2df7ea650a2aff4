/* OpenMP on the CPU: work-items are dealt out to threads, the poses of one are the lanes of registers. */
#define _GNU_SOURCE
#include "docking.h"

#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "lanes.h"
#include "pair.h"

#define PER_ITEM 1
#include "item.h"
#define PER_ITEM 4
#include "item.h"
#define PER_ITEM 8
#include "item.h"
#define PER_ITEM 16
#include "item.h"
#define PER_ITEM 32
#include "item.h"
#define PER_ITEM 64
#include "item.h"
#define PER_ITEM 128
#include "item.h"
#define PER_ITEM 256
#include "item.h"

typedef void (*item_function)(const struct deck *, long, float *);

static const struct {
    int per_item;
    item_function run;
} ITEMS[] = {{1, item_1},   {4, item_4},   {8, item_8},     {16, item_16},
             {32, item_32}, {64, item_64}, {128, item_128}, {256, item_256}};

const char *kernel_name = "OpenMP";
static const struct deck *deck;
static item_function item;
static int per_item;

void kernel_open(const struct deck *given, const struct options *options) {
    static const struct {
        const char *name;
        omp_sched_t kind;
    } schedules[] = {{"static", omp_sched_static}, {"dynamic", omp_sched_dynamic}, {"guided", omp_sched_guided}};
    deck = given;
    for (size_t i = 0; i < sizeof ITEMS / sizeof *ITEMS; ++i)
        if (ITEMS[i].per_item == options->per_item)
            item = ITEMS[i].run;
    if (item == NULL)
        refuse("--ppwi: expected 1, 4, 8, 16, 32, 64, 128 or 256, found %d", options->per_item);
    per_item = options->per_item;
    int known = 0;
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; ++i)
        if (strcmp(schedules[i].name, options->schedule) == 0) {
            omp_set_schedule(schedules[i].kind, options->chunk);
            known = 1;
        }
    if (!known)
        refuse("--schedule: expected static, dynamic or guided, found '%s'", options->schedule);
    omp_set_dynamic(0);
    omp_set_num_threads(options->threads);
    /* What the threads got, not what was asked for. */
    int team = 0;
    int allowed[1024] = {0}, where[1024];
#pragma omp parallel
    {
        const int me = omp_get_thread_num();
        cpu_set_t set;
        if (me < 1024 && sched_getaffinity(0, sizeof set, &set) == 0) {
            allowed[me] = CPU_COUNT(&set);
            where[me] = -1;
            for (int cpu = 0; cpu < CPU_SETSIZE && allowed[me] == 1; ++cpu)
                if (CPU_ISSET(cpu, &set))
                    where[me] = cpu;
        }
#pragma omp single
        team = omp_get_num_threads();
    }
    if (team != options->threads)
        refuse("--threads: OpenMP gave %d threads, %d were asked for", team, options->threads);
    printf("fact cpus_of_threads");
    for (int i = 0; i < team && i < 1024; ++i)
        if (allowed[i] == 1)
            printf(" %d", where[i]);
        else
            printf(" any-of-%d", allowed[i]);
    putchar('\n');
    tell("lanes", "%d", LANES);
    tell("openmp", "%d", _OPENMP);
}

void kernel_run(float *energies) {
    const long poses = deck->pose_count, items = (poses + per_item - 1) / per_item;
#pragma omp parallel for schedule(runtime)
    for (long i = 0; i < items; ++i)
        item(deck, i * per_item, energies);
}

void kernel_close(void) {}
