package demo

import (
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// texts makes texts of any length from one prepared long text.
type texts struct {
	rng    *rand.Rand
	corpus string
}

// words include what is awkward to carry: quotes, separators, backslashes, line
// breaks, letters of two to four bytes.
var words = strings.Split(`order goods carton pallet invoice delivery "fragile" it's weight €, net; gross\tare customs Zürich Århus 東京 🚚 {braces} [brackets] a,b,c NULL null \N %s $1 -- ok`, " ")

func newTexts(rng *rand.Rand) *texts {
	var b strings.Builder
	for b.Len() < 128<<10 {
		b.WriteString(words[rng.IntN(len(words))])
		if rng.IntN(15) == 0 {
			b.WriteByte('\n')
		} else {
			b.WriteByte(' ')
		}
	}
	return &texts{rng: rng, corpus: b.String()}
}

// of returns a text of lo to hi bytes.
func (t *texts) of(lo, hi int) string {
	n := lo + t.rng.IntN(hi-lo+1)
	from := t.rng.IntN(len(t.corpus) - n)
	to := from + n
	for !utf8.RuneStart(t.corpus[from]) {
		from++
	}
	for !utf8.RuneStart(t.corpus[to]) {
		to--
	}
	return t.corpus[from:max(from, to)]
}

// body is the text of a document: 3 to 40 kB, mostly short.
func (t *texts) body() string {
	if t.rng.IntN(10) == 0 {
		return t.of(10<<10, 40<<10)
	}
	return t.of(3<<10, 10<<10)
}

// one returns one of the given texts.
func (t *texts) one(choices ...string) string { return choices[t.rng.IntN(len(choices))] }
