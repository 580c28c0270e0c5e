package packages

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSignaturesAreThoseThatNPMFinds lets a script stand for npm, which would ask Sigstore.
func TestSignaturesAreThoseThatNPMFinds(t *testing.T) {
	t.Parallel()
	from := published(t)
	s, r := New(Options{Folder: t.TempDir()}), request(t, start(t, from, "@scope/server"))
	record, err := s.Ensure(t.Context(), r, quiet)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	r.Start.Path = folder + string(os.PathListSeparator) + r.Start.Path
	says := func(answer string) {
		t.Helper()
		script := "#!/bin/sh\ntest -f package-lock.json -a \"$1 $2\" = 'audit signatures' || exit 3\ncat <<'END'\n" + answer + "\nEND\nexit 1\n"
		if err := os.WriteFile(filepath.Join(folder, "npm"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	says(`{"invalid": [{"name": "dep", "version": "1.0.0", "code": "EINTEGRITYSIGNATURE"}], "missing": [], "verified": [{"name": "@scope/server", "version": "1.0.0"}]}`)
	found, err := s.Verify(t.Context(), r, record)
	if err != nil || !slices.Equal(found.Invalid, []string{"dep@1.0.0"}) || !slices.Equal(found.Attested, []string{"@scope/server@1.0.0"}) {
		t.Errorf("found %+v, %v", found, err)
	}
	says(`{"error": {"code": "ENOTFOUND", "summary": "getaddrinfo ENOTFOUND tuf-repo-cdn.sigstore.dev"}}`)
	if _, err := s.Verify(t.Context(), r, record); err == nil || !strings.Contains(err.Error(), "tuf-repo-cdn") {
		t.Errorf("without a network: %v", err)
	}
}
