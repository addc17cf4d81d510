package catalog

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Secret is a value that must never be shown: it prints as *** everywhere.
type Secret string

func (Secret) String() string { return "***" }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return "***" }

// MarshalText hides the secret from JSON and YAML.
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Reveal returns the secret itself, for the one call that needs it.
func (s Secret) Reveal() string { return string(s) }

// SecretRef is a text in which secrets are named, not written:
// "postgres://app:${env:PGPASSWORD}@db/shop" or "${file:/run/secrets/dsn}".
type SecretRef string

var reference = regexp.MustCompile(`\$\{([a-z]+):([^}]*)\}`)

// Check reports whether every reference in r is well formed, without resolving.
func (r SecretRef) Check() error {
	for _, m := range reference.FindAllStringSubmatch(string(r), -1) {
		if (m[1] != "env" && m[1] != "file") || m[2] == "" {
			return fmt.Errorf("%q is neither ${env:NAME} nor ${file:PATH}", m[0])
		}
	}
	if strings.Contains(reference.ReplaceAllString(string(r), ""), "${") {
		return errors.New("an unfinished ${…} reference")
	}
	return nil
}

// Resolve replaces each ${env:NAME} and ${file:PATH} by its value; a file's
// trailing newline is dropped. The error names the reference, never a value.
func (r SecretRef) Resolve() (Secret, error) {
	if err := r.Check(); err != nil {
		return "", err
	}
	var errs []error
	out := reference.ReplaceAllStringFunc(string(r), func(ref string) string {
		m := reference.FindStringSubmatch(ref)
		if m[1] == "env" {
			v, ok := os.LookupEnv(m[2])
			if !ok {
				errs = append(errs, fmt.Errorf("environment variable %s is not set", m[2]))
			}
			return v
		}
		b, err := os.ReadFile(m[2])
		if err != nil {
			errs = append(errs, fmt.Errorf("read %s: %w", ref, err))
		}
		return strings.TrimRight(string(b), "\r\n")
	})
	return Secret(out), errors.Join(errs...)
}
