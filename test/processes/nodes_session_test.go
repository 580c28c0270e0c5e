package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/sse"
)

// sessionClient is a client of the protocol version that has sessions. It uses one node
// until that ends, and then continues with one retry on another.
type sessionClient struct {
	at *clusterNode
	id string // of its session
}

const sessionVersion = "2025-11-25"

// runningNode returns a running node other than the given one, and the number of its run.
func (f *testCluster) runningNode(t *testing.T, other *clusterNode) (*clusterNode, int) {
	t.Helper()
	found, run := other, 0
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if !clocktest.Poll(ctx, func() bool {
		c := f.nodes[rand.IntN(len(f.nodes))]
		now, up := c.Run()
		if up && c != other {
			found, run = c, now
		}
		return up && c != other
	}) && t.Context().Err() == nil { // the test has not ended
		t.Errorf("no other node ran within %s", patience)
	}
	return found, run
}

// useClientSession starts a session and calls tools in it.
func (f *testCluster) useClientSession(t *testing.T, stop <-chan struct{}) {
	v := &sessionClient{}
	for v.id == "" && !isClosed(stop) {
		v.at, _ = f.runningNode(t, nil)
		if err := v.begin(t.Context()); err != nil {
			f.retries.Add(1)
		}
	}
	for n := 0; !isClosed(stop); n++ {
		run, up := v.at.Run()
		err := v.eval(t.Context(), n)
		for err != nil {
			if now, _ := v.at.Run(); now == run && up {
				t.Errorf("a session fails on %s, which runs: %v", v.at.name, err)
				return
			}
			// The node died: retry once on another, until that dies, too.
			f.moves.Add(1)
			v.at, run = f.runningNode(t, v.at)
			up = true
			err = v.eval(t.Context(), n)
		}
		f.sessionCalls.Add(1)
		_ = clock.Real().Sleep(t.Context(), 20*time.Millisecond) // between the calls of a client
	}
}

// begin sends initialize.
func (v *sessionClient) begin(ctx context.Context) error {
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + sessionVersion + `","capabilities":{},"clientInfo":{"name":"sessionClient","version":"1"}}}`
	answer, err := v.post(ctx, hello)
	if err != nil {
		return err
	}
	id := answer.Header.Get("Mcp-Session-Id")
	if _, err := result(answer); err != nil {
		return err
	}
	v.id = id
	answer, err = v.post(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if err != nil {
		v.id = ""
		return err
	}
	return answer.Body.Close()
}

// eval evaluates a number.
func (v *sessionClient) eval(ctx context.Context, n int) error {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"lua_eval","arguments":{"code":"return %d"}}}`, n+2, n)
	answer, err := v.post(ctx, body)
	if err != nil {
		return err
	}
	raw, err := result(answer)
	if err != nil {
		return err
	}
	var got struct {
		StructuredContent struct{ Result json.Number }
	}
	if err := json.Unmarshal(raw, &got); err != nil || got.StructuredContent.Result.String() != strconv.Itoa(n) {
		return fmt.Errorf("the result of %d is %s: %w", n, raw, err)
	}
	return nil
}

func (v *sessionClient) post(ctx context.Context, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, v.at.URL()+"/mcp", bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if v.id != "" {
		r.Header.Set("Mcp-Session-Id", v.id)
		r.Header.Set("Mcp-Protocol-Version", sessionVersion)
	}
	return client.Do(r)
}

// result returns the result of a response, which may be an event stream.
func result(answer *http.Response) (json.RawMessage, error) {
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		return nil, fmt.Errorf("%s: %s", answer.Status, text)
	}
	var last []byte
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		for events := sse.NewReader(answer.Body, 0); ; {
			e, err := events.Next()
			if err != nil {
				return nil, err
			}
			if _, answers := rawjson.Get(e.Data, "id"); answers {
				last = e.Data
				break
			}
		}
	} else {
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return nil, err
		}
		last = text
	}
	var message struct {
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal(last, &message); err != nil {
		return nil, err
	}
	if message.Error != nil {
		return nil, errors.New(message.Error.Message)
	}
	return message.Result, nil
}
