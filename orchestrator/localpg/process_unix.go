//go:build unix

package localpg

import (
	"errors"
	"os"
	"syscall"
)

// attributes of a process that runs as who, in a process group of its own so
// that a Ctrl-C in the terminal does not stop it before its clients.
func attributes(who *identity) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if who != nil {
		attr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid}
	}
	return attr
}

// ownerOf returns who owns path, or nil when it is absent.
func ownerOf(path string) *identity {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return &identity{uid: stat.Uid, gid: stat.Gid}
}

// tryLock takes an exclusive lock that lasts as long as any process has f open.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func killProcess(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }

func quitProcess(pid int) error { return syscall.Kill(pid, syscall.SIGQUIT) }
