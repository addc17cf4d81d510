package main

import (
	"runtime"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr {
	// A group of its own: Ctrl-C reaches the demo alone, which then stops the child.
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func (p *pinned) loop() {
	runtime.LockOSThread()
	for f := range p.work {
		f()
	}
}
