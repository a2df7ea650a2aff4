//go:build mpi

package mpi

/*
// These keep no buffer and call no Go: what cgo need not provide for costs nothing.
#cgo noescape allreduce_sum
#cgo nocallback allreduce_sum
#cgo noescape reduce_sum
#cgo nocallback reduce_sum
#cgo noescape add_local
#cgo nocallback add_local
#cgo noescape broadcast
#cgo nocallback broadcast
#cgo noescape send
#cgo nocallback send
#cgo noescape receive
#cgo nocallback receive
#cgo noescape exchange
#cgo nocallback exchange
#cgo noescape test
#cgo nocallback test
#cgo noescape wait
#cgo nocallback wait

#include <mpi.h>

static MPI_Datatype kind_of(int kind) {
    switch (kind) {
    case 4: return MPI_FLOAT;
    case 8: return MPI_DOUBLE;
    default: return MPI_INT64_T;
    }
}
static int start_up(int *level) {
    int fault = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, level);
    if (fault == MPI_SUCCESS)
        fault = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return fault;
}
static int serialized(void) { return MPI_THREAD_SERIALIZED; }
static MPI_Comm world(void) { return MPI_COMM_WORLD; }
static MPI_Request no_request(void) { return MPI_REQUEST_NULL; }
static int any_source(void) { return MPI_ANY_SOURCE; }
static int any_tag(void) { return MPI_ANY_TAG; }
static int duplicate(MPI_Comm comm, MPI_Comm *copy) { return MPI_Comm_dup(comm, copy); }
static int free_comm(MPI_Comm *comm) { return MPI_Comm_free(comm); }
static int share_node(MPI_Comm comm, int *rank) {
    MPI_Comm node;
    int fault = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    if (fault == MPI_SUCCESS) fault = MPI_Comm_rank(node, rank);
    if (fault == MPI_SUCCESS) fault = MPI_Comm_free(&node);
    return fault;
}
static int allreduce_sum(void *data, int n, int kind, MPI_Comm comm) {
    return MPI_Allreduce(MPI_IN_PLACE, data, n, kind_of(kind), MPI_SUM, comm);
}
static int iallreduce_sum(void *data, int n, int kind, MPI_Comm comm, MPI_Request *request) {
    return MPI_Iallreduce(MPI_IN_PLACE, data, n, kind_of(kind), MPI_SUM, comm, request);
}
static int reduce_sum(void *data, int n, int kind, int root, int rank, MPI_Comm comm) {
    return rank == root
        ? MPI_Reduce(MPI_IN_PLACE, data, n, kind_of(kind), MPI_SUM, root, comm)
        : MPI_Reduce(data, NULL, n, kind_of(kind), MPI_SUM, root, comm);
}
static int add_local(const void *more, void *data, int n, int kind) {
    return MPI_Reduce_local(more, data, n, kind_of(kind), MPI_SUM);
}
static int broadcast(void *data, int n, int kind, int root, MPI_Comm comm) {
    return MPI_Bcast(data, n, kind_of(kind), root, comm);
}
static int send(const void *data, int n, int kind, int to, int tag, MPI_Comm comm) {
    return MPI_Send(data, n, kind_of(kind), to, tag, comm);
}
static int isend(const void *data, int n, int kind, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    return MPI_Isend(data, n, kind_of(kind), to, tag, comm, request);
}
static int receive(void *data, int n, int kind, int from, int tag, MPI_Comm comm, int *told) {
    MPI_Status status;
    int fault = MPI_Recv(data, n, kind_of(kind), from, tag, comm, &status);
    if (fault == MPI_SUCCESS) {
        told[0] = status.MPI_SOURCE;
        told[1] = status.MPI_TAG;
        fault = MPI_Get_count(&status, kind_of(kind), &told[2]);
    }
    return fault;
}
static int exchange(const void *out, int n, int to, int kind, void *in, int m, int from, MPI_Comm comm) {
    return MPI_Sendrecv(out, n, kind_of(kind), to, 0, in, m, kind_of(kind), from, 0, comm, MPI_STATUS_IGNORE);
}
static int probe(int from, int tag, MPI_Comm comm, int *flag, int *told) {
    MPI_Status status;
    int fault = MPI_Iprobe(from, tag, comm, flag, &status);
    if (fault == MPI_SUCCESS && *flag) {
        told[0] = status.MPI_SOURCE;
        told[1] = status.MPI_TAG;
    }
    return fault;
}
static int test(MPI_Request *request, int *flag) { return MPI_Test(request, flag, MPI_STATUS_IGNORE); }
static int wait(MPI_Request *request) { return MPI_Wait(request, MPI_STATUS_IGNORE); }
static int library(char *text) {
    int length;
    return MPI_Get_library_version(text, &length);
}
static int longest_library(void) { return MPI_MAX_LIBRARY_VERSION_STRING; }
static int longest_error(void) { return MPI_MAX_ERROR_STRING; }
static int words(int code, char *text) {
    int length;
    return MPI_Error_string(code, text, &length);
}
*/
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"unsafe"
)

// Number is what buffers hold.
type Number interface{ float32 | float64 | int64 }

// Any as a source or a tag matches all of them.
var (
	AnySource = int(C.any_source())
	AnyTag    = int(C.any_tag())
)

// Comm is a communicator; its rank and size never change.
type Comm struct {
	handle     C.MPI_Comm
	Rank, Size int
}

// Message says of a received message who sent it, under which tag, and how many numbers it holds.
type Message struct{ Source, Tag, Count int }

// Init joins the ranks and returns all of them. It fails where the library lets no two threads take turns.
func Init() (Comm, error) {
	var level C.int
	if err := check("MPI_Init_thread", C.start_up(&level)); err != nil {
		return Comm{}, err
	}
	if level < C.serialized() {
		return Comm{}, fmt.Errorf(
			"MPI gives thread level %d: goroutines change threads and need MPI_THREAD_SERIALIZED (%d)",
			level, C.serialized())
	}
	return World()
}

func numbered(handle C.MPI_Comm) (Comm, error) {
	var rank, size C.int
	if err := check("MPI_Comm_rank", C.MPI_Comm_rank(handle, &rank)); err != nil {
		return Comm{}, err
	}
	if err := check("MPI_Comm_size", C.MPI_Comm_size(handle, &size)); err != nil {
		return Comm{}, err
	}
	return Comm{handle, int(rank), int(size)}, nil
}

// World returns all ranks once more, after Init.
func World() (Comm, error) { return numbered(C.world()) }

// Finalize parts from the others; no call but Library may follow.
func Finalize() error { return check("MPI_Finalize", C.MPI_Finalize()) }

// Abort ends all ranks; it does not return.
func (c Comm) Abort(code int) { C.MPI_Abort(c.handle, C.int(code)) }

// Dup returns a communicator of the same ranks whose messages never meet this one's; all ranks call it.
func (c Comm) Dup() (Comm, error) {
	var handle C.MPI_Comm
	if err := check("MPI_Comm_dup", C.duplicate(c.handle, &handle)); err != nil {
		return Comm{}, err
	}
	return Comm{handle, c.Rank, c.Size}, nil
}

// Free gives a communicator of Dup back; all ranks call it.
func (c Comm) Free() error { return check("MPI_Comm_free", C.free_comm(&c.handle)) }

// LocalRank returns this rank's number among those of its node; all ranks call it.
func (c Comm) LocalRank() (int, error) {
	var rank C.int
	return int(rank), check("MPI_Comm_split_type", C.share_node(c.handle, &rank))
}

// Barrier waits for all ranks.
func (c Comm) Barrier() error { return check("MPI_Barrier", C.MPI_Barrier(c.handle)) }

// Allreduce turns data into its sum over all ranks, in place.
func Allreduce[T Number](c Comm, data []T) error {
	pointer, n, kind, err := buffer(data)
	if err != nil {
		return err
	}
	return check("MPI_Allreduce", C.allreduce_sum(pointer, n, kind, c.handle))
}

// Reduce turns data of rank root into its sum over all ranks, in place.
func Reduce[T Number](c Comm, data []T, root int) error {
	pointer, n, kind, err := buffer(data)
	if err != nil {
		return err
	}
	return check("MPI_Reduce", C.reduce_sum(pointer, n, kind, C.int(root), C.int(c.Rank), c.handle))
}

// Add adds more to data on this rank: the library's sum uses vectors, which Go's own loop does not.
func Add[T Number](data, more []T) error {
	if len(more) != len(data) {
		return fmt.Errorf("%d numbers cannot be added to %d", len(more), len(data))
	}
	pointer, n, kind, err := buffer(data)
	if err != nil {
		return err
	}
	return check("MPI_Reduce_local", C.add_local(unsafe.Pointer(unsafe.SliceData(more)), pointer, n, kind))
}

// Bcast turns data into that of rank root.
func Bcast[T Number](c Comm, data []T, root int) error {
	pointer, n, kind, err := buffer(data)
	if err != nil {
		return err
	}
	return check("MPI_Bcast", C.broadcast(pointer, n, kind, C.int(root), c.handle))
}

// Send sends data; it returns when data may be written again.
func Send[T Number](c Comm, data []T, to, tag int) error {
	pointer, n, kind, err := buffer(data)
	if err != nil {
		return err
	}
	return check("MPI_Send", C.send(pointer, n, kind, C.int(to), C.int(tag), c.handle))
}

// Recv receives at most len(data) numbers; a longer message is an error.
func Recv[T Number](c Comm, data []T, from, tag int) (Message, error) {
	pointer, n, kind, err := buffer(data)
	if err != nil {
		return Message{}, err
	}
	var told [3]C.int
	err = check("MPI_Recv", C.receive(pointer, n, kind, C.int(from), C.int(tag), c.handle, &told[0]))
	return Message{int(told[0]), int(told[1]), int(told[2])}, err
}

// Sendrecv sends out to a rank while it receives in from another one.
func Sendrecv[T Number](c Comm, out []T, to int, in []T, from int) error {
	sent, n, kind, err := buffer(out)
	if err != nil {
		return err
	}
	got, m, _, err := buffer(in)
	if err != nil {
		return err
	}
	return check("MPI_Sendrecv", C.exchange(sent, n, C.int(to), kind, got, m, C.int(from), c.handle))
}

// Iprobe tells whether a message waits to be received, and whose it is; of its count it knows nothing.
func (c Comm) Iprobe(from, tag int) (Message, bool, error) {
	var flag C.int
	var told [2]C.int
	err := check("MPI_Iprobe", C.probe(C.int(from), C.int(tag), c.handle, &flag, &told[0]))
	return Message{Source: int(told[0]), Tag: int(told[1])}, flag != 0, err
}

// Request is an operation under way. Its buffer is pinned until Test or Wait has found it over.
type Request struct {
	// Apart from `pin`: C is handed no memory that holds pointers of Go.
	handle *C.MPI_Request
	pin    runtime.Pinner
}

// Iallreduce begins an Allreduce. All ranks begin those of a communicator in the same order.
func Iallreduce[T Number](c Comm, data []T) (*Request, error) {
	return begin("MPI_Iallreduce", data, func(pointer unsafe.Pointer, n, kind C.int, handle *C.MPI_Request) C.int {
		return C.iallreduce_sum(pointer, n, kind, c.handle, handle)
	})
}

// Isend begins a Send.
func Isend[T Number](c Comm, data []T, to, tag int) (*Request, error) {
	return begin("MPI_Isend", data, func(pointer unsafe.Pointer, n, kind C.int, handle *C.MPI_Request) C.int {
		return C.isend(pointer, n, kind, C.int(to), C.int(tag), c.handle, handle)
	})
}

func begin[T Number](
	name string, data []T, post func(unsafe.Pointer, C.int, C.int, *C.MPI_Request) C.int,
) (*Request, error) {
	pointer, n, kind, err := buffer(data)
	if err != nil {
		return nil, err
	}
	request := &Request{handle: new(C.MPI_Request)}
	*request.handle = C.no_request()
	if n > 0 {
		request.pin.Pin(&data[0])
	}
	if err := check(name, post(pointer, n, kind, request.handle)); err != nil {
		request.pin.Unpin()
		return nil, err
	}
	return request, nil
}

// Test tells whether it is over, and lets the library go on.
func (r *Request) Test() (bool, error) {
	var flag C.int
	if err := check("MPI_Test", C.test(r.handle, &flag)); err != nil {
		return false, err
	}
	if flag != 0 {
		r.pin.Unpin()
	}
	return flag != 0, nil
}

// Wait returns when it is over; the core is kept busy as the library sees fit.
func (r *Request) Wait() error {
	err := check("MPI_Wait", C.wait(r.handle))
	r.pin.Unpin()
	return err
}

// Library returns what the MPI library calls itself.
func Library() string {
	text := make([]byte, C.longest_library()+1)
	if C.library((*C.char)(unsafe.Pointer(&text[0]))) != 0 {
		return "unknown"
	}
	whole := C.GoString((*C.char)(unsafe.Pointer(&text[0])))
	name, _, _ := strings.Cut(whole, ",")
	return strings.TrimSpace(name)
}

func buffer[T Number](data []T) (unsafe.Pointer, C.int, C.int, error) {
	if len(data) > math.MaxInt32 {
		return nil, 0, 0, fmt.Errorf("a message of %d numbers: MPI counts to %d", len(data), math.MaxInt32)
	}
	// The numbers by which `kind_of` knows their types.
	var kind C.int
	switch any(*new(T)).(type) {
	case float32:
		kind = 4
	case float64:
		kind = 8
	}
	return unsafe.Pointer(unsafe.SliceData(data)), C.int(len(data)), kind, nil
}

func check(name string, code C.int) error {
	if code == 0 {
		return nil
	}
	text := make([]byte, C.longest_error()+1)
	if C.words(code, (*C.char)(unsafe.Pointer(&text[0]))) != 0 {
		return fmt.Errorf("%s failed with code %d", name, int(code))
	}
	return fmt.Errorf("%s: %s", name, C.GoString((*C.char)(unsafe.Pointer(&text[0]))))
}
