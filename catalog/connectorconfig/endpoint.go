package connectorconfig

import (
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// endpoint is where a connector connects, in parts, since it takes no connection
// string. Parts may hold references.
type endpoint struct {
	host, port, user, password, database, sslMode, sslRoot string
}

var anyReference = regexp.MustCompile(`\$\{[^}]*\}`)

// opaque reports whether a connection string is nothing but references, so that its
// parts are known only once they are resolved.
func opaque(r catalog.SecretRef) bool {
	return strings.TrimSpace(anyReference.ReplaceAllString(string(r), "")) == ""
}

// CheckConnection reports whether a connection string can be told to a connector. One
// that is a reference as a whole passes: only Render can look into it.
func CheckConnection(r catalog.SecretRef) error {
	if opaque(r) {
		return nil
	}
	_, err := splitConnection(string(r))
	return err
}

// splitConnection takes a connection string of Postgres apart, a URL or keywords.
// References in it stay as they are. Its errors show nothing of it.
func splitConnection(text string) (endpoint, error) {
	var refs []string
	plain := anyReference.ReplaceAllStringFunc(text, func(ref string) string {
		refs = append(refs, ref)
		return mark(len(refs) - 1)
	})
	values, err := keywords(strings.TrimSpace(plain))
	if err != nil {
		return endpoint{}, err
	}
	for k, v := range values {
		for i, ref := range refs {
			v = strings.ReplaceAll(v, mark(i), ref)
		}
		values[k] = v
	}
	e := endpoint{
		host: values["host"], port: values["port"], user: values["user"], password: values["password"],
		database: values["dbname"], sslMode: values["sslmode"], sslRoot: values["sslrootcert"],
	}
	if e.host == "" {
		e.host = values["hostaddr"]
	}
	if e.port == "" {
		e.port = "5432"
	}
	if e.database == "" {
		e.database = e.user
	}
	port, err := strconv.Atoi(e.port)
	switch {
	case (err != nil || port < 1 || port > 65535) && !strings.Contains(e.port, "${"):
		return e, errors.New("its port is no number from 1 to 65535")
	case e.host == "" || e.user == "":
		return e, errors.New("it names no host or no user, which a connector has to be told")
	case strings.HasPrefix(e.host, "/"):
		return e, errors.New("it names a Unix socket, which a connector cannot use")
	case strings.Contains(e.host, ","):
		return e, errors.New("it names several hosts, and a connector takes one: set database.hostname under connector.properties")
	}
	return e, nil
}

// mark stands for a reference while a string is parsed. It is no part of a name that
// anybody has, and needs no quoting anywhere.
func mark(i int) string { return "lakeweirref" + strconv.Itoa(i) + "z" }

func keywords(text string) (map[string]string, error) {
	if strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://") {
		return urlKeywords(text)
	}
	values := map[string]string{}
	for rest := text; rest != ""; {
		name, after, ok := strings.Cut(rest, "=")
		if !ok {
			return nil, errors.New("it is neither a URL nor a list of keyword=value")
		}
		value, next, err := keywordValue(strings.TrimLeft(after, " \t"))
		if err != nil {
			return nil, err
		}
		values[strings.TrimSpace(name)] = value
		rest = strings.TrimSpace(next)
	}
	return values, nil
}

// keywordValue takes a value off the front, in quotes or up to the next blank.
func keywordValue(s string) (value, rest string, err error) {
	var b strings.Builder
	quoted := strings.HasPrefix(s, "'")
	i := 0
	if quoted {
		i = 1
	}
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case quoted && c == '\'':
			return b.String(), s[i+1:], nil
		case !quoted && (c == ' ' || c == '\t' || c == '\n'):
			return b.String(), s[i:], nil
		default:
			b.WriteByte(c)
		}
	}
	if quoted {
		return "", "", errors.New("a quote in it is not closed")
	}
	return b.String(), "", nil
}

func urlKeywords(text string) (map[string]string, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	end := len(rest)
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		end = i
	}
	at := strings.LastIndexByte(rest[:end], '@')
	hosts, tail := rest[at+1:end], rest[end:]
	u, err := url.Parse(scheme + "://" + rest[:at+1] + "host" + tail)
	if err != nil {
		return nil, errors.New("it is not a URL that can be read") // the parser's message shows the string
	}
	values := map[string]string{"dbname": strings.TrimPrefix(u.Path, "/")}
	for k, v := range u.Query() {
		values[k] = v[len(v)-1]
	}
	if u.User != nil {
		values["user"] = u.User.Username()
		values["password"], _ = u.User.Password()
	}
	if hosts != "" {
		host, port, err := hostPort(hosts)
		if err != nil {
			return nil, err
		}
		values["host"] = host
		if port != "" {
			values["port"] = port
		}
	}
	return values, nil
}

func hostPort(s string) (host, port string, err error) {
	if strings.Contains(s, ",") {
		return s, "", nil // several, which the caller refuses
	}
	if strings.HasPrefix(s, "[") {
		i := strings.IndexByte(s, ']')
		if i < 0 {
			return "", "", errors.New("a bracket in it is not closed")
		}
		return s[1:i], strings.TrimPrefix(s[i+1:], ":"), nil
	}
	host, port, _ = strings.Cut(s, ":")
	if host, err = url.PathUnescape(host); err != nil {
		return "", "", errors.New("its host cannot be read")
	}
	return host, port, nil
}
