package sse_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/httpserver/httpservertest"
	"github.com/luanette/luanette/internal/base/sse"
)

func TestResponseBeginsWithItsFirstEvent(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	r := sse.NewResponse(w)
	if r.Begun() || w.Flushed {
		t.Fatal("something was sent before the first event")
	}
	if err := errors.Join(r.Send([]byte("{\"a\":1}")), r.Comment("still here")); err != nil {
		t.Fatal(err)
	}
	if !r.Begun() || !w.Flushed {
		t.Error("the events were not sent at once")
	}
	if got, want := w.Body.String(), "data: {\"a\":1}\n\n: still here\n\n"; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	if got := w.Header().Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type is %q", got)
	}
}

func TestOnlySilenceIsFilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sse.NewResponse(httptest.NewRecorder())
		ctx, cancel := context.WithCancel(t.Context())
		var filled atomic.Int64
		wait := r.WhileSilent(ctx, 10*time.Second, func() error { filled.Add(1); return r.Comment("") })
		for range 9 { // an event every 4 seconds: never silent for half an interval
			time.Sleep(4 * time.Second)
			if err := r.Send(nil); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := filled.Load(); n != 0 {
			t.Errorf("%d comments between events", n)
		}
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if n := filled.Load(); n != 3 {
			t.Errorf("%d comments in 35 silent seconds, want 3", n)
		}
		cancel()
		wait()
	})
}

func TestClientThatNeverReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		began := time.Now()
		client := httpservertest.Pipe(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			r := sse.NewResponse(w)
			for {
				if err := r.Send([]byte("event")); err != nil {
					ended <- err
					return
				}
			}
		}))
		fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the stream ended with %v", err)
		}
		if waited := time.Since(began); waited != 30*time.Second {
			t.Errorf("it ended after %s", waited)
		}
	})
}
