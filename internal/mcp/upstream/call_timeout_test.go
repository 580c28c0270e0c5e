package upstream_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// working makes the fake's tools take a number of minutes, with
// progress after each.
func working(s *testManager, minutes int) {
	s.fake.handle = func(ctx context.Context, m wire.Message) (json.RawMessage, error) {
		if m.Method != wire.MethodToolsCall {
			return json.RawMessage(`{}`), nil
		}
		token, _ := rawjson.Get(wire.Meta(m.Params), wire.MetaProgressToken)
		for i := range minutes {
			time.Sleep(time.Minute)
			params := rawjson.Set(rawjson.Set(nil, wire.MetaProgressToken, token), "progress", json.RawMessage(wire.IntID(int64(i+1))))
			s.fake.notify(wire.NoteProgress, params)
		}
		return json.RawMessage(`{"content":[]}`), nil
	}
}

func TestProgressKeepsACallAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		working(s, 20)
		s.add(t, upstream.Spec{Settings: upstream.Settings{Timeout: duration.Duration(90 * time.Second)}})
		if err := s.call("write"); err != nil {
			t.Errorf("20 minutes with a sign of life each: %v", err)
		}
		s.add(t, upstream.Spec{Settings: upstream.Settings{Timeout: duration.Duration(30 * time.Second)}})
		began := time.Now()
		if err := s.call("write"); fault.CodeOf(err) != fault.Timeout || time.Since(began) != 30*time.Second {
			t.Errorf("no sign of life within 30 seconds: %v after %v", err, time.Since(began))
		}
		s.add(t, upstream.Spec{Settings: upstream.Settings{Timeout: duration.Duration(90 * time.Second), MaxTime: duration.Duration(10 * time.Minute)}})
		began = time.Now()
		if err := s.call("write"); fault.CodeOf(err) != fault.Timeout || time.Since(began) != 10*time.Minute {
			t.Errorf("10 minutes are the most: %v after %v", err, time.Since(began))
		}
		time.Sleep(time.Hour) // until the fake has finished the abandoned calls
	})
}

// A server that sends log messages, and progress that does not increase, is not working:
// the call ends at its limit, once, and the server is told once.
func TestNotificationsWithoutProgressEndAtTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		over, cancelled := make(chan struct{}), make(chan wire.Message, 10)
		s.fake.sent = func(m wire.Message) {
			if m.Method == wire.NoteCancelled {
				cancelled <- m
			}
		}
		s.fake.handle = func(_ context.Context, m wire.Message) (json.RawMessage, error) {
			if m.Method != wire.MethodToolsCall {
				return json.RawMessage(`{}`), nil
			}
			token, _ := rawjson.Get(wire.Meta(m.Params), wire.MetaProgressToken)
			progress := rawjson.Set(rawjson.Set(nil, wire.MetaProgressToken, token), "progress", json.RawMessage(`1`))
			for range 600 { // ten minutes, long after the limit
				time.Sleep(time.Second)
				s.fake.notify(wire.NoteMessage, json.RawMessage(`{"level":"info","data":"still here"}`))
				s.fake.notify(wire.NoteProgress, progress)
			}
			close(over)
			return json.RawMessage(`{"content":[]}`), nil
		}
		s.add(t, upstream.Spec{Settings: upstream.Settings{Timeout: duration.Duration(30 * time.Second)}})
		began, logs, reports := time.Now(), 0, 0
		caller := &tool.Caller{Log: func(tool.Log) { logs++ }, Progress: func(tool.Progress) { reports++ }}
		_, err := s.Call(t.Context(), tool.Call{Ref: ref("write"), Caller: caller})
		if took := time.Since(began); fault.CodeOf(err) != fault.Timeout || took != 31*time.Second { // the first report counts as progress
			t.Errorf("%v after %v", err, took)
		}
		told, reported := logs, reports
		<-over
		synctest.Wait()
		if told < 29 || told > 31 || logs != told || reported != 1 || reports != 1 {
			t.Errorf("%d log messages until the end and %d in all, %d reports", told, logs, reports)
		}
		if len(cancelled) != 1 {
			t.Errorf("the server was told %d times that the call was cancelled", len(cancelled))
		}
		if status := s.state(t).Stats; status.InFlight != 0 || status.Errors != 1 || status.Calls != 1 {
			t.Errorf("%+v", status)
		}
	})
}

func TestTimeToAskTheCallerDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		answered := make(chan wire.Message, 1)
		s.fake.handle = func(ctx context.Context, m wire.Message) (json.RawMessage, error) {
			if m.Method != wire.MethodToolsCall {
				return json.RawMessage(`{}`), nil
			}
			s.fake.ask(wire.Request(`"q"`, wire.MethodElicit, json.RawMessage(`{"message":"sure?"}`)), answered)
			a := <-answered
			return json.RawMessage(`{"content":[{"type":"text","text":` + string(rawjson.AppendText(nil, string(a.Result))) + `}]}`), nil
		}
		s.add(t, upstream.Spec{Settings: upstream.Settings{Timeout: duration.Duration(time.Minute)}})
		caller := &tool.Caller{Ask: func(context.Context, []tool.Question) ([]json.RawMessage, error) {
			time.Sleep(10 * time.Minute)
			return []json.RawMessage{json.RawMessage(`{"action":"accept"}`)}, nil
		}}
		result, err := s.Call(t.Context(), tool.Call{Ref: ref("write"), Caller: caller})
		if err != nil || !strings.Contains(string(result.Raw), "accept") {
			t.Errorf("result = %s, %v", result.Raw, err)
		}
	})
}
