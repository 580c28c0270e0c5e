package config

import (
	"path/filepath"
	"testing"

	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// TestCandidatesWithOtherAccounts checks that a server with another token is another
// server: `install --move` removes from a client what is known already.
func TestCandidatesWithOtherAccounts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "luanette.toml")
	writeFile(t, file, "[upstreams.git]\ncommand = \"git-server\"\nenv = { TOKEN = \"mine\" }\n")
	server := func(token string) clientfile.Server {
		return clientfile.Server{Key: "git", Spec: upstream.Spec{Name: "git", Settings: upstream.Settings{Command: "git-server", Env: map[string]string{"TOKEN": token}}}}
	}
	found := []clientfile.Found{{
		File:    clientfile.File{Client: clientfile.Client{Name: "cursor"}},
		Servers: []clientfile.Server{server("mine"), server("${input:token}"), server("work"), server("work"), {Key: "git", Spec: upstream.Spec{Name: "git", Settings: upstream.Settings{Command: "git-server"}}}},
	}}
	all, err := load(t, Sources{File: file}).Candidates(found, Environment{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Candidate{
		{State: ImportKnown, Name: "git"},
		{State: ImportKnown, Name: "git"},
		{State: ImportNew, Name: "git-cursor"},
		{State: ImportTwice, Name: "git-cursor"},
		{State: ImportKnown, Name: "git"},
	} {
		if got := all[i]; got.State != want.State || got.Name != want.Name {
			t.Errorf("server %d is %s as %s, want %s as %s", i, got.State, got.Name, want.State, want.Name)
		}
	}
}
