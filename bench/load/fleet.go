package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/luanette/luanette/bench/calls"
	"github.com/luanette/luanette/bench/proc"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

const (
	upstreamName = "far"
	jobScript    = `function main()
	for i = 1, 3 do mcp.` + upstreamName + `.echo{message = "hello", n = i} end
	return "done"
end`
)

// fleet is what nodes need: the program, a Postgres, an upstream and a model.
type fleet struct {
	folder, program string
	postgres        string
	server          int // Postgres's process
	watch           *pgx.Conn
	upstream        *exec.Cmd
	address         string // of the upstream
	model           *llmtest.Server
	stop            []func() error
	made            int // schemas
}

func newFleet(ctx context.Context, program string) (_ *fleet, err error) {
	f := &fleet{program: program}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if f.folder, err = os.MkdirTemp("", "bench-load-"); err != nil {
		return nil, err
	}
	f.onClose(func() error { return os.RemoveAll(f.folder) })
	if err := f.build(ctx); err != nil {
		return nil, err
	}
	url, stop, err := dbtest.StartDurable()
	if err != nil {
		return nil, err
	}
	f.postgres = url
	f.onClose(stop)
	if f.server, err = proc.Postgres(ctx, url); err != nil {
		return nil, err
	}
	if f.watch, err = pgx.Connect(ctx, url); err != nil {
		return nil, err
	}
	f.onClose(func() error { return f.watch.Close(context.WithoutCancel(ctx)) })
	f.model = llmtest.New(func(llmtest.Request) llmtest.Step { return llmtest.Step{Echo: true} })
	f.onClose(func() error { f.model.Close(); return nil })
	return f, f.startUpstream(ctx)
}

// build builds the program, unless -program names one.
func (f *fleet) build(ctx context.Context) error {
	if f.program != "" {
		return nil
	}
	f.program = filepath.Join(f.folder, "luanette")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", f.program, "github.com/luanette/luanette/cmd/luanette")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return nil
}

func (f *fleet) onClose(do func() error) { f.stop = append(f.stop, do) }

func (f *fleet) close() (err error) {
	for i := len(f.stop) - 1; i >= 0; i-- {
		err = errors.Join(err, f.stop[i]())
	}
	return err
}

func (f *fleet) startUpstream(ctx context.Context) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if f.address, err = calls.FreeAddress(); err != nil {
		return err
	}
	f.upstream = exec.CommandContext(ctx, self, "-upstream", f.address)
	f.upstream.Stderr = os.Stderr
	if err := f.upstream.Start(); err != nil {
		return err
	}
	f.onClose(func() error { return end(f.upstream) })
	return nil
}

func end(cmd *exec.Cmd) error {
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	return nil
}

// nodes are processes of the program on one schema.
type nodes struct {
	fleet     *fleet
	schema    string
	addresses []string
	commands  []*exec.Cmd
}

func (n *nodes) url(i int) string { return "http://" + n.addresses[i%len(n.addresses)] }

// folder is the data folder of a node.
func (n *nodes) folder(i int) string {
	return filepath.Join(n.fleet.folder, fmt.Sprintf("%s-%d", n.schema, i))
}

func (n *nodes) stop() {
	for _, cmd := range n.commands {
		_ = end(cmd)
	}
}

// start starts nodes on a schema of their own and waits until they listen.
func (f *fleet) start(ctx context.Context, count int, checks string) (*nodes, error) {
	f.made++
	n := &nodes{fleet: f, schema: fmt.Sprintf("load_%d", f.made)}
	file := filepath.Join(f.folder, n.schema+".toml")
	config := fmt.Sprintf("database = %q\n%s[log]\nlevel = \"error\"\n[upstreams.%s]\nurl = %q\nprotocol = \"modern\"\nexpose = \"all\"\n[chat]\nbase_url = %q\nrate = 1000000\n",
		f.postgres+"&search_path="+n.schema, calls.Checks[checks], upstreamName, "http://"+f.address+"/mcp", f.model.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	for i := range count {
		address, err := calls.FreeAddress()
		if err != nil {
			return n, err
		}
		cmd, err := f.startNode(ctx, file, address, fmt.Sprintf("%s-%d", n.schema, i))
		if err != nil {
			n.stop()
			return nil, err
		}
		n.addresses, n.commands = append(n.addresses, address), append(n.commands, cmd)
	}
	return n, nil
}

func (f *fleet) startNode(ctx context.Context, config, address, name string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, f.program, "serve", "--listen", address, "--data", filepath.Join(f.folder, name), "--config", config)
	cmd.Env = []string{"HOME=" + f.folder, "ANTHROPIC_API_KEY=" + llmtest.Key, "LUANETTE_NODE=" + name}
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var log strings.Builder
	for lines := bufio.NewScanner(said); lines.Scan(); {
		log.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "is listening on") {
			go func() { _, _ = io.Copy(io.Discard, said) }() // ends with the node
			return cmd, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("node %s did not start:\n%s", name, log.String()), end(cmd))
}

var hashIn = regexp.MustCompile(`"hash":\s*"([0-9a-f]{64})"`)

// store stores a script and returns its hash.
func (n *nodes) store(ctx context.Context, source string) (string, error) {
	c, err := calls.New(ctx, n.url(0)+"/mcp", calls.Modern, "echo")
	if err != nil {
		return "", err
	}
	answer, err := c.Ask(ctx, "script_store", fmt.Sprintf(`{"content":%q}`, source))
	found := hashIn.FindSubmatch(answer)
	if err != nil || found == nil {
		return "", fmt.Errorf("store the script: %w %s", err, answer)
	}
	return string(found[1]), nil
}

// load is what a client does repeatedly.
type load struct {
	name string
	// prepare prepares client i of a node, and returns what it does each time.
	prepare prepare
}

func loads(script string) []load {
	jobs := jobsOf(script)
	return []load{
		{"a relayed call", relayed},
		{"a job with three calls", jobs},
		{"a chat turn", chat},
		{"mixed: 8 calls, 1 job, 1 turn of ten", mixed(relayed, relayed, relayed, relayed, jobs, relayed, relayed, relayed, relayed, chat)},
	}
}

// prepare is the type of load.prepare.
type prepare func(ctx context.Context, url string, i int) (func() error, error)

// mixed alternates between several kinds; clients begin with different ones.
func mixed(kinds ...prepare) prepare {
	return func(ctx context.Context, url string, i int) (func() error, error) {
		var all []func() error
		for n, kind := range kinds {
			do, err := kind(ctx, url, len(kinds)*i+n)
			if err != nil {
				return nil, err
			}
			all = append(all, do)
		}
		next := i
		return func() error {
			next++
			return all[next%len(all)]()
		}, nil
	}
}

// relayed is a call of the upstream's tool through the node.
func relayed(ctx context.Context, url string, _ int) (func() error, error) {
	c, err := calls.New(ctx, url+"/mcp/"+upstreamName, calls.Modern, "echo")
	if err != nil {
		return nil, err
	}
	return func() error { return c.Call(ctx) }, nil
}

var jobIn = regexp.MustCompile(`"job_id":\s*"([^"]+)"`)

// jobsOf submits a job and waits until its end is stored.
func jobsOf(script string) prepare {
	return func(ctx context.Context, url string, i int) (func() error, error) {
		c, err := calls.New(ctx, url+"/mcp", calls.Modern, "echo")
		if err != nil {
			return nil, err
		}
		return func() error {
			answer, err := c.Ask(ctx, "lua_execute", fmt.Sprintf(`{"script_hash":%q,"creator":"client %d"}`, script, i))
			id := jobIn.FindSubmatch(answer)
			if err != nil || id == nil {
				return fmt.Errorf("start a job: %w %s", err, answer)
			}
			answer, err = c.Ask(ctx, "job_poll", fmt.Sprintf(`{"job_ids":[%q],"timeout_ms":60000}`, id[1]))
			if err != nil || !bytes.Contains(answer, []byte("complete")) || !bytes.Contains(answer, []byte("done")) {
				return fmt.Errorf("job %s: %w %s", id[1], err, answer)
			}
			return nil
		}, nil
	}
}

// chat is a chat turn of a user with a history.
func chat(ctx context.Context, url string, i int) (func() error, error) {
	client, said := &http.Client{Transport: &http.Transport{}}, 0
	return func() error {
		said++
		message := fmt.Sprintf("message %d of person %d", said, i)
		body := fmt.Sprintf(`{"client_id":"load","user_id":"person %d","message":%q}`, i, message)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/v1/chat", strings.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err == nil && !bytes.Contains(text, []byte(message)) {
			err = fmt.Errorf("chat answers %d: %s", answer.StatusCode, text)
		}
		return err
	}, nil
}
