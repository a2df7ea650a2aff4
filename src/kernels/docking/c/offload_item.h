/* One work-item of PER_ITEM poses that lie `items` apart: neighbouring work-items read neighbouring poses.
 * Included once for each number of poses, for OpenMP target and OpenACC. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

OFFLOADED
static void JOIN(item_, PER_ITEM)(const struct arrays in, long item, long items, float *energies) {
    float turns[PER_ITEM][9], shifts[PER_ITEM][3], sums[PER_ITEM];
    for (int k = 0; k < PER_ITEM; ++k) {
        const long wanted = item + k * items, pose = wanted < in.poses ? wanted : in.poses - 1;
        turn(in.pose[pose], in.pose[in.poses + pose], in.pose[2 * in.poses + pose], turns[k]);
        for (int axis = 0; axis < 3; ++axis)
            shifts[k][axis] = in.pose[(3 + axis) * in.poses + pose];
        sums[k] = 0.0f;
    }
    for (int atom = 0; atom < in.atoms; ++atom) {
        const float u = in.ligand[atom], v = in.ligand[in.atoms + atom], w = in.ligand[2 * in.atoms + atom];
        const float *rows = in.table + (long)in.ligand_kinds[atom] * in.kinds * ROW;
        float x[PER_ITEM], y[PER_ITEM], z[PER_ITEM];
        for (int k = 0; k < PER_ITEM; ++k) {
            const float *t = turns[k];
            x[k] = shifts[k][0] + t[0] * u + t[1] * v + t[2] * w;
            y[k] = shifts[k][1] + t[3] * u + t[4] * v + t[5] * w;
            z[k] = shifts[k][2] + t[6] * u + t[7] * v + t[8] * w;
        }
        for (int other = 0; other < in.others; ++other) {
            const float *c = rows + (long)in.protein_kinds[other] * ROW;
            const float px = in.protein[other], py = in.protein[in.others + other], pz = in.protein[2 * in.others + other];
            for (int k = 0; k < PER_ITEM; ++k)
                sums[k] += pair_energy(x[k] - px, y[k] - py, z[k] - pz, c);
        }
    }
    for (int k = 0; k < PER_ITEM; ++k)
        if (item + k * items < in.poses)
            energies[item + k * items] = 0.5f * sums[k];
}

static void JOIN(run_, PER_ITEM)(const struct arrays in, long items, int work_group, float *energies) {
    /* The compilers attach the arrays that are on the device already. */
    const float *ligand = in.ligand, *protein = in.protein, *table = in.table, *pose = in.pose;
    const int *ligand_kinds = in.ligand_kinds, *protein_kinds = in.protein_kinds;
    const long poses = in.poses;
    const int atoms = in.atoms, others = in.others, kinds = in.kinds;
    (void)work_group;
    ON_THE_DEVICE
    for (long item = 0; item < items; ++item) {
        const struct arrays there = {ligand, protein, table, pose, ligand_kinds, protein_kinds, atoms, others, kinds, poses};
        JOIN(item_, PER_ITEM)(there, item, items, energies);
    }
}

#undef JOIN
#undef JOIN_
#undef PER_ITEM
