package main

import (
	"fmt"
	"syscall"
	"unsafe"
)

// pin keeps the thread that calls it on one CPU.
func pin(cpu int) error {
	var mask [64]uint64
	if cpu >= 64*len(mask) {
		return fmt.Errorf("--cpus: %d is more than a mask holds", cpu)
	}
	mask[cpu/64] = 1 << (cpu % 64)
	_, _, number := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if number != 0 {
		return fmt.Errorf("--cpus: a thread cannot be pinned to CPU %d: %w", cpu, number)
	}
	return nil
}
