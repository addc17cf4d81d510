package tableconfig

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

const sourceFileName = "source.yaml"

// Config is what a folder of configurations says, every default filled in.
// Sources are in order of their names, tables in order of source and file.
type Config struct {
	Sources []*catalog.Source
	Tables  []*catalog.Table
	// SourceFiles and TableFiles count the files read, with and without problems.
	SourceFiles, TableFiles int

	docs map[string]*document // by file, as shown
}

// ProblemAt makes a problem of what somebody else finds wrong with a table: at the value
// of a field ("owner", "pii.email", "track_history_columns[1]") in its file, at the
// default in source.yaml when the value comes from there, else at the top of its file.
func (c *Config) ProblemAt(t *catalog.Table, field string, code catalog.Code, message, hint string) *Problem {
	d := c.docs[t.File]
	if d == nil {
		return &Problem{Code: code, File: t.File, Message: message, Hint: hint}
	}
	if s := c.Source(t.Source); s != nil && !d.has(field) {
		if in := c.docs[s.File]; in != nil && in.has("defaults."+field) {
			return in.problem(code, in.value("defaults."+field), message, hint)
		}
	}
	return d.problem(code, d.value(field), message, hint)
}

// Source returns the source of that name, or nil.
func (c *Config) Source(name string) *catalog.Source {
	for _, s := range c.Sources {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// TablesOf returns the tables of the named source.
func (c *Config) TablesOf(source string) []*catalog.Table {
	var out []*catalog.Table
	for _, t := range c.Tables {
		if t.Source == source {
			out = append(out, t)
		}
	}
	return out
}

// LoadDir reads a folder of sources (tableconfigs) or the folder of one source
// (tableconfigs/shop). See Load.
func LoadDir(dir string) (*Config, Problems) {
	name := filepath.Base(dir)
	if abs, err := filepath.Abs(dir); err == nil {
		name = filepath.Base(abs)
	}
	return load(os.DirFS(dir), filepath.ToSlash(filepath.Clean(dir)), name)
}

// Load reads a folder of sources, or the folder of one source, from a file
// system. Its files are shown as files below root, whose last element is the name
// of the source when fsys is one source's folder. The Config holds what has no
// problem; it is to be used only when there are no Problems at all, since a
// problem may concern two tables of which only one is named.
func Load(fsys fs.FS, root string) (*Config, Problems) {
	return load(fsys, root, path.Base(root))
}

func load(fsys fs.FS, root, name string) (*Config, Problems) {
	l := &loader{fsys: fsys, root: root, config: &Config{}, docs: map[string]*document{}, placed: map[string]*catalog.Source{}}
	entries, err := fs.ReadDir(fsys, ".")
	switch {
	case err != nil:
		l.fileProblem(".", "the folder cannot be read: "+reason(err), "name a folder of sources, such as tableconfigs, or the folder of one source")
	case slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == sourceFileName }):
		l.source(".", name)
	default:
		l.sources(entries)
	}
	l.collisions()
	l.config.docs = l.docs
	l.problems.Sort()
	return l.config, l.problems
}

// loader collects what one Load has found.
type loader struct {
	fsys     fs.FS
	root     string
	config   *Config
	problems Problems
	docs     map[string]*document       // by file, as shown
	tables   []*catalog.Table           // every table with a name, with and without other problems
	placed   map[string]*catalog.Source // every source whose namespaces are known, by name
}

// sources reads a folder of sources.
func (l *loader) sources(entries []fs.DirEntry) {
	found := false
	for _, e := range entries {
		if hidden(e.Name()) {
			continue
		}
		if l.isDir(e.Name(), e) {
			if inner, err := fs.ReadDir(l.fsys, e.Name()); err == nil && !slices.ContainsFunc(inner, func(e fs.DirEntry) bool { return isYAML(e.Name()) }) {
				continue
			}
			found = true
			l.source(e.Name(), e.Name())
		} else if isYAML(e.Name()) {
			found = true
			hint := "move it into the folder of its source, beside " + sourceFileName
			if nearest(e.Name(), []string{sourceFileName}) != "" {
				hint = "rename it to " + sourceFileName
			}
			l.fileProblem(e.Name(), "a configuration outside a source's folder", hint)
		}
	}
	if !found {
		l.fileProblem(".", "no source here: neither "+sourceFileName+" nor a folder that holds one", "name a folder of sources, such as tableconfigs, or the folder of one source")
	}
}

// source reads the folder of one source.
func (l *loader) source(dir, name string) {
	entries, err := fs.ReadDir(l.fsys, dir)
	if err != nil {
		l.fileProblem(dir, "the folder cannot be read: "+reason(err), "make it readable")
		return
	}
	file := path.Join(dir, sourceFileName)
	var src *sourceReading
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == sourceFileName }) {
		l.config.SourceFiles++
		src = l.readSource(file, name)
	} else {
		hint := "write it; \"lakeweir config explain\" lists its keys"
		for _, e := range entries {
			if near := nearest(e.Name(), []string{sourceFileName}); near != "" && !e.IsDir() {
				hint = "rename " + e.Name() + " to " + sourceFileName
			}
		}
		l.fileProblem(file, "the source's folder has no "+sourceFileName, hint)
	}
	for _, e := range entries {
		inner := path.Join(dir, e.Name())
		switch {
		case hidden(e.Name()) || e.Name() == sourceFileName:
		case l.isDir(inner, e):
			if deeper, err := fs.ReadDir(l.fsys, inner); err == nil && slices.ContainsFunc(deeper, func(e fs.DirEntry) bool { return isYAML(e.Name()) }) {
				l.fileProblem(inner, "a folder of configurations inside a source's folder is not read", "move its files into "+path.Join(l.root, dir))
			}
		case src == nil && nearest(e.Name(), []string{sourceFileName}) != "":
		case strings.HasSuffix(strings.ToLower(e.Name()), ".yml"), strings.HasSuffix(e.Name(), ".YAML"):
			l.fileProblem(inner, "a table's file ends in .yaml", "rename it to "+strings.TrimSuffix(e.Name(), path.Ext(e.Name()))+".yaml")
		case isYAML(e.Name()):
			l.config.TableFiles++
			l.readTable(inner, name, src)
		}
	}
}

// read parses a file, reporting what keeps it from being read. It returns nil
// when there is nothing to decode.
func (l *loader) read(file string) *document {
	b, err := fs.ReadFile(l.fsys, file)
	if err != nil {
		l.fileProblem(file, "the file cannot be read: "+reason(err), "make it a readable file")
		return nil
	}
	d := newDocument(l.display(file), string(b))
	if p := d.parse(); p != nil {
		l.problems = append(l.problems, p)
		return nil
	}
	return d
}

// reason is the part of a file error that does not repeat the path.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

func (l *loader) display(file string) string {
	if l.root == "." {
		return file
	}
	return strings.TrimSuffix(l.root, "/") + "/" + file
}

func (l *loader) fileProblem(file, message, hint string) {
	display := l.root
	if file != "." {
		display = l.display(file)
	}
	l.problems = append(l.problems, &Problem{Code: catalog.CodeConfigFile, File: display, Message: message, Hint: hint})
}

// isDir follows symbolic links, which is how Kubernetes mounts a ConfigMap.
func (l *loader) isDir(file string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := fs.Stat(l.fsys, file)
	return err == nil && info.IsDir()
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") }

func isYAML(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".yaml" || ext == ".yml"
}

// Sort brings problems into file order: source by source, source.yaml first.
func (ps Problems) Sort() { slices.SortStableFunc(ps, compareProblems) }

// compareProblems is file order: source by source, source.yaml first.
func compareProblems(a, b *Problem) int {
	return cmp.Or(
		cmp.Compare(path.Dir(a.File), path.Dir(b.File)),
		cmp.Compare(boolRank(path.Base(a.File) != sourceFileName), boolRank(path.Base(b.File) != sourceFileName)),
		cmp.Compare(a.File, b.File),
		cmp.Compare(a.Line, b.Line),
		cmp.Compare(a.Column, b.Column),
	)
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}
