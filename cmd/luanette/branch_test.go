package main

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/alecthomas/kong"
)

// TestBranch runs every command with --help and with an unknown flag. The parser of all
// commands and the parser of that command alone must print the same.
func TestBranch(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	whole := parserOf(t, new(cli), &want)
	leaves := whole.Model.Leaves(false)
	if len(leaves) < 60 {
		t.Fatalf("%d commands", len(leaves))
	}
	for _, leaf := range leaves {
		words := pathTo(leaf)
		if n := reflect.TypeOf(branch(words)).Elem().NumField(); n != 2 { // the global flags and the command
			t.Errorf("%v: the parser knows %d commands", words, n-1)
		}
		var got bytes.Buffer
		alone := parserOf(t, branch(words), &got)
		for _, last := range []string{"--help", "--nothing-like-it"} {
			asked := slices.Concat(words, []string{last})
			want.Reset()
			got.Reset()
			_, wantErr := whole.Parse(asked)
			_, gotErr := alone.Parse(asked)
			if got.String() != want.String() || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Errorf("%v: got %s%v, want %s%v", asked, &got, gotErr, &want, wantErr)
			}
		}
	}
	for _, words := range [][]string{nil, {"--help"}, {"nothing"}} {
		if _, ok := branch(words).(*cli); !ok {
			t.Errorf("%v: the parser does not know all commands", words)
		}
	}
}

// pathTo returns the words that name a command.
func pathTo(leaf *kong.Node) (words []string) {
	for node := leaf; node.Type == kong.CommandNode; node = node.Parent {
		words = append([]string{node.Name}, words...)
	}
	return words
}

func parserOf(t *testing.T, grammar any, out io.Writer) *kong.Kong {
	t.Helper()
	return newParser(t.Context(), &process{Stdout: out, Stderr: out}, grammar, func(int) {})
}
