/* OpenMP target: work-items are threads of a device; or of the CPU, where the host itself is the device. */
#include <omp.h>
#include <string.h>

#define PRAGMA(text) _Pragma(#text)
/* A function that a target region calls in its own file is compiled for the device as well. */
#define OFFLOADED
#define ON_THE_DEVICE PRAGMA(omp target teams distribute parallel for thread_limit(work_group))
#include "offload.h"

const char *kernel_name = "OpenMP target";
static struct arrays in;
static run_function run;
static long items;
static int work_group, on_device;
static float *mapped;

static void copy_deck(void) {
    const float *ligand = in.ligand, *protein = in.protein, *table = in.table, *pose = in.pose;
    const int *ligand_kinds = in.ligand_kinds, *protein_kinds = in.protein_kinds;
    const long atoms = in.atoms, others = in.others, pairs = (long)in.kinds * in.kinds * ROW, poses = in.poses;
#pragma omp target enter data map(to : ligand[0 : 3 * atoms], protein[0 : 3 * others], table[0 : pairs])
#pragma omp target enter data map(to : pose[0 : POSE_ROWS * poses], ligand_kinds[0 : atoms], protein_kinds[0 : others])
}

void kernel_open(const struct deck *deck, const struct options *options) {
    run = run_of(options->per_item);
    items = (deck->pose_count + options->per_item - 1) / options->per_item;
    work_group = options->work_group;
    in = arrays_of(deck);
    omp_set_dynamic(0);
    omp_set_num_threads(options->threads);
    on_device = strcmp(options->device, "gpu") == 0;
    if (!on_device) {
        omp_set_default_device(omp_get_initial_device());
        tell("offload", "none: the host is the device");
        return;
    }
    if (omp_get_num_devices() < 1)
        lacks("omp_get_num_devices() is 0: there is no device to offload to");
    int host = 1;
#pragma omp target map(from : host)
    host = omp_is_initial_device();
    if (host)
        lacks("omp_is_initial_device() is true in a target region: it would run on the host");
    tell("offload", "device %d of %d", omp_get_default_device(), omp_get_num_devices());
    copy_deck();
}

void kernel_run(float *energies) {
    const long poses = in.poses;
    if (on_device && mapped == NULL) {
        mapped = energies;
#pragma omp target enter data map(alloc : energies[0 : poses])
    }
    run(in, items, work_group, energies);
    if (on_device) {
#pragma omp target update from(energies[0 : poses])
    }
}

void kernel_close(void) {}
