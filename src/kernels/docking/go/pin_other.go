//go:build !linux

package main

import "errors"

func pin(int) error { return errors.New("--cpus: threads are pinned on Linux only") }
