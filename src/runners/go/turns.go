package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"
)

const turnKeySize = 32

// turns is the connection to who gives the turns in which programs run while others wait:
// docs/runner-contract.md. It is a plain socket: the package net would be a tenth of the program,
// and its reads come back through other threads.
type turns struct {
	socket int
	peer   string
}

// joinTurns connects, or returns nil where no turns are to be taken.
func joinTurns() *turns {
	given, isSet := os.LookupEnv("TRANSECT_TURNS")
	if !isSet {
		return nil
	}
	var port int
	var key string
	var host [4]byte
	_, err := fmt.Sscanf(given, "%d.%d.%d.%d:%d:%s",
		&host[0], &host[1], &host[2], &host[3], &port, &key)
	if err != nil || len(key) != turnKeySize {
		panic(bad("TRANSECT_TURNS: expected HOST:PORT:KEY"))
	}
	made := &turns{peer: given[:len(given)-1-turnKeySize]}
	made.socket, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = syscall.Connect(made.socket, &syscall.SockaddrInet4{Port: port, Addr: host})
	}
	if err == nil {
		_, err = syscall.Write(made.socket, []byte(key))
	}
	if err != nil {
		panic(made.fault(": " + err.Error()))
	}
	return made
}

// next says 'r', ready, or 'd', done, and waits; it returns the iterations of the next turn, 0: no
// more.
func (t *turns) next(said byte) int {
	var count [8]byte
	_, err := syscall.Write(t.socket, []byte{said})
	for have, more := 0, 0; have < len(count); have += more {
		if err == nil {
			more, err = syscall.Read(t.socket, count[have:])
		}
		if err != nil || more == 0 {
			panic(t.fault(" ended the connection"))
		}
	}
	return int(binary.LittleEndian.Uint64(count[:]))
}

func (t *turns) fault(what string) *failure {
	return &failure{code: failed, cause: "crash", message: "turns: " + t.peer + what}
}
