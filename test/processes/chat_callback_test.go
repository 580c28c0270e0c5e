package processes

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
)

// restarts is the number of restarts of TestCallbacksArrive; few by default.
const restarts = "LUANETTE_TEST_RESTARTS"

// gateway receives callbacks, as one to a messaging service does. It can be stopped, and started
// again at its address.
type gateway struct {
	address string
	server  *http.Server

	mu     sync.Mutex
	answer map[string]string          // by the key of the message
	ids    map[string]map[string]bool // Webhook-Ids, by the key of the message
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{address: "127.0.0.1:0", answer: map[string]string{}, ids: map[string]map[string]bool{}}
	g.start(t)
	t.Cleanup(func() { _ = g.server.Close() })
	return g
}

func (g *gateway) start(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	g.address, g.server = listener.Addr().String(), &http.Server{Handler: g}
	go func() { _ = g.server.Serve(listener) }()
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var hook struct {
		Type, Text string
		Key        string `json:"message_key"`
	}
	if err := json.NewDecoder(r.Body).Decode(&hook); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if hook.Type != "complete" && hook.Type != "error" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer[hook.Key] = hook.Type + " " + hook.Text
	if g.ids[hook.Key] == nil {
		g.ids[hook.Key] = map[string]bool{}
	}
	g.ids[hook.Key][r.Header.Get("Webhook-Id")] = true
}

// answered returns how many messages have an answer.
func (g *gateway) answered() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.answer)
}

// TestCallbacksArrive stops the server, by SIGTERM or as a crash does, and its gateway while
// messages are answered. Every message that was accepted is answered once, and the gateway gets
// each answer, under one ID. A page sends its messages again until it has read their answers.
func TestCallbacksArrive(t *testing.T) {
	t.Parallel()
	const users, each = 4, 2
	rounds := countFrom(restarts, 2)
	g := newGateway(t)
	s := newChatLoad(t, echo(t).URL, "")
	s.Start(t)
	for round := range rounds {
		for n := range users * each {
			user, number := fmt.Sprintf("user%d", n%users), round*each+n/users
			body, _ := json.Marshal(map[string]string{
				"client_id": "gateway", "user_id": user, "message": messageText(user, number), "message_key": user + " " + strconv.Itoa(number),
				"progress_callback_url": "http://" + g.address + "/hook",
			})
			if answer, text := httpjsontest.Read(t, "POST", s.URL()+"/api/v1/chat/callback", string(body)); answer.StatusCode != http.StatusAccepted {
				t.Fatalf("%d %s", answer.StatusCode, text)
			}
		}
		shown := make(chan struct{})
		go func() {
			defer close(shown)
			s.sendAll(t, "web", round*each, (round+1)*each)
		}()
		s.restarting.Lock()
		gatewayToo := round%3 == 1
		if gatewayToo {
			_ = g.server.Close()
		}
		if round%2 == 0 {
			s.Signal(t, syscall.SIGTERM)
			_, _ = s.Wait()
		} else {
			s.Kill()
		}
		s.Start(t)
		s.restarting.Unlock()
		if gatewayToo {
			g.start(t)
		}
		<-shown
	}
	clocktest.Await(t, func() bool { return g.answered() == rounds*users*each }, func() string { return fmt.Sprintf("%d answers", g.answered()) })
	for key, answer := range g.answer {
		user, number, _ := strings.Cut(key, " ")
		n, _ := strconv.Atoi(number)
		if !strings.HasPrefix(answer, "complete ") || !strings.Contains(answer, messageText(user, n)) || len(g.ids[key]) != 1 {
			t.Errorf("%s: %q, %v", key, answer, g.ids[key])
		}
	}
	for n := range users {
		s.check(t, fmt.Sprintf("user%d", n), rounds*each)
	}
	s.check(t, "web", rounds*each)
}
