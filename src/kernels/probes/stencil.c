/* Kernels of the probe of conjugate gradients, called through ctypes by transect.hpc.probes.
 *
 * A matrix has 27 places a row: `values` and `columns` lie row after row, of which the first `count[row]` are used, with
 * the diagonal at `place[row]`. Columns from `rows` on are values of other ranks, behind a vector's own.
 * Nothing is taken from the stencil but how many places there are: each value and each column is read.
 */
#include <stdint.h>
#include <string.h>

enum { PLACES = 27, MIDDLE = 13 };

/* Fills a matrix: 26 on the diagonal, -1 for each neighbour. `map` has one more point on each side than the grid and says
 * the column of each point, -1 where the domain ends. Returns the entries. */
int64_t fill(int nx, int ny, int nz, const int32_t *map, double *values, int32_t *columns, uint8_t *count, uint8_t *place)
{
    const int64_t wide = nx + 2, high = wide * (ny + 2);
    int64_t row = 0, entries = 0;
    for (int z = 1; z <= nz; z++)
        for (int y = 1; y <= ny; y++)
            for (int x = 1; x <= nx; x++, row++) {
                uint8_t used = 0;
                for (int dz = -1; dz <= 1; dz++)
                    for (int dy = -1; dy <= 1; dy++)
                        for (int dx = -1; dx <= 1; dx++) {
                            const int32_t column = map[(z + dz) * high + (y + dy) * wide + x + dx];
                            if (column < 0)
                                continue;
                            if (column == row)
                                place[row] = used;
                            values[row * PLACES + used] = column == row ? 26.0 : -1.0;
                            columns[row * PLACES + used++] = column;
                        }
                for (int rest = used; rest < PLACES; rest++) {
                    values[row * PLACES + rest] = 0.0;
                    columns[row * PLACES + rest] = 0;
                }
                count[row] = used;
                entries += used;
            }
    return entries;
}

typedef double four __attribute__((vector_size(32), aligned(8)));
#define INLINE static inline __attribute__((always_inline))
/* The products of four places of a row. */
INLINE four products(const double *value, const int32_t *column, const double *x)
{
#if defined(__AVX512VL__)
    /* Two columns are read at once: reads are what a core has too few of. Without 32 registers it takes longer. */
    uint64_t pairs[2];
    memcpy(pairs, column, sizeof pairs);
    const four taken = {x[(uint32_t)pairs[0]], x[pairs[0] >> 32], x[(uint32_t)pairs[1]], x[pairs[1] >> 32]};
#else
    const four taken = {x[column[0]], x[column[1]], x[column[2]], x[column[3]]};
#endif
    return *(const four *)value * taken;
}

INLINE double sum(four a) { return (a[0] + a[1]) + (a[2] + a[3]); }

/* Rows at the edge of the domain: the places `from` to `to`. */
INLINE double some(const double *value, const int32_t *column, int from, int to, const double *x)
{
    double total = 0.0;
    for (int j = from; j < to; j++)
        total += value[j] * x[column[j]];
    return total;
}

/* y = A x */
void product(int64_t rows, const double *values, const int32_t *columns, const uint8_t *count,
             const double *restrict x, double *restrict y)
{
    for (int64_t row = 0; row < rows; row++) {
        const double *value = values + row * PLACES;
        const int32_t *column = columns + row * PLACES;
        if (count[row] != PLACES) {
            y[row] = some(value, column, 0, count[row], x);
            continue;
        }
        four a = products(value, column, x), b = products(value + 4, column + 4, x);
        a += products(value + 8, column + 8, x);
        b += products(value + 12, column + 12, x);
        a += products(value + 16, column + 16, x);
        b += products(value + 20, column + 20, x);
        y[row] = sum(a + b) + some(value, column, 24, PLACES, x);
    }
}

/* What a row's other places give. Of a whole row, the place that the step before has just written comes last, so that
 * nothing else of this row waits for that step. `before` is that place. */
INLINE double others(const double *value, const int32_t *column, int count, int place, int before, const double *x)
{
    if (count != PLACES)
        return some(value, column, 0, place, x) + some(value, column, place + 1, count, x);
    const int after = 2 * MIDDLE - before;
    four a = products(value, column, x), b = products(value + 15, column + 15, x);
    a += products(value + 4, column + 4, x);
    b += products(value + 19, column + 19, x);
    a += products(value + 8, column + 8, x);
    b += products(value + 23, column + 23, x);
    return sum(a + b) + value[after] * x[column[after]] + value[before] * x[column[before]];
}

/* A sweep of Gauss and Seidel forwards, then one backwards, on A x = r. */
void sweep(int64_t rows, const double *values, const int32_t *columns, const uint8_t *count,
           const uint8_t *place, const double *restrict r, double *x)
{
    for (int64_t row = 0; row < rows; row++) {
        const double *value = values + row * PLACES;
        const double rest = others(value, columns + row * PLACES, count[row], place[row], MIDDLE - 1, x);
        x[row] = (r[row] - rest) / value[place[row]];
    }
    for (int64_t row = rows - 1; row >= 0; row--) {
        const double *value = values + row * PLACES;
        const double rest = others(value, columns + row * PLACES, count[row], place[row], MIDDLE + 1, x);
        x[row] = (r[row] - rest) / value[place[row]];
    }
}

/* coarse = r - ax at the points of the coarser grid */
void restriction(int64_t coarse_rows, const int32_t *fine, const double *r, const double *ax, double *coarse)
{
    for (int64_t i = 0; i < coarse_rows; i++)
        coarse[i] = r[fine[i]] - ax[fine[i]];
}

/* x += coarse at these points */
void prolongation(int64_t coarse_rows, const int32_t *fine, const double *coarse, double *x)
{
    for (int64_t i = 0; i < coarse_rows; i++)
        x[fine[i]] += coarse[i];
}

/* w = a x + b y; w may be x or y */
void combination(int64_t rows, double a, const double *x, double b, const double *y, double *w)
{
    for (int64_t i = 0; i < rows; i++)
        w[i] = a * x[i] + b * y[i];
}

double dot(int64_t rows, const double *x, const double *y)
{
    double sums[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= rows; i += 8)
        for (int lane = 0; lane < 8; lane++)
            sums[lane] += x[i + lane] * y[i + lane];
    for (; i < rows; i++)
        sums[0] += x[i] * y[i];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/* a = b + scale c: the bound */
void triad(int64_t length, double *restrict a, const double *restrict b, const double *restrict c, double scale)
{
    for (int64_t i = 0; i < length; i++)
        a[i] = b[i] + scale * c[i];
}
