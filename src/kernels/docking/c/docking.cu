/* CUDA: a work-item is a thread that holds PER_ITEM poses in registers; a work-group is a block. */
#include <cuda_runtime.h>

#include "docking.h"

#define PAIR_FUNCTION __device__ static inline
#include "pair.h"

const char *kernel_name = "CUDA";

namespace {

struct arrays {
    const float *ligand, *protein, *table, *pose;
    const int *ligand_kinds, *protein_kinds;
    int atoms, others, kinds;
    long poses;
};

// Poses of one work-item lie `items` apart: neighbouring threads read neighbouring poses.
template <int PER_ITEM>
__global__ void energies_of(const arrays in, long items, float *__restrict__ energies) {
    const long item = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (item >= items)
        return;
    float turns[PER_ITEM][9], shifts[PER_ITEM][3], sums[PER_ITEM];
#pragma unroll
    for (int k = 0; k < PER_ITEM; ++k) {
        const long wanted = item + k * items, pose = wanted < in.poses ? wanted : in.poses - 1;
        turn(in.pose[pose], in.pose[in.poses + pose], in.pose[2 * in.poses + pose], turns[k]);
        for (int axis = 0; axis < 3; ++axis)
            shifts[k][axis] = in.pose[(3 + axis) * in.poses + pose];
        sums[k] = 0.0f;
    }
    for (int atom = 0; atom < in.atoms; ++atom) {
        const float u = __ldg(in.ligand + atom), v = __ldg(in.ligand + in.atoms + atom),
                    w = __ldg(in.ligand + 2 * in.atoms + atom);
        const float *rows = in.table + static_cast<long>(__ldg(in.ligand_kinds + atom)) * in.kinds * ROW;
        float x[PER_ITEM], y[PER_ITEM], z[PER_ITEM];
#pragma unroll
        for (int k = 0; k < PER_ITEM; ++k) {
            const float *t = turns[k];
            x[k] = shifts[k][0] + t[0] * u + t[1] * v + t[2] * w;
            y[k] = shifts[k][1] + t[3] * u + t[4] * v + t[5] * w;
            z[k] = shifts[k][2] + t[6] * u + t[7] * v + t[8] * w;
        }
        for (int other = 0; other < in.others; ++other) {
            // The same address for all threads of a warp: one read each.
            const float4 *row = reinterpret_cast<const float4 *>(rows + static_cast<long>(__ldg(in.protein_kinds + other)) * ROW);
            const float4 low = __ldg(row), high = __ldg(row + 1);
            const float c[CONSTANTS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z};
            const float px = __ldg(in.protein + other), py = __ldg(in.protein + in.others + other),
                        pz = __ldg(in.protein + 2 * in.others + other);
#pragma unroll
            for (int k = 0; k < PER_ITEM; ++k)
                sums[k] += pair_energy(x[k] - px, y[k] - py, z[k] - pz, c);
        }
    }
#pragma unroll
    for (int k = 0; k < PER_ITEM; ++k)
        if (item + k * items < in.poses)
            energies[item + k * items] = 0.5f * sums[k];
}

arrays there;
float *results;
long items;
int per_item, work_group;

void must(cudaError_t error, const char *what) {
    if (error != cudaSuccess)
        refuse("%s: %s", what, cudaGetErrorString(error));
}

template <typename T> T *on_device(const T *from, size_t count) {
    T *to = nullptr;
    must(cudaMalloc(&to, count * sizeof(T)), "cudaMalloc");
    must(cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    return to;
}

} // namespace

void kernel_open(const struct deck *deck, const struct options *options) {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices < 1)
        lacks("cudaGetDeviceCount: %s", error == cudaSuccess ? "0 devices" : cudaGetErrorString(error));
    per_item = options->per_item;
    work_group = options->work_group;
    items = (deck->pose_count + per_item - 1) / per_item;
    cudaDeviceProp about;
    must(cudaGetDeviceProperties(&about, 0), "cudaGetDeviceProperties");
    tell("compiled_by", "nvcc %d.%d.%d", __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__, __CUDACC_VER_BUILD__);
    tell("offload", "%s, compute capability %d.%d", about.name, about.major, about.minor);
    const size_t atoms = deck->ligand_atoms, others = deck->protein_atoms, poses = deck->pose_count;
    const size_t pairs = static_cast<size_t>(deck->kinds) * deck->kinds * ROW;
    there = {on_device(deck->ligand, 3 * atoms), on_device(deck->protein, 3 * others), on_device(deck->table, pairs),
             on_device(deck->poses, POSE_ROWS * poses), on_device(deck->ligand_kinds, atoms),
             on_device(deck->protein_kinds, others), deck->ligand_atoms, deck->protein_atoms, deck->kinds,
             deck->pose_count};
    must(cudaMalloc(&results, poses * sizeof(float)), "cudaMalloc");
}

void kernel_run(float *energies) {
    const dim3 blocks((items + work_group - 1) / work_group);
    switch (per_item) {
    case 1: energies_of<1><<<blocks, work_group>>>(there, items, results); break;
    case 2: energies_of<2><<<blocks, work_group>>>(there, items, results); break;
    case 4: energies_of<4><<<blocks, work_group>>>(there, items, results); break;
    case 8: energies_of<8><<<blocks, work_group>>>(there, items, results); break;
    case 16: energies_of<16><<<blocks, work_group>>>(there, items, results); break;
    default: refuse("--ppwi: expected 1, 2, 4, 8 or 16, found %d", per_item);
    }
    must(cudaGetLastError(), "the kernel");
    must(cudaMemcpy(energies, results, there.poses * sizeof(float), cudaMemcpyDeviceToHost), "the kernel");
}

void kernel_close(void) { must(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }
