package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
)

// usageError is what every wrong flag or argument becomes.
func usageError(cmd *cobra.Command, format string, args ...any) error {
	return catalog.Invalidf(catalog.CodeUsage, "", fmt.Sprintf("see %q", cmd.CommandPath()+" --help"), format, args...)
}

// noArgs refuses arguments, and names the command that was probably meant.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return usageError(cmd, "%s takes no argument, got %q", cmd.CommandPath(), args[0])
	}
	cmd.SuggestionsMinimumDistance = 2
	hint := fmt.Sprintf("see %q", cmd.CommandPath()+" --help")
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return catalog.Invalidf(catalog.CodeUsage, "", hint, "unknown command %q for %q", args[0], cmd.CommandPath())
}

// wantArgs accepts exactly the named arguments; a name in brackets may be left
// out and a name that ends in … may be repeated.
func wantArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		least, most := 0, len(names)
		for _, n := range names {
			if !strings.HasPrefix(n, "[") {
				least++
			}
			if strings.HasSuffix(strings.TrimSuffix(n, "]"), "…") {
				most = max(most, len(args))
			}
		}
		switch {
		case len(args) < least:
			return usageError(cmd, "%s needs %s", cmd.CommandPath(), strings.Join(names[len(args):least], " and "))
		case len(args) > most:
			return usageError(cmd, "%s takes %d argument(s) at most, got %q as well", cmd.CommandPath(), most, args[most])
		}
		return nil
	}
}

// parent makes a command that only holds others say so instead of printing help
// for a mistyped child.
func parent(cmd *cobra.Command, children ...*cobra.Command) *cobra.Command {
	cmd.Args = noArgs
	cmd.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	cmd.AddCommand(children...)
	return cmd
}
