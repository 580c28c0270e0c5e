package processes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// chatLoadPerCore is how many threads per core compete with the server.
const chatLoadPerCore = "LUANETTE_TEST_LOAD"

// TestChatOrder lets many people send messages without waiting for the answers, each on
// a connection of its own. They must be answered in the order in which they were sent, and
// none may be lost.
func TestChatOrder(t *testing.T) {
	t.Parallel()
	users, messages := countFrom(chatUsers, 5), countFrom(chatMessages, 10)
	s := newChatLoad(t, echo(t).URL, "")
	s.Start(t)
	t.Cleanup(burn(t, countFrom(chatLoadPerCore, 0)))
	var all sync.WaitGroup
	for n := range users {
		all.Go(func() { s.sendAhead(t, fmt.Sprintf("user%d", n), messages) })
	}
	all.Wait()
	for n := range users {
		s.check(t, fmt.Sprintf("user%d", n), messages)
	}
}

// TestChatOrderOnNodes does the same with three nodes on one Postgres, each person at one
// of them, and compares what another node has stored.
func TestChatOrderOnNodes(t *testing.T) {
	t.Parallel()
	users, messages := countFrom(chatUsers, 6), countFrom(chatMessages, 5)
	database := dbtest.Postgres(t)
	model := echo(t)
	var nodes []*chatLoad
	for _, name := range []string{"ann", "bob", "eve"} {
		s := newChatLoad(t, model.URL, "")
		s.Env = append(s.Env, "LUANETTE_DATABASE="+database, "LUANETTE_NODE="+name)
		s.Start(t)
		nodes = append(nodes, s)
	}
	t.Cleanup(burn(t, countFrom(chatLoadPerCore, 0)))
	var all sync.WaitGroup
	for n := range users {
		all.Go(func() { nodes[n%len(nodes)].sendAhead(t, fmt.Sprintf("user%d", n), messages) })
	}
	all.Wait()
	for n := range users {
		nodes[(n+1)%len(nodes)].check(t, fmt.Sprintf("user%d", n), messages)
	}
}

// sendAhead sends all messages of a user, each as soon as the server has read the one before,
// which the first event of its answer says, and then waits for the answers.
func (s *chatLoad) sendAhead(t *testing.T, user string, messages int) {
	var answers []*bufio.Scanner
	for n := range messages {
		body, _ := json.Marshal(map[string]string{"client_id": "load", "user_id": user, "message": messageText(user, n)})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/api/v1/chat/stream", bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		answer, err := httpjsontest.Client.Do(r)
		if err != nil {
			t.Errorf("message %d of %s: %v", n, user, err)
			return
		}
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		if answers = append(answers, lines); !lines.Scan() {
			t.Errorf("message %d of %s: %s, %v", n, user, answer.Status, lines.Err())
			return
		}
	}
	for n, lines := range answers {
		complete := false
		for !complete && lines.Scan() {
			complete = strings.Contains(lines.Text(), `"type":"complete"`)
		}
		if !complete {
			t.Errorf("message %d of %s is not answered: %v", n, user, lines.Err())
		}
	}
}

// burn keeps every core busy with that many processes until it is stopped.
func burn(t *testing.T, perCore int) (stop func()) {
	t.Helper()
	var processes []*exec.Cmd
	for range perCore * runtime.NumCPU() {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, cmd)
	}
	return func() {
		for _, cmd := range processes {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
}
