package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATestThatOneRunExecutedIsNotListed(t *testing.T) {
	t.Parallel()
	const race = `building
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: SKIPPED: the race detector empties pools\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB/x","Output":"    b_test.go:1: SKIPPED: no Chromium on this machine\n"}
{"Action":"skip","Package":"p","Test":"TestB/x"}
{"Action":"skip","Package":"p","Test":"TestC"}
`
	const plain = `{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"q","Test":"TestB","Output":"    b_test.go:1: SKIPPED: no Chromium on this machine\n"}
{"Action":"skip","Package":"q","Test":"TestB"}
`
	var r results
	require.NoError(t, r.read(strings.NewReader(race)))
	require.NoError(t, r.read(strings.NewReader(plain)))
	require.Equal(t, map[string]int{"no Chromium on this machine": 2, "p TestC gives no reason": 1}, r.reasons())
}
