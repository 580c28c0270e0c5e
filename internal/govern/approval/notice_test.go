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

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/store/delivery"
)

// TestWebhookIsTold checks that the webhook gets a request, signed, and again after it
// failed. If the process is stopped before the webhook's answer, that is stored all the same.
func TestWebhookIsTold(t *testing.T) {
	t.Parallel()
	type notice struct {
		header http.Header
		body   []byte
	}
	received, stopped := make(chan notice, 100), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- notice{r.Header, body}
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
	deliveries, err := delivery.Open(t.Context(), b.db, delivery.Options{Clock: b.time})
	if err != nil {
		t.Fatal(err)
	}
	o, err := approval.Open(t.Context(), b.db, approval.Options{
		Policy: approval.Policy{Default: approval.Writes}, Events: b.bus, Clock: b.time, Webhook: server.URL, Deliveries: deliveries,
	})
	if err != nil {
		t.Fatal(err)
	}
	deliveries.Register(approval.Notices, delivery.Channel{Client: client, Secret: secret.New("whsec_bHVhbmV0dGU="), Wanted: o.NoticeWanted})
	go func() {
		defer close(stopped)
		deliveries.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-stopped })
	id := ask(t, o, paused("run:1", "", "ann"))
	for range 2 {
		var got notice
		clocktest.Await(t, func() bool {
			if s, err := deliveries.Get(t.Context(), id); err == nil && len(s.Tries) == 1 { // none is under way
				b.time.Advance(delivery.Pauses[0])
				deliveries.Wake()
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
	if s, err := deliveries.Get(t.Context(), id); err != nil || s.State != delivery.Delivered {
		t.Errorf("%+v, %v", s, err)
	}
}
