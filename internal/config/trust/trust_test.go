package trust

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
)

func TestTrustEndsWithTheContent(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := Store{filepath.Join(folder, "state", "trust.json")}
	file := filepath.Join(folder, "luanette.toml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "link.toml")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	ls := NewItem("upstreams.a", "starts ls", []string{"ls"})
	if err := s.Add(t.Context(), link, ls); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(t.Context(), file, NewItem("upstreams.b", "starts cat", "cat")); err != nil {
		t.Fatal(err)
	}
	hashes, err := s.Trusted(file)
	if err != nil || len(hashes) != 2 || hashes["upstreams.a"] != ls.Hash {
		t.Errorf("trusted: %v %v", hashes, err)
	}
	if changed := NewItem("upstreams.a", "starts ls", []string{"ls", "-l"}); changed.Hash == ls.Hash {
		t.Error("another content has the same hash")
	}
	if info, err := os.Stat(s.Path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	if removed, err := s.Remove(t.Context(), file); !removed || err != nil {
		t.Error(removed, err)
	}
	if hashes, err := s.Trusted(file); len(hashes) != 0 || err != nil {
		t.Error("still trusted", hashes, err)
	}
}

func TestConcurrentDecisionsAreAllStored(t *testing.T) {
	t.Parallel()
	s := Store{filepath.Join(t.TempDir(), "trust.json")}
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			if err := s.Add(t.Context(), fmt.Sprintf("/somewhere/%d", i), NewItem("x", "", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if files, err := s.Files(); len(files) != 10 || err != nil {
		t.Errorf("%d files, %v", len(files), err)
	}
}

func TestAStoreThatOthersMayWriteIsRefused(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes are not stored")
	}
	s := Store{filepath.Join(t.TempDir(), "trust.json")}
	if err := s.Add(t.Context(), "/x", NewItem("x", "", 1)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.Path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Trusted("/x"); fault.CodeOf(err) != fault.Config || !strings.Contains(fault.HintOf(err), "chmod") {
		t.Error(err)
	}
	if err := (Store{}).Add(t.Context(), "/x"); fault.CodeOf(err) != fault.Config {
		t.Errorf("without a folder: %v", err)
	}
}
