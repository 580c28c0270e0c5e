package approval_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/govern/approval"
)

// TestWebhookIsTold checks that the webhook gets a request, signed, and again after it
// failed. If the process is stopped before the webhook's answer, that is stored all the same.
func TestWebhookIsTold(t *testing.T) {
	t.Parallel()
	type delivery struct {
		header http.Header
		body   []byte
	}
	received, stopped := make(chan delivery, 100), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- delivery{r.Header, body}
		if requests.Add(1) == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		stop()
	}))
	t.Cleanup(server.Close)
	client := server.Client()
	t.Cleanup(client.CloseIdleConnections)
	b := newFixture(t)
	o, err := approval.Open(t.Context(), b.db, approval.Options{
		Policy: approval.Policy{Default: approval.Writes}, Events: b.bus, Clock: b.time,
		Webhook: &approval.Webhook{URL: server.URL, Secret: secret.New("whsec_bHVhbmV0dGU="), Client: client},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(stopped)
		o.Watch(ctx, nil)
	}()
	t.Cleanup(func() { stop(); <-stopped })
	id := ask(t, o, paused("run:1", "", "ann"))
	for range 2 {
		var got delivery
		clocktest.Await(t, func() bool {
			if b.notices(t, 30*time.Second) > 0 { // no time passes while one is being sent
				b.time.Advance(3 * time.Second)
			}
			select {
			case got = <-received:
				return true
			default:
				return false
			}
		}, func() string { return "the webhook was not told" })
		var n approval.Notice
		if err := json.Unmarshal(got.body, &n); err != nil || n.Type != "approval.requested" || n.Data.ID != id || n.Data.Subject != "bank.pay" || n.Data.Needed != 1 {
			t.Errorf("received %s, %v", got.body, err)
		}
		mac := hmac.New(sha256.New, []byte("luanette"))
		mac.Write([]byte(got.header.Get("webhook-id") + "." + got.header.Get("webhook-timestamp") + "." + string(got.body)))
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); got.header.Get("webhook-signature") != want || got.header.Get("webhook-id") != id {
			t.Errorf("signed %v, want %s", got.header, want)
		}
	}
	<-stopped
	if count := b.notices(t, 24*time.Hour); count != 0 {
		t.Errorf("%d notices are sent again", count)
	}
}

// notices returns how many notices are due within a time. One that is being sent is not due
// for a minute.
func (b *fixture) notices(t *testing.T, within time.Duration) (count int) {
	t.Helper()
	err := b.db.QueryRow(t.Context(), `SELECT count(*) FROM approvals WHERE notice > 0 AND notice <= $1`, b.time.Now().Add(within).UnixMicro()).Scan(&count)
	if err != nil {
		t.Fatal(err)
	}
	return count
}
