/* The energy of one pair, halved by the caller: no case is left, each term is a line cut off at 0 and 1.
 * `c` are the constants of the two kinds in the order of `struct deck`. */
#ifndef TRANSECT_PAIR_H
#define TRANSECT_PAIR_H

#ifndef PAIR_FUNCTION
#define PAIR_FUNCTION static inline
#endif

#define STERIC 76.0f

PAIR_FUNCTION float pair_energy(float dx, float dy, float dz, const float *c) {
    const float d = sqrtf(dx * dx + dy * dy + dz * dz);
    return STERIC * fmaxf(0.0f, 1.0f - d * c[0])
        + c[1] * fminf(1.0f, fmaxf(0.0f, c[2] - d * c[3]))
        + c[4] * fminf(1.0f, fmaxf(0.0f, c[5] - d * c[6]));
}

/* Rows of the matrix that turns about x, then y, then z; `t` holds them one after the other. */
PAIR_FUNCTION void turn(float a, float b, float c, float *t) {
    const float sx = sinf(a), sy = sinf(b), sz = sinf(c), cx = cosf(a), cy = cosf(b), cz = cosf(c);
    t[0] = cy * cz;
    t[1] = sx * sy * cz - cx * sz;
    t[2] = cx * sy * cz + sx * sz;
    t[3] = cy * sz;
    t[4] = sx * sy * sz + cx * cz;
    t[5] = cx * sy * sz - sx * cz;
    t[6] = -sy;
    t[7] = sx * cy;
    t[8] = cx * cy;
}

#endif
