package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/backup"
)

// noise is random: in the compressed form of repetitive data some bits may change
// without changing the data.
var noise = func() []byte {
	b := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}()

var files = map[string]string{"oauth.key": "secret", "cas/objects/ab/cdef": string(noise[:9000]), "scripts/hello.lua": "", "odd name": "x"}

var (
	jobs   = backup.Table{Name: "jobs", Columns: []string{"id", "state", "weight", "done", "body"}}
	header = backup.Header{
		Program: "1.2.3", Created: time.Unix(1e9, 0).UTC(), Database: "postgres", Schema: map[string]int64{"job": 7},
		Tables: []backup.Table{jobs, {Name: "empty", Columns: []string{"x"}}},
	}
)

// rows returns rows with every kind of value, some of them of the given size.
func rows(size int) (all [][]any) {
	for i := range 300 {
		all = append(all, []any{int64(i), "state", math.Pi * float64(i), i%2 == 0, bytes.Repeat([]byte{byte(i)}, i)})
	}
	return append(all,
		[]any{int64(math.MinInt64), "", math.Inf(-1), false, []byte{}},
		[]any{nil, nil, nil, nil, nil},
		[]any{int64(math.MaxInt64), "漢\x01", math.SmallestNonzeroFloat64, true, noise[:size]}, []any{int64(1), "", 0.0, true, noise[:size]}, []any{int64(2), "", 0.0, true, noise[:size]})
}

// packed returns a backup of files and rows.
func packed(t *testing.T, size int) []byte {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	list, err := backup.Files(folder, func(name string, _ bool) bool { return name == "nothing" })
	if err != nil || len(list) != len(files) {
		t.Fatalf("listed %v (%v)", list, err)
	}
	list = append(list, backup.Source{Name: "gone", From: filepath.Join(folder, "gone")})
	var out bytes.Buffer
	var done, total int64
	w, err := backup.NewWriter(t.Context(), &out, header, 1000, func(d, of int64) { done, total = d, of })
	for _, f := range list {
		err = errors.Join(err, w.File(f))
	}
	err = errors.Join(err, w.Table(jobs, func(take func([]any) error) error {
		for _, row := range rows(size) {
			if err := take(row); err != nil {
				return err
			}
		}
		return nil
	}), w.Table(header.Tables[1], func(func([]any) error) error { return nil }), w.Close())
	if err != nil || done == 0 || done != total {
		t.Fatalf("write: %v; progress is %d of %d bytes", err, done, total)
	}
	return out.Bytes()
}

// taken stores what was read.
type taken struct {
	files    map[string]string
	rows     [][]any
	portions int
}

func read(ctx context.Context, archive io.Reader) (h backup.Header, got taken, err error) {
	r, err := backup.NewReader(archive, func(int64, int64) {})
	if err != nil {
		return h, got, err
	}
	got.files = map[string]string{}
	err = r.Read(ctx, backup.Taker{
		File: func(name string, size int64, from io.Reader) error {
			text, err := io.ReadAll(from)
			got.files[name] = string(text)
			if err == nil && int64(len(text)) != size {
				return errors.New("another size")
			}
			return err
		},
		Rows: func(_ backup.Table, next func() ([]any, error)) error {
			got.portions++
			for {
				row, err := next()
				if err != nil || row == nil {
					return err
				}
				got.rows = append(got.rows, row)
			}
		},
	})
	return r.Header, got, err
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	h, got, err := read(t.Context(), bytes.NewReader(packed(t, 3<<20)))
	want := header
	want.Format = backup.Format
	if err != nil || !reflect.DeepEqual(h, want) {
		t.Fatalf("header %+v (%v)", h, err)
	}
	if !reflect.DeepEqual(got.files, files) {
		t.Errorf("files %v", got.files)
	}
	if !reflect.DeepEqual(got.rows, rows(3<<20)) || got.portions < 2 {
		t.Errorf("%d rows in %d portions", len(got.rows), got.portions)
	}
}

// TestUnreadEntriesAreVerified checks the sums of entries that the Taker does not read.
func TestUnreadEntriesAreVerified(t *testing.T) {
	t.Parallel()
	r, err := backup.NewReader(bytes.NewReader(packed(t, 3<<20)), nil)
	if err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	nothing := backup.Taker{
		File: func(string, int64, io.Reader) error { return nil },
		Rows: func(backup.Table, func() ([]any, error)) error { return nil },
	}
	if err := r.Read(t.Context(), nothing); err != nil {
		t.Error(err)
	}
	refused := nothing
	refused.File = func(string, int64, io.Reader) error { return no }
	if r, err = backup.NewReader(bytes.NewReader(packed(t, 3<<20)), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Read(t.Context(), refused); !errors.Is(err, no) || fault.CodeOf(err) == fault.InvalidParams {
		t.Errorf("the Taker's error became %v", err)
	}
}

// TestDamage checks that every kind of damage is detected.
func TestDamage(t *testing.T) {
	t.Parallel()
	whole := packed(t, 9000)
	check := func(what string, archive []byte) {
		t.Helper()
		if _, _, err := read(t.Context(), bytes.NewReader(archive)); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s: %v", what, err)
		}
	}
	for cut := 0; cut < len(whole); cut += len(whole)/60 + 1 {
		check("cut off", whole[:cut])
	}
	for at := 20; at < len(whole)-8; at += len(whole)/60 + 1 {
		broken := bytes.Clone(whole)
		broken[at] ^= 0x40
		check(fmt.Sprintf("changed bit at %d of %d", at, len(whole)), broken)
	}
	for name, entries := range map[string][]string{
		"outside":           {"files/../evil", "x"},
		"above":             {"files/a/../../evil", "x"},
		"absolute":          {"files//etc/evil", "x"},
		"elsewhere":         {"evil", "x"},
		"twice":             {"files/a", "x", "files/a", "y"},
		"unlisted":          {"files/a", "x", "luanette-files.json", "[]"},
		"missing":           {"luanette-files.json", `[{"name":"files/a","size":1,"sha256":"00"}]`},
		"no end":            {"files/a", "x"},
		"unknown table":     {"tables/evil/0", "n"},
		"an incomplete row": {"tables/t/0", "n"},
		"odd value":         {"tables/t/0", "nx"},
		"too long":          {"tables/t/0", "ns\xff\xff\xff\xff\xff\xff\x7f"},
		"shorter":           {"tables/t/0", "ns\x05abc"},
		"endless integer":   {"tables/t/0", "ni\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"},
	} {
		check(name, archive(t, entries...))
	}
	check("no header", archive(t)[:0])
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := read(ended, bytes.NewReader(whole)); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
}

// TestAnotherFormat checks that the error about an unknown format names the program that
// wrote it.
func TestAnotherFormat(t *testing.T) {
	t.Parallel()
	other := archiveOf(t, `{"format":99,"program":"9.9"}`)
	if _, err := backup.NewReader(bytes.NewReader(other), nil); fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.HintOf(err), "luanette 9.9") {
		t.Errorf("NewReader = %v", err)
	}
}

// archive returns a backup with a valid header, followed by the given names and texts.
func archive(t *testing.T, entries ...string) []byte {
	return archiveOf(t, `{"format":2,"tables":[{"name":"t","columns":["a","b"]}]}`, entries...)
}

func archiveOf(t *testing.T, header string, entries ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	entries = append([]string{"luanette-backup.json", header}, entries...)
	for i := 0; i < len(entries); i += 2 {
		err := w.WriteHeader(&tar.Header{Name: entries[i], Size: int64(len(entries[i+1])), Mode: 0o600, Typeflag: tar.TypeReg})
		if err == nil {
			_, err = io.WriteString(w, entries[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
