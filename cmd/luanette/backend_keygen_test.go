package main

import (
	"strings"
	"testing"
)

// One key in about 80 begins with a dash, so 1,500 are enough to see that none is given out.
func TestPublicKeysAreNoOptions(t *testing.T) {
	t.Parallel()
	for range 1500 {
		if public := newBackendKey().Public().Text(); strings.HasPrefix(public, "-") {
			t.Fatalf("public key %s", public)
		}
	}
}
