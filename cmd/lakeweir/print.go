package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
)

// printError writes what a person reads, each problem on its own:
//
//	✗ tableconfig.unknown_field   tableconfigs/shop/public.orders.yaml:4:1
//	    unknown field "wrokers"
//	    → did you mean "workers"?
func printError(w io.Writer, err error) {
	for _, e := range flatten(err) {
		if x, ok := e.(interface{ Text() string }); ok { // it brings more than a coded error has, such as an excerpt
			fmt.Fprintln(w, x.Text())
			continue
		}
		p := catalog.Public(e)
		var b strings.Builder
		fmt.Fprintf(&b, "✗ %s", p.Code)
		if p.At != "" {
			fmt.Fprintf(&b, "   %s", p.At)
		}
		fmt.Fprintf(&b, "\n    %s\n", indent(p.Message))
		if p.Hint != "" {
			fmt.Fprintf(&b, "    → %s\n", strings.ReplaceAll(p.Hint, "\n", "\n      "))
		}
		fmt.Fprint(w, b.String())
	}
}

// envelope is the JSON form of a failed command.
type envelope struct {
	OK     bool          `json:"ok"`
	Errors []jsonProblem `json:"errors"`
}

// jsonProblem is one error in JSON.
type jsonProblem struct {
	Code    catalog.Code `json:"code"`
	Kind    string       `json:"kind"`
	Message string       `json:"message"`
	Hint    string       `json:"hint,omitempty"`
	At      string       `json:"at,omitempty"`
}

// printProblems writes problems in the form that was asked for: answer as JSON, a line
// each for GitHub, or as text; but for JSON the summary comes last.
func printProblems(app *App, problems tableconfig.Problems, summary string, answer any) error {
	switch app.Output {
	case "json":
		return printJSON(app.Stdout, answer)
	case "github":
		for _, p := range problems {
			fmt.Fprintln(app.Stdout, p.GitHub())
		}
	default:
		if len(problems) > 0 {
			fmt.Fprintln(app.Stdout, problems.Text())
		}
	}
	_, err := fmt.Fprintln(app.Stdout, summary)
	return err
}

// jsonProblems returns the JSON form of every problem in err; never nil.
func jsonProblems(err error) []jsonProblem {
	out := []jsonProblem{}
	for _, e := range flatten(err) {
		p := catalog.Public(e)
		out = append(out, jsonProblem{Code: p.Code, Kind: p.Kind.String(), Message: p.Message, Hint: p.Hint, At: p.At})
	}
	return out
}

// printJSON writes v indented, with a line end.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// flatten returns the problems that err joins, in order. Context that was wrapped
// around a join is for the log only; each problem says itself what is wrong.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	for e := err; e != nil; {
		switch x := e.(type) { //nolint:errorlint // it walks the tree itself
		case interface{ Unwrap() []error }:
			var out []error
			for _, inner := range x.Unwrap() {
				out = append(out, flatten(inner)...)
			}
			return out
		case *catalog.Error:
			return []error{err}
		case interface{ Unwrap() error }:
			e = x.Unwrap()
		default:
			e = nil
		}
	}
	return []error{err}
}

// indent sets the further lines of a text under its first, four spaces in.
func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }
