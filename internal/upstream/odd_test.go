package upstream_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/wire"
)

// pids is a folder in which servers of a test write their process numbers.
type pids struct{ dir string }

func newPids(t *testing.T) pids { return pids{t.TempDir()} }

// signIn writes our own number, in a server's process.
func signIn() {
	if dir := os.Getenv("PID_DIR"); dir != "" {
		_ = os.WriteFile(filepath.Join(dir, strconv.Itoa(os.Getpid())), nil, 0o600)
	}
}

// all lists the processes that ever signed in.
func (p pids) all(t *testing.T) (list []int) {
	t.Helper()
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pid)
	}
	return list
}

// alive lists those that still run.
func (p pids) alive(t *testing.T) (list []int) {
	t.Helper()
	for _, pid := range p.all(t) {
		if syscall.Kill(pid, 0) == nil {
			list = append(list, pid)
		}
	}
	return list
}

// playOddly is a server that does something a server should not.
func playOddly(role string) int {
	signIn()
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		m, err := wire.Parse(line)
		if err != nil || !m.IsRequest() {
			continue
		}
		if m.Method == wire.MethodDiscover {
			switch role {
			case "dies on the probe":
				fmt.Fprintln(os.Stderr, "what is server/discover?")
				return 3
			case "ignores the probe", "silent after the probe":
				continue
			}
		}
		answer := wire.Answer(m.ID, json.RawMessage(oddResult(role, m)), nil)
		if m.Method == wire.MethodDiscover {
			answer = wire.Answer(m.ID, nil, wire.Errorf(wire.CodeMethodNotFound, "no"))
		}
		if role == "garbage" {
			fmt.Printf("Listening on port 3000…\n\n{\"not\":\"a message\"}\n\xff\xfe\n")
		}
		fmt.Printf("%s\n", answer.Append(nil))
	}
}

func oddResult(role string, m wire.Message) string {
	switch m.Method {
	case wire.MethodInitialize:
		return `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"0"}}`
	case wire.MethodToolsList:
		return `{"tools":[{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`
	case wire.MethodToolsCall:
		if role == "huge" {
			return `{"content":[{"type":"text","text":"` + strings.Repeat("x", 50<<20) + `"}]}`
		}
		text, _ := wire.GetText(mustGet(m.Params, "arguments"), "text")
		return `{"content":[{"type":"text","text":` + string(wire.AppendText(nil, text)) + `}]}`
	}
	return `{}`
}

func mustGet(object json.RawMessage, key string) json.RawMessage {
	raw, _ := wire.Get(object, key)
	return raw
}
