package castest

import (
	"bytes"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Removes tests that a store removes content, and stores it again. write runs a transaction.
func Removes(t *testing.T, s cas.Store, write func(func(tx *db.Tx) error) error) {
	t.Helper()
	content, other := bytes.Repeat([]byte("removed"), 1<<18), []byte("stays")
	ref, stays := put(t, s, content), put(t, s, other)
	has := func(ref cas.Ref) (has bool) {
		err := write(func(tx *db.Tx) (err error) {
			has, err = s.Has(t.Context(), tx, ref)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return has
	}
	for range 2 { // the second time there is nothing to remove
		if err := write(func(tx *db.Tx) error { return s.Remove(t.Context(), tx, ref) }); err != nil {
			t.Fatalf("Remove: %v", err)
		}
		if has(ref) {
			t.Error("the store has what was removed")
		}
	}
	wantNothing(t, s, content)
	if _, err := s.Stat(t.Context(), ref); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("Stat = %v, want not found", err)
	}
	put(t, s, content)
	for ref, want := range map[cas.Ref][]byte{ref: content, stays: other} {
		if got, err := cas.Read(t.Context(), s, ref, MaxSize); err != nil || !bytes.Equal(got, want) || !has(ref) {
			t.Errorf("%d bytes, %v, want %d", len(got), err, len(want))
		}
	}
}
