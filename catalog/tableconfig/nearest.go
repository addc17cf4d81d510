package tableconfig

import (
	"slices"
	"strings"
)

// synonyms are what other tools call our keys.
var synonyms = map[string]string{
	"dsn": "connection", "url": "connection", "uri": "connection", "connection_string": "connection", "host": "connection", "password": "connection",
	"type": "kind", "database": "kind", "replication_slot": "slot", "namespace": "namespaces",
	"pk": "primary_key", "key": "primary_key", "keys": "primary_key", "key_columns": "primary_key", "id": "primary_key",
	"name": "table", "team": "owner", "freshness": "freshness_tier", "sla": "freshness_tier",
	"mask": "pii", "masking": "pii", "sensitive": "pii", "history": "scd", "layers": "scd",
}

// Nearest returns the one of words that was probably meant by word, or "".
func Nearest(word string, words []string) string { return nearest(word, words) }

// nearest returns the word that was probably meant, or "": the one with the
// fewest typing errors, else the only one that shares a whole part (tier,
// freshness_tier).
func nearest(word string, words []string) string {
	word = strings.ToLower(strings.NewReplacer("-", "_", " ", "_").Replace(word))
	if meant := synonyms[word]; meant != "" && slices.Contains(words, meant) {
		return meant
	}
	best, least := "", max(2, len(word)/3)+1
	if len(word) < 3 {
		least = 2
	}
	for _, w := range words {
		if d := typos(word, w); d < least {
			best, least = w, d
		}
	}
	if best != "" || len(word) < 3 {
		return best
	}
	for _, w := range words {
		if strings.Contains("_"+w+"_", "_"+word+"_") || strings.Contains("_"+word+"_", "_"+w+"_") {
			if best != "" {
				return ""
			}
			best = w
		}
	}
	return best
}

// typos counts the insertions, deletions, replacements and swaps of neighbours
// that turn a into b.
func typos(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 64 || len(y) > 64 {
		return 64
	}
	rows := [3][]int{make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(x); i++ {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		rows = [3][]int{last, row, before}
	}
	return rows[1][len(y)]
}
