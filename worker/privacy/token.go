package privacy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"

	"github.com/lakeweir/lakeweir/catalog"
)

const (
	// tokenDomain keeps tokens apart from anything else made with the key.
	tokenDomain = "lakeweir/token/v1\x00"
	tokenPrefix = "tok_"
	tokenBytes  = 16

	// Redacted stands for every value of a redacted column that is not NULL.
	Redacted = "[redacted]"

	minKey = 32
)

// Text transforms the text that the source prints for values, as Masker.Apply
// does for the values themselves. Not safe for concurrent use.
type Text struct {
	mac hash.Hash // nil without a key
	sum [sha256.Size]byte
	in  []byte
}

// NewText returns a transformer. It fails with privacy.key when the key is
// shorter than 32 bytes; an empty key serves tables that only redact.
func NewText(key []byte) (*Text, error) {
	t := &Text{}
	if len(key) == 0 {
		return t, nil
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	t.mac = hmac.New(sha256.New, key)
	return t, nil
}

// Append appends what stands in the lake for a value that is not NULL. The token
// depends on the key and the text alone, so it joins across tables and columns.
func (t *Text) Append(dst []byte, p catalog.Protection, text []byte) ([]byte, error) {
	switch p {
	case catalog.Redact:
		return append(dst, Redacted...), nil
	case catalog.Tokenize:
		if t.mac == nil {
			return dst, errNoKey()
		}
		t.mac.Reset()
		t.in = append(append(t.in[:0], tokenDomain...), text...)
		t.mac.Write(t.in)
		sum := t.mac.Sum(t.sum[:0])
		clear(t.in)
		return base64.RawURLEncoding.AppendEncode(append(dst, tokenPrefix...), sum[:tokenBytes]), nil
	}
	return dst, catalog.Errorf(catalog.Internal, catalog.CodeInternal, "", "a column has the unknown protection %q", p)
}

func checkKey(key []byte) error {
	if len(key) == 0 {
		return errNoKey()
	}
	if len(key) < minKey {
		return catalog.Errorf(catalog.Invalid, catalog.CodePrivacyKey,
			"use 32 random bytes or more, such as those of: openssl rand -base64 48",
			"the tokenisation key has %d bytes, fewer than %d", len(key), minKey)
	}
	return nil
}

func errNoKey() error {
	return catalog.Errorf(catalog.Invalid, catalog.CodePrivacyKey,
		"set token_key in source.yaml to a reference such as ${env:LAKEWEIR_TOKEN_KEY} or ${file:/run/secrets/token_key}",
		"a column is to be tokenized and the source has no tokenisation key")
}
