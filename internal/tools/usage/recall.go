package usage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
	var rows []use
	err := s.db.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = db.All(ctx, tx, func(row db.Scanner) (u use, err error) {
			var used int64
			err = row.Scan(&u.owner, &u.ref.Space, &u.ref.Name, &u.definition, &u.word.text, &u.word.weight, &used)
			u.word.used = time.UnixMicro(used)
			return u, err
		}, recallQuery, args...)
		return err
	})
	return rows, err
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
