package upstream_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

func TestKnownToolsSurviveARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cached := func(o *upstream.Options) { o.CacheDir = dir }
		first := newTestManager(t, cached)
		first.add(t, upstream.Spec{Settings: upstream.Settings{Headers: map[string]string{"X-Key": "s3cret"}, Env: map[string]string{"KEY": "s3cret"}}})
		first.Close()

		s := newTestManager(t, cached)
		s.fake.drop(os.ErrDeadlineExceeded)
		s.add(t, upstream.Spec{})
		infos, _ := s.Tools(t.Context())
		if len(infos) != 2 || !infos[0].Stale || infos[0].Name != "read" || !infos[0].Hints.ReadOnly {
			t.Errorf("tools of a server that was never connected: %+v", infos)
		}
		peer, _ := s.Peer("test")
		_, info, _, err := peer.Describe(t.Context())
		if name, _ := rawjson.GetText(info, "name"); err != nil || name != "fake" {
			t.Errorf("it is known as %s, %v", info, err)
		}
		other := newTestManager(t, cached)
		other.fake.drop(os.ErrDeadlineExceeded)
		other.add(t, upstream.Spec{Settings: upstream.Settings{URL: "fake://somewhere-else"}})
		if infos, _ := other.Tools(t.Context()); len(infos) != 0 {
			t.Errorf("another server has the tools %+v", infos)
		}
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			data, _ := os.ReadFile(dir + "/" + e.Name())
			if strings.Contains(string(data), "s3cret") {
				t.Errorf("%s holds a secret", e.Name())
			}
		}
	})
}
