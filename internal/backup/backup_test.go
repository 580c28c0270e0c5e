package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/backup"
	"github.com/luanette/luanette/internal/fault"
)

var files = map[string]string{"luanette.db": "rows", "cas/objects/ab/cdef": strings.Repeat("content ", 9000), "scripts/hello.lua": "", "odd name": "x"}

// packed is a backup of files.
func packed(t *testing.T) []byte {
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
	err = backup.Pack(t.Context(), &out, backup.Header{Program: "1.2.3", Created: time.Unix(1e9, 0).UTC(), Schema: map[string]int64{"job": 7}}, list,
		func(d, of int64) { done, total = d, of })
	if err != nil || done == 0 || done != total {
		t.Fatalf("Pack: %v; told of %d of %d bytes", err, done, total)
	}
	return out.Bytes()
}

func unpack(ctx context.Context, t *testing.T, archive io.Reader) (backup.Header, string, error) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "fresh")
	h, err := backup.Unpack(ctx, archive, folder, func(backup.Header) error { return nil }, nil)
	return h, folder, err
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	h, folder, err := unpack(t.Context(), t, bytes.NewReader(packed(t)))
	if err != nil || h.Program != "1.2.3" || h.Schema["job"] != 7 || h.Created.Unix() != 1e9 {
		t.Fatalf("header %+v (%v)", h, err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %d bytes (%v), want %d", name, len(got), err, len(want))
		}
	}
}

// Whatever is wrong with a backup, nothing of it is left.
func TestDamage(t *testing.T) {
	t.Parallel()
	whole := packed(t)
	check := func(what string, archive []byte) {
		t.Helper()
		_, folder, err := unpack(t.Context(), t, bytes.NewReader(archive))
		if fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the folder is there", what)
		}
	}
	for cut := 0; cut < len(whole); cut += 97 {
		check("cut off", whole[:cut])
	}
	for at := 20; at < len(whole)-8; at += 61 {
		broken := bytes.Clone(whole)
		broken[at] ^= 0x40
		check("another bit", broken)
	}
	for name, entries := range map[string][]string{
		"outside":  {"../evil", "x"},
		"absolute": {"/etc/evil", "x"},
		"twice":    {"a", "x", "a", "y"},
		"unlisted": {"a", "x", "luanette-files.json", "[]"},
		"missing":  {"luanette-files.json", `[{"name":"a","size":1,"sha256":"00"}]`},
		"no end":   {"a", "x"},
	} {
		check(name, archive(t, entries...))
	}
	check("no header", archive(t)[:0])
}

// archive is made by hand: names and texts after a good header.
func archive(t *testing.T, entries ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	entries = append([]string{"luanette-backup.json", `{"format":1}`}, entries...)
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

func TestTheJudgeHasTheFirstWord(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	folder := filepath.Join(t.TempDir(), "fresh")
	_, err := backup.Unpack(t.Context(), bytes.NewReader(packed(t)), folder, func(backup.Header) error { return no }, nil)
	if !errors.Is(err, no) {
		t.Errorf("Unpack = %v", err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Error("the folder was made")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := unpack(ended, t, bytes.NewReader(packed(t))); err == nil {
		t.Error("an ended context let it through")
	}
}
