package usage

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// Limits of searches that wait for a call.
const (
	mostCallers  = 4096
	mostWaiting  = 6 // searches of one caller
	mostAnswers  = 4 // tools that one search may teach
	mostShown    = 20
	creditDirect = 1.0
	creditLater  = 0.5 // for a search that did not show the tool: a later one did
)

// pending is a search that waits for a call.
type pending struct {
	words    []string
	shown    []tool.Ref
	at       time.Time
	answered int
	// later is a tool that was called although only a later search showed it. The search
	// is taken for another wording of that one unless a tool that it did show is called.
	later *lesson
}

// searches are those that wait for a call, by caller, oldest first.
type searches struct {
	mu       sync.Mutex
	byCaller map[caller][]*pending
}

// lesson is what is learned from one call.
type lesson struct {
	caller     caller
	ref        tool.Ref
	definition string
	words      []string
	credit     float64
	at         time.Time
}

// Searched notes what the caller of ctx has searched for and was shown.
func (s *Store) Searched(ctx context.Context, words []string, shown []tool.Ref) {
	if s.options.Off {
		return
	}
	p := &pending{words: words, shown: shown[:min(len(shown), mostShown)], at: s.options.Clock.Now()}
	who := callerOf(ctx)
	s.learn(s.waiting.add(who, p, s.options.Window)) //nolint:contextcheck // it is stored later, when the search has ended
}

// add adds a search and returns what is learned from those that wait no longer.
func (w *searches) add(who caller, p *pending, window time.Duration) []lesson {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.byCaller[who]; !known && len(w.byCaller) >= mostCallers {
		w.removeOldest()
	}
	lessons := w.expire(who, p.at.Add(-window), mostWaiting-1)
	w.byCaller[who] = append(w.byCaller[who], p)
	return lessons
}

// removeOldest removes the caller whose last search is the oldest.
func (w *searches) removeOldest() {
	var oldest caller
	var at time.Time
	for who, list := range w.byCaller {
		if last := list[len(list)-1].at; at.IsZero() || last.Before(at) {
			oldest, at = who, last
		}
	}
	delete(w.byCaller, oldest)
}

// expire removes the searches of a caller from before a time, and the oldest until at most
// so many are left. It returns what is learned from them.
func (w *searches) expire(who caller, before time.Time, most int) (lessons []lesson) {
	list := w.byCaller[who]
	for len(list) > 0 && (len(list) > most || list[0].at.Before(before)) {
		if list[0].later != nil && list[0].answered == 0 {
			lessons = append(lessons, *list[0].later)
		}
		list = list[1:]
	}
	if len(list) == 0 {
		delete(w.byCaller, who)
	} else {
		w.byCaller[who] = list
	}
	return lessons
}

// LearnCalls learns from the calls that succeed.
func (s *Store) LearnCalls() tool.Step {
	return tool.Step{Name: "usage", After: func(ctx context.Context, i *tool.Invocation) {
		if i.Err == nil && !i.Asked && !tool.IsForPlan(ctx) && !s.waiting.empty() && !s.options.Ignore(i.Info.Ref) && !rawjson.GetBool(i.Result.Raw, "isError") {
			s.Called(ctx, i.Info)
		}
	}}
}

// Called notes that the caller of ctx has called a tool, with success.
func (s *Store) Called(ctx context.Context, info *tool.Info) {
	lessons := s.waiting.called(callerOf(ctx), info, s.options.Clock.Now(), s.options.Window)
	s.learn(lessons) //nolint:contextcheck // it is stored later, when the call has ended
}

// empty reports whether no search waits. Most calls are made long after one.
func (w *searches) empty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byCaller) == 0
}

// called answers the search that showed the tool first; of several the newest.
func (w *searches) called(who caller, info *tool.Info, now time.Time, window time.Duration) []lesson {
	w.mu.Lock()
	defer w.mu.Unlock()
	lessons := w.expire(who, now.Add(-window), mostWaiting)
	list := w.byCaller[who]
	at := showing(list, info.Ref)
	if at < 0 {
		return lessons
	}
	if list[at].answered++; list[at].answered > mostAnswers {
		return lessons
	}
	l := lesson{caller: who, ref: info.Ref, definition: info.Fingerprint(), words: list[at].words, credit: creditDirect, at: now}
	for _, before := range list[:at] {
		if before.answered == 0 && before.later == nil {
			guess := l
			guess.words, guess.credit = before.words, creditLater
			before.later = &guess
		}
	}
	return append(lessons, l)
}

// showing finds the search that showed a tool at the best place; of several the newest. It
// returns -1 if there is none.
func showing(list []*pending, ref tool.Ref) int {
	found, best := -1, mostShown
	for i, p := range slices.Backward(list) {
		if place := slices.Index(p.shown, ref); place >= 0 && place < best {
			found, best = i, place
		}
	}
	return found
}
