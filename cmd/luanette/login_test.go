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

	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/programtest"
)

// testKey is the key of the test in a story's values.
type testKey struct{}

// loginServer implements login-server NAME: it starts an MCP server that requires a login,
// with a tool echo, and sets $NAME to its URL.
func loginServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: login-server NAME")
	}
	ts.Setenv(args[0], newLoginServer(ts.Value(testKey{}).(*testing.T)).URL())
}

func newLoginServer(t *testing.T) *oauthtest.Site {
	tools := mcp.NewServer(&mcp.Implementation{Name: "secured", Version: "1"}, nil)
	type arguments struct {
		Text string `json:"text"`
	}
	mcp.AddTool(tools, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in arguments) (*mcp.CallToolResult, arguments, error) {
		return nil, in, nil
	})
	return oauthtest.New(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{Stateless: true}))
}

// browse implements browse LINK: it opens a login link, follows its redirects, and prints
// the last page. The login server accepts every login.
func browse(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: browse LINK")
	}
	page, err := openLink(context.Background(), args[0])
	ts.Check(err)
	_, err = io.WriteString(ts.Stdout(), page)
	ts.Check(err)
}

// TestLoginCommand runs `luanette upstream login`: it prints a link and waits for the
// browser. Other commands on the same data then use the token.
func TestLoginCommand(t *testing.T) {
	t.Parallel()
	secured := newLoginServer(t)
	folder := t.TempDir()
	config := filepath.Join(folder, "luanette.toml")
	if err := os.WriteFile(config, []byte("[upstreams.secured]\nurl = \""+secured.URL()+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) *exec.Cmd {
		return programtest.Command(t.Context(), folder, nil, append(args, "--config", config, "--data", "data")...)
	}
	listed, err := run("upstream", "list").CombinedOutput()
	if err != nil || !strings.Contains(string(listed), "needs_auth") || !strings.Contains(string(listed), "luanette upstream login secured") {
		t.Errorf("%v\n%s", err, listed)
	}

	login := run("upstream", "login", "secured")
	out, err := login.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	login.Stderr = &stderr
	if err := login.Start(); err != nil {
		t.Fatal(err)
	}
	link, text := regexp.MustCompile(`http://\S+/authorize\S+`), ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text += lines.Text() + "\n"
		if found := link.FindString(lines.Text()); found != "" {
			if page, err := openLink(t.Context(), found); err != nil || !strings.Contains(page, "Logged in to secured") {
				t.Errorf("the browser shows %s, %v", page, err)
			}
		}
	}
	if err := login.Wait(); err != nil || !strings.Contains(text, "logged in to secured") {
		t.Fatalf("%v\n%s%s", err, text, &stderr)
	}
	called, err := run("call", "secured.echo", "text=hello").CombinedOutput()
	if err != nil || !strings.Contains(string(called), "hello") {
		t.Errorf("%v\n%s", err, called)
	}
	if strings.Contains(text+string(listed)+string(called), "access-") {
		t.Error("a token is shown")
	}
	if mistakes := secured.Mistakes(); len(mistakes) > 0 {
		t.Errorf("mistakes: %v", mistakes)
	}
	logout, err := run("upstream", "logout", "secured").CombinedOutput()
	if err != nil || !strings.Contains(string(logout), "logged out of secured") {
		t.Errorf("%v\n%s", err, logout)
	}
}

// openLink requests a link, follows its redirects, and returns the last page.
func openLink(ctx context.Context, link string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return "", err
	}
	response, err := httpjsontest.Client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
