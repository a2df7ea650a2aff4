// Package mpi is what the strategies need of MPI, through cgo: build with the tag `mpi` and with CC
// set to the mpicc of the library that is to be linked.
//
// Buffers are slices of Go; nothing is copied. Goroutines change threads, so the library is asked for
// MPI_THREAD_SERIALIZED, and calls are made one at a time: by one goroutine, or under one lock.
package mpi
