package main

import (
	"strings"
	"testing"
)

func TestPrintValueKeepsCharacters(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := printValue(&process{Stdout: &out}, map[string]string{"a": "x > y & <z>"}); err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"a\": \"x > y & <z>\"\n}\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
