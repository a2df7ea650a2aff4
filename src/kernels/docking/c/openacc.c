/* OpenACC: work-items are threads of a device; or of the CPU, where the host itself is the device. */
#include <openacc.h>
#include <string.h>

#define PRAGMA(text) _Pragma(#text)
#define OFFLOADED PRAGMA(acc routine seq)
#define ON_THE_DEVICE                                                                                        \
    PRAGMA(acc parallel loop gang vector vector_length(work_group)                                           \
           present(ligand[0:3 * atoms], protein[0:3 * others], table[0:kinds * kinds * ROW],                 \
                   pose[0:POSE_ROWS * poses], ligand_kinds[0:atoms], protein_kinds[0:others],                \
                   energies[0:poses]))
#include "offload.h"

const char *kernel_name = "OpenACC";
static struct arrays in;
static run_function run;
static long items;
static int work_group;
static float *mapped;

static void copy_deck(void) {
    const float *ligand = in.ligand, *protein = in.protein, *table = in.table, *pose = in.pose;
    const int *ligand_kinds = in.ligand_kinds, *protein_kinds = in.protein_kinds;
    const long atoms = in.atoms, others = in.others, pairs = (long)in.kinds * in.kinds * ROW, poses = in.poses;
#pragma acc enter data copyin(ligand[0 : 3 * atoms], protein[0 : 3 * others], table[0 : pairs])
#pragma acc enter data copyin(pose[0 : POSE_ROWS * poses], ligand_kinds[0 : atoms], protein_kinds[0 : others])
}

void kernel_open(const struct deck *deck, const struct options *options) {
    run = run_of(options->per_item);
    items = (deck->pose_count + options->per_item - 1) / options->per_item;
    work_group = options->work_group;
    in = arrays_of(deck);
    if (strcmp(options->device, "gpu") != 0) {
        acc_set_device_type(acc_device_host);
        tell("offload", "none: the host is the device");
    } else {
        if (acc_get_num_devices(acc_device_not_host) < 1)
            lacks("acc_get_num_devices(acc_device_not_host) is 0: there is no device to offload to");
        acc_set_device_type(acc_device_not_host);
        int host = 1;
#pragma acc parallel copyout(host)
        host = acc_on_device(acc_device_host);
        if (host)
            lacks("acc_on_device(acc_device_host) is true in a parallel region: it would run on the host");
        tell("offload", "one device of %d", acc_get_num_devices(acc_device_not_host));
    }
    copy_deck();
}

void kernel_run(float *energies) {
    const long poses = in.poses;
    if (mapped == NULL) {
        mapped = energies;
#pragma acc enter data create(energies[0 : poses])
    }
    run(in, items, work_group, energies);
#pragma acc update self(energies[0 : poses])
}

void kernel_close(void) {}
