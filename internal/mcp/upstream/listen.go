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

// listen keeps a modern server's subscription open: it is opened again when the
// server or the network ends it, and when other resources are to be followed. It
// returns when the subscription is acknowledged, or after a short while.
func (s *session) listen(ctx context.Context, hooks Hooks) {
	if s.era != wire.Modern {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listenTime)
	defer cancel()
	s.mu.Lock()
	s.acked = func() {
		if ctx.Err() != nil { // not the first time: something may have happened in between
			hooks.Missed()
		}
		cancel()
	}
	s.mu.Unlock()
	started := s.life.run(func(life context.Context) { s.keepListening(life, hooks); cancel() })
	if started && s.wanted(nil) != nil {
		<-ctx.Done()
	}
}

func (s *session) keepListening(ctx context.Context, hooks Hooks) {
	for failures := 1; ctx.Err() == nil; failures++ {
		began := time.Now()
		err := s.subscribe(ctx)
		var refused *wire.Error
		switch {
		case errors.Is(err, errRefocus):
			failures = 0
			continue
		case ctx.Err() != nil || errors.As(err, &refused):
			return // refused: it has no subscriptions, whatever it declared
		}
		if time.Since(began) > time.Second {
			failures = 1
		}
		hooks.Doubt()
		_ = clock.Real().Sleep(ctx, backoff.Policy{}.Delay(failures))
	}
}

// errRefocus ends a subscription that lacks a resource.
var errRefocus = errors.New("other resources to follow")

// subscribe holds one subscription until it ends; while there is nothing to
// subscribe to it only waits for that.
func (s *session) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	notifications := s.wanted(cancel)
	if notifications == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	id := wire.IntID(s.ids.Add(1))
	params := rawjson.Set(json.RawMessage(`{}`), "notifications", notifications)
	answer, err := s.carry(ctx, &draft{request: &request{method: wire.MethodListen}, session: s, id: id, params: params})
	switch {
	case err != nil && ctx.Err() != nil:
		s.cancel(id)
		return context.Cause(ctx)
	case err != nil:
		return err
	case answer.Error != nil:
		return answer.Error
	}
	return nil
}

// wanted is what to subscribe to, nil for nothing. refocus, unless nil, is called
// when that changes.
func (s *session) wanted(refocus context.CancelCauseFunc) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refocus != nil {
		s.refocus = refocus
	}
	var notifications json.RawMessage
	for _, name := range [3]string{"tools", "prompts", "resources"} {
		if s.has(name, "listChanged") {
			notifications = rawjson.Set(notifications, name+"ListChanged", json.RawMessage("true"))
		}
	}
	if len(s.follow) > 0 {
		uris := []byte{'['}
		for i, uri := range slices.Sorted(maps.Keys(s.follow)) {
			if i > 0 {
				uris = append(uris, ',')
			}
			uris = rawjson.AppendText(uris, uri)
		}
		notifications = rawjson.Set(notifications, "resourceSubscriptions", append(uris, ']'))
	}
	return notifications
}

// followResource adds or removes a resource whose changes are wanted.
func (s *session) followResource(uri string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.follow[uri] == on {
		return
	}
	if on {
		s.follow[uri] = true
	} else {
		delete(s.follow, uri)
	}
	if s.refocus != nil {
		s.refocus(errRefocus)
	}
}
