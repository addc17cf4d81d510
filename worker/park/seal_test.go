package park

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
)

var scope = Scope{Source: "shop", Table: "public.orders", Quarantine: 7}

func code(err error) catalog.Code { return catalog.Public(err).Code }

func drawScope(t *rapid.T, name string) Scope {
	// So few that two are often alike, or differ only in where one name ends.
	return Scope{
		Source:     rapid.SampledFrom([]string{"", "a", "aa"}).Draw(t, name+" source"),
		Table:      rapid.SampledFrom([]string{"", "a", "aa"}).Draw(t, name+" table"),
		Quarantine: rapid.Int64Range(1, 2).Draw(t, name+" quarantine"),
	}
}

func TestARunOpensAsWhatItWasSealedAsAndAsNothingElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k, data := NewKey(), rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "data")
		s, seq := drawScope(t, "sealed"), rapid.Uint64Range(1, 2).Draw(t, "seq")
		file, err := seal(k, s, seq, data)
		require.NoError(t, err)
		got, err := open(k, s, seq, file)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got))

		again, err := seal(k, s, seq, data)
		require.NoError(t, err)
		require.NotEqual(t, file, again, "the same is never sealed alike")

		other, otherSeq := drawScope(t, "opened"), rapid.Uint64Range(1, 2).Draw(t, "other seq")
		if _, err := open(k, other, otherSeq, file); other != s || otherSeq != seq {
			require.Equal(t, catalog.CodeParkDamaged, code(err))
			require.NotEmpty(t, catalog.Public(err).Hint)
		} else {
			require.NoError(t, err)
		}
		_, err = open(NewKey(), s, seq, file)
		require.Equal(t, catalog.CodeParkKey, code(err))
	})
}

func TestAFileThatWasCutOrChangedDoesNotOpen(t *testing.T) {
	t.Parallel()
	k := NewKey()
	file, err := seal(k, scope, 3, []byte("alice@example.org was here, and here, and here"))
	require.NoError(t, err)
	for n := range file {
		_, err := open(k, scope, 3, file[:n])
		require.Equal(t, catalog.CodeParkDamaged, code(err), "cut to %d bytes", n)
		require.ErrorContains(t, err, "shop/public.orders, quarantine 7: the file of run 3")
		for bit := range 8 {
			changed := bytes.Clone(file)
			changed[n] ^= 1 << bit
			_, err := open(k, scope, 3, changed)
			require.Contains(t, []catalog.Code{catalog.CodeParkDamaged, catalog.CodeParkKey, catalog.CodeParkVersion}, code(err), "byte %d, bit %d", n, bit)
		}
	}
	_, err = open(k, scope, 3, append(bytes.Clone(file), 0))
	require.Equal(t, catalog.CodeParkDamaged, code(err))
	_, err = open(k, scope, 3, []byte("PAR1, and not at all what was put there; much longer than a header"))
	require.ErrorContains(t, err, "is no file of parked changes")

	newer := bytes.Clone(file)
	newer[len(magic)] = version + 1
	_, err = open(k, scope, 3, newer)
	require.Equal(t, catalog.CodeParkVersion, code(err))
}

func TestASealedRunTellsNothing(t *testing.T) {
	t.Parallel()
	value := []byte("alice@example.org")
	file, err := seal(NewKey(), scope, 1, bytes.Repeat(value, 10_000))
	require.NoError(t, err)
	require.NotContains(t, string(file), string(value))
	require.Less(t, len(file), 10_000, "it was packed before it was sealed")
}

func TestTooMuchIsRefused(t *testing.T) {
	t.Parallel()
	_, err := seal(NewKey(), scope, 1, make([]byte, MaxData+1)) // of pages that nobody touches
	require.Equal(t, catalog.CodeParkSize, code(err))
	require.ErrorContains(t, err, "shop/public.orders, quarantine 7: run 1 has")
}

// xor is a token key in a test.
type xor byte

func (x xor) Seal(plain []byte) string {
	out := []byte{byte(x)}
	for _, b := range plain {
		out = append(out, b^byte(x))
	}
	return hex.EncodeToString(out)
}

func (x xor) Open(sealed string) ([]byte, error) {
	out, err := hex.DecodeString(sealed)
	if err != nil || len(out) == 0 || out[0] != byte(x) {
		return nil, fmt.Errorf("another key than %d", x)
	}
	for i := range out {
		out[i] ^= byte(x)
	}
	return out[1:], nil
}

func TestAKeyIsKeptUnderTheSourcesTokenKey(t *testing.T) {
	t.Parallel()
	k := NewKey()
	require.Len(t, k.ID(), 16)
	require.NotEqual(t, k.ID(), NewKey().ID())
	for name, s := range map[string]Sealer{"with one": xor(5), "without": nil} {
		kept := k.Seal(s)
		got, err := OpenKey(kept, k.ID(), s)
		require.NoError(t, err, name)
		require.Equal(t, k.bytes, got.bytes)
		_, err = OpenKey(kept, NewKey().ID(), s)
		require.Equal(t, catalog.CodeParkKey, code(err), "the key of another quarantine")
	}
	got, err := OpenKey(k.Seal(nil), k.ID(), xor(5))
	require.NoError(t, err, "a source that got a token key since")
	require.Equal(t, k.bytes, got.bytes)
	for name, s := range map[string]Sealer{"another token key": xor(6), "the source has none": nil} {
		_, err := OpenKey(k.Seal(xor(5)), k.ID(), s)
		require.Equal(t, catalog.CodeParkKey, code(err), name)
		require.Contains(t, catalog.Public(err).Hint, "token_key", name)
	}
	for _, damaged := range []catalog.Secret{"", "sealed:", "plain:", "plain:AAAA", "plain:!", "x"} {
		_, err := OpenKey(damaged, k.ID(), xor(5))
		require.Equal(t, catalog.CodeParkKey, code(err), string(damaged))
	}
}

func TestAKeyDoesNotShow(t *testing.T) {
	t.Parallel()
	k := NewKey()
	doc, err := json.Marshal(map[string]any{"key": k})
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", k)
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", k, k, k, k), string(doc), log.String(), fmt.Sprint(k.Seal(nil))} {
		require.Contains(t, text, "***")
		require.NotContains(t, text, fmt.Sprint(k.bytes[0], " ", k.bytes[1]))
	}
}
