package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/luanette/luanette/internal/access/oauth/oauthtest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
)

// siteKey finds the test that sites belong to among a story's values.
type siteKey struct{}

// site NAME starts a tool server that wants a login, with a tool echo, and sets
// $NAME to its URL.
func site(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: site NAME")
	}
	ts.Setenv(args[0], newSite(ts.Value(siteKey{}).(*testing.T)).URL())
}

func newSite(t *testing.T) *oauthtest.Site {
	tools := mcp.NewServer(&mcp.Implementation{Name: "secured", Version: "1"}, nil)
	type said struct {
		Text string `json:"text"`
	}
	mcp.AddTool(tools, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in said) (*mcp.CallToolResult, said, error) {
		return nil, in, nil
	})
	return oauthtest.New(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{Stateless: true}))
}

// agree LINK is a person who logs in, in a browser that goes back to where it is
// sent, and prints what it shows then.
func agree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: agree LINK")
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, args[0], nil)
	ts.Check(err)
	response, err := httpjsontest.Client.Do(request)
	ts.Check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	ts.Check(err)
	_, err = ts.Stdout().Write(text)
	ts.Check(err)
}

// TestLoginAtTheTerminal runs the real command: it prints a link, waits for the
// browser, and a server on the same data uses the token at once.
func TestLoginAtTheTerminal(t *testing.T) {
	t.Parallel()
	secured := newSite(t)
	folder := t.TempDir()
	config := filepath.Join(folder, "luanette.toml")
	if err := os.WriteFile(config, []byte("[upstreams.secured]\nurl = \""+secured.URL()+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := func(args ...string) *exec.Cmd {
		path, err := exec.LookPath("luanette")
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), path, append(args, "--config", config, "--data", filepath.Join(folder, "data"))...)
		cmd.Env = []string{"HOME=" + folder, "PATH=" + os.Getenv("PATH")}
		return cmd
	}
	listed, err := program("upstream", "list").CombinedOutput()
	if err != nil || !strings.Contains(string(listed), "needs_auth") || !strings.Contains(string(listed), "luanette upstream login secured") {
		t.Errorf("%v\n%s", err, listed)
	}

	login := program("upstream", "login", "secured")
	out, err := login.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var problem strings.Builder
	login.Stderr = &problem
	if err := login.Start(); err != nil {
		t.Fatal(err)
	}
	link, text := regexp.MustCompile(`http://\S+/authorize\S+`), ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text += lines.Text() + "\n"
		if found := link.FindString(lines.Text()); found != "" {
			page := openLink(t, found)
			if !strings.Contains(page, "Logged in to secured") {
				t.Errorf("the browser shows %s", page)
			}
		}
	}
	if err := login.Wait(); err != nil || !strings.Contains(text, "logged in to secured") {
		t.Fatalf("%v\n%s%s", err, text, &problem)
	}
	called, err := program("call", "secured.echo", "text=hello").CombinedOutput()
	if err != nil || !strings.Contains(string(called), "hello") {
		t.Errorf("%v\n%s", err, called)
	}
	if strings.Contains(text+string(listed)+string(called), "access-") {
		t.Error("a token is shown")
	}
	if mistakes := secured.Mistakes(); len(mistakes) > 0 {
		t.Errorf("mistakes: %v", mistakes)
	}
	gone, err := program("upstream", "logout", "secured").CombinedOutput()
	if err != nil || !strings.Contains(string(gone), "logged out of secured") {
		t.Errorf("%v\n%s", err, gone)
	}
}

func openLink(t *testing.T, link string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := httpjsontest.Client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
