package egress_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/sandbox/egress"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// A real program in a sandbox reaches what its profile lists, uses a secret that it does
// not have, and reaches nothing else, whether it asks the proxy or not. All of it is
// recorded.
func TestSandboxedProgram(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	launcher := &launch.Launcher{}
	n := newInternet(t, egress.Options{Refused: launcher.Keep})
	api := make(received, 1)
	n.serve("api.example", public, 443, api)
	outside := n.serve("other.example", "93.184.216.35", 80, http.HandlerFunc(hello))
	folder := t.TempDir()
	launcher.Folder, launcher.Home = filepath.Join(folder, "sandbox"), folder
	launcher.Gateway = func(p profile.Profile) (launch.Gateway, error) { return n.service.Within(p) }
	run := func(args ...string) string {
		t.Helper()
		cmd, err := launcher.Command(profile.Profile{
			Name: "files", Level: profile.Strict, Network: []string{"api.example:443"},
			Credentials: []profile.Credential{{Name: "gh", Variable: "TOKEN", Value: secret.New(token), Hosts: []string{"api.example"}}},
		}, launch.Program{Path: "/bin/sh", Args: []string{"sh", "-c", strings.Join(args, " ")}, Env: []string{"PATH=" + filepath.Dir(curl) + ":/usr/bin:/bin"}, Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			fmt.Fprintf(&out, "(%v)", err)
		}
		return out.String()
	}
	if got := run(`curl -sS -H "Authorization: Bearer $TOKEN" https://api.example/; env`); !strings.Contains(got, "HTTP/2.0 GET api.example /") || strings.Contains(got, token) {
		t.Fatal(got)
	}
	if got := (<-api).Get("Authorization"); got != "Bearer "+token {
		t.Errorf("the host got %q", got)
	}
	if got := run(`curl -sS https://other.example/`); !strings.Contains(got, "403") {
		t.Error(got)
	}
	if kept, err := launcher.Refusals("files"); err != nil || !slices.ContainsFunc(kept, func(r profile.Refusal) bool {
		return r.Object == "other.example:443" && r.Allow == `network = ["other.example:443"]`
	}) {
		t.Errorf("%+v %v", kept, err)
	}
	if got := run(`curl -sS --noproxy '*' ` + outside.URL); strings.Contains(got, "GET") {
		t.Error("the program reached this machine: " + got)
	}
	var seen []string
	for _, c := range n.recorded {
		seen = append(seen, c.Destination()+" "+c.Outcome+" "+strings.Join(c.Secrets, ","))
	}
	if got := strings.Join(seen, "; "); got != "api.example:443 closed gh; other.example:443 refused " {
		t.Error(got)
	}
	if left, _ := os.ReadDir(filepath.Join(folder, "certificates")); len(left) > 0 {
		t.Error(left)
	}
}
