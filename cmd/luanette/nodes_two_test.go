package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// twoNodes is a client of two nodes.
type twoNodes struct {
	*testing.T
	*testCluster
	a, b *clusterNode
	key  string // API key; "" until the first is created
}

// TestWorkOnTwoNodes starts work on one of two nodes and continues it on the other.
func TestWorkOnTwoNodes(t *testing.T) {
	if os.Getenv(nodesSeconds) == "" {
		t.Skip("make nodes runs it: it starts several servers")
	}
	t.Parallel()
	everything := serveEverything(t)
	f := &testCluster{folder: t.TempDir()}
	database := dbtest.Postgres(t)
	config := fmt.Sprintf("database = %q\n[log]\nlevel = \"error\"\n", database)
	if err := os.WriteFile(filepath.Join(f.folder, "luanette.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &twoNodes{T: t, testCluster: f}
	var starts sync.WaitGroup
	for _, name := range []string{"ann", "bob"} { // both at once, on an empty database
		c := &clusterNode{name: name, address: netguardtest.ReservedAddress(), run: 1}
		f.nodes = append(f.nodes, c)
		starts.Go(func() { f.start(t, c) })
	}
	starts.Wait()
	for _, c := range f.nodes {
		t.Cleanup(c.kill)
	}
	o.a, o.b = f.nodes[0], f.nodes[1]
	o.awaitNodes("ann up", "bob up")
	o.editUpstreams(everything)
	o.answerElsewhere()
	o.answerElsewhereModern()
	o.cancelElsewhere()
	o.watchAndPublish()
	o.postElsewhere()
	o.continueSession()
	o.killANode()
	o.revokeAKey()
	o.removeUpstream()
	o.awaitNodes("ann up", "bob up")
	o.tamper(dbtest.Open(t, database))
}

// serveEverything starts the reference server over HTTP.
func serveEverything(t *testing.T) (url string) {
	t.Helper()
	program := npmtest.Program(t, "mcp-server-everything")
	port := netguardtest.ReservedPort()
	cmd := exec.Command("node", program, "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return "http://127.0.0.1:" + port + "/mcp"
}

// try runs a command against a node and returns its output.
func (o *twoNodes) try(at *clusterNode, input string, args ...string) (string, error) {
	o.Helper()
	cmd := program(o.Context(), o.folder, []string{"LUANETTE_KEY=" + o.key}, append(args, "--server", "http://"+at.address)...)
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &stderr)
	}
	return string(out) + stderr.String(), err
}

// run runs a command, which must succeed.
func (o *twoNodes) run(at *clusterNode, args ...string) string {
	o.Helper()
	out, err := o.try(at, "", args...)
	if err != nil {
		o.Fatalf("luanette %s on %s: %v", strings.Join(args, " "), at.name, err)
	}
	return out
}

// until waits until a condition holds in another process.
func (o *twoNodes) until(condition string, holds func() bool) {
	o.Helper()
	clocktest.Await(o.T, holds, func() string { return "not yet: " + condition })
}

// awaitNodes checks the list of nodes that each running node reports.
func (o *twoNodes) awaitNodes(want ...string) {
	o.Helper()
	for _, at := range o.nodes {
		if _, up := at.currentRun(); !up {
			continue
		}
		o.until(at.name+" is ready", func() bool { return status(o.Context(), at, "/ready") == http.StatusOK })
		o.until(fmt.Sprintf("%s lists the nodes %q", at.name, want), func() bool {
			var list struct {
				Nodes []struct{ Name, State string }
			}
			o.get(at, "/api/v1/nodes", func(r *http.Response) {
				if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
					o.Fatal(err)
				}
			})
			var got []string
			for _, n := range list.Nodes {
				got = append(got, n.Name+" "+n.State)
			}
			slices.Sort(got)
			return slices.Equal(got, want)
		})
	}
}

// get sends a GET request to a node.
func (o *twoNodes) get(at *clusterNode, path string, read func(*http.Response)) {
	o.Helper()
	r, err := http.NewRequestWithContext(o.Context(), http.MethodGet, "http://"+at.address+path, nil)
	if err != nil {
		o.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if o.key != "" {
		r.Header.Set("Authorization", "Bearer "+o.key)
	}
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		o.Fatal(err)
	}
	defer answer.Body.Close()
	read(answer)
}

// stream sends a request whose response is an event stream.
func (o *twoNodes) stream(v *sessionClient, body string) *sse.Reader {
	o.Helper()
	answer, err := v.post(o.Context(), body)
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { _ = answer.Body.Close() })
	return sse.NewReader(answer.Body, 0)
}

// waitEvent reads events until one contains a text.
func (o *twoNodes) waitEvent(in *sse.Reader, text string) string {
	o.Helper()
	for {
		e, err := in.Next()
		if err != nil {
			o.Fatalf("no event contains %s: %v", text, err)
		}
		if strings.Contains(string(e.Data), text) {
			return string(e.Data)
		}
	}
}

// postNotification posts a message that has no response.
func (o *twoNodes) postNotification(v *sessionClient, body string) {
	o.Helper()
	answer, err := v.post(o.Context(), body)
	if err != nil {
		o.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		text, _ := io.ReadAll(answer.Body)
		o.Errorf("%s on %s: %s %s", body, v.at.name, answer.Status, text)
	}
}

// open opens an event stream of a node, which is closed when the test ends.
func (o *twoNodes) open(at *clusterNode, path, session string) *sse.Reader {
	o.Helper()
	ctx, cancel := context.WithCancel(o.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.address+path, nil)
	if err != nil {
		o.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
		r.Header.Set("Mcp-Protocol-Version", sessionVersion)
	}
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { cancel(); _ = answer.Body.Close() })
	return sse.NewReader(answer.Body, 0)
}

// store stores a script and returns its hash.
func (o *twoNodes) store(at *clusterNode, name, source string) string {
	o.Helper()
	if err := os.WriteFile(filepath.Join(o.folder, name), []byte(source), 0o600); err != nil {
		o.Fatal(err)
	}
	var stored struct{ Hash string }
	if err := json.Unmarshal([]byte(o.run(at, "script", "store", name, "--json")), &stored); err != nil || stored.Hash == "" {
		o.Fatalf("no hash: %v", err)
	}
	return stored.Hash
}
