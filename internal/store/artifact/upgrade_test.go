package artifact

import (
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// withoutOwners returns the migrations from before artifacts had owners.
func withoutOwners(t *testing.T) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range []string{"00001_artifacts.sql", "00002_contents.sql", "00003_deleted.sql"} {
		text, err := Migrations.ReadFile(path.Join("migrations", name))
		if err != nil {
			t.Fatal(err)
		}
		files["migrations/"+name] = &fstest.MapFile{Data: text}
	}
	return files
}

// TestOldArtifactsAreEverybodys checks that artifacts and contents from before there were
// owners are there after the upgrade, for everybody, and stay so when somebody stores them.
func TestOldArtifactsAreEverybodys(t *testing.T) {
	t.Parallel()
	for kind, fresh := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			upgrade(t, fresh(t))
		})
	}
}

func upgrade(t *testing.T, url string) {
	t.Helper()
	blobs, err := cas.OpenDir(t.TempDir(), cas.DirOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var refs []string
	for _, text := range []string{"old", "old content"} {
		ref, _, err := blobs.Put(t.Context(), strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref.String())
	}
	before := dbtest.OpenWith(t, url, db.Options{})
	if err := before.Migrate(t.Context(), "artifact", withoutOwners(t)); err != nil {
		t.Fatal(err)
	}
	err = before.Write(t.Context(), func(tx *db.Tx) error {
		for _, statement := range []string{
			"INSERT INTO artifacts (hash, number, size, mime, creator, parent, name, description, created_at) VALUES ('" + refs[0] + "', 7, 3, 'text/plain', 'ada', '', 'old', '', 1)",
			"INSERT INTO artifact_tags (tag, number) VALUES ('a', 7)",
			"INSERT INTO artifact_annotations (number, place, message, vibe, source, created_at) VALUES (7, 1, 'fine', '', '', 1)",
			"INSERT INTO contents (hash, size, mime, created_at) VALUES ('" + refs[1] + "', 11, 'text/plain', 1)",
		} {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), dbtest.OpenWith(t, url, db.Options{}), blobs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ada := principal.With(t.Context(), principal.Principal{ID: "key:ada", Org: "acme"})
	bob := principal.With(t.Context(), principal.Principal{ID: "key:bob", Org: "other"})
	a, err := s.Get(ada, cas.Sum([]byte("old")))
	if err != nil || a.Name != "old" || len(a.Tags) != 1 || len(a.Annotations) != 1 || a.number != 7 {
		t.Errorf("%+v, %v", a, err)
	}
	for _, text := range []string{"old", "old content"} {
		if _, err := s.StoreContent(ada, strings.NewReader(text), ""); err != nil {
			t.Fatal(err)
		}
		if c, err := s.Find(bob, cas.Sum([]byte(text)).String()); err != nil || c.MIME != "text/plain" {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
	local := principal.With(t.Context(), principal.Local())
	if again, created, err := s.Put(local, strings.NewReader("old"), Details{Name: "renamed"}); err != nil || created || again.Name != "renamed" {
		t.Errorf("the local owner's: %+v, %v, %v", again, created, err)
	}
	if _, err := s.Delete(bob, a.Hash); fault.CodeOf(err) != fault.Denied {
		t.Errorf("deleted by somebody: %v", err)
	}
}
