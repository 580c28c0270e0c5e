package cas_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// maxSize is the size limit, in bytes, of the stores under test.
const maxSize = 4 << 20

// runSuite tests the behaviour that every Store must have. Each call of open returns an
// empty one that refuses content larger than maxSize.
func runSuite(t *testing.T, open func(t *testing.T) cas.Store) {
	tests := map[string]func(t *testing.T, s cas.Store){
		"returns what was stored":            returnsStored,
		"stores the same content once":       storesOnce,
		"does not know what was not stored":  unknown,
		"refuses what is too large":          tooLarge,
		"stores nothing of a failing reader": brokenReader,
		"stops when cancelled":               cancelled,
		"finds by prefix":                    prefix,
		"lists matches in order":             ordered,
		"accepts concurrent writers":         manyWriters,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// put stores content and fails the test on an error.
func put(t *testing.T, s cas.Store, content []byte) cas.Ref {
	t.Helper()
	ref, size, err := s.Put(t.Context(), bytes.NewReader(content))
	if err != nil {
		t.Fatalf("Put: %v", err)
	}
	if size != int64(len(content)) || ref != cas.Sum(content) {
		t.Fatalf("Put = %s, %d; want %s, %d", ref, size, cas.Sum(content), len(content))
	}
	return ref
}

func returnsStored(t *testing.T, s cas.Store) {
	for _, size := range []int{0, 1, 1023, 1025, maxSize} {
		content := bytes.Repeat([]byte{byte(size), 7}, size/2+1)[:size]
		ref := put(t, s, content)
		got, err := cas.Read(t.Context(), s, ref, maxSize)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes: read %d back (%v)", size, len(got), err)
		}
		if n, err := s.Stat(t.Context(), ref); err != nil || n != int64(size) {
			t.Errorf("Stat = %d, %v; want %d", n, err, size)
		}
	}
}

func storesOnce(t *testing.T, s cas.Store) {
	first := put(t, s, []byte("twice"))
	if second := put(t, s, []byte("twice")); second != first {
		t.Errorf("the same content got %s and %s", first, second)
	}
	refs, err := s.Match(t.Context(), first.Short(), 10)
	if err != nil || len(refs) != 1 {
		t.Errorf("Match = %v, %v; want one", refs, err)
	}
}

func unknown(t *testing.T, s cas.Store) {
	ref := cas.Sum([]byte("never stored"))
	_, openErr := s.Open(t.Context(), ref)
	_, statErr := s.Stat(t.Context(), ref)
	_, resolveErr := cas.Resolve(t.Context(), s, ref.String())
	for doing, err := range map[string]error{"Open": openErr, "Stat": statErr, "Resolve": resolveErr} {
		if fault.CodeOf(err) != fault.NotFound || fault.HintOf(err) == "" {
			t.Errorf("%s = %v, want not_found with a hint", doing, err)
		}
	}
}

func tooLarge(t *testing.T, s cas.Store) {
	content := make([]byte, maxSize+1)
	_, _, err := s.Put(t.Context(), bytes.NewReader(content))
	if fault.CodeOf(err) != fault.Limit {
		t.Errorf("Put = %v, want limit_exceeded", err)
	}
	wantNothing(t, s, content)
}

func brokenReader(t *testing.T, s cas.Store) {
	broken := errors.New("connection lost")
	begun := "the beginning"
	_, _, err := s.Put(t.Context(), io.MultiReader(strings.NewReader(begun), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("Put = %v, want the reader's error", err)
	}
	wantNothing(t, s, []byte(begun))
}

func cancelled(t *testing.T, s cas.Store) {
	content := []byte("cancelled")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Put(ctx, bytes.NewReader(content)); !errors.Is(err, context.Canceled) {
		t.Errorf("Put = %v, want cancelled", err)
	}
	wantNothing(t, s, content)

	ref := put(t, s, content)
	if _, err := cas.Read(ctx, s, ref, maxSize); !errors.Is(err, context.Canceled) {
		t.Errorf("Read = %v, want cancelled", err)
	}
}

func wantNothing(t *testing.T, s cas.Store, content []byte) {
	t.Helper()
	if _, err := s.Stat(t.Context(), cas.Sum(content)); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("Stat = %v, want nothing to be stored", err)
	}
}

func prefix(t *testing.T, s cas.Store) {
	ref := put(t, s, []byte("found"))
	put(t, s, []byte("another"))
	digits := ref.String()
	for _, name := range []string{digits, digits[:12], digits[:63], "cas:" + digits, "cas:" + digits[:20], strings.ToUpper(digits)} {
		if got, err := cas.Resolve(t.Context(), s, name); err != nil || got != ref {
			t.Errorf("Resolve(%s) = %v, %v; want %v", name, got, err, ref)
		}
	}
	for _, name := range []string{digits[:11], "", "cas:", digits + "0", "not-a-hash-at-all"} {
		if _, err := cas.Resolve(t.Context(), s, name); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("Resolve(%q) = %v, want invalid_params", name, err)
		}
	}
}

// ordered passes Match fewer digits than Resolve ever does: contents with 12 digits in
// common cannot be found.
func ordered(t *testing.T, s cas.Store) {
	prefix := put(t, s, []byte("seed")).String()[:2]
	want := 1
	for i := 0; want < 3; i++ {
		if content := fmt.Appendf(nil, "%d", i); cas.Sum(content).String()[:2] == prefix {
			put(t, s, content)
			want++
		}
	}
	refs, err := s.Match(t.Context(), prefix, 10)
	if err != nil || len(refs) != 3 {
		t.Fatalf("Match = %v, %v; want 3", refs, err)
	}
	for i := range refs[1:] {
		if refs[i].String() >= refs[i+1].String() {
			t.Errorf("refs are not in order: %v", refs)
		}
	}
	if refs, err := s.Match(t.Context(), prefix, 2); err != nil || len(refs) != 2 {
		t.Errorf("Match with a limit of 2 = %v, %v", refs, err)
	}
}

func manyWriters(t *testing.T, s cas.Store) {
	var all sync.WaitGroup
	for i := range 16 {
		content := fmt.Appendf(nil, "content %d", i%4)
		all.Go(func() {
			ref, _, err := s.Put(t.Context(), bytes.NewReader(content))
			if err != nil {
				t.Errorf("Put: %v", err)
				return
			}
			if got, err := cas.Read(t.Context(), s, ref, maxSize); err != nil || !bytes.Equal(got, content) {
				t.Errorf("read back %q, %v; want %q", got, err, content)
			}
		})
	}
	all.Wait()
}

// testRemoves tests that a store removes content, and stores it again. write runs a transaction.
func testRemoves(t *testing.T, s cas.Store, write func(func(tx *db.Tx) error) error) {
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
		if got, err := cas.Read(t.Context(), s, ref, maxSize); err != nil || !bytes.Equal(got, want) || !has(ref) {
			t.Errorf("%d bytes, %v, want %d", len(got), err, len(want))
		}
	}
}
