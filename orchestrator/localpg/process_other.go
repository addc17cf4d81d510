//go:build !unix

package localpg

import (
	"errors"
	"os"
	"syscall"
)

func attributes(*identity) *syscall.SysProcAttr { return nil }

func ownerOf(string) *identity { return nil }

func tryLock(*os.File) (bool, error) { return false, errUnsupported }

func killProcess(int) error { return errUnsupported }

func quitProcess(int) error { return errUnsupported }

var errUnsupported = errors.New("a private Postgres can be run on Linux and macOS only")
