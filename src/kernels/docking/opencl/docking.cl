/* OpenCL: a work-item holds PER_ITEM poses, `items` apart, as the components of one vector: registers of a
 * CPU hold it, and compilers for GPUs take it apart. Compiled at run time, with -D PER_ITEM=1, 2, 4, 8 or 16. */

#define STERIC 76.0f

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if PER_ITEM == 1
typedef float lanes;
#else
typedef JOIN(float, PER_ITEM) lanes;
#endif
union numbers {
    lanes all;
    float each[PER_ITEM];
};

__kernel void energies_of(__global const float *ligand, __global const int *ligand_kinds, int atoms,
                          __global const float *protein, __global const int *protein_kinds, int others,
                          __global const float8 *table, int kinds,
                          __global const float *poses, int count, int items, __global float *energies) {
    const int item = get_global_id(0);
    if (item >= items)
        return;
    union numbers row[6];
    for (int k = 0; k < PER_ITEM; ++k) {
        const int pose = min(item + k * items, count - 1);
        for (int i = 0; i < 6; ++i)
            row[i].each[k] = poses[i * count + pose];
    }
    const lanes sx = sin(row[0].all), sy = sin(row[1].all), sz = sin(row[2].all);
    const lanes cx = cos(row[0].all), cy = cos(row[1].all), cz = cos(row[2].all);
    lanes sum = 0.0f;
    for (int atom = 0; atom < atoms; ++atom) {
        const float u = ligand[atom], v = ligand[atoms + atom], w = ligand[2 * atoms + atom];
        __global const float8 *rows = table + ligand_kinds[atom] * kinds;
        const lanes x = row[3].all + cy * cz * u + (sx * sy * cz - cx * sz) * v + (cx * sy * cz + sx * sz) * w;
        const lanes y = row[4].all + cy * sz * u + (sx * sy * sz + cx * cz) * v + (cx * sy * sz - sx * cz) * w;
        const lanes z = row[5].all - sy * u + sx * cy * v + cx * cy * w;
        for (int other = 0; other < others; ++other) {
            const float8 c = rows[protein_kinds[other]];
            const lanes dx = x - protein[other], dy = y - protein[others + other], dz = z - protein[2 * others + other];
            const lanes d = sqrt(dx * dx + dy * dy + dz * dz);
            sum += STERIC * fmax((lanes)0.0f, 1.0f - d * c.s0) + c.s1 * clamp(c.s2 - d * c.s3, 0.0f, 1.0f)
                + c.s4 * clamp(c.s5 - d * c.s6, 0.0f, 1.0f);
        }
    }
    union numbers result;
    result.all = 0.5f * sum;
    for (int k = 0; k < PER_ITEM; ++k)
        if (item + k * items < count)
            energies[item + k * items] = result.each[k];
}
