package script

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/music/soundfont/soundfonttest"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
)

// contentStore is a content store in a folder; every content is an artifact too.
type contentStore struct {
	*cas.Dir
	mu    sync.Mutex
	mimes map[cas.Ref]string
}

// newContentStore also stores a SoundFont, and writes it to the readable folder as tiny.sf2.
func newContentStore(t *testing.T, folder, readable string) *contentStore {
	t.Helper()
	dir, err := cas.OpenDir(folder, cas.DirOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &contentStore{Dir: dir, mimes: map[cas.Ref]string{}}
	font := soundfonttest.Font()
	if _, err := s.Put(t.Context(), bytes.NewReader(font), host.Stored{MIME: "audio/sf2"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(readable, "tiny.sf2"), font, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *contentStore) Put(ctx context.Context, r io.Reader, about host.Stored) (host.Content, error) {
	ref, size, err := s.Dir.Put(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mimes[ref] = about.MIME
	return host.Content{Hash: ref, Size: size, MIME: about.MIME, Path: s.Path(ref)}, err
}

func (s *contentStore) Find(ctx context.Context, hash string) (host.Content, error) {
	ref, err := cas.Resolve(ctx, s.Dir, hash)
	if err != nil {
		return host.Content{}, err
	}
	size, err := s.Stat(ctx, ref)
	s.mu.Lock()
	defer s.mu.Unlock()
	return host.Content{Hash: ref, Size: size, MIME: s.mimes[ref], Path: s.Path(ref)}, err
}

func (s *contentStore) Artifact(ctx context.Context, id string) (host.Content, error) {
	return s.Find(ctx, strings.TrimPrefix(id, "artifact_"))
}

// TestContentsAreOnlyReadByName checks that contents readable by name cannot be
// listed, found or written.
func TestContentsAreOnlyReadByName(t *testing.T) {
	t.Parallel()
	contents := newContentStore(t, t.TempDir(), t.TempDir())
	r := newRunner(t, func(o *Options) { o.Contents = contents })
	for name, source := range map[string]string{
		"list":    `return fs.list(cas.base_path())`,
		"find":    `local f = fs.find("**/*") if #f > 0 then return f end error("nothing found")`,
		"write":   `return fs.write(cas.path(cas.store("a")), "b")`,
		"remove":  `return fs.remove(cas.path(cas.store("a")))`,
		"io":      `local f = assert(io.open(cas.path(cas.store("a")), "w")) f:write("b") f:close() return true`,
		"outside": `return fs.read(cas.base_path() .. "/../../x")`,
		"folder":  `return fs.read(cas.base_path())`,
	} {
		if got, err := r.Run(t.Context(), Request{Source: source}); err == nil {
			t.Errorf("%s: %s gave %s", name, source, got.Result)
		}
	}
	got, err := r.Run(t.Context(), Request{Source: `local p = cas.path(cas.store("a")) return fs.read(p), fs.exists(p), fs.exists(p .. "0")`})
	if err != nil || string(got.Result) != `["a",true,false]` {
		t.Errorf("read by name: %s, %v", got.Result, err)
	}
}
