package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// openSubscription subscribes to a modern server's notifications and keeps the
// subscription open. It returns when the server has acknowledged it, or after
// listenTimeout.
func (s *session) openSubscription(ctx context.Context, hooks Hooks) {
	if s.era != wire.Modern {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	s.mu.Lock()
	s.acked = func() {
		if ctx.Err() != nil { // not the first time: notifications may have been lost in between
			hooks.Relist()
		}
		cancel()
	}
	s.mu.Unlock()
	started := s.life.run(func(life context.Context) { s.keepSubscription(life, hooks); cancel() })
	if started && s.subscriptionFilter(nil) != nil {
		<-ctx.Done()
	}
}

// keepSubscription opens the subscription again whenever it ends, until ctx ends
// or the server refuses it.
func (s *session) keepSubscription(ctx context.Context, hooks Hooks) {
	for failures := 1; ctx.Err() == nil; failures++ {
		began := time.Now()
		err := s.subscribe(ctx)
		var refused *wire.Error
		switch {
		case errors.Is(err, errResubscribe):
			failures = 0
			continue
		case ctx.Err() != nil || errors.As(err, &refused):
			return // refused: it has no subscriptions, whatever it declared
		}
		if time.Since(began) > time.Second {
			failures = 1
		}
		hooks.CheckHealth()
		_ = clock.Real().Sleep(ctx, backoff.Policy{}.Delay(failures))
	}
}

// errResubscribe ends a subscription whose list of resources has changed.
var errResubscribe = errors.New("subscribed resources have changed")

// subscribe opens one subscription and returns when it ends. While there is
// nothing to subscribe to, it waits for that.
func (s *session) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	notifications := s.subscriptionFilter(cancel)
	if notifications == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	id := wire.IntID(s.ids.Add(1))
	params := rawjson.Set(json.RawMessage(`{}`), "notifications", notifications)
	answer, err := s.transport.Call(ctx, s.outgoing(&request{method: wire.MethodListen}, id, params))
	switch {
	case err != nil && ctx.Err() != nil:
		s.cancelRequest(id)
		return context.Cause(ctx)
	case err != nil:
		return err
	case answer.Error != nil:
		return answer.Error
	}
	return nil
}

// subscriptionFilter is what to subscribe to, nil for nothing. resubscribe, unless
// nil, is called when that changes.
func (s *session) subscriptionFilter(resubscribe context.CancelCauseFunc) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if resubscribe != nil {
		s.resubscribe = resubscribe
	}
	var notifications json.RawMessage
	for _, name := range [3]string{"tools", "prompts", "resources"} {
		if s.hasCapability(name, "listChanged") {
			notifications = rawjson.Set(notifications, name+"ListChanged", json.RawMessage("true"))
		}
	}
	if len(s.subscriptions) > 0 {
		uris := []byte{'['}
		for i, uri := range slices.Sorted(maps.Keys(s.subscriptions)) {
			if i > 0 {
				uris = append(uris, ',')
			}
			uris = rawjson.AppendText(uris, uri)
		}
		notifications = rawjson.Set(notifications, "resourceSubscriptions", append(uris, ']'))
	}
	return notifications
}

// setResourceSubscription subscribes to the changes of a resource, or ends that.
func (s *session) setResourceSubscription(uri string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscriptions[uri] == on {
		return
	}
	if on {
		s.subscriptions[uri] = true
	} else {
		delete(s.subscriptions, uri)
	}
	if s.resubscribe != nil {
		s.resubscribe(errResubscribe)
	}
}
