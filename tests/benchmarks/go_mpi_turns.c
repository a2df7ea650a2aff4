/* Turns of bench_go_mpi.py in C: a program of its own, and beside Go's turns in one process.
 *
 * mpicc -O2 -DPROGRAM go_mpi_turns.c -o turns; mpiexec -n RANKS turns BYTES... prints, for each size, what
 * the program in Go prints: a line of JSON with the slowest rank's seconds of each turn. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* What a call from Go costs before it does anything. */
int nothing(float *data, int n)
{
    return data != NULL && n > 0;
}

/* Sums of a buffer of float over all ranks, in place; returns the seconds of one. */
double allreduce_turn(float *data, int n, int repeats)
{
    double begin = MPI_Wtime();
    for (int i = 0; i < repeats; i++)
        MPI_Allreduce(MPI_IN_PLACE, data, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return (MPI_Wtime() - begin) / repeats;
}

/* The same through rank 0, which receives in rank order, adds, and sends back. */
double through_root_turn(float *data, float *incoming, int n, int repeats)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double begin = MPI_Wtime();
    for (int i = 0; i < repeats; i++) {
        if (rank == 0) {
            for (int from = 1; from < size; from++) {
                MPI_Recv(incoming, n, MPI_FLOAT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                for (int k = 0; k < n; k++)
                    data[k] += incoming[k];
            }
            for (int to = 1; to < size; to++)
                MPI_Send(data, n, MPI_FLOAT, to, 0, MPI_COMM_WORLD);
        } else {
            MPI_Send(data, n, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
            MPI_Recv(data, n, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    return (MPI_Wtime() - begin) / repeats;
}

#ifdef PROGRAM
static double slowest(double seconds)
{
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

/* argv: turns, seconds of a turn, then sizes in bytes. */
int main(int argc, char **argv)
{
    int rank, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int turns = atoi(argv[1]);
    double wanted = atof(argv[2]);
    for (int which = 3; which < argc; which++) {
        size_t bytes = (size_t)atoll(argv[which]);
        int n = (int)(bytes / sizeof(float));
        void *data, *incoming;
        /* As Go's large objects lie. */
        if (posix_memalign(&data, 8192, bytes) || posix_memalign(&incoming, 8192, bytes))
            MPI_Abort(MPI_COMM_WORLD, 1);
        for (int kind = 0; kind < 2; kind++) {
            int repeats = 1;
            /* The first turns map memory, open connections, and tell how many fit. */
            for (int turn = -2; turn < turns; turn++) {
                for (int k = 0; k < n; k++)
                    ((float *)data)[k] = 0;
                MPI_Barrier(MPI_COMM_WORLD);
                double one = slowest(kind == 0 ? allreduce_turn(data, n, repeats)
                                               : through_root_turn(data, incoming, n, repeats));
                if (turn < 0) {
                    double fit = wanted / one;
                    repeats = fit < 1 ? 1 : fit > 10000 ? 10000 : (int)fit;
                } else if (rank == 0) {
                    printf("{\"program\": \"C\", \"kind\": \"%s\", \"bytes\": %zu, \"seconds\": %.9g}\n",
                           kind == 0 ? "allreduce" : "through-root", bytes, one);
                    fflush(stdout);
                }
            }
        }
        free(data);
        free(incoming);
    }
    MPI_Finalize();
    return 0;
}
#endif
