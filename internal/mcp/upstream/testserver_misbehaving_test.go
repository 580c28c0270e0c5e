package upstream_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// pids is a folder in which the servers of a test write their process ids.
type pids struct{ dir string }

func newPids(t *testing.T) pids { return pids{t.TempDir()} }

// writePID writes our process id, in a server's process.
func writePID() {
	if dir := os.Getenv("PID_DIR"); dir != "" {
		_ = os.WriteFile(filepath.Join(dir, strconv.Itoa(os.Getpid())), nil, 0o600)
	}
}

// firstCallEver reports, in a server's process, whether no process of this test
// was called before. If it starts slowly, the first process may never be called.
func firstCallEver() bool {
	f, err := os.OpenFile(os.Getenv("PID_DIR")+".called", os.O_CREATE|os.O_EXCL, 0o600)
	return err == nil && f.Close() == nil
}

// all lists all processes that wrote their id.
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

// startChild starts a child of a server's process, and waits until it has written
// its id and closed the pipe.
func startChild(role string) error {
	signed, child, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stdout = os.Stdout // keeps our output open after we have ended
	cmd.ExtraFiles = []*os.File{child}
	if err := errors.Join(cmd.Start(), child.Close()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, signed)
	return err
}

// playMisbehaving is a server that violates the protocol, according to its role.
func playMisbehaving(role string) int {
	writePID()
	in := bufio.NewReader(oneByOne{os.Stdin})
	switch role {
	case "child of a child":
		signal.Ignore(syscall.SIGTERM)
		_ = os.NewFile(3, "born").Close()
		select {}
	case "has children":
		if startChild("child of a child") != nil {
			return 1
		}
	}
	switch role {
	case "asks":
		return playAsking(wire.MethodElicit)
	case "asks for roots":
		return playAsking(wire.MethodRoots)
	}
	if role == "starts alone" && !startAlone() {
		return 5
	}
	if role == "dies at once" {
		fmt.Fprintln(os.Stderr, "no licence found")
		return 4
	}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		m, err := wire.Parse(line)
		if err != nil || !m.IsRequest() {
			continue
		}
		if m.Method == wire.MethodDiscover && role == "dies on discover" {
			fmt.Fprintln(os.Stderr, "what is server/discover?")
			return 3
		}
		answer := wire.Answer(m.ID, json.RawMessage(misbehavingResult(role, m)), nil)
		switch {
		case m.Method == wire.MethodDiscover && role != "refuses initialize":
			answer = wire.Answer(m.ID, nil, wire.Errorf(wire.CodeMethodNotFound, "no"))
		case m.Method == wire.MethodInitialize && strings.HasPrefix(role, "refuses"):
			answer = wire.Answer(m.ID, nil, wire.Errorf(wire.CodeMethodNotFound, "no initialize here"))
		}
		if role == "reads one call" && m.Method == wire.MethodToolsCall && firstCallEver() {
			fmt.Fprintln(os.Stderr, "thinking")
			time.Sleep(time.Hour) // until it is killed; select {} would be reported as a deadlock
		}
		if role == "chatters" {
			chatter(m.ID)
		}
		if role == "garbage" {
			fmt.Printf("Listening on port 3000…\n\n{\"not\":\"a message\"}\n\xff\xfe\n")
		}
		if role == "starts alone" && m.Method == wire.MethodToolsList {
			_ = os.Remove(os.Getenv("LOCK"))
		}
		fmt.Printf("%s\n", answer.Append(nil))
	}
}

// startAlone takes the lock that a server holds until it answers tools/list. It
// fails if another one holds it.
func startAlone() bool {
	f, err := os.OpenFile(os.Getenv("LOCK"), os.O_CREATE|os.O_EXCL, 0o600)
	return err == nil && f.Close() == nil
}

// chatter sends thousands of unrelated messages before an answer.
func chatter(id wire.ID) {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for i := range 5000 {
		fmt.Fprintf(out, "{\"jsonrpc\":\"2.0\",\"id\":\"q%d\",\"method\":\"sampling/createMessage\"}\n", i)
		fmt.Fprintf(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":%d}}\n", id, i%7)
		fmt.Fprintf(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n")
		fmt.Fprintf(out, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}\n", 1_000_000+i)
		fmt.Fprintf(out, "debug: %d\n", i)
		if i%10 == 0 {
			fmt.Fprintln(os.Stderr, "chatter", i)
		}
	}
}

// oneByOne reads no further than it must, so that the rest stays unread.
type oneByOne struct{ in *os.File }

func (r oneByOne) Read(p []byte) (int, error) { return r.in.Read(p[:1]) }

func misbehavingResult(role string, m wire.Message) string {
	switch m.Method {
	case wire.MethodDiscover:
		return `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	case wire.MethodInitialize:
		return `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"0"}}`
	case wire.MethodToolsList:
		return `{"tools":[{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
			`{"name":"write","inputSchema":{"type":"object"}}]}`
	case wire.MethodToolsCall:
		if role == "huge" {
			return `{"content":[{"type":"text","text":"` + strings.Repeat("x", 50<<20) + `"}]}`
		}
		if role == "environment" {
			return `{"content":[{"type":"text","text":` + string(rawjson.AppendText(nil, strings.Join(os.Environ(), "\n"))) + `}]}`
		}
		text, _ := rawjson.GetText(mustGet(m.Params, "arguments"), "text")
		return `{"content":[{"type":"text","text":` + string(rawjson.AppendText(nil, text)) + `}]}`
	}
	return `{}`
}

func mustGet(object json.RawMessage, key string) json.RawMessage {
	raw, _ := rawjson.Get(object, key)
	return raw
}

// playAsking is a server that collects as many calls as one of them says, then
// logs, sends a request without naming a call, and answers all of them with what it
// received.
func playAsking(question string) int {
	in := bufio.NewScanner(os.Stdin)
	send := func(m wire.Message) { fmt.Printf("%s\n", m.Append(nil)) }
	var calls []wire.ID
	wanted := 0
	for in.Scan() {
		m, err := wire.Parse([]byte(in.Text()))
		switch {
		case err != nil || m.IsNotification():
		case m.Method == wire.MethodDiscover:
			send(wire.Answer(m.ID, nil, wire.Errorf(wire.CodeMethodNotFound, "no")))
		case m.Method == wire.MethodToolsCall:
			calls = append(calls, m.ID)
			if text, _ := rawjson.GetText(mustGet(m.Params, "arguments"), "text"); text != "-" {
				wanted, _ = strconv.Atoi(text)
			}
			if len(calls) == wanted {
				send(wire.Notification(wire.NoteMessage, json.RawMessage(`{"level":"info","logger":"odd","data":"asking"}`)))
				send(wire.Request(`"q"`, question, nil))
			}
		case m.IsRequest():
			send(wire.Answer(m.ID, json.RawMessage(misbehavingResult("asks", m)), nil))
		case m.ID == `"q"`:
			text := string(m.Result)
			if m.Error != nil {
				text = m.Error.Error()
			}
			for _, id := range calls {
				send(wire.Answer(id, json.RawMessage(`{"content":[{"type":"text","text":`+string(rawjson.AppendText(nil, text))+`}]}`), nil))
			}
			calls, wanted = nil, 0
		}
	}
	return 0
}
