/* What the docking programs in C and CUDA share: a deck, the options, and what a kernel gives. */
#ifndef TRANSECT_DOCKING_H
#define TRANSECT_DOCKING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Constants of a pair of kinds, as in transect/hpc/probes/_docking_energy.py, and a pad to 32 bytes. */
enum { CONSTANTS = 7, ROW = 8, POSE_ROWS = 6 };

/* Arrays of float are by axis: `ligand` is 3 x ligand_atoms, `poses` is 6 x pose_count. */
struct deck {
    int32_t ligand_atoms, protein_atoms, kinds, pose_count;
    float *ligand, *protein, *poses;
    int32_t *ligand_kinds, *protein_kinds;
    float *table; /* kinds x kinds x ROW: by the ligand's kind, then the protein's */
};

struct options {
    const char *deck, *energies, *schedule, *device; /* device: cpu or gpu */
    int threads, per_item, iterations, warm_ups, chunk, work_group;
};

/* Tells one fact about the run: printed as `fact KEY VALUE`. */
void tell(const char *key, const char *format, ...);

/* End with one line on standard error: bad input (2), or what this machine has not got (3). */
void refuse(const char *format, ...);
void lacks(const char *format, ...);

/* Each kernel is one file that gives these. `run` may be called again and fills all of `energies`. */
extern const char *kernel_name;
void kernel_open(const struct deck *deck, const struct options *options);
void kernel_run(float *energies);
void kernel_close(void);

#ifdef __cplusplus
}
#endif
#endif
