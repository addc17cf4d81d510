package main

import (
	"context"
	"errors"

	"github.com/lakeweir/lakeweir/catalog"
)

// Exit statuses. They are part of the command line's contract: docs/reference/cli.md
// lists them.
const (
	exitOK          = 0
	exitInternal    = 1   // a bug in Lakeweir
	exitInput       = 2   // the caller's files, flags or arguments
	exitEnvironment = 3   // something it depends on: trying again may work
	exitReview      = 4   // a person must look: source and lake differ, or an owner must allow it
	exitInterrupted = 130 // stopped by SIGINT or SIGTERM before it was done
)

// exitCode is the only place that turns an error into an exit status.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	e, coded := errors.AsType[*catalog.Error](err)
	if !coded {
		if errors.Is(err, context.Canceled) {
			return exitInterrupted
		}
		return exitInternal
	}
	if e.Code == catalog.CodeUnequal {
		return exitReview
	}
	switch e.Kind {
	case catalog.Invalid, catalog.NotFound:
		return exitInput
	case catalog.Unavailable, catalog.Conflict:
		return exitEnvironment
	case catalog.Denied:
		return exitReview
	case catalog.Internal:
		return exitInternal
	}
	return exitInternal
}

// reportedError is an error whose text the command has already printed as its
// answer: it still decides the exit status, but is not printed again.
type reportedError struct{ err error }

func (e *reportedError) Error() string { return e.err.Error() }
func (e *reportedError) Unwrap() error { return e.err }

// reported marks err as printed; nil stays nil.
func reported(err error) error {
	if err == nil {
		return nil
	}
	return &reportedError{err}
}
