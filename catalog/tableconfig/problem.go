package tableconfig

import (
	"fmt"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// Problem is one thing that is wrong in one file. It holds no secret.
type Problem struct { //nolint:errname // first of all it is a problem of a file {
	Code    catalog.Code
	File    string // as the caller named it: "tableconfigs/shop/public.orders.yaml"
	Line    int    // from 1; 0 when the problem is the file itself
	Column  int    // in characters, from 1; 0 with Line 0
	Message string // what is wrong
	Hint    string // what to do
	Excerpt string // the lines around, the place underlined; may be empty

	// structural says that the JSON Schema refuses the file too.
	structural bool
}

// At is the problem's place: "tableconfigs/shop/public.orders.yaml:4:1".
func (p *Problem) At() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

func (p *Problem) Error() string { return p.At() + ": " + p.Message }

// Unwrap returns the problem as the error that every command reports.
func (p *Problem) Unwrap() error {
	return catalog.Invalidf(p.Code, p.At(), p.Hint, "%s", p.Message)
}

// Text is the problem for a person, over several lines, without a line end after
// the last.
func (p *Problem) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "✗ %s   %s\n    %s", p.Code, p.At(), p.Message)
	if p.Excerpt != "" {
		for line := range strings.SplitSeq(p.Excerpt, "\n") {
			b.WriteString("\n      " + line)
		}
	}
	if p.Hint != "" {
		b.WriteString("\n    → " + strings.ReplaceAll(p.Hint, "\n", "\n      "))
	}
	return b.String()
}

// GitHub is the problem as an annotation of a pull request, in one line.
func (p *Problem) GitHub() string {
	message := p.Message
	if p.Hint != "" {
		message += "\n→ " + p.Hint
	}
	place := "file=" + gitHubProperty.Replace(p.File)
	if p.Line > 0 {
		place += fmt.Sprintf(",line=%d,col=%d", p.Line, p.Column)
	}
	return fmt.Sprintf("::error %s,title=%s::%s", place, gitHubProperty.Replace(string(p.Code)), gitHubData.Replace(message))
}

// The escapes that workflow commands know.
var (
	gitHubData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	gitHubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// Problems are all problems of a configuration, in file order.
type Problems []*Problem //nolint:errname // as Problem

// Err returns the problems as one error, nil when there are none. Use it instead
// of converting, since empty Problems in an error is not nil.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As and the commands' printer see each problem.
func (ps Problems) Unwrap() []error {
	out := make([]error, len(ps))
	for i, p := range ps {
		out[i] = p
	}
	return out
}

// Text is all problems for a person, an empty line between them.
func (ps Problems) Text() string {
	parts := make([]string, len(ps))
	for i, p := range ps {
		parts[i] = p.Text() + "\n"
	}
	return strings.Join(parts, "\n")
}
