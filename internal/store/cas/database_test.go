package cas_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func node(t *testing.T, d *db.DB) *cas.Database {
	t.Helper()
	return nodeIn(t, d, t.TempDir())
}

func nodeIn(t *testing.T, d *db.DB, folder string) *cas.Database {
	t.Helper()
	near, err := cas.OpenDir(folder, cas.DirOptions{MaxSize: maxSize})
	if err != nil {
		t.Fatal(err)
	}
	s, err := cas.OpenDatabase(t.Context(), d, near)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSuite(t *testing.T) {
	t.Parallel()
	runSuite(t, func(t *testing.T) cas.Store { return node(t, dbtest.Open(t, dbtest.Fresh(t))) })
}

// One node reads what another stored, although they share no folder.
func TestNodesShareContents(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.Fresh(t))
	here, there := node(t, d), node(t, d)
	for _, size := range []int{0, 1, 1 << 20, 1<<20 + 1, 3<<20 + 7} {
		content := make([]byte, size)
		_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(content)
		ref, _, err := here.Put(t.Context(), bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			r, err := there.Open(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, content) || r.Close() != nil {
				t.Errorf("%d bytes came as %d (%v)", size, len(got), err)
			}
		}
	}
}

func TestDatabaseRemoves(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.Fresh(t))
	testRemoves(t, node(t, d), func(f func(*db.Tx) error) error { return d.Write(t.Context(), f) })
}

// TestFilesOfRemovedContents checks that no node keeps a copy of what another one removed:
// neither one that runs, nor one that did not run then. Files that are being stored stay.
func TestFilesOfRemovedContents(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.Fresh(t))
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	here, running, stopped := nodeIn(t, d, folders[0]), nodeIn(t, d, folders[1]), nodeIn(t, d, folders[2])
	var refs []cas.Ref
	for _, text := range []string{"goes", "stays"} {
		ref, _, err := here.Put(t.Context(), strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(running.Fetch(t.Context(), ref), stopped.Fetch(t.Context(), ref)); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	ctx, stop := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { _ = running.Follow(ctx) })
	defer following.Wait()
	defer stop()
	goes := filepath.FromSlash("objects/" + refs[0].String()[:2] + "/" + refs[0].String()[2:])
	gone := func(folder string) bool {
		_, err := os.Stat(filepath.Join(folder, goes))
		return errors.Is(err, fs.ErrNotExist)
	}
	clocktest.Await(t, func() bool { // it may not listen yet
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return here.Remove(t.Context(), tx, refs[0]) }); err != nil {
			t.Fatal(err)
		}
		return gone(folders[0]) && gone(folders[1])
	})
	if err := stopped.Sweep(t.Context()); err != nil || gone(folders[2]) {
		t.Errorf("a new file is gone, %v", err)
	}
	old := time.Now().Add(-48 * time.Hour)
	for _, ref := range refs {
		if err := os.Chtimes(filepath.Join(folders[2], "objects", ref.String()[:2], ref.String()[2:]), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := stopped.Sweep(t.Context()); err != nil || !gone(folders[2]) {
		t.Errorf("an old file is there, %v", err)
	}
	if left := files(t, folders[2]); len(left) != 1 {
		t.Errorf("files %q, want the one that the database has", left)
	}
}

func TestDamageInTheDatabase(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.Fresh(t))
	here, there := node(t, d), node(t, d)
	ref, _, err := here.Put(t.Context(), bytes.NewReader([]byte("sound")))
	if err != nil {
		t.Fatal(err)
	}
	err = d.Exec(t.Context(), "UPDATE blob_parts SET data = $1", []byte("wound"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := there.Open(t.Context(), ref); fault.CodeOf(err) != fault.Internal || fault.HintOf(err) == "" {
		t.Errorf("Open = %v, want internal with a hint", err)
	}
}

func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t, TestSuite, TestNodesShareContents, TestDatabaseRemoves, TestFilesOfRemovedContents, TestDamageInTheDatabase)
}
