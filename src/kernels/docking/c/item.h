/* One work-item of PER_ITEM poses, whose distances and sums stay in registers while they fit.
 * Included once for each number of poses; the compiler unrolls REGISTERS registers of lanes. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define AT(array, row) (*(const lanes_at *)(array[row] + v * LANES))
#define REGISTERS ((PER_ITEM + LANES - 1) / LANES)

static void JOIN(item_, PER_ITEM)(const struct deck *deck, long first, float *restrict energies) {
    /* Lanes past the last pose repeat it, and are not stored. */
    float turns[9][REGISTERS * LANES] __attribute__((aligned(64)));
    float shifts[3][REGISTERS * LANES] __attribute__((aligned(64)));
    for (int i = 0; i < REGISTERS * LANES; ++i) {
        const long count = deck->pose_count, last = i < PER_ITEM ? first + i : first;
        const float *pose = deck->poses + (last < count ? last : count - 1);
        float matrix[9];
        turn(pose[0], pose[count], pose[2 * count], matrix);
        for (int k = 0; k < 9; ++k)
            turns[k][i] = matrix[k];
        for (int k = 0; k < 3; ++k)
            shifts[k][i] = pose[(3 + k) * count];
    }
    lanes x[REGISTERS], y[REGISTERS], z[REGISTERS], sum[REGISTERS];
    for (int v = 0; v < REGISTERS; ++v)
        sum[v] = lanes_of(0.0f);
    const int atoms = deck->ligand_atoms, others = deck->protein_atoms;
    const lanes none = lanes_of(0.0f), whole = lanes_of(1.0f), steric = lanes_of(STERIC);
    for (int atom = 0; atom < atoms; ++atom) {
        const lanes a = lanes_of(deck->ligand[atom]), b = lanes_of(deck->ligand[atoms + atom]),
                    c = lanes_of(deck->ligand[2 * atoms + atom]);
        for (int v = 0; v < REGISTERS; ++v) {
            x[v] = AT(shifts, 0) + AT(turns, 0) * a + AT(turns, 1) * b + AT(turns, 2) * c;
            y[v] = AT(shifts, 1) + AT(turns, 3) * a + AT(turns, 4) * b + AT(turns, 5) * c;
            z[v] = AT(shifts, 2) + AT(turns, 6) * a + AT(turns, 7) * b + AT(turns, 8) * c;
        }
        const float *restrict rows = deck->table + (size_t)deck->ligand_kinds[atom] * (size_t)deck->kinds * ROW;
        for (int other = 0; other < others; ++other) {
            const float *restrict c = rows + (size_t)deck->protein_kinds[other] * ROW;
            const lanes px = lanes_of(deck->protein[other]), py = lanes_of(deck->protein[others + other]),
                        pz = lanes_of(deck->protein[2 * others + other]);
            const lanes per_radii = lanes_of(c[0]), charge = lanes_of(c[1]), charge_top = lanes_of(c[2]),
                        charge_slope = lanes_of(c[3]), solvation = lanes_of(c[4]), solvation_top = lanes_of(c[5]),
                        solvation_slope = lanes_of(c[6]);
#pragma GCC unroll 16
            for (int v = 0; v < REGISTERS; ++v) {
                const lanes dx = x[v] - px, dy = y[v] - py, dz = z[v] - pz;
                const lanes d = lanes_sqrt(dx * dx + dy * dy + dz * dz);
                sum[v] += steric * lanes_max(none, whole - d * per_radii);
                sum[v] += charge * lanes_min(whole, lanes_max(none, charge_top - d * charge_slope));
                sum[v] += solvation * lanes_min(whole, lanes_max(none, solvation_top - d * solvation_slope));
            }
        }
    }
    float sums[REGISTERS * LANES] __attribute__((aligned(64)));
    for (int v = 0; v < REGISTERS; ++v)
        *(lanes_at *)(sums + v * LANES) = sum[v];
    for (int i = 0; i < PER_ITEM && first + i < deck->pose_count; ++i)
        energies[first + i] = 0.5f * sums[i];
}

#undef AT
#undef REGISTERS
#undef JOIN
#undef JOIN_
#undef PER_ITEM
