package cas_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/cas/castest"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func node(t *testing.T, d *db.DB) *cas.Database {
	t.Helper()
	near, err := cas.OpenDir(t.TempDir(), cas.DirOptions{MaxSize: castest.MaxSize})
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
	castest.Run(t, func(t *testing.T) cas.Store { return node(t, dbtest.Open(t, dbtest.Fresh(t))) })
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

func TestDamageInTheDatabase(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.Fresh(t))
	here, there := node(t, d), node(t, d)
	ref, _, err := here.Put(t.Context(), bytes.NewReader([]byte("sound")))
	if err != nil {
		t.Fatal(err)
	}
	err = d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(t.Context(), "UPDATE blob_parts SET data = $1", []byte("wound"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := there.Open(t.Context(), ref); fault.CodeOf(err) != fault.Internal || fault.HintOf(err) == "" {
		t.Errorf("Open = %v, want internal with a hint", err)
	}
}

func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t, TestSuite, TestNodesShareContents, TestDamageInTheDatabase)
}
