package server

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// TestAnswersAreWrittenBeforeTheServerEnds stops a server in the middle of answers: who
// waits for one gets it, as a stream and plain.
func TestAnswersAreWrittenBeforeTheServerEnds(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	model := llmtest.Start(t, func(llmtest.Request) llmtest.Step {
		return llmtest.Step{Say: []string{"one ", "two"}, Hold: hold, HoldText: true}
	})
	url, srv, end := startStoppable(t, config.Sources{
		File: configtest.WriteFile(t, "[chat]\nbase_url = \""+model.URL+"\"\n"), Env: config.Environment{"ANTHROPIC_API_KEY": llmtest.Key},
	})
	const each = 4
	outcomes := make(chan string, 2*each)
	for i := range 2 * each {
		path := "/api/v1/chat"
		if i%2 == 0 {
			path += "/stream"
		}
		body := fmt.Sprintf(`{"user_id":"u%d","client_id":"web","message":"count"}`, i)
		go func() {
			answer, err := httpjsontest.Client.Post(url+path, "application/json", strings.NewReader(body))
			if err != nil {
				outcomes <- err.Error()
				return
			}
			defer answer.Body.Close()
			last := ""
			for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
				if lines.Text() != "" {
					last = lines.Text()
				}
			}
			outcomes <- fmt.Sprint(answer.StatusCode, " ", last)
		}()
	}
	clocktest.Await(t, func() bool { return len(model.Requests()) == 2*each })
	ended := make(chan struct{})
	go func() { defer close(ended); end() }()
	clocktest.Await(t, srv.draining.Load)
	close(hold)
	for range 2 * each {
		if got := <-outcomes; !strings.HasPrefix(got, fmt.Sprint(http.StatusOK)) || !strings.Contains(got, `"one two"`) {
			t.Errorf("answered %s", got)
		}
	}
	<-ended
}

// TestCallsEndBeforeTheServer stops a server while a program that does not speak MCP makes a call.
func TestCallsEndBeforeTheServer(t *testing.T) {
	t.Parallel()
	called, answer := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(called)
		select {
		case <-answer:
		case <-r.Context().Done():
		}
		fmt.Fprint(w, "at last")
	}))
	defer slow.Close()
	address := strings.TrimPrefix(slow.URL, "http://")
	url, _, end := startStoppable(t, config.Sources{Flags: map[string]string{"scripts.http_hosts": address}})
	answers := make(chan string, 1)
	go func() {
		answer, err := httpjsontest.Client.Post(url+"/tools/lua_eval", "application/json", strings.NewReader(fmt.Sprintf(`{"code":"return http.get('%s').body"}`, slow.URL)))
		if err != nil {
			answers <- err.Error()
			return
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body) // what is missing fails below
		answers <- answer.Status + " " + string(body)
	}()
	<-called
	ended := make(chan struct{})
	go func() { defer close(ended); end() }()
	clocktest.Await(t, func() bool { // the server has begun to refuse calls
		answer, _ := httpjsontest.Read(t, http.MethodPost, url+"/tools/job_list", "{}")
		return answer.StatusCode == http.StatusServiceUnavailable
	})
	close(answer)
	if got := <-answers; !strings.HasPrefix(got, "200") || !strings.Contains(got, "at last") {
		t.Errorf("the call that was under way: %s", got)
	}
	<-ended
}
