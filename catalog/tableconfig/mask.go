package tableconfig

import (
	"regexp"
	"strings"
)

// What a secret looks like in a line of YAML or of a connection string. The rules
// are wide on purpose: hiding a word too much costs nothing.
const secretWords = `(?:pass|pwd|secret|token|credential|private|api[-_]?key|access[-_]?key)`

var (
	// the password of a URL: scheme://user:password@host.
	urlPassword = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s:/?#"']*:)([^\s"']*)(@)`)
	// password=…, wherever it stands.
	assignedSecret = regexp.MustCompile(`(?i)([\w-]*` + secretWords + `[\w-]*\s*=\s*)('(?:[^'\\]|\\.|'')*'?|"(?:[^"\\]|\\.)*"?|\S+)`)
	// token_key: …, on a line of its own, where it takes the rest of the line.
	lineSecret = regexp.MustCompile(`(?i)^(\s*(?:- +)?["']?[\w-]*` + secretWords + `[\w-]*["']?\s*:\s+)(\S.*?)(\s+#.*)?$`)
	// token_key: … within braces, where a comma ends it.
	flowSecret = regexp.MustCompile(`(?i)([\w-]*` + secretWords + `[\w-]*["']?\s*:\s*)('(?:[^']|'')*'?|"(?:[^"\\]|\\.)*"?|(?:\$\{[^}]*\}|[^\s,}])+)`)
	// a key whose value is a secret and may go on in the next lines.
	secretKey = regexp.MustCompile(`(?i)[\w-]*` + secretWords + `[\w-]*["']?\s*:`)
	// a reference names a secret without being one.
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
	for _, form := range []*regexp.Regexp{assignedSecret, lineSecret, flowSecret} {
		line = form.ReplaceAllStringFunc(line, func(m string) string {
			g := form.FindStringSubmatch(m)
			switch strings.Trim(g[2], `"'`) {
			case "", hiddenText, "tokenize", "redact", "encrypt", "|", ">", "|-", ">-": // pii: {auth_token: redact} is no secret
				return m
			}
			if secretReference.MatchString(g[2]) {
				return m
			}
			return g[1] + hiddenText
		})
	}
	return line
}

// The parts of a connection string that hold a password.
var (
	connectionURL      = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	connectionPassword = regexp.MustCompile(`(?i)(?:^|[\s?&])(?:ssl)?password\s*=\s*('(?:[^'\\]|\\.)*'?|[^\s&]*)`)
	anyReference       = regexp.MustCompile(`\$\{[^}]*\}`) // well formed or not, which is judged elsewhere
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

// keyAndValue is a pair in a line of block or flow style.
var keyAndValue = regexp.MustCompile(`(["']?([\w-]+)["']?\s*:\s+)('(?:[^']|'')*'?|"(?:[^"\\]|\\.)*"?|(?:\$\{[^}]*\}|[^\s,}\]\[{&])+)`)

// maskLines masks a whole file, line by line. In source.yaml the value of a key
// that is not known is masked too, since it may be a mistyped token_key.
func maskLines(lines []string, isSource bool) []string {
	out := make([]string, len(lines))
	under := -1 // the indentation of the secret's key while its value may go on
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		blank := strings.TrimSpace(line) == ""
		if under >= 0 && !blank && indent <= under && strings.Contains(line, ":") {
			under = -1
		}
		if under >= 0 && !blank {
			out[i] = line[:indent] + hiddenText
			continue
		}
		if len(line) > maxShown {
			out[i], under = hiddenText, indent // never shown; matching it would take long
			continue
		}
		out[i] = mask(line)
		secret := secretKey.MatchString(line)
		if isSource {
			out[i] = keyAndValue.ReplaceAllStringFunc(out[i], func(m string) string {
				g := keyAndValue.FindStringSubmatch(m)
				if knownKey(g[2]) || strings.HasPrefix(strings.TrimSpace(line), "#") {
					return m
				}
				secret = true
				return g[1] + hiddenText
			})
		}
		if secret {
			under = indent
		}
	}
	return out
}

// knownKey reports whether some format has the key, at any depth.
func knownKey(key string) bool {
	for _, s := range []*spec{sourceSpec, tableSpec} {
		if s.field(key) != nil || s.deepKeys()[key] != "" {
			return true
		}
	}
	return false
}
