package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheFolderIsTakenFromTheFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags  []string
		dir    string
		others []string
	}{
		{nil, "lakeweir-demo-debezium", nil},
		{[]string{"--verify", "--dir", "x", "--rate", "9"}, "x", []string{"--verify", "--rate", "9"}},
		{[]string{"--dir=a=b", "--verify"}, "a=b", []string{"--verify"}},
		{[]string{"--dir"}, "lakeweir-demo-debezium", []string{"--dir"}}, // which the demo refuses
	} {
		dir, others := folder(c.flags)
		require.Equal(t, c.dir, dir)
		require.Equal(t, c.others, others)
	}
}
