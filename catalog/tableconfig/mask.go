package tableconfig

import (
	"regexp"
	"strings"
)

// What a secret looks like in a line of YAML or of a connection string. The rules
// are wide on purpose: hiding a word too much costs nothing.
var (
	// the password of a URL: scheme://user:password@host
	urlPassword = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s:/?#"']*:)([^\s"']*)(@)`)
	// password=…, sslpassword: …, "token_key": …, api-token = …
	namedSecret = regexp.MustCompile(`(?i)([\w-]*(?:passw|pwd|secret|token|credential|private)[\w-]*["']?\s*[:=]\s*)('(?:[^'\\]|\\.|'')*'?|"(?:[^"\\]|\\.)*"?|[^\s,}&]+)`)
	// a reference names a secret without being one
	secretReference = regexp.MustCompile(`^["']?(\$\{(env|file):[^}]*\})["']?$`)
)

const hiddenText = "***"

// mask hides what may be a secret in one line of a file.
func mask(line string) string {
	line = urlPassword.ReplaceAllStringFunc(line, func(m string) string {
		g := urlPassword.FindStringSubmatch(m)
		if g[2] == "" || secretReference.MatchString(g[2]) {
			return m
		}
		return g[1] + hiddenText + g[3]
	})
	return namedSecret.ReplaceAllStringFunc(line, func(m string) string {
		g := namedSecret.FindStringSubmatch(m)
		switch strings.Trim(g[2], `"'`) {
		case "", hiddenText, "tokenize", "redact", "encrypt", "true", "false", "[", "{": // pii: {auth_token: redact} is no secret
			return m
		}
		if secretReference.MatchString(g[2]) {
			return m
		}
		return g[1] + hiddenText
	})
}

// The parts of a connection string that hold a password.
var (
	connectionURL      = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	connectionPassword = regexp.MustCompile(`(?i)(?:^|[\s?&])(?:ssl)?password\s*=\s*('(?:[^'\\]|\\.)*'?|[^\s&]*)`)
	anyReference       = regexp.MustCompile(`\$\{(env|file):[^}]*\}`)
)

// hasPassword reports whether a connection string holds a password that is not
// wholly a reference.
func hasPassword(connection string) bool {
	literal := func(password string) bool {
		return strings.Trim(anyReference.ReplaceAllString(password, ""), `'"`) != ""
	}
	if scheme := connectionURL.FindString(connection); scheme != "" {
		rest := anyReference.ReplaceAllStringFunc(connection[len(scheme):], func(string) string { return "\x00" })
		if i := strings.IndexByte(rest, '?'); i >= 0 {
			rest = rest[:i]
		}
		if i := strings.LastIndexByte(rest, '@'); i >= 0 {
			if _, password, ok := strings.Cut(rest[:i], ":"); ok && strings.Trim(password, "\x00") != "" {
				return true
			}
		}
	}
	for _, m := range connectionPassword.FindAllStringSubmatch(connection, -1) {
		if literal(m[1]) {
			return true
		}
	}
	return false
}
