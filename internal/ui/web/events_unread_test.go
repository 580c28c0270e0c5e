package web_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/httpserver/httpservertest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/ui/web"
)

// TestReaderThatNeverReads checks that a reader of events that reads nothing delays
// nobody, and is disconnected.
func TestReaderThatNeverReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := event.New(event.BusOptions{})
		defer bus.Close()
		server := web.New(web.Options{Bus: bus, Keepalive: time.Hour})
		client := httpservertest.Pipe(t, principal.Unguarded(server.Routes()))
		fmt.Fprint(client, "GET /api/v1/events HTTP/1.1\r\nHost: a\r\n\r\n")
		synctest.Wait() // the response's head is being written
		before := time.Now()
		for i := range 20_000 {
			bus.Publish(reconnecting{Name: strings.Repeat("x", i%100)})
		}
		if waited := time.Since(before); waited != 0 {
			t.Errorf("publishing waited for the reader for %s", waited)
		}
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if n := server.Readers(); n != 1 {
			t.Errorf("%d readers after 29 seconds", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := server.Readers(); n != 0 {
			t.Errorf("%d readers after 31 seconds", n)
		}
	})
}
