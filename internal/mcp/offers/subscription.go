package offers

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// subscriptions are those of all clients at /mcp to resources of upstreams.
type subscriptions struct {
	work sync.WaitGroup

	mu     sync.Mutex
	notify hub.Notify
	feeds  map[feedKey]*feed
}

// feedKey identifies the notifications of an upstream: those of one owner are not for another.
type feedKey struct{ space, owner string }

// feed is what one upstream notifies of, while somebody wants to know.
type feed struct {
	stop        func()
	asking      chan struct{}            // holds a token while it subscribes or unsubscribes
	subscribers map[*subscriber]struct{} // guarded by the lock of subscriptions
}

type subscriber struct {
	uri   string // at the upstream
	shown string // as the client wrote it
	who   string
}

// Changes has notify told of updates of resources of upstreams, too.
func (o *Offers) Changes(own func(hub.Notify) (stop func())) func(hub.Notify) (stop func()) {
	return func(notify hub.Notify) (stop func()) {
		o.subscriptions.mu.Lock()
		o.subscriptions.notify = notify
		o.subscriptions.mu.Unlock()
		return own(notify)
	}
}

// Subscribe implements hub.Offers. The upstream is subscribed once for all of one owner.
func (o *Offers) Subscribe(ctx context.Context, uri string) (release func(), err error) {
	t, err := o.resource(ctx, uri)
	if err != nil {
		return nil, err
	}
	if t.space == "" {
		return func() {}, nil // of our own, everybody who is subscribed is told
	}
	who := principal.Of(ctx)
	key := feedKey{t.space, o.Upstreams.Owner(ctx, t.space)}
	s := &subscriber{uri: t.id, shown: uri, who: viewer(who)}
	f := o.subscriptions.join(key, s, t.peer)
	if err := f.ask(ctx, t.peer, wire.MethodSubscribe, t.id); err != nil {
		o.subscriptions.leave(key, s)
		return nil, err
	}
	return sync.OnceFunc(func() { //nolint:contextcheck // a subscription outlives the request for it
		o.subscriptions.leave(key, s)
		o.subscriptions.work.Go(func() {
			ctx, cancel := context.WithTimeout(principal.With(context.Background(), who), releaseTimeout)
			defer cancel()
			_ = f.ask(ctx, t.peer, wire.MethodUnsubscribe, t.id) // nobody is there who could be told
		})
	}), nil
}

// releaseTimeout limits how long an upstream is told that a subscription is over.
const releaseTimeout = 30 * time.Second

// ask subscribes or unsubscribes, one at a time.
func (f *feed) ask(ctx context.Context, peer hub.Peer, method, uri string) error {
	select {
	case f.asking <- struct{}{}:
		defer func() { <-f.asking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, err := peer.Request(ctx, method, rawjson.SetText(nil, "uri", uri), nil)
	return err
}

// join adds a subscriber to the feed of an upstream, before it can miss an update.
func (s *subscriptions) join(key feedKey, one *subscriber, peer hub.Peer) *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feeds[key]
	if f == nil {
		f = &feed{asking: make(chan struct{}, 1), subscribers: map[*subscriber]struct{}{}}
		f.stop = peer.Watch(func(method string, params json.RawMessage) {
			if method == wire.NoteResourceUpdated {
				s.updated(f, params)
			}
		})
		if s.feeds == nil {
			s.feeds = map[feedKey]*feed{}
		}
		s.feeds[key] = f
	}
	f.subscribers[one] = struct{}{}
	return f
}

func (s *subscriptions) leave(key feedKey, one *subscriber) {
	s.mu.Lock()
	f := s.feeds[key]
	delete(f.subscribers, one)
	last := len(f.subscribers) == 0
	if last {
		delete(s.feeds, key)
	}
	s.mu.Unlock()
	if last {
		f.stop()
	}
}

// updated tells the subscribers of a resource, each by the URI that it has subscribed to.
func (s *subscriptions) updated(f *feed, params json.RawMessage) {
	uri, _ := rawjson.GetText(params, "uri")
	type told struct{ shown, who string }
	s.mu.Lock()
	notify, all := s.notify, map[told]bool{}
	for one := range f.subscribers {
		if one.uri == uri {
			all[told{one.shown, one.who}] = true
		}
	}
	s.mu.Unlock()
	for to := range all {
		notify(wire.NoteResourceUpdated, rawjson.SetText(params, "uri", to.shown), func(who principal.Principal) bool { return viewer(who) == to.who })
	}
}

// Close waits until upstreams know which subscriptions are over.
func (o *Offers) Close() { o.subscriptions.work.Wait() }
