package tableconfig

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// The formats, read once from the structs.
var (
	tableSpec  = specOf(reflect.TypeFor[TableFile]())
	sourceSpec = specOf(reflect.TypeFor[SourceFile]())
)

// Defaults that source.yaml documents.
const (
	defaultHeartbeat = 10 * time.Second
	defaultWALBudget = 10 << 30
	defaultNear      = 70
	defaultChunkRows = 10_000
	defaultParallel  = 2
	defaultFormat    = 3
)

// sourceName is what a folder of a source may be called: it becomes part of slot
// names, metrics and paths.
var sourceName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,53}$`)

// sourceReading is what the files of a source's tables need of its source.yaml.
type sourceReading struct {
	file    SourceFile
	doc     *document
	source  *catalog.Source
	display string
}

// readSource reads one source.yaml. It returns nil when the file could not be
// read, so that its tables are not blamed for it.
func (l *loader) readSource(file, name string) *sourceReading {
	if !sourceName.MatchString(name) {
		l.fileProblem(file, fmt.Sprintf("the folder is called %q, which is the source's name", name),
			"rename the folder: a lower-case letter, then lower-case letters, digits, - and _, 54 at most")
	}
	d := l.read(file)
	if d == nil {
		return nil
	}
	r := &sourceReading{doc: d, display: d.file}
	d.decode(&r.file, tableSpec, "a table's file")
	r.source = buildSource(name, &r.file, d)
	r.source.File = d.file
	l.docs[d.file] = d
	if !d.refused["namespaces.bronze"] && !d.refused["namespaces.silver"] && !d.refused["namespaces"] {
		l.placed[name] = r.source
	}
	if len(d.problems) == 0 {
		l.config.Sources = append(l.config.Sources, r.source)
	}
	l.problems = append(l.problems, d.problems...)
	return r
}

// buildSource fills in defaults and checks what the form cannot say.
func buildSource(name string, f *SourceFile, d *document) *catalog.Source {
	slug := strings.ReplaceAll(name, "-", "_")
	s := &catalog.Source{
		Name:        name,
		Kind:        catalog.SourceKind(f.Kind),
		Capture:     catalog.Capture(orDefault(f.Capture, string(catalog.Direct))),
		Connection:  f.Connection,
		Slot:        orDefault(f.Slot, "lakeweir_"+slug),
		Publication: orDefault(f.Publication, "lakeweir_"+slug),
		CreateSlot:  f.Create || !d.has("create"),
		Heartbeat:   catalog.Heartbeat{Interval: defaultHeartbeat, Table: catalog.TableName{Schema: "lakeweir", Name: "heartbeat"}},
		WALBudget:   defaultWALBudget,
		NearBudget:  orDefault(f.WALBudgetNear, defaultNear),
		OnBudget:    catalog.OnBudget(orDefault(f.OnWALBudget, string(catalog.KeepSlot))),
		Snapshot: catalog.SnapshotOptions{
			ChunkRows: orDefault(f.Snapshot.ChunkRows, defaultChunkRows),
			Parallel:  orDefault(f.Snapshot.Parallel, defaultParallel),
		},
		Namespaces: catalog.Namespaces{
			Bronze: strings.Split(orDefault(f.Namespaces.Bronze, "bronze"), "."),
			Silver: strings.Split(orDefault(f.Namespaces.Silver, "silver"), "."),
		},
		FormatVersion: orDefault(f.FormatVersion, defaultFormat),
		TokenKey:      f.TokenKey,
	}
	checkConnection(f, d)
	if s.Capture == catalog.Debezium {
		buildDebezium(s, f, d)
	} else {
		refuseDebezium(d)
	}
	if len(f.Publication) > maxIdentifier {
		d.report(catalog.CodeConfigValue, d.value("publication"), fmt.Sprintf("\"publication\" has %d bytes", len(f.Publication)), fmt.Sprintf("a name of Postgres has %d bytes at most", maxIdentifier))
	}
	if f.Heartbeat.Interval != "" {
		interval, err := parseDuration(f.Heartbeat.Interval)
		if err != nil || (interval != 0 && (interval < time.Second || interval > time.Hour)) {
			d.report(catalog.CodeConfigValue, d.value("heartbeat.interval"), "\"heartbeat.interval\" is "+f.Heartbeat.Interval, "use a time from 1s to 1h, or 0s to switch heartbeats off")
		}
		s.Heartbeat.Interval = interval
	}
	if f.Heartbeat.Table != "" {
		table, err := parseTable(f.Heartbeat.Table)
		if err != nil {
			d.report(catalog.CodeConfigValue, d.value("heartbeat.table"), fmt.Sprintf("\"heartbeat.table\": %s", err), forms["table"].hint)
		}
		s.Heartbeat.Table = table
	}
	if f.WALBudget != "" {
		budget, err := parseSize(f.WALBudget)
		if err != nil || budget < 1<<20 {
			d.report(catalog.CodeConfigValue, d.value("wal_budget"), "\"wal_budget\" is "+f.WALBudget, "use 1MiB at least, below 8EiB")
		}
		s.WALBudget = budget
	}
	return s
}

// checkConnection refuses secrets in clear and references that cannot work.
func checkConnection(f *SourceFile, d *document) {
	at := d.value("connection")
	if hasPassword(string(f.Connection)) {
		d.report(catalog.CodeConfigSecret, at, "\"connection\" holds a password",
			"put a reference in its place, such as postgres://user:${env:PGPASSWORD}@host/database, and replace the password, since the file has shown it")
	}
	if err := f.Connection.Check(); err != nil {
		// The error shows the reference, which in a mistyped one may be part of a secret.
		d.report(catalog.CodeConfigReference, at, "\"connection\" has a reference that is neither ${env:NAME} nor ${file:PATH}", "write ${env:NAME} for an environment variable, ${file:PATH} for a file")
	}
	if f.TokenKey != "" {
		if err := f.TokenKey.Check(); err != nil {
			d.report(catalog.CodeConfigReference, d.value("token_key"), "\"token_key\" has a reference that is neither ${env:NAME} nor ${file:PATH}", "write ${env:NAME} for an environment variable, ${file:PATH} for a file")
		}
	}
}

// orDefault is v, or fallback when v is the zero value.
func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}
