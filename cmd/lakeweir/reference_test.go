package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// TestCommandReferenceIsGenerated keeps docs/reference/cli.md what the commands say
// of themselves, and writes it with -update.
func TestCommandReferenceIsGenerated(t *testing.T) {
	t.Parallel()
	root := NewRoot(&App{Stdout: io.Discard, Stderr: io.Discard, Env: func(string) (string, bool) { return "", false }})
	root.InitDefaultHelpFlag()
	var b bytes.Buffer
	b.WriteString(`# Commands

<!-- Generated from cmd/lakeweir by go test ./cmd/lakeweir -update. Do not edit. -->

Answers go to standard output, the log and errors to standard error; with ` + "`-o json`" + `
an error is JSON on standard output: ` + "`{\"ok\": false, \"errors\": [{\"code\", \"kind\", \"message\", \"hint\", \"at\"}]}`" + `.
The codes are listed in [errors.md](errors.md).

| exit status | meaning |
| --- | --- |
| 0 | done |
| 1 | a bug in Lakeweir: the log has the cause |
| 2 | your files, flags or arguments |
| 3 | something it depends on is down, or another writer was faster: trying again may work |
| 4 | a person must look: source and lake differ, or an owner must allow it |
| 130 | interrupted before it was done |

## Flags of every command

`)
	writeFlags(&b, root.PersistentFlags())
	for _, group := range root.Groups() {
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID && !cmd.Hidden {
				writeCommand(&b, cmd)
			}
		}
	}
	const doc = "../../docs/reference/cli.md"
	if *update {
		require.NoError(t, os.WriteFile(doc, b.Bytes(), 0o644))
		return
	}
	want, err := os.ReadFile(doc)
	require.NoError(t, err, "run: go test ./cmd/lakeweir -update")
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s is not up to date; run: go test ./cmd/lakeweir -update\n%s", doc, diff)
	}
}

func writeCommand(b *bytes.Buffer, cmd *cobra.Command) {
	if cmd.HasSubCommands() {
		for _, child := range cmd.Commands() {
			if !child.Hidden {
				writeCommand(b, child)
			}
		}
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", cmd.CommandPath())
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(b, "%s\n\n```\n%s\n```\n", text, cmd.UseLine())
	if cmd.Example != "" {
		var lines []string
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			lines = append(lines, strings.TrimPrefix(line, "  "))
		}
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.Join(lines, "\n"))
	}
	if cmd.LocalNonPersistentFlags().HasAvailableFlags() {
		b.WriteString("\n")
		writeFlags(b, cmd.LocalNonPersistentFlags())
	}
}

func writeFlags(b *bytes.Buffer, flags *pflag.FlagSet) {
	b.WriteString("| flag | meaning | default |\n| --- | --- | --- |\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fallback := ""
		if f.DefValue != "" && f.DefValue != "[]" {
			fallback = "`" + f.DefValue + "`"
		}
		_, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, strings.NewReplacer("|", "\\|", "<", "\\<").Replace(usage), fallback)
	})
}
