package artifact_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func open(t *testing.T, url, folder string, bus *event.Bus) *artifact.Store {
	t.Helper()
	database := dbtest.Open(t, url)
	blobs, err := cas.OpenDir(filepath.Join(folder, "blobs"), cas.DirOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := artifact.Open(t.Context(), database, blobs, artifact.Options{Events: bus})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSuite(t *testing.T) {
	t.Parallel()
	runSuite(t, func(t *testing.T, bus *event.Bus) *artifact.Store { return open(t, dbtest.Fresh(t), t.TempDir(), bus) })
}

func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t, TestSuite, TestArtifactsAreThereAfterOpeningAgain, TestShownAsPrincipalSees, TestSharedArtifacts, TestShareIsOfOneOwner, TestStorageQuota, TestNothingIsOwnedAfterAnError)
}

func TestArtifactsAreThereAfterOpeningAgain(t *testing.T) {
	t.Parallel()
	folder, url := t.TempDir(), dbtest.Fresh(t)
	a, _, err := open(t, url, folder, nil).Put(t.Context(), strings.NewReader("x"), artifact.Details{Name: "kept", Description: "safe"})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, url, folder, nil)
	if content, err := s.Read(t.Context(), a.Hash, 10); err != nil || string(content) != "x" {
		t.Errorf("Read = %q, %v", content, err)
	}
	if page, err := s.Search(t.Context(), artifact.Query{Vibe: "safe"}); err != nil || page.Total != 1 {
		t.Errorf("Search = %+v, %v", page, err)
	}
}
