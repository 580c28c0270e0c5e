package usage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/tools/search"
)

// mostWords is how many words of a search are looked up.
const mostWords = 48

// agreeing is how many other members of an organization must have used a tool after
// searches with a word before it counts for all.
const agreeing = 2

// use is a stored word of a tool and a caller.
type use struct {
	owner      string
	ref        tool.Ref
	definition string
	word       word
}

// recallQuery has a fixed number of words, so that it is one statement to prepare.
var recallQuery = func() string {
	var marks strings.Builder
	for i := range mostWords {
		fmt.Fprintf(&marks, ", $%d", i+3)
	}
	return `SELECT owner, space, tool, definition, word, weight, used FROM tool_usage
		WHERE org = $1 AND (org <> '' OR owner = $2) AND word IN (` + marks.String()[2:] + `)`
}()

// Recall returns the tools that the caller of ctx called after searches with these words.
// current returns the present definition of a tool, nil if the caller does not see it. What
// belongs to a former definition is forgotten. If the database does not answer in time,
// nothing is known.
func (s *Store) Recall(ctx context.Context, words []string, current func(tool.Ref) *tool.Info) []search.Use {
	if s.options.Off {
		return nil
	}
	who := callerOf(ctx)
	rows, err := s.read(ctx, who, words)
	if err != nil {
		s.options.Log.DebugContext(ctx, "search without what was learned", "error", err)
		return nil
	}
	rows = s.valid(who, rows, current) //nolint:contextcheck // forgetting outlives the search
	byWord := map[search.Use][]use{}
	for _, u := range rows {
		key := search.Use{Word: u.word.text, Ref: u.ref}
		byWord[key] = append(byWord[key], u)
	}
	now := s.options.Clock.Now()
	var found []search.Use
	for key, uses := range byWord {
		if key.Weight = s.weigh(who, uses, now); key.Weight > 0 {
			found = append(found, key)
		}
	}
	slices.SortFunc(found, func(a, b search.Use) int {
		return cmp.Or(cmp.Compare(a.Ref.String(), b.Ref.String()), cmp.Compare(a.Word, b.Word))
	})
	return found
}

func (s *Store) read(ctx context.Context, who caller, words []string) ([]use, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	args := []any{who.org, who.owner}
	for i := range mostWords {
		text := ""
		if i < len(words) {
			text = words[i]
		}
		args = append(args, text)
	}
	return db.Find(ctx, s.db, func(row db.Scanner) (u use, err error) {
		var used int64
		err = row.Scan(&u.owner, &u.ref.Space, &u.ref.Name, &u.definition, &u.word.text, &u.word.weight, &used)
		u.word.used = time.UnixMicro(used)
		return u, err
	}, recallQuery, args...)
}

// valid returns the uses of tools as they are defined now. The caller's others are
// forgotten.
func (s *Store) valid(who caller, rows []use, current func(tool.Ref) *tool.Info) []use {
	definitions := map[tool.Ref]string{}
	var former []lesson
	rows = slices.DeleteFunc(rows, func(u use) bool {
		definition, known := definitions[u.ref]
		if !known {
			if info := current(u.ref); info != nil {
				definition = info.Fingerprint()
			}
			definitions[u.ref] = definition
		}
		isFormer := func(l lesson) bool { return l.ref == u.ref }
		if definition != "" && u.definition != definition && u.owner == who.owner && !slices.ContainsFunc(former, isFormer) {
			former = append(former, lesson{caller: who, ref: u.ref, definition: definition})
		}
		return u.definition != definition
	})
	s.learn(former) // without words: it only removes the others
	return rows
}

// weigh is how much a word counts for a tool: as often as the caller used it, and as often
// as at least two others of its organization did.
func (s *Store) weigh(who caller, uses []use, now time.Time) float64 {
	own := 0.0
	var others []float64
	for _, u := range uses {
		weight := s.decayed(u.word.weight, u.word.used, now)
		if u.owner == who.owner {
			own = weight
		} else {
			others = append(others, weight)
		}
	}
	if len(others) < agreeing {
		return own
	}
	slices.Sort(others)
	return own + others[len(others)-agreeing]
}

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
		if i.Err == nil && !i.Asked && i.Call.Kind == "" && !tool.IsForPlan(ctx) && !s.waiting.empty() && !s.options.Ignore(i.Info.Ref) && !rawjson.GetBool(i.Result.Raw, "isError") {
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
