package identity_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/oauthtest"
)

// TestServerConformance lets the official suite judge our authorization server.
// LUANETTE_TEST_CONFORMANCE is the node_modules folder with the suite, which has a node of
// its own.
func TestServerConformance(t *testing.T) {
	t.Parallel()
	modules := os.Getenv("LUANETTE_TEST_CONFORMANCE")
	if modules == "" {
		t.Skip("make conformance runs it, with the official suite that it installs")
	}
	h := newHub(t, nil, withClients(oauthtest.NewProvider(t, ada()), "corp"))
	judge := exec.CommandContext(t.Context(), filepath.Join(modules, ".bin", "conformance"), "authorization", "--url", h.url)
	judge.Dir = t.TempDir()
	judge.Env = append(os.Environ(), "PATH="+filepath.Join(modules, ".bin")+":"+os.Getenv("PATH"))
	out, err := judge.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "authorization-server-metadata-endpoint: 2 passed, 0 failed") {
		t.Errorf("%v\n%s", err, out)
	}
}
