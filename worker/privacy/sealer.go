package privacy

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

const (
	sealDomain = "lakeweir/seal/v1"
	sealPrefix = "sealed1."
)

// Sealer hides what must be read back by us and by nobody else, such as where the
// next chunk of a table with a tokenized key starts. Safe for concurrent use.
type Sealer struct{ aead cipher.AEAD }

// NewSealer derives its key from the tokenisation key, which must have 32 bytes
// or more.
func NewSealer(key []byte) (*Sealer, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	derived, err := hkdf.Key(sha256.New, key, nil, sealDomain, 32)
	if err != nil {
		return nil, fmt.Errorf("derive the sealing key: %w", err)
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, fmt.Errorf("make the sealing cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make the sealing cipher: %w", err)
	}
	return &Sealer{aead: aead}, nil
}

// Seal returns a printable text that only Open can read. Sealing the same twice
// gives two texts.
func (s *Sealer) Seal(plain []byte) string {
	return sealPrefix + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, nil)) //nolint:gosec // no nonce is given: the cipher draws one
}

// Open returns what Seal was given. It fails with privacy.key when the text was
// sealed with another key or is damaged.
func (s *Sealer) Open(sealed string) ([]byte, error) {
	text, ok := strings.CutPrefix(sealed, sealPrefix)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if ok && err == nil && len(raw) >= s.aead.Overhead() {
		if plain, err := s.aead.Open(nil, nil, raw, nil); err == nil {
			return plain, nil
		}
	}
	return nil, catalog.Errorf(catalog.Invalid, catalog.CodePrivacyKey,
		"give the source the token_key it had when its snapshot began, or start the snapshot anew",
		"a sealed position cannot be opened with this tokenisation key")
}
