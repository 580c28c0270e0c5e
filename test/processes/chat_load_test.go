package processes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/programtest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
)

// The number of users and of messages of each; few by default.
const (
	chatUsers    = "LUANETTE_TEST_USERS"
	chatMessages = "LUANETTE_TEST_MESSAGES"
)

// TestChatUnderLoad lets many users chat with the real server at once. Some disconnect
// during an answer, and the server is killed meanwhile. A client without an answer sends
// the message again with the same key. In the end every message must be answered once, in
// order.
func TestChatUnderLoad(t *testing.T) {
	t.Parallel()
	users, messages := countFrom(chatUsers, 12), countFrom(chatMessages, 6)
	model := echo(t)
	s := newChatLoad(t, model.URL, "")
	s.Start(t)
	var all sync.WaitGroup
	for n := range users {
		all.Go(func() { s.sendAll(t, fmt.Sprintf("user%d", n), 0, messages) })
	}
	for s.answers.Load() < int64(users*messages/2) && t.Context().Err() == nil {
		<-s.answered
	}
	s.restarting.Lock()
	s.Kill()
	s.Start(t)
	s.restarting.Unlock()
	go func() { // so that no sender blocks
		for range s.answered {
		}
	}()
	all.Wait()
	close(s.answered)
	for n := range users {
		s.check(t, fmt.Sprintf("user%d", n), messages)
	}
	t.Logf("%d users, %d messages each; %d clients disconnected, %d requests failed", users, messages, s.disconnects.Load(), s.failures.Load())
	if trouble := model.Trouble(); len(trouble) > 0 {
		t.Errorf("invalid requests to the model: %q", trouble)
	}
}

func countFrom(variable string, few int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return few
}

// echo is a model that answers with what it was sent.
func echo(t *testing.T) *llmtest.Server {
	t.Helper()
	model := llmtest.New(func(llmtest.Request) llmtest.Step { return llmtest.Step{Echo: true} })
	t.Cleanup(model.Close)
	return model
}

// chatLoad is the server under load.
type chatLoad struct {
	*programtest.Server
	restarting sync.RWMutex // held while the server is replaced

	answered                       chan struct{}
	answers, disconnects, failures atomic.Int64
}

func newChatLoad(t *testing.T, model, config string) *chatLoad {
	t.Helper()
	s := &chatLoad{Server: programtest.New(t, config), answered: make(chan struct{}, 1)}
	s.Env = []string{"LUANETTE_CHAT_BASE_URL=" + model, "ANTHROPIC_API_KEY=" + llmtest.Key, "LUANETTE_LOG_LEVEL=error"}
	return s
}

// sendAll sends messages of one user, from one number up to another, each until it is
// answered.
func (s *chatLoad) sendAll(t *testing.T, user string, from, to int) {
	for n := from; n < to; n++ {
		body, _ := json.Marshal(map[string]string{
			"client_id": "load", "user_id": user, "message": messageText(user, n), "message_key": strconv.Itoa(n),
		})
		for t.Context().Err() == nil && !s.send(t.Context(), body, messageText(user, n)) {
		}
		s.answers.Add(1)
		select {
		case s.answered <- struct{}{}:
		default:
		}
	}
}

// messageText returns message n of a user.
func messageText(user string, n int) string { return fmt.Sprintf("message %d of %s", n, user) }

// send sends a message and reports whether it was answered. Sometimes it disconnects
// before the answer.
func (s *chatLoad) send(ctx context.Context, body []byte, want string) bool {
	ctx, disconnect := context.WithCancel(ctx)
	defer disconnect()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/api/v1/chat/stream", bytes.NewReader(body))
	if err != nil {
		return false
	}
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		s.failures.Add(1)
		s.restarting.RLock() // until the server is back
		defer s.restarting.RUnlock()
		return false
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"type":"status"`) && rand.IntN(4) == 0 {
			s.disconnects.Add(1)
			return false
		}
		if strings.Contains(lines.Text(), `"type":"complete"`) {
			return strings.Contains(lines.Text(), want)
		}
	}
	if err := lines.Err(); err == nil || !errors.Is(err, context.Canceled) {
		s.failures.Add(1)
	}
	return false
}

// check compares a user's stored history with the sent messages.
func (s *chatLoad) check(t *testing.T, user string, messages int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/api/v1/orgs/default/users/"+user+"/history", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var history struct {
		Entries []struct {
			User   string `json:"user_message"`
			Answer string `json:"assistant_response"`
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&history); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, e := range history.Entries {
		got = append(got, e.User)
		if !strings.Contains(e.Answer, e.User) {
			t.Errorf("the answer to %q is %q", e.User, e.Answer)
		}
	}
	for n := range messages {
		want = append(want, messageText(user, n))
	}
	if !slices.Equal(got, want) {
		t.Errorf("history of %s: %q, want %q", user, got, want)
	}
}
