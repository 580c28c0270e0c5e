package offers

import (
	"bytes"
	"container/list"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// Limits of the links that are remembered.
const (
	mostLinks   = 20_000
	mostInOne   = 1_000
	linkExpires = 24 * time.Hour
)

// Links are the resources that upstreams have named in results, by who got the result: a server
// may link to what it does not list. The oldest are forgotten first.
type Links struct {
	mu    sync.Mutex
	known map[linkKey]*list.Element
	order list.List // of *link, the oldest first
}

type linkKey struct{ who, uri string }

type link struct {
	key   linkKey
	space string
	at    time.Time
}

func viewer(who principal.Principal) string {
	return who.LoginOwner() + "\x00" + who.ActingOrg() + "\x00" + who.Grant
}

func (l *Links) add(who principal.Principal, space, uri string) {
	l.remember(linkKey{viewer(who), uri}, space)
}

func (l *Links) remember(key linkKey, space string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.known[key]; old != nil {
		l.order.Remove(old)
	}
	if l.known == nil {
		l.known = map[linkKey]*list.Element{}
	}
	l.known[key] = l.order.PushBack(&link{key, space, time.Now()})
	for l.order.Len() > mostLinks {
		delete(l.known, l.order.Remove(l.order.Front()).(*link).key)
	}
}

func (l *Links) find(who principal.Principal, uri string) (space string, ok bool) {
	return l.at(linkKey{viewer(who), uri})
}

func (l *Links) at(key linkKey) (space string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.known[key]
	if found == nil || time.Since(found.Value.(*link).at) > linkExpires {
		return "", false
	}
	return found.Value.(*link).space, true
}

// readerOf is the key of whoever has read a page of an upstream.
func readerOf(who principal.Principal, space string) linkKey {
	return linkKey{viewer(who) + "\x00page", space}
}

// notePage remembers that somebody has read a page of an upstream.
func (l *Links) notePage(who principal.Principal, space string) {
	l.remember(readerOf(who, space), space)
}

// hasPage reports whether somebody has read a page of an upstream.
func (l *Links) hasPage(who principal.Principal, space string) bool {
	_, ok := l.at(readerOf(who, space))
	return ok
}

// NoteCalls remembers for whoever makes a call which resources its result names.
func (l *Links) NoteCalls() tool.Step {
	return tool.Step{Name: "links", After: func(ctx context.Context, i *tool.Invocation) {
		if i.Err == nil && i.Call.Kind == "" && i.Call.Ref.Space != "" && bytes.Contains(i.Result.Raw, []byte(`"uri"`)) {
			content, _ := rawjson.Get(i.Result.Raw, "content")
			items, _ := rawjson.Items(content)
			l.noteContent(ctx, i.Call.Ref.Space, items)
		}
	}}
}

// notePrompt does the same for a prompt.
func (l *Links) notePrompt(ctx context.Context, space string, result json.RawMessage) {
	raw, _ := rawjson.Get(result, "messages")
	messages, _ := rawjson.Items(raw)
	for _, message := range messages {
		content, _ := rawjson.Get(message, "content")
		l.noteContent(ctx, space, []json.RawMessage{content})
	}
}

func (l *Links) noteContent(ctx context.Context, space string, items []json.RawMessage) {
	for i, item := range items {
		if i == mostInOne {
			return
		}
		kind, _ := rawjson.GetText(item, "type")
		if kind == "resource" {
			item, _ = rawjson.Get(item, "resource")
		}
		if uri, ok := rawjson.GetText(item, "uri"); ok && (kind == "resource" || kind == "resource_link") {
			l.add(principal.Of(ctx), space, uri)
		}
	}
}
