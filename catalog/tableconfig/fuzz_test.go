package tableconfig

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

// FuzzLoad feeds any bytes as both kinds of file: no panic, every problem inside
// the file, nothing unprintable shown.
func FuzzLoad(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range seeds {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{"\x00", "\xff", strings.Repeat("[", 5000), strings.Repeat("- ", 5000), strings.Repeat("{a: ", 500), "a: \"\\", "? ", "%YAML 1.2\n---\n", "a: |", "&a *a", "!!binary x", "...\n---"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, problems := Load(fstest.MapFS{"source.yaml": {Data: text}, "public.orders.yaml": {Data: text}}, "shop")
		lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(text), "\ufeff")), "\n")
		for _, p := range problems {
			if p.Line == 0 && path.Dir(p.File) == "shop" {
				continue
			}
			if p.Line < 1 || p.Line > len(lines) {
				t.Fatalf("line %d of %d: %s", p.Line, len(lines), p)
			}
			if width := utf8.RuneCountInString(lines[p.Line-1]); p.Column < 1 || p.Column > width+1 {
				t.Fatalf("column %d of %d: %s", p.Column, width, p)
			}
			if shown := p.Text(); !utf8.ValidString(shown) || strings.ContainsAny(shown, "\x00\x07\x1b\r") {
				t.Fatalf("not printable: %q", shown)
			}
			if strings.Contains(p.GitHub(), "\n") {
				t.Fatalf("an annotation is one line: %q", p.GitHub())
			}
		}
	})
}
