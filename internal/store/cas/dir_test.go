package cas_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

func openDir(t *testing.T, root string, o cas.DirOptions) *cas.Dir {
	t.Helper()
	d, err := cas.OpenDir(root, o)
	if err != nil {
		t.Fatalf("OpenDir: %v", err)
	}
	return d
}

func TestDir(t *testing.T) {
	t.Parallel()
	runSuite(t, func(t *testing.T) cas.Store {
		return openDir(t, t.TempDir(), cas.DirOptions{MaxSize: maxSize})
	})
}

func TestDirRemoves(t *testing.T) {
	t.Parallel()
	testRemoves(t, openDir(t, t.TempDir(), cas.DirOptions{}), func(f func(*db.Tx) error) error { return f(nil) })
}

// files lists what a store's folder holds, relative to it.
func files(t *testing.T, root string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(root, path)
			found = append(found, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestDirLayout(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := openDir(t, root, cas.DirOptions{})
	for range 2 {
		if _, _, err := d.Put(t.Context(), bytes.NewReader(nil)); err != nil {
			t.Fatal(err)
		}
	}
	got := files(t, root)
	if want := "objects/af/" + empty[2:]; len(got) != 1 || got[0] != want {
		t.Errorf("files %q, want only %s", got, want)
	}
	again := openDir(t, root, cas.DirOptions{})
	if n, err := again.Stat(t.Context(), cas.Sum(nil)); err != nil || n != 0 {
		t.Errorf("Stat after reopening = %d, %v", n, err)
	}
}

func TestDamageIsNoticedAndRepaired(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := openDir(t, root, cas.DirOptions{})
	content := []byte("sound content")
	ref, _, err := d.Put(t.Context(), bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, files(t, root)[0])
	if err := os.WriteFile(file, []byte("other content"), 0o600); err != nil { // of the same length
		t.Fatal(err)
	}

	r, err := d.Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadAll(r)
	if fault.CodeOf(err) != fault.Internal || fault.HintOf(err) == "" {
		t.Errorf("reading damaged content = %v, want a fault with a hint", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}

	if _, _, err := d.Put(t.Context(), bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if got, err := cas.Read(t.Context(), d, ref, 100); err != nil || !bytes.Equal(got, content) {
		t.Errorf("after storing again: %q, %v", got, err)
	}
}

func TestReadHasALimit(t *testing.T) {
	t.Parallel()
	d := openDir(t, t.TempDir(), cas.DirOptions{MaxSize: -1})
	ref, _, err := d.Put(t.Context(), bytes.NewReader(make([]byte, 11)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cas.Read(t.Context(), d, ref, 10); fault.CodeOf(err) != fault.Limit {
		t.Errorf("Read = %v, want limit_exceeded", err)
	}
}

func TestOnlyOldUnfinishedFilesAreRemoved(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	openDir(t, root, cas.DirOptions{})
	for _, name := range []string{"put-old", "put-new"} {
		if err := os.WriteFile(filepath.Join(root, "unfinished", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(filepath.Join(root, "unfinished", "put-old"), old, old); err != nil {
		t.Fatal(err)
	}
	openDir(t, root, cas.DirOptions{})
	if got := files(t, root); len(got) != 1 || got[0] != "unfinished/put-new" {
		t.Errorf("files %q, want only unfinished/put-new", got)
	}
}

func TestOpenDirWhereAFileIs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cas.OpenDir(file, cas.DirOptions{}); err == nil {
		t.Error("OpenDir of a file gave no error")
	}
}

func BenchmarkPut(b *testing.B) {
	d, err := cas.OpenDir(b.TempDir(), cas.DirOptions{})
	if err != nil {
		b.Fatal(err)
	}
	content := make([]byte, 4096)
	for n := 0; b.Loop(); n++ {
		content[0], content[1], content[2] = byte(n), byte(n>>8), byte(n>>16)
		if _, _, err := d.Put(b.Context(), bytes.NewReader(content)); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAnErrorOfTheSourceIsReturnedAsItIs(t *testing.T) {
	t.Parallel()
	d := openDir(t, t.TempDir(), cas.DirOptions{})
	cause := fault.New(fault.Limit, "the music lasts 180000 seconds")
	if _, _, err := d.Put(t.Context(), io.MultiReader(strings.NewReader("begin"), iotest.ErrReader(cause))); err == nil || err.Error() != cause.Error() {
		t.Errorf("got %v, want %v", err, cause)
	}
}
