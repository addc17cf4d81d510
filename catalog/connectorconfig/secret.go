package connectorconfig

import (
	"regexp"
	"strings"
)

var secretName = regexp.MustCompile(`(?i)password|passwd|secret|token|credential|jaas|private|api[._-]?key|access[._-]?key|user\.info`)

// IsSecret reports whether a property of that name holds a secret, so that its value is
// never shown.
func IsSecret(name string) bool { return secretName.MatchString(name) }

// HoldsSecret reports whether a value holds a secret that is no reference: a property
// named for one whose value has no reference, or a URL with a password.
func HoldsSecret(name, value string) bool {
	if value != "" && IsSecret(name) && !anyReference.MatchString(value) {
		return true
	}
	return mask(value) != value
}

// Show is a property's value for people: *** for a secret that is no reference, and for
// what stands in a value where a password would.
func Show(name, value string) string {
	if value != "" && IsSecret(name) && !anyReference.MatchString(value) {
		return hidden
	}
	return mask(value)
}

// The places of passwords in a URL and in key=value text, such as a login module's.
var (
	urlPassword = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s:/?#"']*:)([^\s"'/@]*)(@)`)
	assigned    = regexp.MustCompile(`(?i)((?:password|secret)\s*=\s*)("[^"]*"|'[^']*'|[^\s;,"']+)()`)
)

func mask(value string) string {
	for _, form := range []*regexp.Regexp{urlPassword, assigned} {
		value = form.ReplaceAllStringFunc(value, func(m string) string {
			g := form.FindStringSubmatch(m)
			if strings.Trim(anyReference.ReplaceAllString(g[2], ""), `"'`) == "" {
				return m
			}
			return g[1] + hidden + g[3]
		})
	}
	return value
}
