package policies

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/lakeweir/lakeweir/catalog"
)

// files are Lakeweir's own rules, their tests and cases.
//
//go:embed lakeweir
var files embed.FS

// Files returns Lakeweir's own rules, their tests and cases.
func Files() fs.FS { return files }

// IsOurs reports whether a file is a copy of one of Lakeweir's, which is left alone in an
// organisation's folder.
func IsOurs(fsys fs.FS, file string) bool {
	text, err := fs.ReadFile(fsys, file)
	return err == nil && isCopyOfOurs(file, text)
}

// Bounds of what a person would write.
const (
	maxFileBytes = 1 << 20
	maxFiles     = 1000
)

// DefaultLimit is how long one evaluation may take.
const DefaultLimit = 2 * time.Second

// Policies are Lakeweir's rules and an organisation's, ready to judge. Safe for
// concurrent use; immutable.
type Policies struct {
	limit    time.Duration
	modules  []*module // those that judge, ours first; the broken ones too
	tests    []*module // files of tests
	engine   *engine
	problems []*catalog.Error
	// broken holds, by package, why it cannot judge; under "" what concerns every one.
	broken map[string][]*catalog.Error
}

// module is one file.
type module struct {
	file   string // as shown
	text   string
	parsed *ast.Module // nil when it cannot be parsed
	pkg    string      // its package, such as organisation.schema; "" when it cannot be told
	ours   bool
	broken bool
}

// BuiltIn returns Lakeweir's rules alone.
func BuiltIn() *Policies { return Load(nil, "") }

// LoadDir reads an organisation's folder beside Lakeweir's rules. See Load.
func LoadDir(dir string) *Policies {
	return Load(os.DirFS(dir), filepath.ToSlash(filepath.Clean(dir)))
}

// Load reads an organisation's folder, with all folders in it, beside Lakeweir's rules;
// org may be nil. Its files are shown as files below root. What is wrong with it are
// Problems; Policies judge nevertheless, and fail closed for what is broken.
func Load(org fs.FS, root string) *Policies {
	p := &Policies{limit: DefaultLimit, broken: map[string][]*catalog.Error{}}
	p.readOurs()
	if org != nil {
		p.readTheirs(org, root)
	}
	p.check()
	p.compile()
	slices.SortStableFunc(p.problems, func(a, b *catalog.Error) int { return comparePlaces(a.At, b.At) })
	return p
}

// WithLimit returns the same policies with another bound for one evaluation.
func (p *Policies) WithLimit(limit time.Duration) *Policies {
	out := *p
	out.limit = limit
	return &out
}

// Problems are what is wrong with the organisation's files, in their order.
func (p *Policies) Problems() []*catalog.Error { return p.problems }

// Files are the organisation's files that judge, in order, as they are shown.
func (p *Policies) Files() []string {
	var out []string
	for _, m := range p.modules {
		if !m.ours {
			out = append(out, m.file)
		}
	}
	return out
}

// fail records why a package cannot judge; a package that is not known may have been
// any.
func (p *Policies) fail(pkg string, problems ...*catalog.Error) {
	for _, e := range problems {
		if !told(p.broken[pkg], e) { // a rule and its twin have the same fault
			p.broken[pkg] = append(p.broken[pkg], e)
			p.problems = append(p.problems, e)
		}
	}
}

// told reports whether a problem is among others.
func told(list []*catalog.Error, e *catalog.Error) bool {
	return slices.ContainsFunc(list, func(o *catalog.Error) bool { return o.At == e.At && o.Message == e.Message })
}

func (p *Policies) readOurs() {
	err := fs.WalkDir(files, "lakeweir", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(file) != ".rego" {
			return err
		}
		text, err := files.ReadFile(file)
		if err != nil {
			return err
		}
		m := parse(file, string(text))
		m.module.ours = true
		p.place(m.module)
		if m.problems != nil {
			p.fail("", m.problems...)
		}
		return nil
	})
	if err != nil {
		p.fail("", catalog.Errorf(catalog.Internal, catalog.CodeInternal, "", "read the built-in policies: %w", err))
	}
}

func (p *Policies) readTheirs(org fs.FS, root string) {
	count := 0
	err := fs.WalkDir(org, ".", func(file string, d fs.DirEntry, err error) error {
		shown := path.Join(root, file)
		switch {
		case err != nil:
			p.fail("", fileProblem(shown, "cannot be read: "+reason(err), "make it readable"))
			return nil
		case file != "." && strings.HasPrefix(path.Base(file), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || path.Ext(file) != ".rego":
			return nil
		}
		if count++; count > maxFiles {
			p.fail("", fileProblem(root, fmt.Sprintf("the folder has more than %d policies", maxFiles), "name the folder of the organisation's policies alone"))
			return fs.SkipAll
		}
		p.readFile(org, file, shown)
		return nil
	})
	if err != nil {
		p.fail("", fileProblem(root, "cannot be read: "+reason(err), "name a folder of policies"))
	}
}

func (p *Policies) readFile(org fs.FS, file, shown string) {
	text, err := fs.ReadFile(org, file)
	if err != nil {
		p.fail("", fileProblem(shown, "cannot be read: "+reason(err), "make it a readable file"))
		return
	}
	if len(text) > maxFileBytes {
		p.fail("", fileProblem(shown, fmt.Sprintf("the file is larger than %d KiB", maxFileBytes>>10), "split it"))
		return
	}
	if isCopyOfOurs(file, text) {
		return // somebody copied the folder to read it: it changes nothing
	}
	m := parse(shown, string(text))
	if m.problems != nil && isTest(shown) {
		p.problems = append(p.problems, m.problems...) // it judges nothing
	} else if m.problems != nil {
		p.fail(m.module.pkg, m.problems...)
	}
	p.place(m.module)
}

// place puts a module where it belongs.
func (p *Policies) place(m *module) {
	if isTest(m.file) {
		p.tests = append(p.tests, m)
		return
	}
	p.modules = append(p.modules, m)
}

func isTest(file string) bool { return strings.HasSuffix(file, "_test.rego") }

// isCopyOfOurs reports whether a file is one of Lakeweir's, unchanged.
func isCopyOfOurs(file string, text []byte) bool {
	ours, err := files.ReadFile("lakeweir/" + path.Base(file))
	return err == nil && string(ours) == string(text)
}

type parsed struct {
	module   *module
	problems []*catalog.Error
}

var packageClause = regexp.MustCompile(`(?m)^[ \t]*package[ \t]+[^\s#;]+`)

func parse(shown, text string) parsed {
	m := &module{file: shown, text: text}
	mod, err := parseModule(shown, text)
	if err == nil && mod == nil {
		err = &ast.Error{Code: ast.ParseErr, Message: "the file is empty", Location: ast.NewLocation(nil, shown, 1, 1)}
	}
	if err == nil {
		m.parsed, m.pkg = mod, packageName(mod.Package)
		return parsed{m, nil}
	}
	m.broken = true
	if clause, e := ast.ParsePackage(packageClause.FindString(text)); e == nil && clause != nil {
		m.pkg = packageName(clause)
	}
	return parsed{m, regoProblems(err, shown)}
}

func parseModule(shown, text string) (mod *ast.Module, err error) {
	defer recovered(&err)
	return ast.ParseModuleWithOpts(shown, text, ast.ParserOptions{Capabilities: capabilities(), RegoVersion: ast.RegoV1})
}

// packageName is the package's path without data: organisation.source.shop.schema.
func packageName(p *ast.Package) string {
	return nameOf(p.Path)
}

// nameOf joins the leading constant parts of a reference into data.
func nameOf(ref ast.Ref) string {
	var parts []string
	for _, t := range ref[1:] {
		s, ok := t.Value.(ast.String)
		if !ok {
			break
		}
		parts = append(parts, string(s))
	}
	return strings.Join(parts, ".")
}

func fileProblem(file, message, hint string) *catalog.Error {
	return catalog.Invalidf(catalog.CodePolicyFile, file, hint, "%s", message)
}

// reason is the part of a file error that does not repeat the path.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// comparePlaces orders by file, line and column.
func comparePlaces(a, b string) int {
	fileA, lineA, columnA := Place(a)
	fileB, lineB, columnB := Place(b)
	return cmp.Or(cmp.Compare(fileA, fileB), cmp.Compare(lineA, lineB), cmp.Compare(columnA, columnB))
}

var placed = regexp.MustCompile(`^(.*):(\d+):(\d+)$`)

// Place takes a place such as policies/pii.rego:4:1 apart; line and column are 0 when it
// has none.
func Place(at string) (file string, line, column int) {
	m := placed.FindStringSubmatch(at)
	if m == nil {
		return at, 0, 0
	}
	_, _ = fmt.Sscan(m[2], &line)
	_, _ = fmt.Sscan(m[3], &column)
	return m[1], line, column
}
