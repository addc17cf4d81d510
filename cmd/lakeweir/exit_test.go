package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

func TestEveryKindHasAnExitStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{errors.New("an error that nobody coded"), exitInternal},
		{fmt.Errorf("wrapped: %w", context.Canceled), exitInterrupted},
		{catalog.Errorf(catalog.Internal, catalog.CodeInternal, "", "x"), exitInternal},
		{catalog.Errorf(catalog.Invalid, catalog.CodeConfigValue, "", "x"), exitInput},
		{catalog.Errorf(catalog.NotFound, catalog.CodeNoTable, "", "x"), exitInput},
		{catalog.Errorf(catalog.Conflict, catalog.CodeLakeConflict, "", "x"), exitEnvironment},
		{catalog.Errorf(catalog.Unavailable, catalog.CodeSourceUnreachable, "", "x"), exitEnvironment},
		{catalog.Errorf(catalog.Denied, catalog.CodeSourceGrant, "", "x"), exitReview},
		{catalog.Errorf(catalog.Invalid, catalog.CodeUnequal, "", "x"), exitReview},
		{reported(fmt.Errorf("wrapped: %w", catalog.Errorf(catalog.Invalid, catalog.CodeUnequal, "", "x"))), exitReview},
		{errors.Join(errors.New("x"), catalog.Errorf(catalog.Unavailable, catalog.CodeLakeUnavailable, "", "x")), exitEnvironment},
		{catalog.Errorf(catalog.Unavailable, catalog.CodeSourceUnreachable, "", "no connection: %w", context.Canceled), exitEnvironment},
	} {
		require.Equal(t, c.want, exitCode(c.err), "%v", c.err)
	}
	require.NoError(t, reported(nil))
}

func TestErrorsArePrintedOneByOne(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("run source shop: %w", errors.Join(
		catalog.Invalidf(catalog.CodeConfigUnknownField, "shop/source.yaml:4:1", `did you mean "slot"?`, "unknown field %q", "slto"),
		fmt.Errorf("load: %w", catalog.Errorf(catalog.Unavailable, catalog.CodeSourceUnreachable, "start it\nor correct the DSN", "no connection")),
		errors.New("password=hunter2 is not for users"),
	))
	var b bytes.Buffer
	printError(&b, err)
	require.Equal(t, `✗ tableconfig.unknown_field   shop/source.yaml:4:1
    unknown field "slto"
    → did you mean "slot"?
✗ source.unreachable
    no connection
    → start it
      or correct the DSN
✗ internal
    internal error
    → see the log for the cause; please report it
`, b.String())
}

func TestAnInternalErrorIsLoggedAndNotShown(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	app := &App{Stdout: &stdout, Stderr: &stderr, Log: slog.New(slog.NewTextHandler(&stderr, nil)), Output: "json", started: true}
	report(app, nil, errors.New("index out of range"))
	var got envelope
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &got))
	require.False(t, got.OK)
	require.Equal(t, "internal error", got.Errors[0].Message)
	require.Contains(t, stderr.String(), "index out of range")
}

func TestAnInterruptedCommandSaysSo(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	app := &App{Stdout: io.Discard, Stderr: &stderr, Log: slog.New(slog.DiscardHandler), started: true}
	report(app, nil, fmt.Errorf("read: %w", context.Canceled))
	require.Equal(t, "interrupted\n", stderr.String())
}

// TestEveryCommandExplainsItself keeps help whole: a group, a short line that is a
// sentence without its full stop, no unexplained flag.
func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	root := NewRoot(&App{Stdout: io.Discard, Stderr: io.Discard, Env: func(string) (string, bool) { return "", false }})
	for _, cmd := range root.Commands() {
		require.NotEmpty(t, cmd.GroupID, cmd.Name())
		require.NotEmpty(t, cmd.Short, cmd.Name())
		require.False(t, strings.HasSuffix(cmd.Short, "."), cmd.Name())
		require.NotNil(t, cmd.RunE, "%s runs nothing", cmd.Name())
		if cmd.HasSubCommands() {
			require.NotNil(t, cmd.Args, "%s would take a mistyped child for an argument", cmd.Name())
		}
	}
}
