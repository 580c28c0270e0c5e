package processes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// chatLoadPerCore is how many threads per core compete with the server.
const chatLoadPerCore = "LUANETTE_TEST_LOAD"

// chatApart lies between two messages of a user: requests on different connections have no
// order if they follow each other more closely than a busy machine reads them.
const chatApart = 150 * time.Millisecond

// TestChatOrder lets many people send messages without waiting for the answers, each on
// a connection of its own, chatApart apart. They must be answered in the order
// in which they were sent, and none may be lost.
func TestChatOrder(t *testing.T) {
	t.Parallel()
	users, messages := countFrom(chatUsers, 5), countFrom(chatMessages, 10)
	s := newChatLoad(t, echo(t).URL, "")
	s.Start(t)
	t.Cleanup(burn(t, countFrom(chatLoadPerCore, 0)))
	var all sync.WaitGroup
	for n := range users {
		all.Go(func() { s.sendApart(t, fmt.Sprintf("user%d", n), messages) })
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
		all.Go(func() { nodes[n%len(nodes)].sendApart(t, fmt.Sprintf("user%d", n), messages) })
	}
	all.Wait()
	for n := range users {
		nodes[(n+1)%len(nodes)].check(t, fmt.Sprintf("user%d", n), messages)
	}
}

// sendApart sends all messages of a user, one after the other, and waits for the
// answers.
func (s *chatLoad) sendApart(t *testing.T, user string, messages int) {
	connections := make([]net.Conn, messages)
	for n := range connections {
		c, err := s.connect(t)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		connections[n] = c
	}
	for n, c := range connections {
		body, _ := json.Marshal(map[string]string{"client_id": "load", "user_id": user, "message": messageText(user, n)})
		if _, err := fmt.Fprintf(c, "POST /api/v1/chat HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", s.Address, len(body), body); err != nil {
			t.Error(err)
			return
		}
		time.Sleep(chatApart)
	}
	for n, c := range connections {
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("message %d of %s: %v", n, user, err)
			return
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("message %d of %s: %s", n, user, text)
		}
	}
}

// connect opens a connection and uses it once: the server gives a new one only seconds for
// its first request, and thousands are opened before they are used.
func (s *chatLoad) connect(t *testing.T) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Address)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c, "GET /ready HTTP/1.1\r\nHost: %s\r\n\r\n", s.Address); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return c, errors.Join(err, answer.Body.Close())
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
