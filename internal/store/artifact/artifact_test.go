package artifact_test

import (
	"path/filepath"
	"slices"
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

// TestResultsAreFound stores what a script made: it is found with its job, is announced as an
// artifact only when it becomes one, and then says who made that.
func TestResultsAreFound(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	files, err := artifact.OpenFiles(t.Context(), dbtest.Open(t, dbtest.Fresh(t)), artifact.FilesOptions{Folder: t.TempDir(), Options: artifact.Options{Events: bus}})
	if err != nil {
		t.Fatal(err)
	}
	created := bus.Subscribe(event.Options{Types: []string{"artifact.created"}})
	t.Cleanup(created.Close)
	for _, job := range []string{"one", "two"} { // a later run stores the same again
		if _, err := files.PutResult(t.Context(), strings.NewReader("# Report"), artifact.Result{MIME: "text/markdown", Name: "report.md", Script: "daily", Job: job}); err != nil {
			t.Fatal(err)
		}
	}
	page, err := files.Search(t.Context(), artifact.Query{Tags: []string{artifact.ResultTag, "job:one"}})
	if err != nil || page.Total != 1 || page.Artifacts[0].Name != "report.md" || page.Artifacts[0].Creator != "daily" || len(page.Artifacts[0].Tags) != 2 {
		t.Errorf("the results: %+v, %v", page, err)
	}
	a, isNew, err := files.Put(t.Context(), strings.NewReader("# Report"), artifact.Details{MIME: "text/markdown", Creator: "ada", Untag: artifact.ResultTag})
	if err != nil || !isNew || a.Creator != "ada" || a.Name != "report.md" || slices.Contains(a.Tags, artifact.ResultTag) {
		t.Errorf("the artifact: %+v, %v, %v", a, isNew, err)
	}
	if first, err := created.Next(t.Context()); err != nil || first.Data.(artifact.Created).Creator != "ada" {
		t.Errorf("announced: %+v, %v", first, err)
	}
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
