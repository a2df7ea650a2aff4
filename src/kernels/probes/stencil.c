/* Kernels of the probe of conjugate gradients, called through ctypes by transect.hpc.probes.
 *
 * A matrix has 27 places a row: `values` and `columns` lie row after row, of which the first `count[row]` are used, with
 * the diagonal at `place[row]`. Columns from `rows` on are values of other ranks, behind a vector's own.
 * Nothing is taken from the stencil but how many places there are: each value and each column is read.
 */
#include <stdint.h>

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

/* The product of some places of a row with x. Four sums, since one would wait for itself. */
static inline double part(const double *value, const int32_t *column, int from, int to, const double *x)
{
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    int j = from;
    for (; j + 4 <= to; j += 4) {
        a += value[j] * x[column[j]];
        b += value[j + 1] * x[column[j + 1]];
        c += value[j + 2] * x[column[j + 2]];
        d += value[j + 3] * x[column[j + 3]];
    }
    for (; j < to; j++)
        a += value[j] * x[column[j]];
    return (a + b) + (c + d);
}

/* y = A x */
void product(int64_t rows, const double *values, const int32_t *columns, const uint8_t *count, const double *restrict x,
             double *restrict y)
{
    for (int64_t row = 0; row < rows; row++) {
        const double *value = values + row * PLACES;
        const int32_t *column = columns + row * PLACES;
        y[row] = count[row] == PLACES ? part(value, column, 0, PLACES, x) : part(value, column, 0, count[row], x);
    }
}

/* What a row's other places give. Of a whole row, the place that the step before has just written comes last: nothing
 * else of this row waits for that step. `before` is that place. */
static inline double others(const double *value, const int32_t *column, int count, int place, int before, const double *x)
{
    if (count != PLACES)
        return part(value, column, 0, place, x) + part(value, column, place + 1, count, x);
    const int after = 2 * MIDDLE - before;
    double sum = part(value, column, 0, MIDDLE - 1, x) + part(value, column, MIDDLE + 2, PLACES, x);
    sum += value[after] * x[column[after]];
    return sum + value[before] * x[column[before]];
}

/* A sweep of Gauss and Seidel forwards, then one backwards, on A x = r. */
void sweep(int64_t rows, const double *values, const int32_t *columns, const uint8_t *count, const uint8_t *place,
           const double *restrict r, double *x)
{
    for (int64_t row = 0; row < rows; row++) {
        const double *value = values + row * PLACES;
        x[row] = (r[row] - others(value, columns + row * PLACES, count[row], place[row], MIDDLE - 1, x)) / value[place[row]];
    }
    for (int64_t row = rows - 1; row >= 0; row--) {
        const double *value = values + row * PLACES;
        x[row] = (r[row] - others(value, columns + row * PLACES, count[row], place[row], MIDDLE + 1, x)) / value[place[row]];
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
